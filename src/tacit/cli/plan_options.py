"""The options of `tacit plan`, and what they make: clients, a utility, a task, a target."""

from dataclasses import dataclass
from typing import Annotated

import typer

from tacit.cli.account_log import seconds_of
from tacit.design.catalogue import MECHANISMS
from tacit.errors import InputError
from tacit.planning import Clients, Mechanism, ParticipationCost, Scenario, Utility, mechanism_named
from tacit.planning.steps import Goal
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.privacy.participation import Participation

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
ReportGoal = Annotated[int, typer.Option(help="Reports that a round waits for.")]
Delta = Annotated[float, typer.Option(help="The delta at which epsilon is given.")]
Chosen = Annotated[
    list[str] | None, typer.Option("--mechanism", help=f"One of {', '.join(MECHANISMS)}; may be given several times.")
]
One = Annotated[str, typer.Option("--mechanism", help=f"One of {', '.join(MECHANISMS)}.")]

SUFFIXES = {"k": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Who learns what, for how long, and how much noise the model bears."""

    population: Annotated[str, typer.Option(help="Devices in the population: 4210000, 4.21M or 4.21e6.")]
    rounds: Annotated[int, typer.Option(help="Rounds of the whole run.")]
    availability: Annotated[
        float, typer.Option(help="Share of the devices that are eligible at least once within each min separation.")
    ] = 1.0
    timer: Annotated[
        str | None, typer.Option(help="How long a device waits before it takes part again: 48h, 2d; needs the speed.")
    ] = None
    rounds_between: Annotated[
        int | None, typer.Option(help="Or rounds strictly between two participations of a client: the papers' MinS.")
    ] = None
    min_separation: Annotated[
        int | None,
        typer.Option(help="Or their distance, b = MinS + 1. Left out, all three: as far as the population allows."),
    ] = None
    max_participations: Annotated[
        int | None,
        typer.Option(help="Most rounds a client takes part in (MaxP); left out, as many as the separation allows."),
    ] = None
    rounds_per_day: Annotated[
        float | None, typer.Option(help="The speed while clients abound, as measured; gives days and timers.")
    ] = None
    noise_multiplier: Annotated[float, typer.Option(help="The most noise that the model bears, in clip norms,")] = 7.0
    noise_at: Annotated[int, typer.Option(help="at this report goal,")] = 6500
    noise_with: Annotated[str, typer.Option(help="with this mechanism,")] = "tree-variance-reduced"
    objective: Annotated[
        str, typer.Option(help="by this error of the prefix sums: rms, or max (of the worst one).")
    ] = "rms"
    clip_inflation: Annotated[
        float, typer.Option(help="The factor by which encoding for secure aggregation lengthens a clipped update.")
    ] = 1.0

    def task(self) -> Scenario:
        """InputError where the options contradict each other."""
        separation = self.min_separation
        if self.rounds_between is not None:
            if separation is not None:
                raise InputError(
                    f"both --rounds-between {self.rounds_between} and --min-separation {separation} given; give one: "
                    "--rounds-between is the papers' MinS, --min-separation is MinS + 1."
                )
            separation = self.rounds_between + 1
        self._check_fits(separation)
        clients = Clients(
            devices=whole(self.population, "population"),
            availability=self.availability,
            timer_hours=None if self.timer is None else seconds_of(self.timer) / 3600,
            min_separation=separation,
            max_participations=self.max_participations,
            rounds_per_day=self.rounds_per_day,
        )
        utility = Utility(
            noise_multiplier=self.noise_multiplier,
            report_goal=self.noise_at,
            mechanism=mechanism_named(self.noise_with),
            objective=self.objective,  # type: ignore[arg-type]  # checked there
        )
        return Scenario(clients=clients, rounds=self.rounds, utility=utility, clip_inflation=self.clip_inflation)

    def _check_fits(self, separation: int | None) -> None:
        worst = Participation.worst_case(self.rounds, 1 if separation is None else max(separation, 1))
        if separation is not None and separation > self.rounds:
            raise InputError(
                f"min_separation={separation} exceeds the {self.rounds} rounds: nobody could come twice; give at most "
                f"{self.rounds}, which says just that."
            )
        if self.max_participations is not None and self.max_participations > worst.max_participations:
            raise InputError(
                f"max_participations={self.max_participations} does not fit: {self.rounds} rounds at a separation of "
                f"{worst.min_separation} allow {worst.max_participations}; give at most that."
            )


@dataclass(frozen=True, kw_only=True)
class PerVisit:
    """What one visit of one client takes."""

    seconds_per_visit: Annotated[float | None, typer.Option(help="Seconds a device works for one report.")] = None
    joules_per_visit: Annotated[float | None, typer.Option(help="Energy of one report.")] = None
    megabytes_per_visit: Annotated[float | None, typer.Option(help="Model down and update up.")] = None

    def cost(self) -> ParticipationCost:
        """InputError for what is no cost."""
        return ParticipationCost(
            seconds=self.seconds_per_visit, joules=self.joules_per_visit, megabytes=self.megabytes_per_visit
        )


@dataclass(frozen=True, kw_only=True)
class Target:
    """What the run is to promise."""

    epsilon: Annotated[float | None, typer.Option(help="The epsilon to reach at --delta;")] = None
    zcdp: Annotated[float | None, typer.Option(help="or the rho to reach.")] = None
    delta: Delta = 1e-10

    @property
    def rho(self) -> float | None:
        """The zCDP to reach; None where nothing was asked."""
        if self.epsilon is not None and self.zcdp is not None:
            raise InputError(f"both --epsilon {self.epsilon:g} and --zcdp {self.zcdp:g} given; give one of them.")
        if self.epsilon is None:
            return self.zcdp
        if self.epsilon <= 0:
            raise InputError(f"--epsilon {self.epsilon:g} promises too much for any noise; give a number above 0.")
        return zcdp_for_epsilon(self.epsilon, self.delta)

    def needed(self) -> float:
        """The zCDP to reach; InputError where nothing was asked."""
        rho = self.rho
        if rho is None:
            raise InputError("no target given; give --epsilon (at --delta) or --zcdp.")
        return rho

    def goal(self, most: int | None) -> Goal:
        """With at most so many reports a round."""
        return Goal(zcdp=self.needed(), delta=self.delta, most=most)


def chosen(names: list[str] | None, otherwise: tuple[str, ...]) -> list[Mechanism]:
    """The mechanisms of those names, each once, in the order given."""
    return [mechanism_named(name) for name in dict.fromkeys(names or otherwise)]


def whole(text: str, name: str) -> int:
    """4210000, 4_210_000, 4.21e6 or 4.21M as a whole number."""
    number, unit = (text[:-1], SUFFIXES[text[-1]]) if text[-1:] in SUFFIXES else (text, 1.0)
    try:
        value = float(number) * unit
        if value < 1:
            raise ValueError
        return round(value)
    except (ValueError, OverflowError):
        raise InputError(f"--{name} {text!r} is no number of at least 1; write 4210000, 4.21M or 4.21e6.") from None
