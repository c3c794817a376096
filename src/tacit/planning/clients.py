"""How many clients there are and when they may come again: the min separation that they can keep, and the days.

What is exact here is an upper limit. In b rounds in a row nobody comes twice, so b rounds take b * report goal
different clients, and no separation can exceed reachable clients / report goal (arXiv:2305.18465, Section 2.2).
That clients can be scheduled so well, how many are reachable and how many rounds a day brings are estimates; what
really happened is measured after the run (`realised_participation`, `tacit account run`).
"""

import math
from dataclasses import dataclass, replace

from tacit.errors import InputError
from tacit.privacy.participation import Participation

HOURS_PER_DAY = 24  # timers come in whole days: clients come at their own time of day (arXiv:2305.18465, Section 2.2)


LEAST_SPEED, MOST_SPEED = 1e-3, 86_400.0  # rounds a day: one in three years, one a second


@dataclass(frozen=True, kw_only=True)
class Clients:
    """A population of `devices`, of which the share `availability` is eligible often enough to be reached once
    within each min separation.

    A client may come again after `timer_hours` hours, or after `min_separation` rounds, or, where neither is given,
    as late as the population allows. `rounds_per_day` is the speed of the system while clients abound; with a timer
    it is needed, else it only gives days. `max_participations` is the most rounds of one client where that is
    enforced. InputError for values that contradict this.
    """

    devices: int
    availability: float = 1.0
    timer_hours: float | None = None
    min_separation: int | None = None
    max_participations: int | None = None
    rounds_per_day: float | None = None

    def __post_init__(self) -> None:
        for name in ("devices", "min_separation", "max_participations"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__") or value < 1):
                raise InputError(f"{name}={value!r} is not a whole number of at least 1; give one.")
        if not 0 < self.availability <= 1:
            raise InputError(
                f"availability={self.availability} is not a share above 0 and at most 1; give that of the devices "
                "that are eligible at least once within each min separation."
            )
        for name in ("timer_hours", "rounds_per_day"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name}={value} is not a finite number above 0; give one, or leave it out.")
        if self.rounds_per_day is not None and not LEAST_SPEED <= self.rounds_per_day <= MOST_SPEED:
            raise InputError(
                f"rounds_per_day={self.rounds_per_day:g} is not between {LEAST_SPEED:g} and {MOST_SPEED:g}; give what "
                "an earlier run had."
            )
        if self.timer_hours is not None and self.min_separation is not None:
            raise InputError(
                f"timer_hours={self.timer_hours:g} and min_separation={self.min_separation} both say when a client may "
                "come again; give one of them."
            )
        if self.timer_hours is not None and self.rounds_per_day is None:
            raise InputError(
                f"timer_hours={self.timer_hours:g} says nothing about rounds without the speed; give rounds_per_day, "
                "as measured in an earlier run."
            )

    @property
    def reachable(self) -> int:
        """How many different clients can be reached within one min separation."""
        return max(1, math.floor(self.devices * self.availability))

    def longest_separation(self, report_goal: int) -> int:
        """floor(reachable / report goal): an exact upper limit on b, reached only if clients come in turn."""
        if isinstance(report_goal, bool) or not hasattr(report_goal, "__index__") or report_goal < 1:
            raise InputError(f"report_goal={report_goal!r} is not a whole number of at least 1; give one.")
        if report_goal > self.reachable:
            raise InputError(
                f"report_goal={report_goal} exceeds the {self.reachable} clients that can be reached; lower it, or "
                "reach more of the population."
            )
        return self.reachable // report_goal

    def separation(self, report_goal: int) -> int:
        """The b to plan with: the requested one, if the population allows it.

        With a timer of P hours the rounds that finish in P hours, floor(rounds a day * P / 24): an estimate. For
        rounds evenly spaced `timed_participation` measures that or one more where a device's clock starts
        when its round finishes, and at the least one less where it starts with the upload. InputError for a min
        separation that the population cannot give.
        """
        longest = self.longest_separation(report_goal)
        if self.min_separation is not None:
            if self.min_separation > longest:
                raise InputError(
                    f"min_separation={self.min_separation} rounds of {report_goal} reports need "
                    f"{self.min_separation * report_goal} different clients, and {self.reachable} can be reached; "
                    f"give at most {longest}, or fewer reports, or reach more of the population."
                )
            return self.min_separation
        if self.timer_hours is None or self.rounds_per_day is None:
            return longest
        return min(longest, max(1, math.floor(self.rounds_per_day * self.timer_hours / HOURS_PER_DAY)))

    def speed(self, report_goal: int) -> float | None:
        """Rounds a day, None if unknown.

        With a timer of P hours each reachable client reports once in P hours: that many reports are all there are,
        so a timer beyond what the population can give slows the run and brings no separation.
        """
        self.longest_separation(report_goal)  # refuses what cannot run at all
        if self.timer_hours is None or self.rounds_per_day is None:
            return self.rounds_per_day
        return min(self.rounds_per_day, HOURS_PER_DAY / self.timer_hours * self.reachable / report_goal)

    def participation(self, rounds: int, report_goal: int) -> Participation:
        """Who may come how often in a run of `rounds` rounds.

        A separation of all rounds or more says that nobody comes twice, and is given as `rounds`.
        """
        separation = min(self.separation(report_goal), rounds)
        worst = Participation.worst_case(rounds=rounds, min_separation=separation).of_a_run()
        if self.max_participations is None or self.max_participations >= worst.max_participations:
            return worst
        return Participation(rounds=rounds, min_separation=separation, max_participations=self.max_participations)

    def with_timer(self, hours: float) -> "Clients":
        """The same clients behind a timer, instead of any limit that was given."""
        return replace(self, timer_hours=hours, min_separation=None)

    def timer_for(self, separation: int) -> int:
        """The shortest timer in whole days, in hours, after which `separation` rounds have been completed."""
        if self.rounds_per_day is None:
            raise InputError("no timer follows from a separation without the speed; give rounds_per_day.")
        days = max(1, math.ceil(separation / self.rounds_per_day - 1e-12))
        return days * HOURS_PER_DAY
