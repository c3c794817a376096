"""What a device asks follows from the task and its record of participations: what it saw before leaves no trace.

An operator may do whatever keeps its log valid: enter lines before and after anybody looks, show any beginning of it
to anybody, offer any task in any order, serve a model or not. Could it tell two devices apart by what they ask later,
it would join an anonymous report to the code of who was enrolled. A trace is all of all requests of a turn, the time of
each, and what is told of the turn; assignments and tokens are random and stand as such.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.support.device.enrolling import BATCH, Enrolling
from tests.support.device.matrix_plans import GOOD, plan_with
from tests.support.device.operator import (
    DELTA,
    HOUR,
    NOON,
    SEED,
    Clock,
    a_plan,
    encoded_sum,
    once,
    recipe_text,
    sealed_plan,
)
from tests.support.server.stores import quick_folder

from tacit.data import Cache
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.device.record import opened
from tacit.device.turn import SessionOutcome
from tacit.privacy.gaussian import epsilon
from tacit.protocol.key_rotation import signed_key_rotation
from tacit.protocol.log_proofs import key_rotation_entry, plan_entry
from tacit.protocol.messages import Attested, Plan, Separation
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.served_bodies import matrix_file
from tacit.protocol.signing import digest
from tacit.secure_aggregation.one_message.simulation import OneMessageParties

CODE = "correct-horse-battery-staple"
WILLING = Policy(budget_zcdp=1e4)
LATER = NOON + 5000 * HOUR  # the session that is looked at
TOKEN = re.compile(rb'"token":"[0-9a-f]{584}"')


class Request(NamedTuple):
    """What a server sees of one, but for what is random."""

    after: float  # seconds since the turn began
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Trace(NamedTuple):
    """What can be seen of a turn, and what its owner is told."""

    requests: list[Request]
    what: str
    wait: tuple[float, float]
    says: str

    @property
    def seen(self) -> tuple[Any, ...]:
        return self[:-1]

    @property
    def paths(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.requests]


@dataclass
class Phone:
    """A device: its folder is its history."""

    state: Path
    text: OwnText
    policy: Policy = WILLING
    more: dict[str, Any] = field(default_factory=dict)

    def turn(self, operator: Enrolling, now: float) -> Trace:
        operator.asked, clock, times = [], Clock(now), list[float]()

        def timed(request: httpx.Request) -> httpx.Response:
            times.append(clock.now - now)
            return operator(request)

        said = {"text": self.text, "code": CODE, "policy": self.policy, "now": clock, "key": operator.key.public}
        said |= self.more
        turn: SessionOutcome = once(timed, self.state, self.state, **said)  # type: ignore[arg-type]
        operator.needed = []
        requests = [seen(each, after) for each, after in zip(operator.asked, times, strict=True)]
        return Trace(requests, turn.what, turn.wait, turn.says)


def seen(request: httpx.Request, after: float) -> Request:
    """The request with its random parts named."""
    path, body, headers = request.url.raw_path.decode(), request.read(), dict(request.headers)
    if path.startswith("/v1/reports/"):
        assignment = path.rpartition("/")[2]
        path, body = path.replace(assignment, "ASSIGNMENT"), body.replace(assignment.encode(), b"ASSIGNMENT")
        if "x-content-sha256" in headers:
            assert headers.pop("x-content-sha256") == hashlib.sha256(request.read()).hexdigest()
    return Request(after, request.method, path, tuple(sorted(headers.items())), TOKEN.sub(b'"token":"TOKEN"', body))


# -- what an operator may do -------------------------------------------------------------------------------------------


class Grow(NamedTuple):
    """Lines are entered, before or after anything."""

    lines: int


class Epoch(NamedTuple):
    """Tokens of the next epoch are asked for."""


class Offer(NamedTuple):
    """A task of a run, of which the device sees so many lines of the log; maybe no model comes for it."""

    run: int
    round: int
    shows: int | None
    broken: bool


runs, shown = st.integers(0, 4), st.none() | st.integers(1, 12)
offers = st.builds(Offer, runs, st.sampled_from([0, 3, 8, 20, 39]), shown, st.booleans())
histories = st.lists(st.builds(Grow, st.integers(1, 3)) | st.just(Epoch()) | offers, max_size=5)


def plans(words: str) -> list[Plan]:
    """Of four runs, one with a matrix and one that no policy takes; the last is of the first one's name."""
    refused = a_plan(words, run="attested", attestation=Attested(devices="none", server="unknown"))
    dearer = recipe_text(privacy={"mechanism": {"name": "blt-b400"}, "noise_multiplier": 5.0})
    return [
        a_plan(words),
        a_plan(words, run="run-2"),
        plan_with(words, GOOD).model_copy(update={"run": "matrix"}),
        refused,
        a_plan(words, text=dearer, privacy={"noise_multiplier": 5.0}),
    ]


