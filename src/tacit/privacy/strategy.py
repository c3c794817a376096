"""Strategy matrices C: what correlates the noise. The noise of a run is C^{-1} Z for independent seeds Z.

A strategy here is a plain value that a ledger can hold; what streams its noise lives in `mechanisms`, and what its
sensitivity is in `sensitivity`. C is taken as given, never normalised. Each kind says its `rounds_defined`: None
where it goes on for any number of rounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, UnknownRelease
from tacit.privacy.matrices import Banded, Dense
from tacit.privacy.toeplitz import BandedInverse, BandedToeplitz, Blt, Toeplitz

__all__ = [
    "PUBLISHED_BLT",
    "Banded",
    "BandedInverse",
    "BandedToeplitz",
    "Blt",
    "Dense",
    "Independent",
    "Record",
    "Strategy",
    "Toeplitz",
    "Tree",
    "strategy_from_record",
]

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Independent:
    """Fresh noise every round: C is the identity (DP-FedAvg)."""

    kind: ClassVar[str] = "independent"

    @property
    def rounds_defined(self) -> None:
        """Any number of rounds."""
        return None

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """C, (rounds, rounds)."""
        return np.eye(rounds)

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {"kind": self.kind}


@dataclass(frozen=True, kw_only=True)
class Tree:
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

    @property
    def rounds_defined(self) -> None:
        """Any number of rounds."""
        return None

    def blocks(self, rounds: int) -> tuple[tuple[int, int], ...]:
        """The complete trees of the forest over `rounds` rounds: (first round, height), in the order of the rounds.

        Each stretch between restarts is cut into the binary digits of its length, largest first.
        """
        begins = [0, *(at for at in self.restarts if at < rounds)]
        forest = []
        for begin, end in zip(begins, [*begins[1:], rounds], strict=True):
            while begin < end:
                height = (end - begin).bit_length() - 1
                forest.append((begin, height))
                begin += 1 << height
        return tuple(forest)

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

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {"kind": self.kind, "restarts": list(self.restarts), "variance_reduced": self.variance_reduced}


Strategy: TypeAlias = Independent | Tree | Toeplitz | BandedToeplitz | BandedInverse | Blt | Banded | Dense

# All three were designed for 2000 rounds, at (b, k) = (400, 5), (100, 10), (1000, 2). b400 is published in
# google-parfait/federated-compute, fcp/confidentialcompute/python/accounting_test.py (anchor there: 100
# rounds, b = 50, z = 1 -> zCDP 3.17226586). b100 and b1000 are believed to be those of arXiv:2408.08868,
# Appendix A: they were not found in a source that could be opened, and the last digits of b1000's second
# omega are uncertain; they reproduce its Table 4 (pt-PT and pt-BR rows).
PUBLISHED_BLT: Mapping[str, Blt] = MappingProxyType(
    {
        "b400": Blt(
            theta=(0.9999999999921251, 0.9944453083640997, 0.8985923474607591, 0.4912001418098778),
            omega=(0.0070314825502323835, 0.10613806907600574, 0.1898159060327625, 0.1966594748073734),
        ),
        "b100": Blt(
            theta=(0.989739971007307, 0.7352001759538236, 0.16776199983448145, 0.1677619998016191),
            omega=(0.20502892852480875, 0.23357939425278557, 0.03479503245420878, 0.03479509876050538),
        ),
        "b1000": Blt(
            theta=(0.9999999999983397, 0.9973412136664378, 0.9584629472313878, 0.6581796870749317),
            omega=(0.008657392263671862, 0.05890891298180951, 0.14548176930698697, 0.2770117005326523),
        ),
    }
)


_KINDS: Mapping[str, Callable[..., Strategy]] = {
    **{each.kind: each for each in (Independent, Tree, Toeplitz, BandedToeplitz, BandedInverse, Blt)},
    **{each.kind: each.from_record for each in (Banded, Dense)},
}


def strategy_from_record(record: Mapping[str, Any]) -> Strategy:
    """The strategy that `to_record` wrote; UnknownRelease where it is none of ours, or holds anything else."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UnknownRelease(
            f"strategy kind {kind!r} is none of {', '.join(_KINDS)}; account it with the version that wrote it."
        )
    try:
        return _KINDS[kind](**values)
    except (TypeError, ValueError) as error:
        raise UnknownRelease(f"the record of a {kind} strategy cannot be read: {error}") from error
