"""Opacus: clipped noisy gradients, fixed and adaptive, and what its accountants say of them."""

import importlib.metadata
import json
import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from opacus.accountants import PRVAccountant, RDPAccountant
from opacus.optimizers import DPOptimizer
from opacus.optimizers.adaclipoptimizer import AdaClipDPOptimizer

OTHERS, COUNT_NOISE, RATE = 9, 0.6, 0.2
GRADIENTS = {False: [0.5] * OTHERS, True: [0.5] * OTHERS + [5.0]}


def stepping(kind: Any, **more: float) -> tuple[Any, Callable[[list[float]], tuple[float, float]]]:
    """A function of the batch's gradients: the gradient that a step releases, and the clip norm after it."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = kind(
        torch.optim.SGD([parameter], lr=0.0),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        expected_batch_size=1,
        loss_reduction="sum",
        **more,
    )

    def step(gradients: list[float]) -> tuple[float, float]:
        optimizer.zero_grad()
        optimizer.max_grad_norm = 1.0
        parameter.grad_sample = torch.tensor(gradients)[:, None]
        optimizer.step()
        return float(parameter.grad), float(optimizer.max_grad_norm)

    return optimizer, step


def fixed(runs: int) -> dict[str, Any]:
    optimizer, step = stepping(DPOptimizer)
    return {
        "case": "fixed",
        "subject": "a sum of clipped gradients",
        "threat_model": "the noisy sum of a step is seen; the canary's gradient is clipped",
        "law": "normal",
        "claim": 1 / optimizer.noise_multiplier,
        **{name: [step(GRADIENTS[there])[0] for _ in range(runs)] for name, there in SIDES},
    }


def adaptive(runs: int) -> dict[str, Any]:
    """What is accounted of a step is optimizer.noise_multiplier, of the sum and of the share below the clip norm."""
    optimizer, step = stepping(
        AdaClipDPOptimizer,
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=RATE,
        max_clipbound=1e6,
        min_clipbound=1e-6,
        unclipped_num_std=COUNT_NOISE,
    )
    raised = (1 - (2 * COUNT_NOISE) ** -2) ** -0.5

    def score(there: bool) -> float:
        gradient, norm = step(GRADIENTS[there])
        share = 0.5 - math.log(norm) / RATE
        return float(gradient / raised**2 - share * OTHERS / COUNT_NOISE**2)

    return {
        "case": "adaptive",
        "subject": f"adaptive clipping with noise of {COUNT_NOISE} on the count",
        "threat_model": "the noisy sum of a step and the next clip norm are seen; only the canary is clipped",
        "law": "any",
        "claim": 1 / optimizer.noise_multiplier,
        **{name: [score(there) for _ in range(runs)] for name, there in SIDES},
    }


def nan(runs: int) -> dict[str, Any]:
    optimizer, step = stepping(DPOptimizer)
    batches = {False: GRADIENTS[False], True: [*GRADIENTS[False], math.nan]}
    return {
        "case": "nan",
        "subject": "a gradient that is NaN",
        "threat_model": "the noisy sum of a step is seen",
        "law": "any",
        "claim": 1 / optimizer.noise_multiplier,
        **{name: [math.isnan(step(batches[there])[0]) for _ in range(runs)] for name, there in SIDES},
    }


def account(name: str, accountant: Any, noise: float, releases: int, delta: float) -> dict[str, Any]:
    for _ in range(releases):
        accountant.step(noise_multiplier=noise, sample_rate=1.0)
    return {
        "case": "account",
        "subject": f"{name}, {releases} steps at noise multiplier {noise:g}",
        "threat_model": "all steps are seen; the exact curve is known",
        "measure": "epsilon",
        "law": "exact",
        "claim": accountant.get_epsilon(delta),
        "delta": delta,
        "mu": math.sqrt(releases) / noise,
    }


SIDES = (("absent", False), ("present", True))
warnings.simplefilter("ignore")
settings = json.load(sys.stdin)
torch.manual_seed(settings["seed"])
cases = [{"measure": "mu", **case(settings["runs"])} for case in (fixed, adaptive, nan)]
cases += [account("RDP", RDPAccountant(), 4.0, 16, 1e-6), account("PRV", PRVAccountant(), 4.0, 16, 1e-6)]
package = f"opacus {importlib.metadata.version('opacus')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
