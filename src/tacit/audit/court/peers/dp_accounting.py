"""dp_accounting: epsilon of Gaussian mechanisms by both accountants, and at Renyi orders within rounding of 1."""

import importlib.metadata
import json
import math
import random
import sys
from typing import Any

import dp_accounting
from dp_accounting import pld, rdp

SETTINGS = ((1.0, 1, 1e-5), (20.0, 400, 1e-10), (0.3, 1, 1e-6))  # noise multiplier, releases, delta


def account(name: str, accountant: Any, noise: float, releases: int, delta: float) -> dict[str, Any]:
    accountant.compose(dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(noise), releases))
    return {
        "case": name,
        "subject": f"{name}, {releases} Gaussian releases at noise multiplier {noise:g}",
        "threat_model": "all releases are seen; the exact curve is known",
        "measure": "epsilon",
        "law": "exact",
        "claim": accountant.get_epsilon(delta),
        "delta": delta,
        "mu": math.sqrt(releases) / noise,
    }


def near_one(runs: int) -> dict[str, Any]:
    """An order that a user gives, 1 + 1e-15, at which the divergence of a sampled Gaussian is rounded to 0."""
    event = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(1.0))
    accountant = rdp.RdpAccountant([1 + 1e-15])
    accountant.compose(event)
    return {
        "case": "orders",
        "subject": "RDP at an order within rounding of 1, of a sampled Gaussian",
        "threat_model": "one sampled noisy sum is seen",
        "measure": "epsilon",
        "law": "any",
        "claim": accountant.get_epsilon(1e-3),
        "delta": 1e-3,
        "absent": [random.gauss(0, 1) for _ in range(runs)],
        "present": [random.gauss(random.random() < 0.5, 1) for _ in range(runs)],
    }


settings = json.load(sys.stdin)
random.seed(settings["seed"])
cases = [account("RDP", rdp.RdpAccountant(), *values) for values in SETTINGS]
cases += [account("PLD", pld.PLDAccountant(), *values) for values in SETTINGS]
cases.append(near_one(settings["runs"]))
package = f"dp-accounting {importlib.metadata.version('dp-accounting')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
