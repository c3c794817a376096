"""The workload matrix A: what a linear server makes of the means, and with them of their noise.

The model after round t is its start plus sum_{s <= t} A_ts mean_s. A server of rate r_t in round t and momentum beta
(Nesterov's looks one step ahead) has A = P R M: P sums over rounds (ones below the diagonal and on it), R = diag(r),
M is Toeplitz with the column

    1, beta, beta^2, ...                 momentum         1/(1 - beta x)
    1 + beta, beta^2, beta^3, ...        Nesterov's       (1 + beta - beta x)/(1 - beta x)

so A_ts = sum_{s <= r <= t} r_r M_{r-s}; without momentum and cooldown A = P, the prefix sums of the papers. The noise
of the models is A C^{-1} Z. The server sees nothing but noised means, so A is post-processing: what a run promises
depends on the strategy C alone. Such workloads: arXiv:2202.08312; with momentum arXiv:2405.13763; with rates that fall
arXiv:2511.17994.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError

Array = NDArray[np.float64]

BLOCK = 512  # rows of A at once: 4 kB a round
NOTHING = 2.0**-56  # of the first coefficient: what a double no longer sees beside it


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A in units of the learning rate, which scales all errors alike and decides no design.

    `cooldown` is the share of the rounds, the last ones, over which the rate falls linearly to zero.
    """

    momentum: float = 0.0
    nesterov: bool = False
    cooldown: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum={self.momentum} must be in [0, 1); the papers use 0.9.")
        if self.nesterov and not self.momentum:
            raise InputError("nesterov looks one step of the momentum ahead, and there is none; give momentum=0.9.")
        if not 0 <= self.cooldown <= 1:
            raise InputError(f"cooldown={self.cooldown} must be a share of the rounds, from 0 to 1.")

    def rates(self, rounds: int) -> Array:
        """The rate of each round (rounds,), in multiples of the learning rate; all above 0."""
        rates = np.ones(rounds)
        if self.cooldown:
            last = max(round(self.cooldown * rounds), 1)
            rates[rounds - last :] = 1.0 - np.arange(last) / last
        return rates

    def moved(self, values: Array) -> Array:
        """M times `values` (..., rounds): with an impulse, what one mean adds to the steps from its round on."""
        from scipy.signal import lfilter

        beta = self.momentum
        first = [1.0 + beta, -beta] if self.nesterov else [1.0]
        return np.asarray(lfilter(first, [1.0, -beta], values))

    def models(self, means: Array) -> Array:
        """A times `means` (rounds, ...): the models of all rounds."""
        return np.stack(list(self.states(means, len(means))))

    def states(self, means: Iterable[Array], rounds: int, pull: float = 0.0) -> Iterator[Array]:
        """The model after each round, from the round's mean.

        pull: the share of the model that the next mean takes back, in units of the learning rate: training repairs what
        noise did to the model, so that mean_t = given_t - pull * model_{t-1}.
        """
        model = moved = np.zeros(())
        for rate, given in zip(self.rates(rounds), means, strict=True):
            mean = given - pull * model
            moved = self.momentum * moved + mean
            model = model + rate * (mean + self.momentum * moved if self.nesterov else moved)
            yield model

    def arriving(self, rounds: int) -> Array:
        """The squares of each column of A, added up (rounds,): what the noise of a round does to all models."""
        found = np.zeros(rounds)
        for rows in self.blocks(rounds, BLOCK):
            found[: rows.shape[1]] += (rows**2).sum(axis=0)
        return found

    def blocks(self, rounds: int, size: int, pull: float = 0.0) -> Iterator[Array]:
        """A, `size` rows at a time: rows begin to end as (end - begin, end); nothing follows the diagonal.

        pull: as for `states`; A is then (A^{-1} + pull S)^{-1}, S with ones below the diagonal.
        """
        rows = self.states((_impulse(rounds, at) for at in range(rounds)), rounds, pull)
        for end in (*range(size, rounds, size), rounds):
            yield np.stack([row[:end] for row in islice(rows, size)])

    def inverse(self, rounds: int) -> Array:
        """A^{-1} = M^{-1} R^{-1} P^{-1} by its bands (rounds, bands): [s, i] stands in row s + i, column s.

        Two bands for prefix sums, three with momentum. M^{-1} of Nesterov's never ends, but falls by
        beta/(1 + beta) < 1/2 a round: it is cut where a double sees nothing more, after some fifty bands.
        """
        from scipy.signal import lfilter

        beta = self.momentum
        first = [1.0 + beta, -beta] if self.nesterov else [1.0]
        column = np.asarray(lfilter([1.0, -beta], first, _impulse(rounds)))
        column = column[: np.flatnonzero(np.abs(column) > NOTHING * column[0])[-1] + 1]
        # (R^{-1} P^{-1})[s, s] = 1/r_s and [s + 1, s] = -1/r_{s+1}; entries below the last round are zeros.
        bands = np.zeros((rounds, min(column.size + 1, rounds)))
        slow = 1.0 / self.rates(rounds)
        for lag, share in enumerate(column):
            bands[: rounds - lag, lag] += share * slow[: rounds - lag]
            if lag + 1 < rounds:
                bands[: rounds - lag - 1, lag + 1] -= share * slow[1 : rounds - lag]
        return bands


PREFIX = Workload()
"""Prefix sums: the workload of the papers."""


def _impulse(rounds: int, at: int = 0) -> Array:
    impulse = np.zeros(rounds)
    impulse[at] = 1.0
    return impulse
