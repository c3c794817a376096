"""When a device may take part again: by round index, by timer, and as soon as its own record is complete.

Every rule errs on the side of staying away. A timer runs by two clocks, the device's and the one that the operator
signs (when tasks open), and has run out when it has by both: a device whose clock was set forward does not come early,
nor does one whose operator says that it is later. A clock that was set back stops everything until it is later than the
last participation again. Where the record is not the whole truth (new, or a copy in every place), the device takes part
in no run that was under way then. In one that it saw from the first round on it may have taken part in that round: it
waits, and counts the cost, as if it had.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tacit.errors import TaskRefused
from tacit.protocol.messages import Plan, RoundTask


class PastParticipation(NamedTuple):
    """A participation in a run: its task's round and times, and when it was recorded by the device's clock."""

    round: int
    at: float
    opens: float
    deadline: float


class SealedAttempt(NamedTuple):
    """An attempt at a sealed round: of all attempts of its series, decryptors open at most one sum."""

    series: str  # its name, 64 hexadecimal digits, as the name of the attempt
    name: str


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a device knows of itself when it is asked."""

    parts: Sequence[PastParticipation]  # in this run, in the order of rounds
    known: int  # of them, the last so many were recorded since the record is the whole truth
    last: PastParticipation | None  # in anything
    latest: float | None  # when it took part last, other attempts at this round included, by the device's clock
    first_round: int  # of this run that it was asked for since the record is the whole truth
    first_opens: float  # of that task, by the operator's clock
    since: float | None  # from when on the record is the whole truth, by the device's clock; None: ever since

    @property
    def possible_rounds(self) -> set[int]:
        """In which rounds of this run it took part or, by what may be missing from its record, may have."""
        return {each.round for each in self.parts} | (set() if self.since is None else {self.first_round})


@dataclass(frozen=True, kw_only=True)
class SeparationRule:
    """How far apart two participations are: what the plan and the owner ask, the larger of both."""

    rounds: int
    seconds: float  # in this run
    seconds_anywhere: float
    after_deadline: bool  # whether the timer runs from the end of a round

    @classmethod
    def from_plan(cls, plan: Plan, *, rounds_apart: int, hours_apart: float) -> "SeparationRule":
        """The plan's and the owner's."""
        return cls(
            rounds=max(plan.separation.rounds or 1, rounds_apart),
            seconds=plan.separation.timer_seconds or 0.0,
            seconds_anywhere=hours_apart * 3600,
            after_deadline=plan.separation.clock == "finish",
        )


def refuse_early(
    plan: Plan, task: RoundTask, seen: Seen, apart: SeparationRule, *, now: float, longest_round: float
) -> None:
    """Raises: TaskRefused where the device may not take part in this round, or not yet.

    now: by the device's clock, Unix seconds. longest_round: seconds that any round may be open.
    """
    what = f"round {task.round} of run {task.run!r}"
    most = plan.privacy.max_participations
    if seen.latest is not None and now < seen.latest:
        raise TaskRefused(
            f"{what}: the device's clock was set back: it took part {seen.latest - now:.0f} s later than now; set the "
            "clock right."
        )
    if seen.parts and task.round - seen.parts[-1].round < apart.rounds:
        raise TaskRefused(
            f"{what}: this device took part in round {seen.parts[-1].round}, and two of its rounds are {apart.rounds} "
            f"apart at least; wait for round {seen.parts[-1].round + apart.rounds}."
        )
    participations = (
        len(seen.parts)
        if seen.since is None
        else max(len(seen.parts), seen.first_round // apart.rounds + 1 + seen.known)
    )
    if most is not None and participations >= most:
        raise TaskRefused(
            f"{what}: this device took part {len(seen.parts)} times, {participations} may have been, and the plan "
            f"allows {most}; it takes part in this run no more."
        )
    for last, seconds in ((seen.parts[-1] if seen.parts else None, apart.seconds), (seen.last, apart.seconds_anywhere)):
        if last is not None and seconds:
            _refuse_by_timer(what, task, last, seconds, now, apart.after_deadline)
    if seen.since is not None:
        _refuse_by_doubt(what, task, seen, apart, seen.since, now, longest_round)


def _refuse_by_timer(
    what: str, task: RoundTask, last: PastParticipation, seconds: float, now: float, ended: bool
) -> None:
    own = now - (max(last.at, last.deadline) if ended else last.at)
    theirs = task.opens - (last.deadline if ended else last.opens)
    if min(own, theirs) < seconds:
        raise TaskRefused(
            f"{what}: the timer of {seconds / 3600:.4g} hours has run {max(min(own, theirs), 0) / 3600:.4g} since this "
            "device took part, by the slower of its clock and the operator's; wait."
        )


def _refuse_by_doubt(
    what: str, task: RoundTask, seen: Seen, apart: SeparationRule, since: float, now: float, longest_round: float
) -> None:
    """The record begins at `since`: whatever came before is taken for a participation in what was seen first."""
    why = "this device's record is new, copied or restored, so it may have taken part before"
    if seen.first_round > 0:
        raise TaskRefused(
            f"{what}: {why}, and the run was under way when it was: in which rounds it was, and what another would "
            "cost with them, nobody knows. It takes part in runs that begin from now on."
        )
    if seen.known:  # participations since then, which say all
        return
    if task.round - seen.first_round < apart.rounds:
        raise TaskRefused(f"{what}: {why}; wait for round {seen.first_round + apart.rounds}.")
    seconds = max(apart.seconds, apart.seconds_anywhere)
    if not seconds:
        return
    waits = seconds + (longest_round if apart.after_deadline else 0.0)
    run = min(now - since, task.opens - seen.first_opens)
    if run < waits:
        raise TaskRefused(f"{what}: {why}; wait {(waits - max(run, 0)) / 3600:.4g} hours more.")
