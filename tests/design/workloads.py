"""Workloads that designs are for, their matrices, and participations."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.design.workload import Workload
from tacit.privacy import Participation

Array = NDArray[np.float64]


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    momentum = draw(st.sampled_from([0.0, 0.3, 0.9, 0.99]))
    return Workload(
        momentum=momentum,
        nesterov=momentum > 0 and draw(st.booleans()),
        cooldown=draw(st.sampled_from([0.0, 0.01, 0.3, 1.0])),
    )


def matrix_of(workload: Workload, rounds: int) -> Array:
    """The slow reference: P R M by three matrices."""
    beta, age = workload.momentum, np.subtract.outer(np.arange(rounds), np.arange(rounds))
    power = beta ** np.maximum(age, 0)
    steps = power * (age == 0) + beta * power if workload.nesterov else power
    ones = np.tril(np.ones((rounds, rounds)))
    return np.asarray(ones @ np.diag(workload.rates(rounds)) @ np.tril(steps))


@st.composite
def participations(draw: st.DrawFn) -> Participation:
    rounds = draw(st.integers(2, 14))
    separation = draw(st.integers(1, rounds))
    return Participation(
        rounds=rounds, min_separation=separation, max_participations=draw(st.integers(1, -(-rounds // separation)))
    )
