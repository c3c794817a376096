"""Which epsilon a population affords: the noise at which a network still learns, from the most reports it can give.

More reports make the noise of the mean smaller and a client's visits more: among report goals the one is taken whose
noise against the signal is least at equal zCDP. An estimate by `noise_forecast`, with clients that come in turn.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tacit.design.losses import losses
from tacit.design.mechanism import Mechanism
from tacit.design.workload import Workload
from tacit.errors import InputError
from tacit.planning.clients import Clients
from tacit.planning.noise_forecast import GOOD, MOMENTUM, PARAMETERS, STEP, NoiseForecast
from tacit.privacy.delta import default_delta
from tacit.privacy.gaussian import epsilon, zcdp_for_epsilon
from tacit.privacy.guarantee import Guarantee

HALF = 0.5  # share of the accuracy without noise: a model that has learnt what is frequent
REFERENCE = 0.5  # zCDP at which report goals are compared; which one is best does not depend on it


@dataclass(frozen=True, kw_only=True)
class PlannedTraining:
    """A planned training: so many rounds of a network whose clipped updates carry it `step` a round; see
    `NoiseForecast`.

    step: the server's learning rate / (1 - momentum) * the clip norm. server: what it makes of the means, at its
    learning rate. InputError for values that mean nothing.
    """

    rounds: int = 200
    parameters: int = int(PARAMETERS)
    step: float = STEP
    server: Workload = MOMENTUM

    def __post_init__(self) -> None:
        for name in ("rounds", "parameters"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} is nothing to train; give at least 1.")
        if not 0 < self.step < math.inf:
            raise InputError(f"step={self.step} carries no model anywhere; give a number above 0.")


@dataclass(frozen=True, kw_only=True)
class Affordable:
    """What a population affords at its best report goal; `noise_forecast` is that at the zCDP `REFERENCE`."""

    clients: Clients
    delta: float
    noise_forecast: NoiseForecast

    @property
    def report_goal(self) -> int:
        """The reports of a round with the least noise against the signal."""
        return self.noise_forecast.report_goal

    def epsilon_for(self, share: float) -> float:
        """The epsilon at which this share of the accuracy without noise is expected to be kept."""
        return epsilon(self.noise_forecast.zcdp_for(share), self.delta)

    def at_epsilon(self, epsilon: float) -> NoiseForecast:
        """The noise forecast at this epsilon."""
        guarantee = self.noise_forecast.guarantee
        assert guarantee.strategy is not None  # by `affordable`
        quieter = Guarantee.for_zcdp(
            zcdp_for_epsilon(epsilon, self.delta),
            participation=guarantee.participation,
            strategy=guarantee.strategy,
            clip_norm=guarantee.clip_norm,
        )
        return replace(self.noise_forecast, guarantee=quieter)

    @property
    def works(self) -> float:
        """The epsilon from which on a model from random weights works."""
        return self.epsilon_for(GOOD)


def affordable(
    clients: Clients,
    training: PlannedTraining,
    mechanism: Mechanism,
    *,
    most: int | None = None,
    delta: float | None = None,
) -> Affordable:
    """With at most `most` reports a round; delta: left out, that of so many devices.

    The report goals tried give separations of 1, 2, 3, 4, 6, 8, 12 ... rounds, and the largest that is allowed: within
    5% of the best of all (a test compares). Raises: InputError for clients with a separation or a timer of their own.
    """
    if clients.min_separation is not None or clients.timer_hours is not None:
        raise InputError("the separation follows from the report goal here; leave out min_separation and timer_hours.")
    if most is not None and most < 1:
        raise InputError(f"a report goal of at most {most} is none; give at least 1.")
    tried = [forecast_at(clients, training, mechanism, goal) for goal in _report_goals(clients, training.rounds, most)]
    best = min(tried, key=lambda each: each.ratio)
    found = default_delta(clients.devices) if delta is None else delta
    return Affordable(clients=clients, delta=found, noise_forecast=best)


def _report_goals(clients: Clients, rounds: int, most: int | None) -> list[int]:
    allowed = clients.reachable if most is None else min(clients.reachable, most)
    return sorted({min(allowed, max(1, clients.reachable // separation)) for separation in _separations(rounds)})


def _separations(rounds: int) -> Iterator[int]:
    """1, 2, 3, 4, 6, 8, 12 ... and all rounds."""
    for half in range(2 * rounds.bit_length()):
        at = 2 ** (half // 2) * (3 if half % 2 else 2) // 2
        if 1 <= at < rounds:
            yield at
    yield rounds


def forecast_at(clients: Clients, training: PlannedTraining, mechanism: Mechanism, report_goal: int) -> NoiseForecast:
    """With so many reports a round, at the zCDP `REFERENCE`."""
    participation = clients.participation(training.rounds, report_goal)
    strategy = mechanism.strategy(participation, "rms")
    sensitivity = losses(strategy, participation).sensitivity
    guarantee = Guarantee(
        participation=participation,
        strategy=strategy,
        clip_norm=1.0,
        noise_multiplier=sensitivity / math.sqrt(2 * REFERENCE),
    )
    return NoiseForecast(
        guarantee=guarantee,
        report_goal=report_goal,
        learning_rate=training.step * (1 - training.server.momentum),  # at clip norm 1
        server=training.server,
        parameters=training.parameters,
    )