# What the record of participations, or the keys that were pinned, refuse; nothing else may tell two devices apart. Each
# has a test below.
RECORDED = (
    "and two of its rounds are 5 apart",
    "the timer of 48 hours",
    "and the plan allows 1; it takes part in this run no more",
    "would make the run cost zCDP",
    "would bring everything to zCDP",
    "the runs of seven days",
    "clock was set back",
    "may have taken part before",
    "when this device took part: a run has one plan for ever",
    "has reported in the round",
    "attempts at it, and most_attempts=",
    "the operator changed its key",
)


class World:
    """One operator, with the log that it has by now, and its devices."""

    def __init__(self, cache: Cache, folder: Path, *, enrols: bool, policy: Policy = WILLING) -> None:
        self.operator, self.folder, self.policy = Enrolling(enrols=enrols), folder, policy
        self.text = OwnText(cache.path, None, None)
        self.plans = plans(cache.manifest.vocabulary.sha256)
        self.operator.files[matrix_file(GOOD)[0].sha256] = matrix_file(GOOD)[1]
        self.task: dict[str, Any] = {}  # what tasks say besides

    def phone(self, name: str, **more: Any) -> Phone:
        (self.folder / name).mkdir()
        return Phone(self.folder / name, self.text, self.policy, more)

    def offered(self, phone: Phone, offer: Offer, now: float, plan: Plan | None = None) -> Trace:
        """A turn in which the device is offered this, if it checks in with what a place costs."""
        operator, plan = self.operator, plan or self.plans[offer.run]
        operator.answers, operator.shows, operator.broken = [], offer.shows, offer.broken
        operator.assign(plan, operator.task(plan, offer.round, opens=now, **self.task))
        operator.needed.append(plan_entry(digest(plan.to_json())))
        return phone.turn(operator, now)

    def lived(self, phone: Phone, history: Sequence[Any], begins: float) -> None:
        for number, each in enumerate(history):
            now = begins + number * 50 * HOUR
            match each:
                case Grow(lines):
                    self.operator.grow(lines)
                case Epoch():
                    self.operator.epoch += 1
                case _:
                    self.offered(phone, each, now)

    def enrolled(self, phone: Phone, now: float) -> None:
        """It has tokens of this epoch, as a device has by its first task of a week."""
        if self.operator.enrols:
            with opened(phone.state, now=now, first_time=True) as record:
                record.pin(self.operator.key.public)
                if record.tokens.get("epoch") == self.operator.epoch and "left" in record.tokens:
                    return
            got = self.offered(phone, Offer(1, 0, None, False), now)
            assert "asked for the tokens" in got.says and got.paths[-1] == "POST /v1/tokens", got.says


def alike(mine: Trace, other: Trace) -> bool:
    """Whether the two are the same, or one of them is only cut short, by a refusal that its record explains."""
    if mine.seen == other.seen:
        return True
    for cut, whole in ((mine, other), (other, mine)):
        *before, last = cut.requests
        explained = cut.what == "refused" and any(each in cut.says for each in RECORDED)
        given_back = (last.method, last.path) == ("DELETE", "/v1/reports/ASSIGNMENT")
        if explained and given_back and before == whole.requests[: len(before)]:
            return True
    return False


