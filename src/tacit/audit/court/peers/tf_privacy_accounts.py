"""TF-Privacy's account of 2021, which needs no TensorFlow: at its own orders, and at one within rounding of 1."""

import importlib.metadata
import json
import math
import random
import runpy
import sys
from typing import Any

ACCOUNT = "tensorflow_privacy/privacy/analysis/rdp_accountant.py"
OWN = [1 + tenth / 10 for tenth in range(1, 100)] + list(range(12, 64))


def loaded() -> Any:
    """What the one file binds, by name: its package would import TensorFlow."""
    files = importlib.metadata.files("tensorflow-privacy") or []
    return runpy.run_path(str(next(file for file in files if str(file) == ACCOUNT).locate()))


def claimed(orders: list[float], sampled: float, noise: float, steps: int, delta: float) -> float:
    divergences = accounts["compute_rdp"](q=sampled, noise_multiplier=noise, steps=steps, orders=orders)
    return float(accounts["get_privacy_spent"](orders, divergences, target_delta=delta)[0])


def sampled_gaussian(name: str, orders: list[float], runs: int) -> dict[str, Any]:
    return {
        "case": name,
        "subject": f"RDP of a sampled Gaussian, {name}",
        "threat_model": "one sampled noisy sum is seen",
        "measure": "epsilon",
        "law": "any",
        "claim": claimed(orders, 0.5, 1.0, 1, 1e-3),
        "delta": 1e-3,
        "absent": [random.gauss(0, 1) for _ in range(runs)],
        "present": [random.gauss(random.random() < 0.5, 1) for _ in range(runs)],
    }


settings = json.load(sys.stdin)
random.seed(settings["seed"])
accounts = loaded()
cases = [
    sampled_gaussian("own orders", OWN, settings["runs"]),
    sampled_gaussian("orders", [1 + 1e-15, *OWN], settings["runs"]),
    {
        "case": "account",
        "subject": "RDP, 16 Gaussian steps at noise multiplier 4",
        "threat_model": "all steps are seen; the exact curve is known",
        "measure": "epsilon",
        "law": "exact",
        "claim": claimed(OWN, 1.0, 4.0, 16, 1e-6),
        "delta": 1e-6,
        "mu": math.sqrt(16) / 4.0,
    },
]
package = f"tensorflow-privacy {importlib.metadata.version('tensorflow-privacy')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
