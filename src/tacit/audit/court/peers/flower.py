"""Flower: central noise on the mean of clipped updates, where all sampled clients come, half do, or one sends NaN."""

import importlib.metadata
import json
import logging
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from flwr.supercore.task_identity import TaskIdentity

SAMPLED, NOISE, CLIP = 4, 1.0, 1.0
SIDES = (("absent", 0.0), ("present", 1.0))


def reply(update: float, client: int) -> Message:
    asked = Message(RecordDict(), dst_node_id=client, message_type="train")
    weighed = MetricRecord({"num-examples": 1})
    return Message(RecordDict({"arrays": ArrayRecord([np.array([update])]), "metrics": weighed}), reply_to=asked)


def released(updates: list[float]) -> float:
    """The model after a round that began at 0, in which clients sent these updates."""
    strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), NOISE, CLIP, SAMPLED)
    strategy.current_arrays = ArrayRecord([np.zeros(1)])
    arrays, _ = strategy.aggregate_train(1, [reply(update, at + 1) for at, update in enumerate(updates)])
    return float(arrays.to_numpy_ndarrays()[0][0])


def case(
    name: str, subject: str, came: int, law: str, canary: float, score: Callable[[float], float], runs: int
) -> dict[str, Any]:
    """The canary's update is `canary`, or nearly nothing; the others', known, are nearly nothing."""
    others = [1e-9] * (came - 1)
    return {
        "case": name,
        "subject": subject,
        "threat_model": "the noisy mean of a round is seen; the canary's update is zeroed or is there",
        "measure": "mu",
        "law": law,
        "claim": 1 / NOISE,
        **{side: [score(released([canary if there else 1e-9, *others])) for _ in range(runs)] for side, there in SIDES},
    }


settings = json.load(sys.stdin)
logging.getLogger("flwr").setLevel(logging.CRITICAL)
logging.getLogger("flwr.supercore").setLevel(logging.CRITICAL)
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
np.random.seed(settings["seed"])
runs = min(settings["runs"], 1000)  # a round takes three milliseconds
cases = [
    case("fixed", "central fixed clipping, all sampled clients come", SAMPLED, "normal", 5.0, float, runs),
    case("dropout", "central fixed clipping, half of the sampled come", SAMPLED // 2, "normal", 5.0, float, runs),
    case("nan", "central fixed clipping, an update is NaN", SAMPLED, "any", math.nan, math.isnan, runs),
]
package = f"flwr {importlib.metadata.version('flwr')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