def looks(examples: int) -> Any:
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


sessions = st.lists(st.tuples(offers, shown, st.integers(0, 2)), min_size=1, max_size=2)


@pytest.mark.parametrize("enrols", [False, True])
@given(first=histories, second=histories, last=sessions)
@looks(8)
def test_what_two_devices_saw_before_leaves_no_trace(
    enrols: bool, cache: Cache, first: list[Any], second: list[Any], last: list[Any]
) -> None:
    no_trace(enrols, cache, first, second, last)


@pytest.mark.long
@pytest.mark.parametrize("enrols", [pytest.param(False, marks=pytest.mark.nightly), True])
@given(first=histories, second=histories, last=sessions)
@looks(60)  # of two whole histories each, a quarter of a second
def test_what_two_devices_saw_before_leaves_no_trace_at_length(
    enrols: bool, cache: Cache, first: list[Any], second: list[Any], last: list[Any]
) -> None:
    no_trace(enrols, cache, first, second, last)


def no_trace(enrols: bool, cache: Cache, first: list[Any], second: list[Any], last: list[Any]) -> None:
    """Both had any history; then both are offered the same, and shown different beginnings of one log."""
    with quick_folder() as folder:
        world = World(cache, folder, enrols=enrols)
        one, other = world.phone("one"), world.phone("other")
        world.lived(one, first, NOON)
        world.lived(other, second, NOON + 2000 * HOUR)
        for number, (offer, shows, lines) in enumerate(last):
            now = LATER + number * 50 * HOUR
            for phone in (one, other):
                world.enrolled(phone, now - HOUR)
            mine = world.offered(one, offer, now)
            world.operator.grow(lines)
            others = world.offered(other, offer._replace(shows=shows), now)
            event(f"{mine.what} {others.what} {mine.seen == others.seen}")
            assert alike(mine, others), (mine.says, mine.paths, others.says, others.paths)


def test_what_a_device_asks_is_the_same_each_time(cache: Cache, tmp_path: Path) -> None:
    """With a history of everything, and with none."""
    world = World(cache, tmp_path, enrols=True)
    old, new = world.phone("old"), world.phone("new")
    for round in (0, 6, 12):
        world.lived(old, [Grow(2), Offer(2, round, None, False), Offer(1, round, None, True), Grow(1)], NOON + round)
    for phone in (old, new):
        world.enrolled(phone, LATER - HOUR)
    mine, others = (world.offered(each, Offer(2, 39, None, False), LATER) for each in (old, new))
    matrix, model = (f"GET /v1/models/{name}" for name in (matrix_file(GOOD)[0].sha256, sha256_of(world)))
    check_in, key, log = "POST /v1/check-in", "GET /v1/tokens/key", "GET /v1/log"
    plan, report = f"GET /v1/plans/{digest(world.plans[2].to_json())}", "POST /v1/reports/ASSIGNMENT"
    assert mine.paths == [check_in, key, log, check_in, plan, log, matrix, model, report]
    assert mine.what == "reported" and mine.seen == others.seen


def sha256_of(world: World) -> str:
    task = world.operator.task(world.plans[0], 0)
    return task.content.sha256


# -- the attack: whose code was it? ------------------------------------------------------------------------------------


