"""Every participation pattern there is: the slow reference of all sensitivities."""

import itertools
from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from tacit.privacy import Participation
from tacit.privacy.strategy import Strategy


def patterns(participation: Participation) -> Iterator[tuple[int, ...]]:
    """Every set of rounds that one client may take part in."""
    for count in range(participation.max_participations + 1):
        for pattern in itertools.combinations(range(participation.rounds), count):
            if all(b - a >= participation.min_separation for a, b in itertools.pairwise(pattern)):
                yield pattern


def worst_pattern(matrix: np.ndarray, participation: Participation) -> float:
    """max over patterns of |C 1_pattern|^2, for any C (rows, rounds)."""
    return max(float((matrix[:, list(pattern)].sum(axis=1) ** 2).sum()) for pattern in patterns(participation))


def brute_force(strategy: Strategy, participation: Participation) -> float:
    """The slow reference of every sensitivity whose C^T C is non-negative."""
    return worst_pattern(strategy.dense(participation.rounds), participation)


def worst_signs(matrix: np.ndarray, participation: Participation) -> float:
    """max over patterns and over updates of +1 and -1: what one client can do where C^T C has negative entries."""
    return max(
        float(((matrix[:, list(pattern)] @ np.array(signs)) ** 2).sum())
        for pattern in patterns(participation)
        for signs in itertools.product((1.0, -1.0), repeat=len(pattern))
    )


@st.composite
def participations(draw: st.DrawFn, largest: int = 16) -> Participation:
    rounds = draw(st.integers(1, largest))
    return Participation(
        rounds=rounds,
        min_separation=draw(st.integers(1, rounds + 1)),
        max_participations=draw(st.integers(1, rounds + 1)),
    )
