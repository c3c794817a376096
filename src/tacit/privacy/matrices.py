"""Strategy matrices given number by number: lower-triangular, banded or full, for the rounds they were made for."""

import base64
import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import AccountingError, InputError
from tacit.privacy.factorization import Record, Strategy, lowest_diagonal
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity_matrix import (
    banded_pattern_squared,
    banded_sensitivity_squared,
    dense_sensitivity_squared,
    is_whole_tree,
    pattern_sensitivity_squared,
)

MOST_REMEMBERED = 1024
# By its digest: a matrix may be large, and others may send one after another.
_REMEMBERED: dict[tuple[str, bytes, Participation], tuple[float, bool]] = {}


def _numbers(name: str, given: ArrayLike) -> NDArray[np.float64]:
    """A read-only float64 copy, two-dimensional and finite; InputError otherwise."""
    numbers = np.array(given, dtype=np.float64, order="C")
    if numbers.ndim != 2 or not numbers.size:
        raise InputError(f"{name} has shape {numbers.shape}; give a matrix with two axes.")
    if not np.isfinite(numbers).all():
        raise InputError(f"{name} holds a number that is not finite; give real values.")
    numbers.setflags(write=False)
    return numbers


class Matrix(Strategy):
    """What the two kinds share: they are compared, hashed and recorded by the numbers that they hold.

    Those are too many for a recipe and for each row of a ledger: a run keeps them once, in a file of their own.
    """

    @property
    @abstractmethod
    def values(self) -> NDArray[np.float64]:
        """The array that says everything."""

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of shape and values."""
        return hashlib.sha256(repr(self.values.shape).encode() + self.values.tobytes()).digest()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Matrix) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash((self.kind, self.digest))

    @property
    def rounds_defined(self) -> int:
        """As many rounds as rows."""
        return len(self.values)

    def check_rounds(self, rounds: int) -> None:
        """AccountingError beyond the rounds that the matrix was made for; fewer are its leading block."""
        if rounds > self.rounds_defined:
            raise AccountingError(
                f"a {self.kind} matrix of {self.rounds_defined} rounds does not say what round {rounds} does; design "
                f"one for {rounds} rounds, or take a mechanism that runs on (blt, banded-toeplitz, banded-inverse)."
            )

    def sensitivity_squared(self, participation: Participation) -> tuple[float, bool]:
        """(squared sensitivity, whether it is exact and not an upper bound); remembered, since it may take seconds."""
        key = self.kind, self.digest, participation
        if key not in _REMEMBERED:
            if len(_REMEMBERED) >= MOST_REMEMBERED:
                _REMEMBERED.clear()
            _REMEMBERED[key] = self.worst_case(participation)
        return _REMEMBERED[key]

    @abstractmethod
    def worst_case(self, participation: Participation) -> tuple[float, bool]:
        """What `sensitivity_squared` remembers."""

    @classmethod
    @abstractmethod
    def is_searched(cls, bands: int, participation: Participation) -> bool:
        """Whether the worst pattern of such a matrix with so many bands is searched for, in time and memory of the
        order of C^T C, rather than computed.
        """

    @abstractmethod
    def pattern_squared(self, participations: Sequence[int], rounds: int) -> float:
        """Squared sensitivity to a client who comes in just these of so many rounds: `pattern_sensitivity_squared`."""

    def numbers(self) -> Mapping[str, Any]:
        """None: they are too many."""
        return {}

    def reference(self) -> Record:
        """Kind, shape and SHA-256, which name the matrix: it may be megabytes, and every round has a row."""
        return {"kind": self.kind, "shape": list(self.values.shape), "sha256": self.digest.hex()}

    def to_record(self) -> Record:
        """Plain values for JSON: the numbers as base64 of little-endian float64, row by row."""
        values = base64.b64encode(self.values.astype("<f8").tobytes()).decode("ascii")
        return {"kind": self.kind, "shape": list(self.values.shape), "values": values}

    @classmethod
    def from_record(cls, *, shape: Sequence[int], values: str) -> Self:  # type: ignore[override]
        """What `to_record` wrote; ValueError or TypeError where it is damaged."""
        numbers = np.frombuffer(base64.b64decode(values, validate=True), dtype="<f8")
        return cls(numbers.reshape(tuple(shape)))  # type: ignore[call-arg]


@dataclass(frozen=True, eq=False, repr=False)
class Banded(Matrix):
    """C lower-triangular with p diagonals, for n rounds: `columns` (n, p), `columns[j, i]` = C[j + i, j].

    Entries that would lie below row n are zero. InputError where they are not, where p > n, or where a number of
    the diagonal, `columns[:, 0]`, is not positive (C must be invertible).
    """

    columns: NDArray[np.float64]
    kind: ClassVar[str] = "banded"

    def __post_init__(self) -> None:
        columns = _numbers("columns", self.columns)
        rounds, bands = columns.shape
        if bands > rounds:
            raise InputError(f"columns has {bands} bands for {rounds} rounds; give at most as many bands as rounds.")
        at = int(columns[:, 0].argmin())
        if columns[at, 0] <= 0:
            raise InputError(f"columns[{at}, 0] is {columns[at, 0]:.6g}; C is invertible with a positive diagonal.")
        tail = columns[rounds - bands :]
        if np.tril(tail[:, ::-1], -1).any():
            raise InputError(f"columns reach below row {rounds - 1} of C; write zeros where j + i >= {rounds}.")
        object.__setattr__(self, "columns", columns)

    def __repr__(self) -> str:
        rounds, bands = self.columns.shape
        return f"Banded(rounds={rounds}, bands={bands}, digest={self.digest.hex()[:8]})"

    @property
    def values(self) -> NDArray[np.float64]:
        """The columns."""
        return self.columns

    @property
    def bands(self) -> int:
        """p, the diagonals that are not zero."""
        return int(self.columns.shape[1])

    def leading(self, rounds: int) -> NDArray[np.float64]:
        """The columns (rounds, min(p, rounds)) of the leading block, zeros below its last row."""
        self.check_rounds(rounds)
        columns = self.columns[:rounds, :rounds].copy()
        bands = columns.shape[1]
        tail = columns[rounds - bands :, ::-1]
        tail[...] = np.triu(tail)
        return columns

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """C, (rounds, rounds): the leading block; AccountingError beyond n."""
        matrix = np.zeros((rounds, rounds))
        for band, diagonal in enumerate(self.leading(rounds).T):
            at = np.arange(rounds - band)
            matrix[at + band, at] = diagonal[: rounds - band]
        return matrix

    def row(self, round: int, back: int) -> NDArray[np.float64]:
        """C[round, round - i] for i = 0 ... back, from the columns."""
        row, lags = np.zeros(back + 1), np.arange(min(back + 1, self.bands))
        row[: lags.size] = self.columns[round - lags, lags]
        return row

    def worst_case(self, participation: Participation) -> tuple[float, bool]:
        """By a dynamic program for up to 2b bands, exact; beyond as any matrix."""
        if self.is_searched(self.bands, participation):
            return dense_sensitivity_squared(self, participation)
        return banded_sensitivity_squared(self.leading(participation.rounds), participation), True

    @classmethod
    def is_searched(cls, bands: int, participation: Participation) -> bool:
        """Where more than neighbouring participations overlap."""
        limits = participation.effective
        return min(bands, limits.rounds) > 2 * limits.min_separation and limits.max_participations > 1

    def pattern_squared(self, participations: Sequence[int], rounds: int) -> float:
        """By what overlaps within the bands."""
        return banded_pattern_squared(self.leading(rounds), participations)

    def memory(self, rounds: int) -> int:
        """The noise of each round so far, at most of as many as the lowest band that is not zero reaches back."""
        return min(rounds, int(np.flatnonzero(self.columns.any(axis=0))[-1]))

    def describe(self) -> str:
        """By its rounds and bands."""
        return f"a banded strategy matrix of {self.rounds_defined} rounds and {self.bands} bands"


@dataclass(frozen=True, eq=False, repr=False)
class Dense(Matrix):
    """C lower-triangular, number by number, for n rounds: `matrix` (n, n).

    InputError where it is not square, not lower-triangular, or its diagonal is not positive.
    """

    matrix: NDArray[np.float64]
    kind: ClassVar[str] = "dense"

    def __post_init__(self) -> None:
        matrix = _numbers("matrix", self.matrix)
        if matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"matrix has shape {matrix.shape}; a strategy matrix is square, a row for each round.")
        if np.triu(matrix, 1).any():
            raise InputError("matrix has numbers above its diagonal, noise of later rounds; give a lower triangle.")
        diagonal = np.diag(matrix)
        at = int(diagonal.argmin())
        if diagonal[at] <= 0:
            raise InputError(f"matrix[{at}, {at}] is {diagonal[at]:.6g}; C is invertible with a positive diagonal.")
        object.__setattr__(self, "matrix", matrix)

    def __repr__(self) -> str:
        return f"Dense(rounds={len(self.matrix)}, digest={self.digest.hex()[:8]})"

    @property
    def values(self) -> NDArray[np.float64]:
        """The matrix."""
        return self.matrix

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """C, (rounds, rounds): the leading block; AccountingError beyond n."""
        self.check_rounds(rounds)
        return self.matrix[:rounds, :rounds].copy()

    def row(self, round: int, back: int) -> NDArray[np.float64]:
        """C[round, round - i] for i = 0 ... back."""
        row: NDArray[np.float64] = self.matrix[round, round - np.arange(back + 1)]
        return row

    @cached_property
    def tree_rounds(self) -> int | None:
        """The rounds of the binary tree whose nodes C stands for (TreeAgg-Full); None where it is another matrix."""
        return len(self.matrix) if is_whole_tree(self.matrix) else None

    def worst_case(self, participation: Participation) -> tuple[float, bool]:
        """As of any matrix; that of a binary tree is recognised."""
        several = participation.effective.max_participations > 1
        return dense_sensitivity_squared(self, participation, tree_rounds=self.tree_rounds if several else None)

    @classmethod
    def is_searched(cls, bands: int, participation: Participation) -> bool:
        """Of several participations."""
        return participation.effective.max_participations > 1

    def pattern_squared(self, participations: Sequence[int], rounds: int) -> float:
        """By the columns of these rounds."""
        self.check_rounds(rounds)
        return pattern_sensitivity_squared(self.matrix[:rounds, list(participations)])

    def memory(self, rounds: int) -> int:
        """The noise of each round so far, at most of as many as the lowest diagonal lies below the first."""
        return min(rounds, self._reach)

    @cached_property
    def _reach(self) -> int:
        return lowest_diagonal(self.matrix)

    def describe(self) -> str:
        """By its rounds."""
        return f"a strategy matrix of {self.rounds_defined} rounds"
