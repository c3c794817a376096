"""What sampling adds to a banded strategy, where the server itself draws who takes part: training in a data centre.

NOT for federated learning on devices: there the server does not choose who comes, and nothing here holds. Account
that by `Guarantee`, which assumes no sampling.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tacit.errors import AccountingError, InputError
from tacit.extras import of_extra
from tacit.privacy import gaussian
from tacit.privacy.delta import default_delta, publishing_warning
from tacit.privacy.renyi import epsilon_of_sampled_gaussians
from tacit.privacy.strategy import Banded, BandedToeplitz, Dense, Independent, Strategy, Toeplitz

LEAST_NOISE = 0.05  # below, the distribution of the privacy loss has tens of millions of cells, and is not made
LOSSES, RENYI, UNSAMPLED = "privacy loss distribution", "Renyi divergences", "without sampling"


@dataclass(frozen=True, kw_only=True)
class CyclicSampling:
    """The population is cut into `cycle` parts of one size; round t draws each member of part t mod `cycle`
    independently, so that `batch` are expected.

    InputError for values that are no such sampling.
    """

    population: int
    batch: float
    cycle: int

    def __post_init__(self) -> None:
        if self.population < 1 or self.cycle < 1:
            raise InputError(f"population={self.population} and cycle={self.cycle} must be at least 1; give numbers.")
        if not 0 < self.batch <= self.population:
            raise InputError(
                f"batch={self.batch} of a population of {self.population} is not possible; give the expected size of a "
                "round, above 0 and at most as many as there are."
            )

    @property
    def probability(self) -> float:
        """That a member of the part is drawn: `min(1, cycle batch / population)`."""
        return min(1.0, self.cycle * self.batch / self.population)

    @property
    def delta(self) -> float:
        """The delta at which epsilon is given where nobody says another."""
        return default_delta(self.population)


@dataclass(frozen=True, kw_only=True)
class Amplified:
    """`rounds` rounds of a strategy with bands at most the cycle, under cyclic Poisson sampling.

    Two rounds in which one may be drawn are at least a cycle apart, and their columns of C do not overlap: the run
    is at most ceil(rounds / cycle) compositions of a Poisson-sampled Gaussian whose noise multiplier is
    `noise_multiplier / column_norm` (arXiv:2306.08153, Theorem 4 and Algorithm 2). Zero-out adjacency.
    """

    sampling: CyclicSampling
    compositions: int
    column_norm: float
    noise_multiplier: float

    @property
    def sampled_noise_multiplier(self) -> float:
        """The noise multiplier of one of the compositions."""
        return self.noise_multiplier / self.column_norm

    @property
    def zcdp_without_sampling(self) -> float:
        """rho for one who takes part in every cycle: what holds where the sampling is not trusted."""
        return self.compositions * gaussian.zcdp(self.column_norm, self.noise_multiplier)

    def warning(self, delta: float) -> str | None:
        """What is wrong with a delta of 1/population or more; None where it is less."""
        return publishing_warning(delta, self.sampling.population)

    def epsilon_without_sampling(self, delta: float) -> float:
        """The smallest epsilon at `delta` for one who takes part in every cycle; exact."""
        once = gaussian.mu(self.column_norm, self.noise_multiplier)
        return gaussian.epsilon_of_mu(math.sqrt(self.compositions) * once, delta)

    def epsilon(self, delta: float) -> float:
        """An epsilon at `delta`: the least of `bounds`. Takes seconds where there are thousands of compositions."""
        return min(self.bounds(delta).values())

    def bounds(self, delta: float) -> Mapping[str, float]:
        """Each a proved upper bound of epsilon at `delta`, by its name.

        LOSSES: by privacy loss distributions rounded up to a grid of 1e-4, which are close, and infinite at a delta as
        small as what their rounding cuts off (about 1e-15); not computed for less noise than LEAST_NOISE. RENYI: see
        `renyi.py`. UNSAMPLED: for one who takes part in every cycle, exact.
        """
        if not 0 < delta < 1:
            raise InputError(f"delta={delta} is not a probability between 0 and 1; give for example 1e-6.")
        probability, noise = self.sampling.probability, self.sampled_noise_multiplier
        found = {
            RENYI: epsilon_of_sampled_gaussians(probability, noise, self.compositions, delta),
            UNSAMPLED: self.epsilon_without_sampling(delta),
        }
        if noise >= LEAST_NOISE:
            found = {LOSSES: self._by_losses(delta), **found}
        return MappingProxyType(found)

    def _by_losses(self, delta: float) -> float:
        dp_accounting = of_extra("amplification")
        round_of_cycle = dp_accounting.PoissonSampledDpEvent(
            self.sampling.probability, dp_accounting.GaussianDpEvent(self.sampled_noise_multiplier)
        )
        accountant = dp_accounting.pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)  # zero-out
        accountant.compose(dp_accounting.SelfComposedDpEvent(round_of_cycle, self.compositions))
        return float(accountant.get_epsilon(delta))


def amplified(strategy: Strategy, sampling: CyclicSampling, *, rounds: int, noise_multiplier: float) -> Amplified:
    """What `rounds` rounds of `strategy` promise under `sampling`.

    AccountingError where C is not banded, or has more bands than the cycle has parts: then no theorem holds.
    """
    if rounds < 1:
        raise InputError(f"rounds={rounds} is below 1; give the rounds of the whole run.")
    if not 0 < noise_multiplier < math.inf:
        raise InputError(f"noise_multiplier={noise_multiplier} is not a finite number above 0; give one.")
    column_norm, bands = _columns(strategy, rounds)
    if bands > sampling.cycle:
        raise AccountingError(
            f"the strategy has {bands} bands and the cycle {sampling.cycle} parts; "
            f"give a cycle of at least {bands}, so that nobody is drawn twice within one band."
        )
    return Amplified(
        sampling=sampling,
        compositions=-(-rounds // sampling.cycle),
        column_norm=column_norm,
        noise_multiplier=noise_multiplier,
    )


def bands_of(strategy: Strategy, rounds: int) -> int:
    """How many diagonals of C, the main one included, hold something; AccountingError where C is not banded."""
    return _columns(strategy, rounds)[1]


def _columns(strategy: Strategy, rounds: int) -> tuple[float, int]:
    """(the largest norm of a column of C, the number of bands) of the first `rounds` rounds."""
    match strategy:
        case Independent():
            return 1.0, 1
        case Toeplitz() | BandedToeplitz():
            column = strategy.column(rounds)
            return float(np.linalg.norm(column)), int(np.flatnonzero(column)[-1]) + 1
        case Banded():
            columns = strategy.leading(rounds)
            norms, used = np.linalg.norm(columns, axis=1), np.flatnonzero(columns.any(axis=0))
            return float(norms.max()), int(used[-1]) + 1
        case Dense():
            matrix = strategy.dense(rounds)
            below = np.subtract(*np.nonzero(matrix))
            return float(np.linalg.norm(matrix, axis=0).max()), int(below.max()) + 1
        case _:
            raise AccountingError(
                f"a {strategy.kind} strategy is not banded, and sampling has a theorem for banded ones only; "
                "take banded-toeplitz, banded or independent noise."
            )
