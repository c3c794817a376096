"""TF-Privacy's account of 2021, which needs no TensorFlow: at its own orders, and at one within rounding of 1."""

import importlib.metadata
import importlib.util
import json
import math
import random
import sys

ACCOUNT = "tensorflow_privacy/privacy/analysis/rdp_accountant.py"
OWN = [1 + tenth / 10 for tenth in range(1, 100)] + list(range(12, 64))


def loaded():
    """The one file: its package imports TensorFlow."""
    path = next(file for file in importlib.metadata.files("tensorflow-privacy") if str(file) == ACCOUNT).locate()
    spec = importlib.util.spec_from_file_location("rdp_accountant", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def claimed(orders, sampled, noise, steps, delta):
    divergences = accounts.compute_rdp(q=sampled, noise_multiplier=noise, steps=steps, orders=orders)
    return float(accounts.get_privacy_spent(orders, divergences, target_delta=delta)[0])


def sampled_gaussian(name, orders, runs):
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
with open(settings["out"], "w") as file:
    json.dump({"package": package, "cases": cases}, file)
