"""The strategies by kind, and the two that need no numbers: independent noise and binary trees.

What streams a strategy's noise lives in `mechanisms`; how its numbers are chosen in `design`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, UnknownRelease
from tacit.privacy.factorization import Record, Strategy, listed
from tacit.privacy.matrices import Banded, Dense, Matrix
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity_tree import forest, tree_sensitivity_squared
from tacit.privacy.toeplitz import PUBLISHED_BLT, BandedInverse, BandedToeplitz, Blt, Toeplitz

__all__ = [
    "PUBLISHED_BLT",
    "STRATEGIES",
    "Banded",
    "BandedInverse",
    "BandedToeplitz",
    "Blt",
    "Dense",
    "Independent",
    "Matrix",
    "Record",
    "Strategy",
    "Toeplitz",
    "Tree",
    "strategy_from_record",
]


@dataclass(frozen=True)
class Independent(Strategy):
    """Fresh noise every round: C is the identity (DP-FedAvg)."""

    kind: ClassVar[str] = "independent"

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """C, (rounds, rounds)."""
        return np.eye(rounds)

    def sensitivity_squared(self, participation: Participation) -> tuple[float, bool]:
        """As many participations as a client may have; exact."""
        return float(participation.effective.max_participations), True

    def memory(self, rounds: int) -> int:
        """Nothing is carried."""
        return 0

    def starts_afresh(self, round: int) -> bool:
        """In every round."""
        return True

    def describe(self) -> str:
        """The same words as where no noise is added at all."""
        return "independent noise every round"

    def account_command(self) -> str:
        """Its name alone."""
        return "independent"


@dataclass(frozen=True, kw_only=True)
class Tree(Strategy):
    """Binary-tree aggregation: one seed per complete node (arXiv:2103.00039, Appendix D).

    A new tree begins at round 0 and at each of `restarts` (rounds counted from 0, increasing, 0 left out);
    restarts beyond the end of a run are not reached. `variance_reduced` chooses Honaker's estimate from the
    same noisy nodes: post-processing, so the guarantee is the same.
    """

    restarts: tuple[int, ...] = ()
    variance_reduced: bool = False
    kind: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        restarts = tuple(int(at) for at in self.restarts)
        if restarts != tuple(self.restarts) or any(
            later <= earlier for earlier, later in zip((0, *restarts), restarts, strict=False)
        ):
            raise InputError(
                f"restarts={tuple(self.restarts)} are not increasing whole rounds after round 0; give for example "
                "restarts=(128, 1152)."
            )
        object.__setattr__(self, "restarts", restarts)

    def blocks(self, rounds: int) -> tuple[tuple[int, int], ...]:
        """The complete trees of the forest over `rounds` rounds: (first round, height), in the order of the rounds.

        Each stretch between restarts is cut into the binary digits of its length, largest first.
        """
        return forest(rounds, self.restarts)

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """The node matrix (nodes, rounds): row = the rounds below one complete node.

        Nodes are in the order in which they are completed, smaller before larger within a round.
        """
        nodes = sorted(
            (first + ((index + 1) << level), level, first + (index << level))
            for first, height in self.blocks(rounds)
            for level in range(height + 1)
            for index in range(1 << (height - level))
        )
        matrix = np.zeros((len(nodes), rounds))
        for row, (end, _, begin) in enumerate(nodes):
            matrix[row, begin:end] = 1.0
        return matrix

    def sensitivity_squared(self, participation: Participation) -> tuple[float, bool]:
        """Of all complete nodes, whichever are used; exact: the worst pattern is searched."""
        return float(tree_sensitivity_squared(participation, restarts=self.restarts)), True

    def memory(self, rounds: int) -> int:
        """The levels of the largest tree so far: of each the estimate of its last block."""
        return max((height + 1 for _, height in self.blocks(rounds)), default=0)

    def starts_afresh(self, round: int) -> bool:
        """Where a tree begins again."""
        return round in self.restarts

    def describe(self) -> str:
        """By its restarts and its estimate."""
        begun = f", restarted at rounds {', '.join(map(str, self.restarts))}" if self.restarts else ", without restarts"
        return "tree aggregation" + begun + (", variance-reduced estimate" if self.variance_reduced else "")

    def numbers(self) -> Mapping[str, Any]:
        """The restarts; that it is variance-reduced is another mechanism's name."""
        return {"restarts": self.restarts}

    def account_command(self) -> str:
        """The restarts: the estimate is post-processing and changes no figure."""
        return "tree" + (f" --restarts {listed(self.restarts)}" if self.restarts else "")


STRATEGIES: dict[str, type[Strategy]] = {
    each.kind: each
    for each in (
        Independent,
        Tree,
        Toeplitz,
        BandedToeplitz,
        BandedInverse,
        Blt,
        Banded,
        Dense,
    )
}
"""Every strategy by the kind that records name it with; a factorization of one's own adds its line."""


def strategy_from_record(record: Mapping[str, Any]) -> Strategy:
    """The strategy that `to_record` wrote; UnknownRelease where it is none of STRATEGIES, or holds anything else."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in STRATEGIES:
        raise UnknownRelease(
            f"strategy kind {kind!r} is none of {', '.join(STRATEGIES)}; account it with the version that wrote it."
        )
    try:
        return STRATEGIES[kind].from_record(**values)
    except (TypeError, ValueError) as error:
        raise UnknownRelease(f"the record of a {kind} strategy cannot be read: {error}") from error
