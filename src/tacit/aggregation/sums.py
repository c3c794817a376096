"""How reports become a sum, wherever they are added: on threads, on a cluster's workers, by servers of one store.

Whoever has reports begins with `zero` and `add`s one after another; whoever has several such sums `merge`s them; what
the whole says, `finish` tells. Source: the shape of Apache Beam's CombineFn, whose laws tests/contracts hold here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Report = TypeVar("Report", contravariant=True)
State = TypeVar("State")
Result = TypeVar("Result", covariant=True)
Number = TypeVar("Number", bound=np.generic)


class Aggregation(Protocol[Report, State, Result]):
    """A way of adding. `zero` is neutral, and `merge` commutative and associative, to the bit where integers are added.

    So integers have one sum, however they are split among workers and in whichever order they come. Float32 has one for
    every order: who needs equal bits splits by a fixed rule and merges in a fixed order.
    """

    def zero(self) -> State:
        """The sum of no reports, new: nobody else has it."""
        ...

    def add(self, state: State, report: Report) -> State:
        """The sum with this report: `state` itself, changed, where that can be. The report stays as it is."""
        ...

    def merge(self, state: State, other: State) -> State:
        """The sum of both: `state` itself, changed, where that can be. The other stays as it is."""
        ...

    def finish(self, state: State) -> Result:
        """What a sum says; `state` stays as it is, and may be what comes back."""
        ...


def merged(sums: Aggregation[Any, State, Any], parts: Iterable[State]) -> State:
    """The sum of the parts, in their order; in memory are two."""
    total = sums.zero()
    for part in parts:
        total = sums.merge(total, part)
    return total


@dataclass(frozen=True)
class _Vectors(Generic[Number]):
    """Vectors (length,) of one type; a sum of reports is such a vector, too."""

    length: int
    kind: ClassVar[Any]

    def zero(self) -> NDArray[Number]:
        """See Aggregation."""
        return np.zeros(self.length, self.kind)

    def add(self, state: NDArray[Number], report: NDArray[Number]) -> NDArray[Number]:
        """See Aggregation."""
        return self.merge(state, report)

    def merge(self, state: NDArray[Number], other: NDArray[Number]) -> NDArray[Number]:
        """See Aggregation."""
        np.add(state, other, out=state)
        return state

    def finish(self, state: NDArray[Number]) -> NDArray[Number]:
        """See Aggregation."""
        return state


class FloatSum(_Vectors[np.float32]):
    """Vectors of float32, added in the order in which they come.

    Two orders, or two splits, of n reports differ by at most 2 (n - 1) u of the sum of magnitudes, to first order in
    the unit roundoff u = 2^-24 [Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. 4.4]. Equal bits
    are promised where the order is the same, and nowhere else.
    """

    kind = np.float32


class CountSum(_Vectors[np.int64]):
    """Vectors of whole numbers, exactly: no sum leaves int64."""

    kind = np.int64


@dataclass(frozen=True)
class WordSum(_Vectors[np.uint32]):
    """Vectors of words, modulo 2^bits, in any order: on the way modulo 2^32, which 2^bits divides."""

    bits: int = 32
    kind = np.uint32

    def finish(self, state: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The words of the sum, each below 2^bits."""
        return state & np.uint32((1 << self.bits) - 1)


class Counted(NamedTuple):
    """What some reports add up to: their vectors, and what they say beside."""

    values: NDArray[Any]  # (length,) of the type that their `ReportSum` adds
    reports: int
    short_updates: int | None  # how many said that their update was no longer than the clip estimate; None: not asked
    losses: float | None  # sum of what they sent of their losses, float64 in the order of addition; None: not asked

    @classmethod
    def one(cls, values: NDArray[Any], short: bool | None = None, loss: float | None = None) -> "Counted":
        """Of one report, whose vector it holds and does not copy."""
        return cls(values, 1, None if short is None else int(short), loss)


@dataclass(frozen=True)
class ReportSum:
    """Vectors with a count, a bit and a loss beside each; a report is a sum of one."""

    vectors: FloatSum | WordSum
    with_short: bool = False
    with_loss: bool = False

    def zero(self) -> Counted:
        """See Aggregation."""
        return Counted(self.vectors.zero(), 0, 0 if self.with_short else None, 0.0 if self.with_loss else None)

    def add(self, state: Counted, report: Counted) -> Counted:
        """See Aggregation."""
        return self.merge(state, report)

    def merge(self, state: Counted, other: Counted) -> Counted:
        """See Aggregation."""
        return Counted(
            self.vectors.merge(state.values, other.values),
            state.reports + other.reports,
            None if state.short_updates is None else state.short_updates + (other.short_updates or 0),
            None if state.losses is None else state.losses + (other.losses or 0.0),
        )

    def finish(self, state: Counted) -> Counted:
        """See Aggregation."""
        return state._replace(values=self.vectors.finish(state.values))
