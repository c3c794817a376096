"""Flower: central noise on the mean of clipped updates: fixed, adaptive, where half of the clients come, with NaN."""

import importlib.metadata
import json
import logging
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAvg,
)
from flwr.supercore.task_identity import TaskIdentity

SAMPLED, NOISE, CLIP, NOTHING = 4, 1.0, 1.0, 1e-9
COUNT_NOISE, RATE = 0.6, 0.2
RAISED = (NOISE**-2 - (2 * COUNT_NOISE) ** -2) ** -0.5
SIDES = (("absent", False), ("present", True))


def reply(update: float, client: int) -> Message:
    asked = Message(RecordDict(), dst_node_id=client, message_type="train")
    weighed = MetricRecord({"num-examples": 1})
    return Message(RecordDict({"arrays": ArrayRecord([np.array([update])]), "metrics": weighed}), reply_to=asked)


def released(strategy: Any, updates: list[float]) -> float:
    """The model after a round that began at 0, in which clients sent these updates."""
    strategy.current_arrays = ArrayRecord([np.zeros(1)])
    arrays, _ = strategy.aggregate_train(1, [reply(update, at + 1) for at, update in enumerate(updates)])
    return float(arrays.to_numpy_ndarrays()[0][0])


def fixed(updates: list[float]) -> float:
    return released(DifferentialPrivacyServerSideFixedClipping(FedAvg(), NOISE, CLIP, SAMPLED), updates)


def adaptive(updates: list[float]) -> float:
    """The mean and the next clip norm, by which it was noised, in the direction of a client that is clipped."""
    strategy = DifferentialPrivacyServerSideAdaptiveClipping(
        FedAvg(), NOISE, SAMPLED, CLIP, 0.5, RATE, clipped_count_stddev=COUNT_NOISE
    )
    total, norm = SAMPLED * released(strategy, updates), strategy.clipping_norm
    clipped = SAMPLED * (0.5 - math.log(norm) / RATE)
    return float((total - (SAMPLED - 1)) / (RAISED * norm) ** 2 + (clipped - (SAMPLED - 1)) / COUNT_NOISE**2)


def missing(updates: list[float]) -> float:
    return math.isnan(fixed(updates))


def case(
    name: str, subject: str, law: str, score: Callable[[list[float]], float], others: list[float], canary: float
) -> dict[str, Any]:
    """The canary's update is zero, nearly, or `canary`; those of others are known."""
    runs = min(settings["runs"], 1000)  # a round takes three milliseconds
    return {
        "case": name,
        "subject": subject,
        "threat_model": "the noisy mean of a round and the next clip norm are seen; the canary's update is zeroed",
        "measure": "mu",
        "law": law,
        "claim": 1 / NOISE,
        **{side: [score([canary if there else NOTHING, *others]) for _ in range(runs)] for side, there in SIDES},
    }


settings = json.load(sys.stdin)
logging.getLogger("flwr").setLevel(logging.CRITICAL)
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
np.random.seed(settings["seed"])
few, all_others = [NOTHING] * (SAMPLED // 2 - 1), [NOTHING] * (SAMPLED - 1)
cases = [
    case("fixed", "central fixed clipping, all sampled clients come", "normal", fixed, all_others, 5.0),
    case("dropout", "central fixed clipping, half of the sampled come", "normal", fixed, few, 5.0),
    case("nan", "central fixed clipping, an update is NaN", "any", missing, all_others, math.nan),
    case("adaptive", "central adaptive clipping, others clipped", "any", adaptive, [5.0] * (SAMPLED - 1), 5.0),
]
package = f"flwr {importlib.metadata.version('flwr')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
