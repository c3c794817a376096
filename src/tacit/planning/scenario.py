"""One run before it is run: who takes part, at what noise, hence which guarantee, and what it takes.

The hypothesis behind every comparison: utility sees the noise of the mean and nothing else, so a run with more
reports and proportionally more noise is as useful (arXiv:2305.18465, Section 2.2; arXiv:2408.08868, Section 5). The
noise of the mean is error * noise multiplier / report goal, in clip norms, with the error of the prefix sums: that
makes mechanisms comparable too. An assumption about training, not a theorem; what is promised does not rest on it.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from tacit.design.catalogue import MECHANISMS, mechanism_named
from tacit.design.losses import prefix_errors
from tacit.design.mechanism import Mechanism
from tacit.design.objective import Objective, checked_objective
from tacit.errors import InputError
from tacit.planning.clients import Clients
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Strategy

Record: TypeAlias = dict[str, Any]

_errors = lru_cache(maxsize=8192)(prefix_errors)  # (max, rms) of the prefix sums, for seeds of deviation 1


@dataclass(frozen=True, kw_only=True)
class Utility:
    """How much noise the model bears: as much as the mechanism `mechanism` brings at `noise_multiplier` and
    `report_goal`, from a small simulation on public data, say.

    `objective` is the error that counts: "rms" over all prefix sums, by which arXiv:2408.08868, Section 5, compares
    (its noise of banded mechanisms), or "max", that of the worst one. InputError for no noise at all.
    """

    noise_multiplier: float = 7.0
    report_goal: int = 6500
    mechanism: Mechanism = MECHANISMS["tree-variance-reduced"]
    objective: Objective = "rms"

    def __post_init__(self) -> None:
        checked_objective(self.objective)
        if not 0 < self.noise_multiplier < math.inf:
            raise InputError(
                f"noise_multiplier={self.noise_multiplier} is not a finite number above 0, and without noise there is "
                "no guarantee to plan; give the largest one that the model bears."
            )
        if self.report_goal < 1:
            raise InputError(f"report_goal={self.report_goal} is below 1; give that of the run that bore the noise.")

    @classmethod
    def from_scenario(
        cls, mechanism: str, *, noise_multiplier: float = 7.0, report_goal: int = 6500, objective: Objective = "rms"
    ) -> "Utility":
        """The utility that a mechanism of the catalogue, by its name, showed."""
        return cls(
            noise_multiplier=noise_multiplier,
            report_goal=report_goal,
            mechanism=mechanism_named(mechanism),
            objective=objective,
        )

    def error(self, strategy: Strategy, rounds: int) -> float:
        """The error of the prefix sums that counts, for seeds of deviation 1."""
        worst, usual = _errors(strategy, rounds)
        return usual if self.objective == "rms" else worst

    def noise_of_mean(self, participation: Participation) -> float:
        """The noise that the model bears on the mean of a run like this, in clip norms."""
        strategy = self.mechanism.strategy(participation, self.objective)
        return self.error(strategy, participation.rounds) * self.noise_multiplier / self.report_goal


@dataclass(frozen=True, kw_only=True)
class ParticipationCost:
    """What one participation takes of a client's device, as measured; None where that is unknown."""

    seconds: float | None = None
    joules: float | None = None
    megabytes: float | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "joules", "megabytes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(
                    f"{name}={value} of a visit is not a finite number above 0; give one, or leave it out."
                )

    def of(self, participations: int) -> Record:
        """What so many participations take: device hours, kilowatt hours, gigabytes, as far as they are known."""
        each_time = {
            "device_hours": (self.seconds, 3600),
            "kilowatt_hours": (self.joules, 3.6e6),
            "gigabytes": (self.megabytes, 1e3),
        }
        return {name: participations * each / unit for name, (each, unit) in each_time.items() if each is not None}