def test_no_report_tells_which_code_was_enrolled_before_it(cache: Cache, tmp_path: Path) -> None:
    """Eight devices are enrolled, with a line in the log before and after each. In an earlier version a device sent the
    size of the log that it saw last, beside its token: 8 of 8 reports were joined to their codes, by a log that is
    valid and public. And the first token came with the code, on the heels of it.
    """
    world, sizes = World(cache, tmp_path, enrols=True), dict[int, str]()
    phones = {f"phone-{number}": world.phone(f"phone-{number}") for number in range(8)}
    for name, phone in phones.items():
        world.operator.grow()
        enrolling = world.offered(phone, Offer(0, 0, None, False), NOON)
        sizes[len(world.operator.log)] = name
        assert b'"token":"TOKEN"' not in b"".join(each.body for each in enrolling.requests), (
            "code and token in one turn"
        )
        world.operator.grow()
    world.operator.grow()
    joined, traces = 0, []
    for name, phone in phones.items():
        reporting = world.offered(phone, Offer(1, 7, None, False), LATER)
        assert reporting.what == "reported" and sum(b"TOKEN" in each.body for each in reporting.requests) == 1
        said = [int(number) for each in reporting.requests for number in re.findall(r"first=(\d+)", each.path)]
        joined += sum(sizes.get(number) == name for number in said)
        traces.append(reporting.seen)
    assert (joined, len(sizes)) == (0, 8)
    assert all(each == traces[0] for each in traces)


# -- where two devices may be told apart, and what is seen of it -------------------------------------------------------

REFUSED: dict[str, Callable[[World, Phone], tuple[Offer, Plan | None]]] = {}


def refused_for(why: str) -> Callable[[Any], Any]:
    def entered(prepare: Any) -> Any:
        REFUSED[why] = prepare
        return prepare

    return entered


def took_part(world: World, phone: Phone, round: int, plan: Plan | None = None, now: float = LATER - 10 * HOUR) -> None:
    found = world.offered(phone, Offer(0, round, None, False), now, plan)
    assert found.what == "reported", found.says


@refused_for("and two of its rounds are 5 apart")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    took_part(world, phone, 2)
    return Offer(0, 3, None, False), None


@refused_for("the timer of 48 hours")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    timer = Separation(rounds=5, timer_seconds=48 * HOUR, clock="start")
    plan = world.plans[0].model_copy(update={"separation": timer})
    took_part(world, phone, 2, plan)
    return Offer(0, 9, None, False), plan


@refused_for("and the plan allows 1; it takes part in this run no more")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    rounds = {"rounds": 40, "report_goal": 6, "min_separation": 5, "max_participations": 1}
    plan = a_plan(world.plans[0].vocabulary, text=recipe_text(rounds=rounds))
    took_part(world, phone, 2, plan)
    return Offer(0, 30, None, False), plan


@refused_for("would make the run cost zCDP")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    """By a timer alone a device pays for its own rounds, up to what the plan promises."""
    timer = Separation(rounds=None, timer_seconds=HOUR, clock="start")
    claims = {"max_participations": None, "zcdp": (zcdp := 0.07), "epsilon": epsilon(zcdp, DELTA)}
    plan = plan_with(world.plans[0].vocabulary, GOOD, **claims).model_copy(update={"separation": timer})
    took_part(world, phone, 2, plan)
    return Offer(0, 3, None, False), plan


@refused_for("would bring everything to zCDP")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    took_part(world, phone, 2)
    phone.policy = world.policy = replace(WILLING, budget_zcdp=spent_by(phone) * 1.5)
    return Offer(1, 2, None, False), None


@refused_for("the runs of seven days")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    took_part(world, phone, 2)
    phone.policy = world.policy = replace(WILLING, budget_zcdp_week=spent_by(phone) * 1.5)
    return Offer(1, 2, None, False), None


@refused_for("clock was set back")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    took_part(world, phone, 2, now=LATER + HOUR)
    return Offer(1, 2, None, False), None


@refused_for("may have taken part before")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    phone.more["first_time"] = False
    return Offer(1, 2, None, False), None


@refused_for("when this device took part: a run has one plan for ever")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    took_part(world, phone, 2)
    return Offer(4, 30, None, False), None


@refused_for("has reported in the round")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    plan, _ = sealed_attempts(world)
    took_part(world, phone, 0, plan)
    return Offer(0, 0, None, False), plan


@refused_for("attempts at it, and most_attempts=")
def _(world: World, phone: Phone) -> tuple[Offer, Plan | None]:
    plan, second = sealed_attempts(world)
    took_part(world, phone, 0, plan)
    world.task["sealed"] = second
    phone.policy = world.policy = replace(WILLING, most_attempts=1)
    return Offer(0, 0, None, False), plan


