"""How many rounds of how many clients, and how far to go in them, for a population and a privacy budget.

Where everybody takes part several times, the noise on a step of the model hardly depends on how the participations are
cut into rounds. In multiples of 1 / (clients * mu), with mu the budget as Gaussian differential privacy, the noise that
the best mechanism adds to the sum of all means, per round, is 1.0 where all take part in every round, and 1.05 to 1.35
for four or more participations up to 32 rounds apart; one participation costs 1.5 to 2.1 (a test). So rounds
may be many and small, as learning wants them, and what is left to decide is how far the model goes: the further, the
more it learns and the more noise it takes with it. `progress` is that distance, in clip norms. What is learnt after so
much progress was measured without noise (docs/results/first-hour.md), and what noise leaves of it as well
(docs/results/noise-forecast.md); the progress taken is the one with the largest product.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.design.catalogue.square_root import SQUARE_ROOT
from tacit.errors import InputError
from tacit.planning.noise_forecast import PARAMETERS, SIZE, STEP, share_kept
from tacit.privacy.participation import Participation

VISITS = 40_000  # participations of all clients together that a run may take: minutes on two cores with a small network
TIMES = (1, 2, 4, 8)  # participations of a client: beyond, the noise of a step falls by a few per cent
MORE_TIMES = (16, 32)  # where otherwise no cohort would be large enough
LEAST = 20  # clients of a cohort: below, accuracy falls without any noise (docs/results/signal-to-noise.md)
FARTHEST_BACK, GRID = 1e-3, 60  # the grid of progress: of the farthest, and how many


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How much is learnt after so much progress without noise, as a share of all that there is to learn; and the rounds
    in which this was seen.
    """

    start: float  # what the first model knows
    half: float  # the progress after which half of the rest is learnt
    power: float
    momentum: float  # of the server, at a learning rate of at most 1 / clip norm
    rounds: tuple[int, ...]  # to choose from
    cohort: int  # clients of a round at least, or half of all
    scale: float  # the noise in a weight that leaves 1/e of the accuracy, where a round carries 10 clip norms
    hold: float  # the power of that carry with which more noise is borne: later rounds correct it
    spared: float = 0.01  # of what is gained: so much is given for fewer participations
    parameters: float = PARAMETERS  # of the network: a larger one bears less

    @property
    def step(self) -> float:
        """The clip norms that a round may carry the model, in the end."""
        return 1 / (1 - self.momentum)

    def moving(self, rounds: int) -> float:
        """How many rounds the model moves at full speed: momentum takes its time."""
        return rounds - self.momentum * (1 - self.momentum**rounds) * self.step

    def learnt(self, progress: float) -> float:
        """A share between 0 and 1: start + (1 - start) / (1 + (half / progress)^power)."""
        return self.start + (1 - self.start) / (1 + math.pow(self.half / progress, self.power))

    def share_kept(self, noise: float, carried: float) -> float:
        """The share that so much noise in a weight leaves, where a round carries the model so many clip norms."""
        borne = self.scale * math.pow(carried / STEP, self.hold) / math.pow(self.parameters / PARAMETERS, SIZE)
        return share_kept(noise / borne)


@dataclass(frozen=True, kw_only=True)
class RunShape:
    """Rounds, participants and the server's step of a run; see above."""

    rounds: int
    report_goal: int
    min_separation: int
    progress: float  # in clip norms
    noise: float  # in a weight of the model, estimated with the mechanism "square-root"
    learnt: float  # the share of what there is to learn without noise
    share_kept: float  # the share of that which the noise leaves
    learning: Learning

    @property
    def participation(self) -> Participation:
        """As often as the separation lets anyone come."""
        return Participation.worst_case(self.rounds, self.min_separation)

    @property
    def expected(self) -> float:
        """The share of what there is to learn that the model is expected to end with."""
        return self.learnt * self.share_kept

    def learning_rate(self, clip_norm: float) -> float:
        """Of the server, to two digits: what makes the progress."""
        farthest = self.learning.step * self.learning.moving(self.rounds)
        return float(f"{self.progress / farthest / clip_norm:.2g}")


def shape_of_run(clients: int, zcdp: float, learning: Learning) -> RunShape:
    """The shape whose model is expected to be best; among those that learn nearly as much, the one of the fewest
    participations.

    clients: who train. zcdp: infinite for a run without noise.
    Raises: InputError for too few clients.
    """
    sizes = [*_sizes(clients, learning, TIMES)] or [*_sizes(clients, learning, MORE_TIMES)]
    found = [_with_progress(clients, *each, zcdp, learning) for each in sizes]
    if not found:
        raise InputError(
            f"{clients} training clients make no cohorts of {LEAST}, the smallest worth training with; "
            "import more clients."
        )
    best = max(each.expected for each in found)
    enough = best - max(best - learning.start, 0.0) * learning.spared
    return min(
        (each for each in found if each.expected >= enough),
        key=lambda each: (each.rounds * each.report_goal, each.rounds),
    )


def _sizes(clients: int, learning: Learning, most: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """(rounds, report goal, separation): everybody comes some times, as far apart as the population lets them."""
    for rounds in learning.rounds:
        for times in most:
            goal = min(times * clients, VISITS) // rounds
            if min(learning.cohort, clients // 2) <= goal <= clients and goal >= LEAST:
                yield rounds, goal, min(clients // goal, rounds)


def _with_progress(clients: int, rounds: int, goal: int, separation: int, zcdp: float, learning: Learning) -> RunShape:
    """The progress whose product of what is learnt and what is kept is the largest, on a grid of 12%."""
    farthest = learning.step * learning.moving(rounds)
    noise = learning.step * _noise_of_a_step(rounds, separation) / (goal * farthest * math.sqrt(2 * zcdp))
    tried = farthest * np.geomspace(FARTHEST_BACK, 1, GRID)
    shapes = (
        RunShape(
            rounds=rounds,
            report_goal=goal,
            min_separation=separation,
            progress=float(progress),
            noise=float(noise * progress),
            learnt=learning.learnt(float(progress)),
            share_kept=learning.share_kept(float(noise * progress), float(progress / rounds)),
            learning=learning,
        )
        for progress in tried
    )
    return max(shapes, key=lambda each: each.expected)


@lru_cache(maxsize=1024)
def _noise_of_a_step(rounds: int, separation: int) -> float:
    """The noise of the sum of all means, rms over rounds, at 1/2-zCDP and for one report a round, in clip norms."""
    participation = Participation.worst_case(rounds, separation)
    strategy = SQUARE_ROOT.strategy(participation, "rms")
    return SQUARE_ROOT.cost(strategy, participation).rms_loss
