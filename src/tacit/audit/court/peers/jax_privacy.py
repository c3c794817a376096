"""jax-privacy: noise correlated by bands, a clipped gradient that is NaN, and two of its auditor's bounds."""

import importlib.metadata
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax_privacy import auditing, clipping, noise_addition
from jax_privacy.matrix_factorization import toeplitz

ROUNDS, SEPARATION, AUDITS, NULL, ERROR = 32, 8, 200, 50, 0.05
SIDES = (("absent", 0.0), ("present", 1.0))


def banded(runs: int) -> dict[str, Any]:
    """Each coordinate of one stream is a run; the canary adds 1 to it every SEPARATION rounds. The claim is mu = 1."""
    bands = toeplitz.optimize_banded_toeplitz(ROUNDS, bands=SEPARATION)
    sensitivity = math.sqrt(toeplitz.minsep_sensitivity_squared(bands, SEPARATION, n=ROUNDS))
    strategy = np.asarray(toeplitz.materialize_lower_triangular(bands, ROUNDS))
    came = np.arange(ROUNDS) % SEPARATION == 0

    def scores(there: float) -> list[float]:
        privatizer = noise_addition.matrix_factorization_privatizer(
            toeplitz.inverse_as_streaming_matrix(bands), stddev=sensitivity, prng_key=int(there) + 1
        )
        state, stream = privatizer.init(jnp.zeros(runs)), []
        for at in range(ROUNDS):
            noisy, state = privatizer.update(jnp.full(runs, there * came[at]), state)
            stream.append(np.asarray(noisy))
        return [float(score) for score in strategy[:, came].sum(axis=1) @ strategy @ np.array(stream)]

    return {
        "case": "banded",
        "subject": f"banded matrix factorization, {ROUNDS} rounds, separation {SEPARATION}",
        "threat_model": "all noisy rounds are seen; the client comes as the separation allows",
        "measure": "mu",
        "law": "normal",
        "claim": 1.0,
        **{side: scores(there) for side, there in SIDES},
    }


def nan(runs: int) -> dict[str, Any]:
    clipped, _ = clipping.clip_pytree(jnp.array([math.nan]), 1.0)
    noise = np.random.default_rng(0).standard_normal((2, runs))
    return {
        "case": "nan",
        "subject": "a clipped gradient that was NaN",
        "threat_model": "one noisy gradient is seen",
        "measure": "mu",
        "law": "any",
        "claim": 1.0,
        "absent": [bool(np.isnan(value)) for value in noise[0]],
        "present": [bool(np.isnan(value + float(clipped[0]))) for value in noise[1]],
    }


def audit(name: str, bound: Callable[[Any], float]) -> dict[str, Any]:
    """How often a bound that may be wrong with ERROR says of scores of one law that they leak."""
    generator = np.random.default_rng(0)
    failed = [bound(auditing.CanaryScoreAuditor(*generator.standard_normal((2, NULL)))) > 1e-6 for _ in range(AUDITS)]
    return {
        "case": name,
        "subject": f"{name} of null scores",
        "threat_model": "an auditor is given scores of one law with and without the canary",
        "measure": "rate",
        "law": "rate",
        "claim": ERROR,
        "present": [bool(each) for each in failed],
    }


settings = json.load(sys.stdin)
cases = [
    banded(settings["runs"]),
    nan(settings["runs"]),
    audit("epsilon_from_gdp", lambda auditor: auditor.epsilon_from_gdp(ERROR, 1e-5)),
    audit("epsilon_clopper_pearson", lambda auditor: auditor.epsilon_clopper_pearson(ERROR, delta=1e-5)),
]
package = f"jax-privacy {importlib.metadata.version('jax-privacy')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
