"""pfl-research: the Gaussian mechanism, a statistic that is NaN, and banded matrix factorization."""

import contextlib
import importlib.metadata
import json
import math
import os
import sys
import tempfile
from typing import Any

import numpy as np
import torch
from pfl.internal.ops import pytorch_ops
from pfl.internal.ops.selector import set_framework_module
from pfl.privacy.ftrl_mechanism import BandedMatrixFactorizationMechanism
from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.privacy.privacy_accountant import PLDPrivacyAccountant
from pfl.stats import MappedVectorStatistics

ROUNDS, SEPARATION, NOISE = 20, 10, 2.0
SIDES = (("absent", 0.0), ("present", 1.0))


def vector(values: Any) -> MappedVectorStatistics:
    return MappedVectorStatistics({"w": torch.tensor(values, dtype=torch.float64)}, weight=1)


def released(mechanism: Any, values: list[float]) -> Any:
    clipped, _ = mechanism.constrain_sensitivity(vector(values))
    return mechanism.add_noise(clipped, cohort_size=1)[0]["w"].numpy()


def gaussian(runs: int) -> dict[str, Any]:
    mechanism = GaussianMechanism(1.0, NOISE)
    return {
        "case": "gaussian",
        "subject": "the Gaussian mechanism on one clipped statistic",
        "threat_model": "one noisy statistic is seen",
        "law": "normal",
        "claim": 1 / NOISE,
        **{side: [float(released(mechanism, [5 * there])[0]) for _ in range(runs)] for side, there in SIDES},
    }


def nan(runs: int) -> dict[str, Any]:
    mechanism = GaussianMechanism(1.0, NOISE)
    values = {0.0: 0.0, 1.0: math.nan}
    return {
        "case": "nan",
        "subject": "the Gaussian mechanism on a statistic that is NaN",
        "threat_model": "one noisy statistic is seen",
        "law": "any",
        "claim": 1 / NOISE,
        **{
            side: [bool(np.isnan(released(mechanism, [values[there]])[0])) for _ in range(runs)]
            for side, there in SIDES
        },
    }


def accountant(releases: int) -> PLDPrivacyAccountant:
    return PLDPrivacyAccountant(
        num_compositions=releases, sampling_probability=1.0, mechanism="gaussian", noise_parameter=NOISE, delta=1e-6
    )


def banded(runs: int) -> dict[str, Any]:
    """Each coordinate of one stream is a run. The canary adds 1 to it in two rounds, SEPARATION apart or more.

    The accountant is made for so many compositions of a sensitivity of 1. Whitened by the strategy matrix, the
    released rounds are independent, and the canary moves them by the sum of the columns of its rounds.
    """
    strategy = BandedMatrixFactorizationMechanism(1.0, ROUNDS, SEPARATION, accountant).query_matrix
    norms = np.linalg.norm(strategy, axis=0) ** 2
    pairs = [(one, other) for one in range(ROUNDS) for other in range(one + SEPARATION, ROUNDS)]
    came = max(pairs, key=lambda pair: norms[pair[0]] + norms[pair[1]])
    moved = strategy[:, came].sum(axis=1)

    def scores(there: float) -> list[float]:
        mechanism = BandedMatrixFactorizationMechanism(1.0, ROUNDS, SEPARATION, accountant)
        rounds = np.arange(ROUNDS)
        stream = [
            mechanism.add_noise(vector(np.full(runs, there * (at in came))), cohort_size=1)[0]["w"].numpy()
            for at in rounds
        ]
        return [float(score) for score in moved @ strategy @ np.array(stream)]

    return {
        "case": "banded",
        "subject": f"banded matrix factorization, {ROUNDS} rounds, separation {SEPARATION}",
        "threat_model": "all noisy rounds are seen; the client comes twice, as the separation allows",
        "law": "normal",
        "claim": math.sqrt(len(came)) / NOISE,
        **{side: scores(there) for side, there in SIDES},
    }


settings = json.load(sys.stdin)
set_framework_module(pytorch_ops)
np.random.seed(settings["seed"])
torch.manual_seed(settings["seed"])
with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(sys.stderr):
    os.chdir(scratch)  # the strategy matrix is written into the current folder
    cases = [{"measure": "mu", **case(settings["runs"])} for case in (gaussian, nan, banded)]
    os.chdir("/")
package = f"pfl {importlib.metadata.version('pfl')}"
with open(settings["out"], "w", encoding="utf-8") as file:
    json.dump({"package": package, "cases": cases}, file)
