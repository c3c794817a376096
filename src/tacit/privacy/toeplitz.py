"""Strategy matrices that do the same in every round: lower-triangular Toeplitz, told by one column of C or C^{-1}.

Column and inverse column are power series with q(x) p(x) = 1, so each kind says one of them and finds the other.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import AccountingError, InputError
from tacit.privacy.factorization import Strategy, listed
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity import rising, toeplitz_sensitivity_squared
from tacit.privacy.sensitivity_blt import blt_sensitivity_squared

Column = NDArray[np.float64]

_DIRECT = 1 << 27  # coefficients times rounds: up to here (a second) the recursion is used, which rounds least
_ROUNDING = 1e-12  # a computed column that ought to be flat may rise by this much, relative to its largest number


def finite_numbers(name: str, values: tuple[float, ...]) -> tuple[float, ...]:
    """`values` as floats; InputError where there are none, or one is not finite."""
    numbers = tuple(float(value) for value in values)
    if not numbers or not np.isfinite(numbers).all():
        raise InputError(f"{name}={numbers} must be finite numbers, at least one; give real values.")
    return numbers


def invertible(name: str, values: tuple[float, ...]) -> tuple[float, ...]:
    """`values` as finite numbers of which the first is positive: what C and C^{-1} begin with."""
    numbers = finite_numbers(name, values)
    if numbers[0] <= 0:
        raise InputError(f"{name} begin with {numbers[0]}, and C must be invertible; let the first be positive.")
    return numbers


def lower_toeplitz(column: Column) -> NDArray[np.float64]:
    """(n,) -> (n, n) with column[i - j] at row i, column j <= i."""
    lag = np.subtract.outer(np.arange(column.size), np.arange(column.size))
    return np.where(lag >= 0, column[lag], 0.0)


def reciprocal_series(coefficients: Column, rounds: int) -> Column:
    """The first `rounds` coefficients (rounds,) of 1 / sum_t coefficients[t] x^t; coefficients (p,), the first not 0.

    By the recursion, O(rounds * p), each coefficient accurate relative to what cancels in it; where that would take
    seconds by Newton's iteration g <- g (2 - c g), O(rounds log rounds), accurate relative to the largest one.
    """
    from scipy.fft import irfft, next_fast_len, rfft
    from scipy.signal import lfilter

    terms = np.trim_zeros(np.asarray(coefficients, dtype=np.float64)[:rounds], "b")
    known = min(rounds, max(1024, _DIRECT // max(terms.size, 1)))
    impulse = np.zeros(known)
    impulse[:1] = 1.0
    series: Column = lfilter([1.0], terms, impulse)
    while series.size < rounds:
        size = min(2 * series.size, rounds)
        length = next_fast_len(3 * size, real=True)
        spectrum = rfft(series, length)
        series = irfft(spectrum * (2.0 - rfft(terms[:size], length) * spectrum), length)[:size]
    return series


class _ToeplitzStrategy(Strategy):
    """What the Toeplitz strategies have in common: one column says C, and one C^{-1}."""

    @abstractmethod
    def column(self, rounds: int) -> Column:
        """The first column of C, (rounds,)."""

    @abstractmethod
    def inverse_column(self, rounds: int) -> Column:
        """The first column of C^{-1}, (rounds,)."""

    def dense(self, rounds: int) -> NDArray[np.float64]:
        """C, (rounds, rounds)."""
        return lower_toeplitz(self.column(rounds))

    def sensitivity_squared(self, participation: Participation) -> tuple[float, bool]:
        """(squared sensitivity, whether it is exact), remembered; AccountingError where given coefficients rise."""
        return _remembered(self, participation)

    def worst_case(self, participation: Participation) -> tuple[float, bool]:
        """What `sensitivity_squared` remembers: exact for a column that never rises."""
        return toeplitz_sensitivity_squared(self.column(participation.rounds), participation), True


@lru_cache(maxsize=1024)
def _remembered(strategy: _ToeplitzStrategy, participation: Participation) -> tuple[float, bool]:
    return strategy.worst_case(participation)


def _reach(numbers: ArrayLike) -> int:
    """The place of the last number that is not zero."""
    return int(np.flatnonzero(numbers)[-1])


@dataclass(frozen=True, kw_only=True)
class Toeplitz(_ToeplitzStrategy):
    """A lower-triangular Toeplitz matrix by its first column; it defines as many rounds as it has coefficients.

    Coefficients left out because they were thought not to matter understate the sensitivity by a factor of about
    the number of participations, so they are never filled in silently; `BandedToeplitz` says that there are no more.
    """

    coefficients: tuple[float, ...]
    kind: ClassVar[str] = "toeplitz"

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", invertible("coefficients", self.coefficients))

    @property
    def rounds_defined(self) -> int:
        """As many rounds as coefficients."""
        return len(self.coefficients)

    def column(self, rounds: int) -> Column:
        """The first column of C, (rounds,); AccountingError where there are fewer coefficients."""
        if rounds > len(self.coefficients):
            raise AccountingError(
                f"{len(self.coefficients)} coefficients do not say what round {rounds} does; give {rounds} "
                "coefficients, or a banded-toeplitz strategy, whose further coefficients are zero."
            )
        return np.array(self.coefficients[:rounds], dtype=np.float64)

    def inverse_column(self, rounds: int) -> Column:
        """The first column of C^{-1}, (rounds,); AccountingError where there are fewer coefficients."""
        return reciprocal_series(self.column(rounds), rounds)

    def row(self, round: int, back: int) -> Column:
        """The first coefficients, whatever the round."""
        return np.array(self.coefficients[: back + 1])

    def memory(self, rounds: int) -> int:
        """The noise of each round so far, at most of as many as the coefficients reach back."""
        return min(rounds, _reach(self.coefficients))

    def describe(self) -> str:
        """By how many coefficients."""
        return f"a Toeplitz strategy of {len(self.coefficients)} coefficients"


@dataclass(frozen=True)
class _Band(_ToeplitzStrategy):
    """What the two strategies of few coefficients have in common."""

    coefficients: tuple[float, ...]
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", invertible("coefficients", self.coefficients))

    def account_command(self) -> str:
        """The kind and its coefficients."""
        return f"{self.kind} --coefficients {listed(self.coefficients)}"

    def _padded(self, rounds: int) -> Column:
        """The first `rounds` coefficients, zeros where there are no more."""
        column = np.zeros(rounds)
        known = self.coefficients[:rounds]
        column[: len(known)] = known
        return column

    def _reciprocal(self, rounds: int) -> Column:
        """The first `rounds` coefficients of the inverse, which does not end with the band."""
        return reciprocal_series(np.array(self.coefficients), rounds)


@dataclass(frozen=True)
class BandedToeplitz(_Band):
    """C lower-triangular Toeplitz with these coefficients (p,) and zeros after them, for any number of rounds.

    InputError where one is not finite or the first is not positive.
    """

    kind: ClassVar[str] = "banded-toeplitz"

    def column(self, rounds: int) -> Column:
        """The first column of C, (rounds,)."""
        return self._padded(rounds)

    def inverse_column(self, rounds: int) -> Column:
        """The first column of C^{-1}, (rounds,)."""
        return self._reciprocal(rounds)

    def row(self, round: int, back: int) -> Column:
        """The first coefficients, whatever the round, then zeros."""
        return self._padded(back + 1)

    def memory(self, rounds: int) -> int:
        """The noise of each round so far, at most of as many as the band reaches back."""
        return min(rounds, _reach(self.coefficients))

    def describe(self) -> str:
        """By how many bands."""
        return f"a banded Toeplitz strategy of {len(self.coefficients)} bands"


@dataclass(frozen=True)
class BandedInverse(_Band):
    """C^{-1} lower-triangular Toeplitz with these coefficients (p,) and zeros after them, for any number of rounds.

    Its noise needs the seeds of the last p rounds and no more; C itself never ends. DP-lambdaCGD, which takes back
    a share lambda of the last round's noise, is `BandedInverse((1.0, -lambda))`. InputError where one is not
    finite or the first is not positive.
    """

    kind: ClassVar[str] = "banded-inverse"

    def column(self, rounds: int) -> Column:
        """The first column of C, (rounds,)."""
        return self._reciprocal(rounds)

    def inverse_column(self, rounds: int) -> Column:
        """The first column of C^{-1}, (rounds,)."""
        return self._padded(rounds)

    def worst_case(self, participation: Participation) -> tuple[float, bool]:
        """Exact where C never rises; else that of the smallest non-increasing column above |C|, a bound.

        The column never ends, and it is computed: where it is flat its last bits may rise.
        """
        column = self.column(participation.rounds)
        falling = _falling(column)
        flat = np.abs(falling - column).max() <= _ROUNDING * falling[0]
        return toeplitz_sensitivity_squared(falling, participation), bool(flat)

    def only_bounded(self, participation: Participation, squared: float) -> str:
        """Which coefficient of C rises."""
        return rising(self.column(participation.rounds))

    def memory(self, rounds: int) -> int:
        """A seed of each round so far, at most p - 1; none where that is one: it is drawn again (DP-lambdaCGD)."""
        reach = _reach(self.coefficients)
        return 0 if reach == 1 else min(rounds, reach)

    def describe(self) -> str:
        """By how many bands of the inverse."""
        return f"the inverse of a banded Toeplitz matrix of {len(self.coefficients)} bands"


def _falling(column: Column) -> Column:
    """The smallest non-increasing column that is nowhere below |column|."""
    return np.maximum.accumulate(np.abs(column)[::-1])[::-1]


@dataclass(frozen=True, kw_only=True)
class Blt(_ToeplitzStrategy):
    """A buffered linear Toeplitz matrix: c_0 = 1, c_t = sum_j omega_j theta_j^(t-1) (arXiv:2408.08868, Section 3).

    `theta` (d,) in (0, 1] are the decays of the d buffers, `omega` (d,) > 0 their weights; for any number of rounds.
    InputError otherwise.
    """

    theta: tuple[float, ...]
    omega: tuple[float, ...]
    kind: ClassVar[str] = "blt"

    def __post_init__(self) -> None:
        theta, omega = finite_numbers("theta", self.theta), finite_numbers("omega", self.omega)
        if len(theta) != len(omega):
            raise InputError(f"{len(theta)} theta and {len(omega)} omega were given; each buffer has one of both.")
        if not all(0 < value <= 1 for value in theta):
            raise InputError(f"theta={theta} leave (0, 1]; a buffer's decay must lie above 0 and at most at 1.")
        if not all(value > 0 for value in omega):
            raise InputError(f"omega={omega} are not all positive; drop a buffer whose weight is zero or less.")
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "omega", omega)

    def column(self, rounds: int) -> Column:
        """The first column of C, (rounds,); after the first coefficient they never rise."""
        powers = np.array(self.theta)[:, None] ** np.arange(max(rounds - 1, 0))
        # The order of a sum may differ from column to column: its last bit must not make a flat tail rise.
        falling = np.minimum.accumulate(np.array(self.omega) @ powers)
        return np.concatenate(([1.0], falling))[:rounds]

    def inverse_column(self, rounds: int) -> Column:
        """The first column of C^{-1}, (rounds,): 1, then sum_j omega_hat_j theta_hat_j^(t-1)."""
        theta_hat, omega_hat = self.inverse()
        powers = theta_hat[:, None] ** np.arange(max(rounds - 1, 0))
        return np.concatenate(([1.0], omega_hat @ powers))[:rounds]

    def worst_case(self, participation: Participation) -> tuple[float, bool]:
        """In closed form; AccountingError where the omegas sum to more than 1."""
        return blt_sensitivity_squared(self.theta, self.omega, participation), True

    def memory(self, rounds: int) -> int:
        """The buffers, always."""
        return len(self.theta)

    def describe(self) -> str:
        """By all its numbers."""
        return f"a BLT with theta {self.theta} and omega {self.omega}"

    def account_command(self) -> str:
        """By all its numbers, whether they are published or not."""
        return f"blt --theta {listed(self.theta)} --omega {listed(self.omega)}"

    def inverse(self) -> tuple[Column, Column]:
        """(theta_hat (d,) decreasing, omega_hat (d,) <= 0) of C^{-1}, itself of BLT form.

        C^{-1} runs the state matrix diag(theta) - 1 omega^T; scaled by sqrt(omega) on both sides that is symmetric,
        so its eigenvalues are theta_hat and the squared projections of sqrt(omega) are -omega_hat. Unlike the
        product formula of arXiv:2408.08868, Algorithm 5, this stays accurate where thetas are (nearly) equal.
        """
        root = np.sqrt(np.array(self.omega))
        values, vectors = np.linalg.eigh(np.diag(self.theta) - np.outer(root, root))
        return values[::-1].copy(), -((root @ vectors) ** 2)[::-1]


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
