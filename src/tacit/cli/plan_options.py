"""The options of `tacit plan`, and what they make: a scenario, costs, a target, settings of a simulation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import values
from tacit.cli.options import OwnDelta
from tacit.errors import InputError
from tacit.planning import Clients, Goal, ParticipationCost, Scenario, Utility
from tacit.privacy.participation import Participation


@dataclass(frozen=True, kw_only=True)
class ScenarioOptions:
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

    def scenario(self) -> Scenario:
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
            devices=values.count(self.population, "population"),
            availability=self.availability,
            timer_hours=None if self.timer is None else values.seconds(self.timer, "timer") / 3600,
            min_separation=separation,
            max_participations=self.max_participations,
            rounds_per_day=self.rounds_per_day,
        )
        utility = Utility.from_scenario(
            self.noise_with,
            noise_multiplier=self.noise_multiplier,
            report_goal=self.noise_at,
            objective=self.objective,  # type: ignore[arg-type]  # checked there
        )
        return Scenario(clients=clients, rounds=self.rounds, utility=utility, clip_inflation=self.clip_inflation)

    def _check_fits(self, separation: int | None) -> None:
        worst = Participation.worst_case(self.rounds, 1 if separation is None else max(separation, 1)).of_a_run()
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
class CostOptions:
    """What one participation of one client takes."""

    seconds_per_visit: Annotated[float | None, typer.Option(help="Seconds a device works for one report.")] = None
    joules_per_visit: Annotated[float | None, typer.Option(help="Energy of one report.")] = None
    megabytes_per_visit: Annotated[float | None, typer.Option(help="Model down and update up.")] = None

    def cost(self) -> ParticipationCost:
        """InputError for what is no cost."""
        return ParticipationCost(
            seconds=self.seconds_per_visit, joules=self.joules_per_visit, megabytes=self.megabytes_per_visit
        )


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """What the run is to promise."""

    epsilon: Annotated[float | None, typer.Option(help="The epsilon to reach at --delta;")] = None
    zcdp: Annotated[float | None, typer.Option(help="or the rho to reach.")] = None
    delta: OwnDelta = None

    def goal(self, scenario: Scenario, most: int | None = None) -> Goal:
        """With at most so many reports a round; InputError where no target was given."""
        if self.epsilon is not None and self.zcdp is not None:
            raise InputError(f"both --epsilon {self.epsilon:g} and --zcdp {self.zcdp:g} given; give one of them.")
        if self.epsilon is None and self.zcdp is None:
            raise InputError("no target given; give --epsilon (at --delta) or --zcdp.")
        if self.epsilon is not None and self.epsilon <= 0:
            raise InputError(f"--epsilon {self.epsilon:g} promises too much for any noise; give a number above 0.")
        devices = scenario.clients.devices
        return Goal.from_target(epsilon=self.epsilon, zcdp=self.zcdp, delta=self.delta, population=devices, most=most)


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """Whether timers are simulated, and with what."""

    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate the population with each timer, instead of an estimate.")
    ] = False
    acceptable_days: Annotated[float | None, typer.Option(help="With --simulate: how long the run may take.")] = None
    settings: Annotated[
        Path | None, typer.Option(help="With --simulate: a TOML file of settings, as `tacit simulate` takes.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="With --simulate: another seed, another population.")] = None

    def to_settings(self, scenario: Scenario, report_goal: int) -> Any:
        """The settings, None without --simulate. InputError for options that mean nothing."""
        given = [name for name in ("acceptable_days", "settings", "seed") if getattr(self, name) is not None]
        if not self.simulate:
            if given:
                raise InputError(
                    f"--{given[0].replace('_', '-')} belongs to --simulate; give that as well, or drop it."
                )
            return None
        if self.acceptable_days is not None and not self.acceptable_days > 0:
            raise InputError(f"--acceptable-days {self.acceptable_days:g} leaves no time for a run; give days above 0.")
        from tacit.population.settings import SimulationSettings  # numba comes with it

        return SimulationSettings.read(
            self.settings,
            {
                ("population", "devices"): scenario.clients.devices,
                ("rules", "report_goal"): report_goal,
                ("rules", "timer_hours"): 24.0,
                ("rounds",): scenario.rounds,
                ("seed",): self.seed or 0,
            },
        ).within(self.acceptable_days)
