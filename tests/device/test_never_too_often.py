"""No sequence of tasks, crashes, clocks, copies and reinstallations makes a device take part too often, or too dearly.

The slow reference is the operator's own list of what left the device, by the true time; nothing of the device is asked.
What the list cost is counted by its exact rounds from the dense strategy matrix.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import combinations, pairwise
from pathlib import Path
from sqlite3 import dbapi2
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Hasty
from tests.support.device.operator import HOUR, NOON, Clock, Operator, a_plan, once, recipe_text

from tacit.data import Cache
from tacit.device import record
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.device.separation import SealedAttempt, SeparationRule, refuse_early
from tacit.errors import TaskRefused
from tacit.privacy.strategy import PUBLISHED_BLT
from tacit.protocol.messages import Plan, Separation
from tacit.protocol.signing import digest

BUDGET = 0.12  # reached by a few participations in two runs
COSTS_KEPT = "blt-b400"
MOST = 4  # participations in a run
LASTS = 10 * HOUR  # a round
MEMORY = Path("/dev/shm")  # where nothing waits for a disk, on machines that have it


class Crash(BaseException):
    """A process that is killed: nobody catches it."""


class Left(NamedTuple):
    """A report that the operator has."""

    run: int
    round: int
    at: float  # the true time
    deadline: float  # as it was signed: when its rounds end, an operator alone knows


class Ask(NamedTuple):
    """A task of a run, so many rounds and hours after the last event; the process dies before its n-th step, and the
    operator signs a time that is wrong by so many hours.
    """

    run: int
    rounds: int
    hours: float
    dies: int | None = None
    lie: float = 0.0


class Set(NamedTuple):
    """The device's clock is off by so many hours from now on."""

    hours: float


class Copy(NamedTuple):
    """The state folder is copied, to be put back later."""


class Restore(NamedTuple):
    """It is put back."""


class PutBack(NamedTuple):
    """Its files are, in the place of the newer ones."""


class Reinstall(NamedTuple):
    """It is removed."""


class Lose(NamedTuple):
    """The journal is removed, or put back as it was when the folder was copied."""

    back: bool


def plans(words: str) -> list[Plan]:
    """By round index; by a timer from its start; by both, the timer from a round's end."""
    by = [
        Separation(rounds=3, timer_seconds=None, clock="start"),
        Separation(rounds=None, timer_seconds=20 * HOUR, clock="start"),
        Separation(rounds=2, timer_seconds=10 * HOUR, clock="finish"),
    ]
    text = recipe_text(rounds={"rounds": 30, "report_goal": 6, "min_separation": 2, "max_participations": MOST})
    return [
        a_plan(words, text=text, run=f"run-{number}", separation=each, privacy={"max_participations": most})
        for number, (each, most) in enumerate(zip(by, (MOST, None, MOST), strict=True))
    ]


runs, hours = st.integers(0, 2), st.sampled_from([0.0, 1.0, 9.0, 12.0, 19.0, 30.0])
asks = st.tuples(runs, st.integers(0, 3), hours).map(lambda each: Ask(*each))
dying_asks = st.tuples(asks, st.integers(0, 80)).map(lambda each: each[0]._replace(dies=each[1]))
lies = st.sampled_from([-9.0, -1.0, 0.0, 0.1, 9.0, 20.0])
lying_asks = st.tuples(asks, lies).map(lambda each: each[0]._replace(lie=each[1]))
clocks = st.builds(Set, st.sampled_from([-2000.0, -12.0, -1.0, 0.0, 0.0, 0.0, 0.1, 9.0, 9.0, 2000.0]))
forgets = st.sampled_from([Copy(), Restore(), PutBack(), Reinstall(), Lose(False), Lose(True)])


def happenings(*each: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.one_of(*each), min_size=4, max_size=20)


