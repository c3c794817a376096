"""What the noise of a run will leave of its model, estimated before anything is trained.

The noise is that in one weight of the model, its standard deviation as root mean square over the rounds,

    noise = reach * error * noise multiplier / report goal,   reach = learning rate * clip norm

with the rms error of the server's models (`design/losses.py`): what its momentum and cooldown make of the mechanism's
noise, and what training leaves of that. `reach` is how far a round of clipped updates that agree carries the model; a
model that noise has moved is pulled back by PULL of that, a round and a unit that it is off, so slow noise is repaired
and fast noise is not. What a network bears was measured (docs/results/noise-forecast.md): a little less with more
parameters d, since each word's score sums more of them:

    ratio = noise / SCALE * (d / 80,000)^SIZE
    share of the accuracy without noise that is kept = exp(-ratio / 5 - ratio^4)

One curve for the mechanisms, report goals, rates, clip norms, lengths, networks and texts that were tried there. From a
good model of public text, in the few gentle rounds that it needs, OF_PUBLIC stands in the place of SCALE
(docs/results/first-hour.md): most that such a model knows it knew before, and noise takes of that as well.
Nothing changes when the clip norm grows and the learning rate falls by the same factor. An estimate, no promise.

Who plans before there is a server knows the noise of prefix sums alone (`ratio_of_sums`), and OF_SUMS and HOLD are the
same runs' in that measure: about the same for a mechanism like BLT under momentum, too dark for fresh noise.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from scipy.optimize import brentq

from tacit.design.losses import Errors, workload_errors
from tacit.design.workload import Workload
from tacit.errors import InputError
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.strategy import Strategy

Noisiness = Literal["quiet", "noisy", "too noisy"]

PULL, SCALE, SIZE = 0.0015, 0.45, 0.3  # by docs/results/noise-forecast.md, as the curve itself
OF_PUBLIC = 0.3
OF_SUMS, OF_PUBLIC_SUMS, HOLD = 0.75, 0.5, 0.2  # of the noise of prefix sums; more is borne with longer steps
STEP, PARAMETERS = 10.0, 80_000.0  # of most runs there
MOMENTUM = Workload(momentum=0.9)  # theirs, and that of recipes
FACTOR = 1.5  # nine in ten of the measured runs kept what the curve says at a ratio within this factor
GOOD = 0.9  # share kept from which on a run works
# The same for a run from a model of public text: without noise, clients who write as that text does taught it 2% more,
# and clients who write otherwise 15% (docs/results/first-hour.md); students whose essays came after novels of another
# century 30% (docs/results/spanish.md), authors of commit messages after a forum and novels 33%, with some noise
# (docs/results/people.md). Nothing that may be looked at before training tells them apart: the vocabulary of the public
# text lacked 21%, 24%, 20% and 36% of their words.
ALIKE, UNLIKE, FARTHEST = 0.02, 0.15, 0.33
GOOD_OF_PUBLIC = 0.98
# The shortest runs that were measured, of docs/results/noise-forecast.md and docs/results/demo.md. Two shorter
# ones that were reported kept 35% and 70% where the curve says 90%.
FEWEST_ROUNDS, FEWEST_ROUNDS_OF_PUBLIC = 40, 16
LEAST = 0.1  # share kept, at the upper end of the interval, below which it cannot


def share_kept(ratio: float) -> float:
    """The share of the accuracy without noise that is kept at this ratio of noise to signal; 1 without noise."""
    ratio = min(ratio, 100.0)
    return math.exp(-ratio / 5 - ratio**4)


def ratio_of_sums(noise: float, *, step: float = STEP, parameters: float = PARAMETERS, scale: float = OF_SUMS) -> float:
    """So much noise in the prefix sums of a weight's steps over what such a network with such a step, what a round of
    clipped updates carries the model in the end, bears; see above.
    """
    return noise / scale * math.pow(STEP / step, HOLD) * math.pow(parameters / PARAMETERS, SIZE)


def ratio_for(share: float) -> float:
    """The ratio that leaves this share: the inverse of `share_kept`. InputError unless 0 < share < 1."""
    if not 0 < share < 1:
        raise InputError(f"share={share} is not between 0 and 1; give for example 0.9.")
    missing = -math.log(share)
    return float(brentq(lambda ratio: ratio / 5 + ratio**4 - missing, 0.0, 5 * missing + 1, xtol=1e-15, rtol=1e-13))


@lru_cache(maxsize=1024)
def errors_of_models(strategy: Strategy, server: Workload, rounds: int, reach: float) -> Errors:
    """The errors of the models of so many rounds, in units of the learning rate and for seeds of deviation 1: what
    training leaves of them, where clipped updates that agree carry a model by `reach`.

    No step is pulled back by more than all that it was: beyond, what is sent back would swing ever farther.
    """
    return workload_errors(strategy, server, rounds, min(PULL * reach, 1.0 - server.momentum))


@dataclass(frozen=True, kw_only=True)
class NoiseForecast:
    """The noise of a run against its signal.

    guarantee: of the model updates, whose clip norm and noise multiplier these are. server: what it makes of the means,
    at its learning rate. parameters: of the network. public: it begins from a model of public text.
    noises: how many parties add noise, any `honest` of them together what the guarantee accounts; the model gets that
    of all.
    """

    guarantee: Guarantee
    report_goal: int
    learning_rate: float
    parameters: int
    server: Workload = MOMENTUM
    public: bool = False
    noises: int = 1
    honest: int = 1

    @property
    def noisier(self) -> float:
        """The noise that the model gets, in what the guarantee accounts: a factor of at least 1."""
        return math.sqrt(self.noises / self.honest)

    @property
    def reach(self) -> float:
        """How far a round whose clipped updates agree carries the model at once: the norm of it in weights."""
        return self.learning_rate * self.guarantee.clip_norm

    @property
    def step(self) -> float:
        """How far it carries it in the end, by momentum."""
        return self.reach / (1 - self.server.momentum)

    @property
    def noise(self) -> float:
        """The standard deviation of the noise in one weight, root mean square over the rounds; 0 without noise."""
        strategy, rounds = self.guarantee.strategy, self.guarantee.participation.rounds
        if strategy is None:
            return 0.0
        multiplier = self.noisier * self.guarantee.noise_multiplier
        error = errors_of_models(strategy, self.server, rounds, self.reach).rms
        return self.reach * error * multiplier / self.report_goal

    @property
    def ratio(self) -> float:
        """Noise over what such a network bears: at 1, 30% of the accuracy is kept."""
        scale = OF_PUBLIC if self.public else SCALE
        return self.noise / scale * math.pow(self.parameters / PARAMETERS, SIZE)

    @property
    def share_kept(self) -> float:
        """The share of the accuracy without noise that is expected to be kept."""
        return share_kept(self.ratio)

    @property
    def interval(self) -> tuple[float, float]:
        """(least, most) of it, as nine in ten of the measured runs had it."""
        return share_kept(self.ratio * FACTOR), share_kept(self.ratio / FACTOR)

    @property
    def noisiness(self) -> Noisiness:
        """Whether the noise leaves a model: only where not even the upper end of the interval does, it is too noisy."""
        if self.interval[1] < LEAST:
            return "too noisy"
        return "quiet" if self.share_kept >= self.good else "noisy"

    @property
    def fewest_rounds(self) -> int:
        """Rounds of the shortest measured run from such a start; of fewer only that it is too noisy is known."""
        return FEWEST_ROUNDS_OF_PUBLIC if self.public else FEWEST_ROUNDS

    @property
    def known(self) -> bool:
        """Whether that rests on runs of such a length, or is the worst, which fewer rounds never mended."""
        rounds = self.guarantee.participation.rounds
        return not self.guarantee.private or rounds >= self.fewest_rounds or self.noisiness == "too noisy"

    @property
    def good(self) -> float:
        """The share kept from which on this run works."""
        return GOOD_OF_PUBLIC if self.public else GOOD

    @property
    def times_too_much(self) -> float:
        """Its noise over that of the same run where it would work; at most 1 where it does."""
        return self.ratio / ratio_for(self.good)

    def zcdp_for(self, share: float) -> float:
        """The zCDP of this run with just the noise that leaves this share. InputError unless 0 < share < 1."""
        return self.guarantee.zcdp * (self.ratio / ratio_for(share)) ** 2

    @property
    def working_zcdp(self) -> float:
        """The zCDP of this run with just the noise with which it works."""
        return self.zcdp_for(self.good)

    @property
    def working_parameters(self) -> int:
        """The size of a network that bears this noise."""
        return int(self.parameters / math.pow(max(self.times_too_much, 1.0), 1 / SIZE))

    def working_population(self, clients: int) -> int:
        """How many clients bear this run's noise multiplier: so many times more, as many times the report goal."""
        return math.ceil(clients * self.times_too_much)
