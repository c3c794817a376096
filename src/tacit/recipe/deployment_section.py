"""The section of a recipe that real devices train: who they are, what each keeps by itself, and how rounds wait."""

from typing import Self

from pydantic import Field, model_validator

from tacit.privacy.separation import DeviceSeparation
from tacit.recipe.sections import AggregationSection, RoundsSection, Section

HOUR = 3600.0  # seconds


class DeploymentSection(Section):
    """Who takes part is real: devices that check in with a server when they may, and that have no identities."""

    population: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")  # the name by which devices check in
    devices: int = Field(ge=1)  # about how many there are: for delta, for pacing and for what is planned
    round_index: bool = True  # each refuses a round that is less than rounds.min_separation after its last
    timer_hours: float | None = Field(default=None, gt=0, le=100_000)  # each stays away so long; left out: no timer
    over_selection: float = Field(default=1.3, ge=1, le=10)  # arXiv:1902.01046, Section 9
    selecting_minutes: float = Field(default=60.0, gt=0)  # how long a round waits for devices, then it is given up
    reporting_minutes: float = Field(default=15.0, gt=0)  # how long a device has, as in the simulator
    pause_minutes: float = Field(default=2.0, ge=0)  # from a round's release to the next one's opening

    @model_validator(mode="after")
    def _is_kept_by_somebody(self) -> Self:
        if not self.round_index and self.timer_hours is None:
            raise ValueError(
                "deployment.round_index=false and no deployment.timer_hours leave devices nothing to keep, so that one "
                "may come in every round; give a timer, or drop deployment.round_index."
            )
        return self

    def separation(self, rounds: RoundsSection) -> DeviceSeparation:
        """What each device keeps by itself."""
        return DeviceSeparation(
            rounds=rounds.min_separation if self.round_index else None,
            timer_seconds=None if self.timer_hours is None else self.timer_hours * HOUR,
            most=rounds.max_participations if self.round_index else None,
        )

    def check(self, rounds: RoundsSection, aggregation: AggregationSection | None) -> None:
        """Raises: ValueError for what devices do not keep, are too few for, or what only a simulation has."""
        if aggregation is not None:
            _refuse_simulations(aggregation)
        apart = min(rounds.min_separation, rounds.rounds) if self.round_index else 1
        if rounds.report_goal * apart > self.devices:
            raise ValueError(
                f"rounds.report_goal={rounds.report_goal:,} of other devices in each of {apart:,} rounds in a row "
                f"are {rounds.report_goal * apart:,} devices, and deployment.devices={self.devices:,}; give more "
                "devices, a lower report_goal or a lower min_separation."
            )
        most = self.separation(rounds).by_index(rounds.rounds).max_participations
        if rounds.report_goal * rounds.rounds > self.devices * most:
            raise ValueError(
                f"rounds.rounds={rounds.rounds:,} of {rounds.report_goal:,} reports are "
                f"{rounds.rounds * rounds.report_goal:,} participations, and deployment.devices={self.devices:,} that "
                f"take part {most:,} times at most give fewer; give more devices, fewer rounds or more "
                "max_participations."
            )


def _refuse_simulations(aggregation: AggregationSection) -> None:
    """ValueError for what is played in one process, with everybody's keys in it."""
    for name in ("protocol", "keepers"):
        value = getattr(aggregation, name)
        if value is not None:
            raise ValueError(
                f"aggregation.{name}={value!r} is played by a simulation, in which one process has everybody's keys, "
                f"and [deployment] asks real devices; drop aggregation.{name}: devices then encode their updates as "
                "integers, and the server adds them and sees each."
            )