class World:
    """The true time, an operator, and the device's folder with its copy."""

    def __init__(self, cache: Cache, folder: Path, budget: float = 1000.0) -> None:
        self.cache, self.folder, self.copy = cache, folder / "state", folder / "copy"
        self.journal, self.journal_copy = folder / "journal", folder / "journal-copy"
        self.text = OwnText(cache.path, None, None)
        self.plans = plans(cache.manifest.vocabulary.sha256)
        self.now, self.off = NOON, 0.0
        self.rounds = [-1] * len(self.plans)
        self.operator, self.left = Operator(), list[Left]()
        self.first_time, self.budget = True, budget

    def happens(self, event: Any) -> None:
        match event:
            case Ask():
                self.ask(event)
            case Set(hours=hours):
                self.off = hours * HOUR
            case Copy() if self.folder.exists():
                shutil.rmtree(self.copy, ignore_errors=True)
                shutil.copytree(self.folder, self.copy)
                shutil.rmtree(self.journal_copy, ignore_errors=True)
                shutil.copytree(self.journal, self.journal_copy)
            case Restore() if self.copy.exists():
                shutil.rmtree(self.folder, ignore_errors=True)
                shutil.copytree(self.copy, self.folder)
            case PutBack() if self.copy.exists() and self.folder.exists():
                shutil.copytree(self.copy, self.folder, dirs_exist_ok=True)
            case Reinstall():
                shutil.rmtree(self.folder, ignore_errors=True)
            case Lose(back=back):
                shutil.rmtree(self.journal, ignore_errors=True)
                if back and self.journal_copy.exists():
                    shutil.copytree(self.journal_copy, self.journal)

    def ask(self, event: Ask) -> None:
        self.now += event.hours * HOUR
        self.rounds[event.run] = max(self.rounds[event.run], 0) + event.rounds
        plan, round = self.plans[event.run], self.rounds[event.run]
        if round >= plan.privacy.rounds:
            return
        opens = self.now + event.lie * HOUR
        self.operator.assign(plan, self.operator.task(plan, round, opens=opens, deadline=opens + LASTS))
        before = len(self.operator.received)
        clock = Clock(self.now + self.off)
        with dying(self, event.dies):
            once(
                self.operator,
                self.cache.path,
                self.folder,
                now=clock,
                policy=Policy(budget_zcdp=self.budget),
                first_time=self.first_time,
                journal=self.journal,
                text=self.text,
            )
        self.first_time = False
        self.operator.answers.clear()
        if len(self.operator.received) > before:
            self.left.append(Left(event.run, round, self.now, max(self.now, opens + LASTS)))


@contextmanager
def dying(world: World, dies: int | None) -> Iterator[None]:
    """The process dies before its n-th step: a statement of its database, or a request."""
    steps = iter(range(10**6))

    def step() -> None:
        if next(steps) == dies:
            raise Crash

    class Dying(Hasty):
        def execute(self, *given: Any) -> Any:
            if self.alive:
                try:
                    step()
                except Crash:
                    type(self).alive = False  # what follows is the rollback that the next process finds to do
                    raise
            return super().execute(*given)

        alive = True

    real = sqlite3.connect

    def connect(*given: Any, **named: Any) -> Any:
        return real(*given, **named, factory=Dying)

    def receipt(_: str) -> httpx.Response | None:
        step()  # the report is with the operator, the receipt on its way
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record.sqlite3, "connect", connect)
        world.operator.before_receipt = receipt
        world.operator.before = step
        with suppress(Crash):
            yield
    world.operator.before = lambda: None


def happened(cache: Cache, events: list[Any], **given: float) -> World:
    with in_memory() as folder:
        world = World(cache, folder, **given)
        for event in events:
            world.happens(event)
    return world


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder for a while."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def apart(world: World) -> None:
    """What left keeps every run's separation and count."""
    for number, plan in enumerate(world.plans):
        left = [each for each in world.left if each.run == number]
        said = plan.separation
        for early, late in pairwise(left):
            assert late.round - early.round >= (said.rounds or 1), (early, late)
            begins = early.deadline if said.clock == "finish" else early.at
            assert late.at - begins >= (said.timer_seconds or 0), (early, late)
        assert plan.privacy.max_participations is None or len(left) <= plan.privacy.max_participations