def sealed_attempts(world: World) -> tuple[Plan, str]:
    """A plan of sealed sums, of which an attempt at the first round is offered from now on; and another attempt."""
    encoded, folder, words = encoded_sum(), world.folder / "decryptors", world.plans[0].vocabulary
    sizes = {"dimension": encoded.length, "largest": 2 * encoded.encoding().largest, "report_goal": 3}
    plan = sealed_plan(words, OneMessageParties.from_settings(3, folder, seed=3, **sizes).settings)
    named = bytes.fromhex(digest(plan.to_json()))
    first, second = (
        OneMessageParties.from_settings(3, folder, plan=named, seed=seed, **sizes).settings.to_bytes().hex()
        for seed in (3, 4)
    )
    world.task = {"encoded": encoded, "sealed": first}
    return plan, second


def spent_by(phone: Phone) -> float:
    with opened(phone.state, now=LATER) as record:
        return record.spent()


def test_each_refusal_that_may_tell_devices_apart_has_a_test() -> None:
    assert {*REFUSED, "the operator changed its key"} == set(RECORDED)


@pytest.mark.parametrize("why", REFUSED)
def test_a_refusal_for_the_record_shows_that_and_nothing_before_it(why: str, cache: Cache, tmp_path: Path) -> None:
    world = World(cache, tmp_path, enrols=False)
    phone = world.phone("old")
    offer, plan = REFUSED[why](world, phone)
    mine = world.offered(phone, offer, LATER, plan)
    others = world.offered(world.phone("new"), offer, LATER, plan)
    assert mine.what == "refused" and why in mine.says, mine.says
    assert others.what == "reported" and mine.seen != others.seen and alike(mine, others)


def test_whoever_missed_a_change_of_the_key_shows_it_once(cache: Cache, tmp_path: Path) -> None:
    world, old, new = World(cache, tmp_path, enrols=False), *(OperatorKey(SEED[::step]) for step in (1, -1))
    world.operator.key = old
    phone, fresh = world.phone("old", key=old.public), world.phone("new", key=new.public)
    took_part(world, phone, 2)
    world.operator.key, world.operator.key_rotation = new, signed_key_rotation(old, new)
    world.operator.log.append(key_rotation_entry(digest(world.operator.key_rotation.document)))
    offer = Offer(1, 2, None, False)
    mine, others = world.offered(phone, offer, LATER), world.offered(fresh, offer, LATER)
    assert "the operator changed its key" in mine.says and others.what == "reported"
    gives_back = ["DELETE /v1/reports/ASSIGNMENT", "GET /v1/key/hand-over", "GET /v1/log"]
    assert mine.paths == ["POST /v1/check-in", *gives_back]
    again = Offer(1, 20, None, False)
    both = [world.offered(each, again, LATER + 50 * HOUR) for each in (phone, fresh)]
    assert both[0].what == "reported" and both[0].seen == both[1].seen


def test_what_the_tokens_of_a_device_show(cache: Cache, tmp_path: Path) -> None:
    """It has none and asks with its code; it has some and shows one; all were shown, and the turn ends there."""
    world = World(cache, tmp_path, enrols=True)
    phone, turns = world.phone("one"), []
    for number in range(BATCH + 2):
        now = LATER + 10 * number * HOUR
        turns.append(world.offered(phone, Offer(0, 5 * number, None, False), now))
    begins = ["POST /v1/check-in", "GET /v1/tokens/key", "GET /v1/log"]
    assert all(each.paths[:3] == begins for each in turns)
    assert turns[0].paths[3:] == ["POST /v1/tokens"] and turns[0].wait == (0.0, WILLING.show_after_s)
    assert all(each.what == "reported" and each.paths[3:] == turns[1].paths[3:] for each in turns[1:-1])
    assert turns[-1].paths == begins and "tokens of this epoch were shown" in turns[-1].says
    assert json.loads(turns[0].requests[-1].body)["code"] == CODE