@dataclass(frozen=True, kw_only=True)
class AccountedPlan:
    """A run with everything settled. `noise_of_mean` is in clip norms; `speed` in rounds a day, if known."""

    mechanism: Mechanism
    report_goal: int
    guarantee: Guarantee
    noise_of_mean: float
    speed: float | None

    @property
    def rounds(self) -> int:
        """The rounds of the whole run."""
        return self.guarantee.participation.rounds

    @property
    def strategy(self) -> Strategy:
        """What correlates the noise."""
        assert self.guarantee.strategy is not None  # a plan always has one
        return self.guarantee.strategy

    @property
    def zcdp(self) -> float:
        """The rho of the whole run."""
        return self.guarantee.zcdp

    @property
    def participations(self) -> int:
        """How often a client trains, all clients together: rounds * report goal; those that drop out come on top."""
        return self.rounds * self.report_goal

    @property
    def days(self) -> float | None:
        """How long it takes, if the speed is known."""
        return None if self.speed is None else self.rounds / self.speed

    @property
    def memory(self) -> int:
        """Arrays of the model's size that are kept from round to round for the noise."""
        return self.strategy.memory(self.rounds)

    def to_record(self, delta: float) -> Record:
        """The plan as plain values for JSON, with epsilon at `delta`."""
        participation = self.guarantee.participation
        return {
            "mechanism": self.mechanism.name,
            "rounds": self.rounds,
            "report_goal": self.report_goal,
            "min_separation": participation.min_separation,
            "rounds_between": participation.rounds_between,
            "max_participations": participation.max_participations,
            "noise_multiplier": self.guarantee.noise_multiplier,
            "sensitivity": self.guarantee.sensitivity,
            "noise_of_mean": self.noise_of_mean,
            "zcdp": self.zcdp,
            "epsilon": self.guarantee.epsilon(delta),
            "delta": delta,
            "exact": self.guarantee.exact,
            "client_visits": self.participations,
            "rounds_per_day": self.speed,
            "days": self.days,
            "memory": self.memory,
        }


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A planned run: `rounds` rounds with `clients`, at a noise that `utility` bears.

    `clip_inflation` is the factor by which encoding for secure aggregation lengthens a clipped update, 1 without.
    `noises` parties add noise, any `honest` of them together what is accounted, and the model bears that of all: 1
    where the server adds it.
    """

    clients: Clients
    rounds: int
    utility: Utility
    clip_inflation: float = 1.0
    noises: int = 1
    honest: int = 1

    @property
    def noisier(self) -> float:
        """The noise that the model gets, in what the guarantee accounts: a factor of at least 1."""
        return math.sqrt(self.noises / self.honest)

    def participation(self, report_goal: int) -> Participation:
        """Who may come how often, at this report goal."""
        return self.clients.participation(self.rounds, report_goal)

    def plan(self, mechanism: Mechanism, report_goal: int, *, noise_multiplier: float | None = None) -> AccountedPlan:
        """The run with this mechanism and report goal, its strategy built for just this participation.

        Without `noise_multiplier`, the noise that the utility bears: z = noise of the mean * report goal / error.
        The guarantee is forward accounting, whatever the noise was derived from.
        """
        participation = self.participation(report_goal)
        strategy = mechanism.strategy(participation, self.utility.objective)
        error = self.utility.error(strategy, self.rounds) * self.noisier
        if noise_multiplier is None:
            noise_multiplier = self.utility.noise_of_mean(participation) * report_goal / error
        guarantee = Guarantee(
            participation=participation,
            strategy=strategy,
            clip_norm=1.0,  # what is promised does not depend on it
            noise_multiplier=noise_multiplier,
            clip_inflation=self.clip_inflation,
        )
        return AccountedPlan(
            mechanism=mechanism,
            report_goal=report_goal,
            guarantee=guarantee,
            noise_of_mean=error * noise_multiplier / report_goal,
            speed=self.clients.speed(report_goal),
        )
