"""What every factorization is: a class of strategy matrices C. The noise of a run is C^{-1} Z for independent seeds Z.

A strategy is a plain value that a ledger can hold. `dense` alone makes one: whatever else is asked of it follows from
the matrix, slowly, and a class says it in closed form where it can (`tests/contracts` compares the two).
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity_matrix import dense_sensitivity_squared

Record: TypeAlias = dict[str, Any]


class Strategy(ABC):
    """A strategy matrix C, as given: never normalised. Subclasses are frozen dataclasses, compared by value."""

    kind: ClassVar[str]
    """The name under which records hold it; its line in `strategy.STRATEGIES`."""

    @property
    def rounds_defined(self) -> int | None:
        """The rounds that it is defined for; None where it goes on for any number of rounds."""
        return None

    @abstractmethod
    def dense(self, rounds: int) -> NDArray[np.float64]:
        """C, lower-triangular (rounds, rounds); AccountingError beyond the rounds that it is defined for."""

    def row(self, round: int, back: int) -> NDArray[np.float64]:
        """C[round, round - i] for i = 0 ... back, (back + 1,)."""
        row: NDArray[np.float64] = self.dense(round + 1)[round, round - np.arange(back + 1)]
        return row

    def sensitivity_squared(self, participation: Participation) -> tuple[float, bool]:
        """(squared sensitivity in squared clip norms, whether it is exact and not an upper bound).

        The worst case over all participation patterns, zero-out adjacency. By default that of the matrix: exact
        where the search for the worst pattern closes, else a proved bound (`sensitivity_matrix`).
        """
        return dense_sensitivity_squared(self, participation)

    def only_bounded(self, participation: Participation, squared: float) -> str:
        """Why `squared` is a bound and not the exact squared sensitivity, and the way out: a sentence."""
        return (
            f"the worst of all patterns of {participation.effective.max_participations} participations was not found "
            f"for this {self.kind} matrix, only that its sensitivity is at most {squared**0.5:.6g}; account "
            "with sensitivity_bound_squared, or take a banded matrix with at most 2 * min_separation bands."
        )

    def memory(self, rounds: int) -> int:
        """Vectors of the model's size that the noise carries when `rounds` rounds are done; exact for its stream.

        Not counted: the seeds of the round at hand. By default what forward substitution carries: the noise of as many
        rounds as the lowest diagonal of C that is not zero lies below the first; of all where C goes on for ever.
        """
        defined = self.rounds_defined
        return rounds if defined is None else min(rounds, lowest_diagonal(self.dense(defined)))

    def starts_afresh(self, round: int) -> bool:
        """Whether what is released from `round` (counted from 0) on shares no noise with what came before it."""
        return False

    def describe(self) -> str:
        """The mechanism in a few words, as a privacy statement has them."""
        defined = self.rounds_defined
        return f"a {self.kind} strategy" + ("" if defined is None else f" of {defined} rounds")

    def numbers(self) -> Mapping[str, Any]:
        """The few numbers that say which of its kind it is, by name, as a recipe and `tacit account` write them.

        Empty where there is nothing to say, and where it is told by too many numbers: a run keeps those in a file.
        """
        return _fields(self)

    def account_command(self) -> str | None:
        """What stands between `tacit account` and the limits to re-derive its figures; None where options cannot."""
        return None

    def to_record(self) -> Record:
        """Plain values for JSON: everything, with its kind."""
        return {
            "kind": self.kind,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in _fields(self).items()},
        }

    def reference(self) -> Record:
        """What each row of a ledger says of it: its record; of a matrix of megabytes, what names it."""
        return self.to_record()

    @classmethod
    def from_record(cls, **values: Any) -> Self:
        """What `to_record` wrote, without its kind; TypeError or ValueError where it is damaged."""
        return cls(**values)


def _fields(strategy: Strategy) -> dict[str, Any]:
    return {field.name: getattr(strategy, field.name) for field in dataclasses.fields(strategy)}  # type: ignore[arg-type]


def lowest_diagonal(matrix: NDArray[np.float64]) -> int:
    """How far below the first the lowest diagonal lies that is not zero."""
    below, above = np.nonzero(matrix)
    return int((below - above).max())


def listed(values: tuple[float, ...]) -> str:
    """Numbers as options of a command have them, to the last digit: 0.99,0.7."""
    return ",".join(map(repr, values))
