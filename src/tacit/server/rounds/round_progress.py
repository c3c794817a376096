"""How far a round is, in words: when a server goes on with it, and while reports are missing.

A count of reports is no secret of anybody's: it is in `/admin/runs/RUN/rounds` too. No device is named.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from tacit.plurals import quantity
from tacit.protocol.messages import Plan, SignedPlan, TrainingPrivacy
from tacit.server.store import round_states
from tacit.server.store.round_states import Attempt
from tacit.server.store.store import Store

FIRST_S = 60.0  # after which missing reports are told first; a report takes about as long
LATER = 2.0  # times as long until the next time: of a round of a day a dozen lines


def goes_on(store: Store, run: str) -> str | None:
    """Where a run goes on that was served before; None of one that was not, or is finished."""
    plan = round_states.plan_of_run(store, run)
    known = next((each for each in round_states.all_runs(store) if each.name == run), None)
    if plan is None or known is None or known.state == round_states.FINISHED:
        return None
    attempts = round_states.attempts(store, run)
    over = {each.round for each in attempts if each.state == round_states.RELEASED}
    ended = f"{_of_all(len(over), SignedPlan.from_json(plan).read(Plan))} released"
    under_way = next((each for each in attempts if each.state not in round_states.OVER), None)
    stands = "the next one opens." if under_way is None else stands_at(under_way, store.now())
    paused = " It is paused: no device is given a task." if known.paused else ""
    return f"goes on with '{run}': {ended}; {stands}{paused}"


def _of_all(released: int, plan: Plan) -> str:
    if isinstance(plan.privacy, TrainingPrivacy):
        return f"{released:,} of {quantity(plan.privacy.rounds, 'round')} {_are(released)}"
    return f"{quantity(released, 'round')} {_are(released)}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def stands_at(found: Attempt, now: float) -> str:
    """Of an attempt that is not over, at a time: its round, its reports, and until when it takes more."""
    named = f"round {found.round}, attempt {found.attempt},"
    if found.state == round_states.CLOSED:
        return f"{named} has its sum, of {quantity(found.reports or 0, 'report')}, which is not released yet."
    there = f"{found.counted:,} of {quantity(found.goal, 'report')} {_are(found.counted)} there"
    if found.received:
        there += f", and {found.received:,} more with a worker, lost if it ended"
    if found.state not in round_states.TAKING:
        return f"{named} takes no more reports and is summed up: {there}."
    return f"{named} is open: {there}; {quantity(found.assigned, 'device')} came. It ends {_until(found, now)}."


def lacks_reports(found: Attempt) -> bool:
    """Whether an attempt waits for nothing but the reports of devices that have its task."""
    enough = found.assigned >= found.least
    return found.state in round_states.TAKING and enough and found.received + found.counted < found.goal


def missing_reports(found: Attempt, now: float) -> str:
    """What an attempt lacks at a time, and until when it waits."""
    there = found.received + found.counted
    left = found.goal - there
    lost = f", of which {quantity(found.lost, 'report')} could not be used or went with a worker" if found.lost else ""
    return (
        f"waits for reports: {there:,} of {found.goal:,} came, so {left:,} {_are(left)} missing; "
        f"given its task: {quantity(found.assigned, 'device')}{lost}. It ends {_until(found, now)}; with fewer than "
        f"{found.least:,} nothing of it is released, and other devices are asked."
    )


def _until(found: Attempt, now: float) -> str:
    left = quantity(max(0, math.ceil((found.deadline - now) / 60)), "minute")
    return f"{datetime.fromtimestamp(found.deadline, UTC):%Y-%m-%d %H:%M} UTC at the latest, in {left}"


@dataclass
class Reminders:
    """When to speak of an attempt that waits: after some time, and then after twice as long each time."""

    task: str = ""
    due: float = math.inf
    rest: float = FIRST_S

    def is_due(self, task: str, now: float) -> bool:
        """Whether it is time, of the attempt that waits now; each True is said."""
        if task != self.task or now < self.due - self.rest:  # another one, or the clock was set back
            self.task, self.due, self.rest = task, now + FIRST_S, FIRST_S
        if now < self.due:
            return False
        self.rest *= LATER
        self.due = now + self.rest
        return True