def cost(rounds: list[int], plan: Plan) -> float:
    """rho of contributions in just these rounds: |C u|^2 / (2 z^2), u one in each of them; C has no negative entry."""
    matrix = PUBLISHED_BLT[COSTS_KEPT.removeprefix("blt-")].dense(plan.privacy.rounds)
    assert (matrix >= 0).all()
    return float((matrix[:, rounds].sum(axis=1) ** 2).sum() / (2 * plan.privacy.noise_multiplier**2))


def thoroughly(examples: int) -> Any:
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


few, many = thoroughly(12), thoroughly(400)
HONEST = happenings(asks, asks, dying_asks, clocks)
LYING = happenings(asks, lying_asks)
FORGETFUL = happenings(asks, asks, dying_asks, clocks, forgets)


def nor_too_dearly(world: World) -> None:
    rounds = [[each.round for each in world.left if each.run == number] for number in range(3)]
    assert sum(cost(each, plan) for each, plan in zip(rounds, world.plans, strict=True)) <= BUDGET


@given(events=HONEST)
@few
def test_never_too_often_nor_too_dearly(cache: Cache, events: list[Any]) -> None:
    apart(happened(cache, events))
    world = happened(cache, events, budget=BUDGET)
    apart(world)
    nor_too_dearly(world)


@given(events=LYING)
@few
def test_never_too_often_where_the_operator_lies_about_the_time(cache: Cache, events: list[Any]) -> None:
    """By its own clock, which is right here; where both are wrong, nobody can know."""
    apart(happened(cache, events))


@given(events=FORGETFUL)
@few
def test_never_too_often_nor_too_dearly_by_a_device_that_forgot(cache: Cache, events: list[Any]) -> None:
    """One place, or both: what was spent counts, or all that could have been."""
    apart(happened(cache, events))
    world = happened(cache, events, budget=BUDGET)
    apart(world)
    nor_too_dearly(world)


@pytest.mark.nightly
@given(events=HONEST)
@many
def test_never_too_often_nor_too_dearly_at_length(cache: Cache, events: list[Any]) -> None:
    apart(happened(cache, events))
    nor_too_dearly(happened(cache, events, budget=BUDGET))


@pytest.mark.long
@given(events=LYING)
@thoroughly(120)
def test_never_too_often_at_length(cache: Cache, events: list[Any]) -> None:
    apart(happened(cache, events))


@pytest.mark.long
@given(events=FORGETFUL)
@thoroughly(120)
def test_never_too_often_nor_too_dearly_by_a_device_that_forgot_at_length(cache: Cache, events: list[Any]) -> None:
    world = happened(cache, events, budget=BUDGET)
    apart(world)
    nor_too_dearly(world)


class Attempt(NamedTuple):
    """A report in a sealed round: which attempt of which series, at what true time. Before it is asked for: how many
    rounds and hours after the event before.
    """

    run: int
    round: int
    series: int
    name: int
    at: float


SEALED = st.builds(
    Attempt,
    st.sampled_from([1, 1, 0, 2]),
    st.sampled_from([0, 0, 1, 3]),
    st.sampled_from([0, 0, 0, 1]),
    st.integers(0, 3),
    st.sampled_from([0.1, 3.0, 19.0]),
)


