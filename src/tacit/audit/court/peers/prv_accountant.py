"""prv_accountant: epsilon of 400 Gaussian releases, at deltas down to below the rounding of floats."""

import importlib.metadata
import json
import math
import sys

import prv_accountant

NOISE, RELEASES = 200.0, 400
DELTAS = {1e-6: "account", 1e-12: "account", 1.1e-18: "delta"}


def upper(delta: float) -> float | None:
    """The upper bound that is to be relied on; None where the accountant refuses to give one."""
    try:
        if hasattr(prv_accountant, "PRVAccountant"):  # from 0.2 on
            mechanism = prv_accountant.PoissonSubsampledGaussianMechanism(
                sampling_probability=1.0, noise_multiplier=NOISE
            )
            accountant = prv_accountant.PRVAccountant(
                prvs=[mechanism], max_self_compositions=[RELEASES], eps_error=0.01, delta_error=delta / 1000
            )
            return float(accountant.compute_epsilon(delta=delta, num_self_compositions=[RELEASES])[2])
        accountant = prv_accountant.Accountant(
            noise_multiplier=NOISE, sampling_probability=1.0, delta=delta, eps_error=0.01, max_compositions=RELEASES
        )
        return float(accountant.compute_epsilon(num_compositions=RELEASES)[2])
    except ValueError as error:
        if "loating point" not in str(error):
            raise
        return None


settings = json.load(sys.stdin)
cases = [
    {
        "case": case,
        "subject": f"upper bound of {RELEASES} Gaussian releases at noise multiplier {NOISE:g}",
        "threat_model": "all releases are seen; the exact curve is known",
        "measure": "epsilon",
        "law": "exact",
        "claim": upper(delta),
        "delta": delta,
        "mu": math.sqrt(RELEASES) / NOISE,
    }
    for delta, case in DELTAS.items()
]
package = f"prv_accountant {importlib.metadata.version('prv_accountant')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
