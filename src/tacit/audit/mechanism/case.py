"""A promise and the code that is to keep it, so that an auditor can play it: shipped code, or anybody's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Runs = NDArray[np.bool_]

Play = Callable[[Runs, int], NDArray[Any]]
"""(in which runs the canary takes part, (runs,); a seed) -> what is released of each run, (rows, runs)."""

Sums = NDArray[np.float32]  # (rounds, runs)

Release = Callable[[Sums, int], NDArray[Any]]
"""(what clients add to the sum of each round, (rounds, runs); a seed) -> what is released, (rows, runs).

The runs have nothing to do with one another: the coordinates of one vector, where noise is drawn for each alike. An
equal seed may give equal noise, another seed must give other noise.
"""


@dataclass(frozen=True, kw_only=True)
class Known:
    """The score that is known to tell most, if the noise is what is promised: then it has deviation 1.

    moved: by how much the canary moves it; at most the claim, less where the accountant counts more than is released.
    """

    weights: Numbers  # (rows,)
    moved: float


@dataclass(frozen=True, kw_only=True)
class Case:
    """claim: the mu promised for all that is released together. known: None where the auditor has to learn it all."""

    subject: str
    claim: float
    rows: int
    play: Play
    threat_model: str
    known: Known | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)


def of_release(release: Release, canary: Numbers) -> Play:
    """A client that adds `canary` (rounds,) to the sums, alone: what others add is the same with it and without."""

    def play(present: Runs, seed: int) -> NDArray[Any]:
        return release(np.multiply.outer(canary.astype(np.float32), present), seed)

    return play