@given(events=st.lists(SEALED, min_size=4, max_size=30))
@thoroughly(40)
def test_whichever_attempts_are_opened_two_participations_are_far_apart(cache: Cache, events: list[Attempt]) -> None:
    """Any report may be the one of its series that is opened: so each is far from all of other rounds and runs."""
    operator, left, now, rounds = Operator(), list[Attempt](), NOON, [0, 0, 0]
    those = plans(cache.manifest.vocabulary.sha256)
    with in_memory() as folder, record.opened(folder / "state", now=now, first_time=True) as kept:
        for plan in those:
            kept.keep_plan(digest(plan.to_json()), operator.key.plan(plan.to_json()))
        for event in events:
            now, rounds[event.run] = now + event.at * HOUR, rounds[event.run] + event.round
            event = event._replace(round=rounds[event.run], at=now)
            plan, attempt = those[event.run], sealed_attempt(event)
            task = operator.task(plan, event.round, opens=now, deadline=now + LASTS)
            kept_apart = SeparationRule.from_plan(plan, rounds_apart=1, hours_apart=2.0)
            with suppress(TaskRefused):
                seen = kept.observe(task, attempt)
                refuse_early(plan, task, seen, kept_apart, now=now, longest_round=LASTS)
                kept.take_part(task, assignment="ab" * 16, at=now, zcdp=float(len(left)), attempt=attempt)
                left.append(event)
        spent = [(each["run"], each["round"]) for each in kept.participations()]
    assert sorted(spent) == sorted({(those[each.run].run, each.round) for each in left}), "each round once"
    assert len({each[:4] for each in left}) == len(left), "two reports in one attempt"
    assert len({each[:3] for each in left}) == len(spent), "two series of one round"
    for early, late in combinations(left, 2):
        if early[:2] == late[:2]:
            continue
        assert late.at - early.at >= 2 * HOUR
        said = those[early.run].separation
        if early.run == late.run:
            assert late.round - early.round >= (said.rounds or 1), (early, late)
            begins = early.at + LASTS if said.clock == "finish" else early.at
            assert late.at - begins >= (said.timer_seconds or 0), (early, late)


def sealed_attempt(event: Attempt) -> SealedAttempt:
    """Names as their digests would be: different ones for different attempts."""
    series = f"{event.run:02x}{event.round:02x}{event.series:02x}"
    return SealedAttempt(series.ljust(64, "0"), f"{series}{event.name:02x}".ljust(64, "0"))


def test_the_budget_ends_it(cache: Cache) -> None:
    """The tests above would say nothing of a device that never takes part, nor of a budget that never binds."""
    world = happened(cache, [Ask(run, 4, 24.0) for _ in range(6) for run in (0, 2)], budget=BUDGET)
    spent = sum(cost([each.round for each in world.left if each.run == run], world.plans[run]) for run in (0, 2))
    assert 2 <= len(world.left) < 12 and 0.3 * BUDGET < spent <= BUDGET
    dear = min(cost([each.round], world.plans[each.run]) for each in world.left)
    assert spent + dear > BUDGET / 2


def test_a_crash_between_recording_and_sending_stays_spent(cache: Cache) -> None:
    """Whatever step a process dies at, the round is not taken part in a second time; what was recorded stays."""
    sent = []
    for dies in range(120):
        with in_memory() as folder:
            world = World(cache, folder)
            world.happens(Ask(0, 0, 1.0, dies=dies))
            world.first_time = True
            world.happens(Ask(0, 0, 0.1))  # another attempt at the same round
            assert len(world.left) <= 1, dies
            with record.opened(world.folder, world.journal, now=world.now) as found:
                assert [each["round"] for each in found.participations()] == [0], dies
                sent.append(len(world.left))
    assert sent.count(0) == 2  # it stands in the journal, or in both places, and was not sent


def test_what_is_recorded_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have it: tests do not wait for disks (tests/conftest.py)."""
    monkeypatch.setattr(sqlite3, "connect", dbapi2.connect)
    with record.opened(tmp_path / "device", now=0.0, first_time=True) as kept:
        assert kept._rows("PRAGMA synchronous") == [(3,)], "EXTRA: the removal of the journal too"
