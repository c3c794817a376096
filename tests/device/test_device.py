"""A device from its check-in to its receipt: what leaves it, what it remembers, and what it says of it."""

import dataclasses
import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import httpx
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import REPOSITORY
from tests.support.device.operator import (
    CLIENT,
    ENCODED,
    HOUR,
    NOON,
    POPULATION,
    SECURE,
    SEED,
    Clock,
    Operator,
    Wire,
    a_plan,
    encoded_sum,
    once,
    recipe_text,
)
from tests.support.training.tiny import tiny_learner

import tacit
from tacit.data import Cache
from tacit.device.eligibility import Eligibility
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.device.record import opened
from tacit.device.separation import SealedAttempt
from tacit.device.session import Machine
from tacit.device.train import ByJax
from tacit.errors import DeviceError, InputError, TaskRefused
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import RoundTask, ShownLog, TreeHead
from tacit.protocol.served_bodies import read_report
from tacit.protocol.signing import digest, is_signed
from tacit.protocol.train import TrainDocument
from tacit.records import from_plain
from tacit.training import ClientTraining, TrainQuestion
from tacit.training.device_part import report_of
from tacit.training.secure_updates import RoundEncoding


def simulated(cache: Cache, task: RoundTask, model: Any) -> Any:
    """What the simulation's device reports."""
    secure = None
    if task.question(TrainDocument).encoded is not None:
        secure = RoundEncoding(
            encoding=task.question(TrainDocument).encoded.encoding(),
            signs=bytes.fromhex(task.question(TrainDocument).encoded.signs),
            clip_estimate=task.question(TrainDocument).clip_estimate,
            loss_bound=task.question(TrainDocument).loss_bound,
        )
    client = ClientTraining(**CLIENT.model_dump())
    asked = TrainQuestion(
        round=task.round,
        model=jnp.asarray(model),
        client=client,
        clip_norm=task.question(TrainDocument).clip_norm,
        clip_estimate=task.question(TrainDocument).clip_estimate,
        report_goal=6,
        loss_bound=task.question(TrainDocument).loss_bound,
        secure=secure,
    )
    return report_of(tiny_learner(cache).work(client), asked, 0, seed=SEED)


ASKED = {
    "clipping": {"initial": 0.2, "bit_stddev": 20.0},
    "training_loss": {"bound": 4.0, "stddev": 40.0},
    "privacy": {"mechanism": {"name": "tree", "restarts": [20]}, "noise_multiplier": 9.0},
}


@pytest.mark.parametrize("how", ["in the clear", "encoded", "with everything asked"])
def test_reports_what_the_simulation_does_to_the_bit(
    how: str, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    if how == "encoded":
        plan = a_plan(words, text=recipe_text(**SECURE), aggregation=ENCODED)
        task = operator.task(plan, 0, encoded=encoded_sum())
    elif how == "in the clear":
        plan = a_plan(words)
        task = operator.task(plan, 0)
    else:  # a clip norm that follows the updates may be above the plan's first
        plan = a_plan(words, text=recipe_text(**ASKED))
        task = operator.task(plan, 0, clip_norm=0.25, clip_estimate=0.25, loss_bound=4.0)
    operator.assign(plan, task)
    trainer = ByJax(OwnText(cache.path, None, None))
    turn = once(operator, cache.path, tmp_path, trainer=trainer, draw=lambda size: SEED[:size])
    assert turn.what == "reported", turn.says
    ((assignment, body),) = operator.received
    found, twin = read_report(body, task.asks.shape(), assignment), simulated(cache, task, operator.model)
    np.testing.assert_array_equal(found.values, twin.update)
    assert (found.usable, found.short, found.bounded_loss) == (True, twin.short, twin.bounded_loss)
    assert found.values.any() and found.values.shape == (task.asks.shape().length,)


def test_by_the_public_name(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan = a_plan(words)
    operator.assign(plan, operator.task(plan, 0))
    turns: list[Any] = []
    wire, clock = Wire(operator), Clock()
    turn = tacit.run_device(
        "http://localhost:1",
        cache.path,
        tmp_path,
        population=POPULATION,
        operator_key=operator.key.public,
        first_time=True,
        once=True,
        machine=Machine(clock=clock, steady=clock, sleep=clock.sleep),
        through=wire,
        told=lambda each: turns.append((each, wire.closed)),
    )
    assert turns == [(turn, 1)], "the next turn has a connection of its own"
    assert turn.what == "reported" and 0 < turn.spent < 1
    assert json.loads(json.dumps(turn.to_record()))["schema"] == "tacit.device"
    assert str(turn).startswith("reported: took part in round 0 of run 'run-1'") and "Spent: zCDP" in str(turn)


def test_tells_what_it_knows_and_nothing_that_links(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan = a_plan(words)
    for round in (0, 5):
        operator.assign(plan, operator.task(plan, round))
        assert once(operator, cache.path, tmp_path, now=NOON + 2 * round * HOUR).what == "reported"
    for told in operator.told():  # the second time too: not which plans it knows
        assert told == {
            "version": 2,
            "population": POPULATION,
            "versions": {"train": 1, "discover": 1, "evaluate": 1, "personalize": 1, "count": 1},
            "token": None,
        }
    assert sum(each.url.path == f"/v1/plans/{digest(plan.to_json())}" for each in operator.asked) == 2
    for request in operator.asked:
        assert request.headers["User-Agent"] == "tacit-device" and "cookie" not in request.headers


def test_comes_back_when_it_is_told(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    turn = once(operator, cache.path, tmp_path)
    assert (turn.what, turn.wait) == ("idle", (60.0, 120.0)) and "come back in 60 to 120 s" in turn.says


def test_asks_nothing_where_it_may_not_work(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    turn = once(operator, cache.path, tmp_path, probes=[lambda: None, lambda: "the battery is empty; charge it."])
    assert turn.what == "not eligible" and "battery" in turn.says and not operator.asked


# -- sending -----------------------------------------------------------------------------------------------------------


def test_sends_the_same_bytes_until_it_is_thanked(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan, failures = a_plan(words), iter([503, 500, 429])
    operator.assign(plan, operator.task(plan, 0))
    operator.before_receipt = lambda _: next((httpx.Response(status) for status in failures), None)
    clock = Clock()
    assert once(operator, cache.path, tmp_path, now=clock).what == "reported"
    sent = [each.content for each in operator.asked if "/reports/" in each.url.path]
    assert len(sent) == 4 and len(set(sent)) == 1 and 3 < clock.now - NOON < 60


@pytest.mark.parametrize(
    ("status", "kind", "attempts"),
    [(409, "other-report", 1), (410, "late", 1), (422, "refused", 1), *((each, None, 20) for each in (302, 401, 503))],
    ids=str,
)
def test_what_was_sent_stays_spent(
    status: int, kind: str | None, attempts: int, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan = a_plan(words)
    operator.assign(plan, operator.task(plan, 0))
    said = {"type": f"tacit:{kind}", "title": "t", "status": status, "detail": "d."} if kind else None
    elsewhere = {"Location": "https://elsewhere.example/"}
    operator.before_receipt = lambda _: httpx.Response(status, headers=elsewhere, json=said)
    turn = once(operator, cache.path, tmp_path, now=Clock())
    assert turn.what == "lost" and "It stays spent." in turn.says and turn.spent > 0
    sent = [each for each in operator.asked if "/reports/" in each.url.path]
    assert len(sent) <= attempts and (attempts == 1 or len(sent) > 5)
    assert all(each.url.host == "127.0.0.1" for each in operator.asked)
    with opened(tmp_path, now=NOON) as record:
        (only,) = record.participations()
    assert (only["run"], only["round"], only["received"]) == ("run-1", 0, False)


def test_a_receipt_is_the_operators_and_for_these_bytes(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan = a_plan(words)
    other = Operator(key=type(operator.key)(bytes(32)))
    wrong = iter(
        [
            lambda each, body: other.key.receipt(each, hashlib.sha256(body).hexdigest()),
            lambda each, body: operator.key.receipt("0" * 32, hashlib.sha256(body).hexdigest()),
            lambda each, body: operator.key.receipt(each, "ab" * 32),
        ]
    )

    def receipt(assignment: str) -> httpx.Response | None:
        made = next(wrong, None)
        body = dict(operator.received)[assignment]
        return None if made is None else httpx.Response(200, json=made(assignment, body).model_dump(mode="json"))

    operator.assign(plan, operator.task(plan, 0))
    operator.before_receipt = receipt
    assert once(operator, cache.path, tmp_path, now=Clock()).what == "reported"
    assert next(wrong, None) is None


# -- its folder --------------------------------------------------------------------------------------------------------


def test_two_processes_do_not_speak_with_one_operator(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    with opened(tmp_path, now=NOON, first_time=True) as record:
        record.pin(operator.key.public)
        with pytest.raises(DeviceError, match="another process runs the device of"):
            once(operator, cache.path, tmp_path)


def test_a_clock_that_was_set_back(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    plan = a_plan(words)
    operator.assign(plan, operator.task(plan, 0))
    assert once(operator, cache.path, tmp_path, now=NOON + 60).what == "reported"
    operator.assign(plan, operator.task(plan, 9, opens=NOON - 1000 * HOUR))
    turn = once(operator, cache.path, tmp_path, now=NOON - 1000 * HOUR)
    assert turn.what == "refused" and "the device's clock was set back" in turn.says and turn.spent > 0


def test_a_record_has_one_series_of_a_round_and_each_attempt_once(
    operator: Operator, words: str, tmp_path: Path
) -> None:
    """Whoever asks it: what may be summed twice is not written down twice."""
    plan, open_times = a_plan(words), (NOON, NOON + 60)
    with opened(tmp_path, now=NOON, first_time=True) as record:
        record.pin(operator.key.public)
        record.keep_plan(digest(plan.to_json()), operator.key.plan(plan.to_json()))

        def joins(series: str, name: str, at: float = NOON) -> None:
            attempt = SealedAttempt(series, name) if series else None
            task = operator.task(plan, 3, opens=at)
            record.take_part(task, assignment="ab" * 16, at=at, zcdp=0.1, attempt=attempt)

        for at, name in zip(open_times, ("aa", "bb"), strict=True):
            joins("11", name, at)
        for series, name in (("11", "aa"), ("22", "cc"), ("22", "aa"), ("", "")):
            with pytest.raises(TaskRefused, match="took part in it already"):
                joins(series, name)
        assert record.rounds(digest(plan.to_json())) == [3] and record.spent() == 0.1
        (once_alone,) = record.participations()
        assert (once_alone["round"], once_alone["at"], once_alone["zcdp"]) == (3, NOON + 60, 0.1)
        assert record.joined(operator.task(plan, 3)) == {b"\xaa", b"\xbb"}


def test_plans_of_an_operator_that_makes_one_after_another_fill_no_disk(
    operator: Operator, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in whose runs it took part stay, and the rounds of these."""
    monkeypatch.setattr("tacit.device.record.MOST_PLANS", 5)
    mine, many = a_plan(words, run="mine"), 12
    with opened(tmp_path, now=NOON, first_time=True) as record:
        record.pin(operator.key.public)
        record.keep_plan(digest(mine.to_json()), operator.key.plan(mine.to_json()))
        task = operator.task(mine, 3)
        record.observe(task)
        record.take_part(task, assignment="ab" * 16, at=NOON, zcdp=0.1)
        for number in range(many):
            plan = mine.model_copy(update={"run": f"run-{number}"})
            record.keep_plan(digest(plan.to_json()), operator.key.plan(plan.to_json()))
            record.observe(operator.task(plan, 0))
            last = digest(plan.to_json())
        kept = {name for (name,) in record._rows("SELECT digest FROM plans")}
        assert {digest(mine.to_json()), last} <= kept and record.rounds(digest(mine.to_json())) == [3]
        assert record.spent() == 0.1
        for table in ("plans", "sights"):
            assert record._row(f"SELECT count(*) FROM {table}") == (2 + 5,)


@pytest.mark.parametrize("damage", ["cut", "overwritten", "none of ours", "of another version"])
def test_a_damaged_record_is_said_and_left(damage: str, operator: Operator, cache: Cache, tmp_path: Path) -> None:
    once(operator, cache.path, tmp_path)
    file = tmp_path / "device.db"
    content = file.read_bytes()
    damaged = {
        "cut": content[: len(content) // 2],
        "overwritten": content[:2000] + bytes(range(256)) * 16 + content[6096:],
        "none of ours": b"nothing" * 1000,
        "of another version": content.replace(b"tacit device 3", b"tacit device 7"),
    }[damage]
    file.write_bytes(damaged)
    with pytest.raises(DeviceError, match=r"use the version|cannot be used|is damaged"):
        once(operator, cache.path, tmp_path)
    assert file.read_bytes() == damaged and not operator.received


def test_a_full_disk_stops_it_before_anything_leaves(
    operator: Operator, words: str, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan(words)
    operator.assign(plan, operator.task(plan, 0))
    full = Full(monkeypatch)
    with pytest.raises(DeviceError, match="database or disk is full"):
        once(operator, cache.path, tmp_path)
    assert not operator.received
    full.undo()
    operator.assign(plan, operator.task(plan, 0))
    assert once(operator, cache.path, tmp_path).what == "reported"


class Full:
    """A disk that has no room for a participation: the database may not grow beyond what it is when one is written."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        from tacit.device.record import DeviceRecord

        self._patch, take_part = patch, DeviceRecord.take_part

        def full(record: Any, *given: Any, **named: Any) -> None:
            pages = record._rows("PRAGMA page_count")[0][0]
            record._file.database.execute(f"PRAGMA max_page_count = {pages}")
            named["assignment"] = "x" * 1_000_000
            take_part(record, *given, **named)

        patch.setattr(DeviceRecord, "take_part", full)

    def undo(self) -> None:
        self._patch.undo()


def test_no_folder_of_something_else_is_taken(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    with pytest.raises(InputError, match="something else"):
        once(operator, cache.path, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["letters"]


def test_a_cache_that_moved_is_said(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no cache at"):
        tacit.run_device(
            "http://localhost:1", tmp_path / "gone", tmp_path / "state", operator_key=operator.key.public, once=True
        )
    assert not (tmp_path / "state").exists()


def test_the_model_is_fetched_each_time_and_nothing_of_it_stays(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan = a_plan(words, separation=a_plan(words).separation.model_copy(update={"rounds": 5}))
    for round in (0, 5, 10):
        operator.assign(plan, operator.task(plan, round))
        assert once(operator, cache.path, tmp_path, now=NOON + 2 * round * HOUR).what == "reported"
    assert sum(each.url.path.startswith("/v1/models/") for each in operator.asked) == 3
    assert {each.name for each in tmp_path.iterdir()} == {"device.db", "device.db.changed", "operators"}
    assert not list(tmp_path.glob("operators/*/*"))


def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    assert Policy.load(file) == Policy()
    file.write_text('kinds = ["train"]\nbudget_zcdp = 1\n[eligibility]\nleast_battery = 80\n')
    found = Policy.load(file)
    assert found.budget_zcdp == 1.0 and found.eligibility.least_battery == 80


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("budget = 1", "has the unknown key 'budget'"),
        ("budget_zcdp = 'x'", "budget_zcdp is 'x', and a number was expected"),
        ("budget_zcdp = 0", "budget_zcdp=0 must be above 0"),
        ("budget_zcdp = nan", "budget_zcdp=nan must be above 0"),
        ("kinds = []", "must name some of train"),
        ("aggregation = ['open']", "must name some of plain, encoded, sealed"),
        ("decryptors = ['x']", "is no key; give 64 hexadecimal digits"),
        ("smallest_cohort = 0", "is below 1"),
        ("split = 'random:0.8'", "is unknown"),
        ("[eligibility]\nleast_battery = 101", "is no percentage"),
        ("[eligibility]\nlargest_load = 0", "lets nothing run"),
        ("[[", "is not TOML"),
    ],
)
def test_a_policy_that_is_none(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(text)
    with pytest.raises(InputError) as error:
        Policy.load(tmp_path / "policy.toml")
    assert why in str(error.value)


def test_the_page_lists_every_key_of_a_policy_with_its_default() -> None:
    page = (REPOSITORY / "docs" / "device.md").read_text(encoding="utf-8")
    listed = page.partition("```toml\n")[2].partition("```")[0]
    assert from_plain(Policy, tomllib.loads(listed)) == Policy()
    names = [each.name for kind in (Policy, Eligibility) for each in dataclasses.fields(kind)]
    assert all(f"{name} =" in listed or f"[{name}]" in listed for name in names)


def test_a_plan_that_is_not_in_the_log_is_refused(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    plan = a_plan(cache.manifest.vocabulary.sha256)
    operator.give(operator.key.plan(plan.to_json()), operator.key.signed(operator.task(plan, 0)), logged=False)
    (task,) = operator.answers
    for says in ("shows no log", "log does not have"):
        operator.answers = [task]
        turn = once(operator, cache.path, tmp_path)
        assert turn.what == "refused" and says in turn.says
        operator.log.append("plan " + "ab" * 32)
    assert not operator.received


def test_a_log_that_was_written_anew_is_refused(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    first, second = (a_plan(cache.manifest.vocabulary.sha256, run=run) for run in ("run-1", "run-2"))
    operator.assign(first, operator.task(first, 0))
    assert once(operator, cache.path, tmp_path).what == "reported"
    operator.log = ["plan " + "ab" * 32]  # what others are shown in place of the first
    operator.assign(second, operator.task(second, 0))
    turn = once(operator, cache.path, tmp_path)
    assert turn.what == "refused" and "do not begin alike" in turn.says
    assert len(operator.received) == 1
    with opened(tmp_path, now=NOON) as record:  # what convicts the operator
        record.pin(operator.key.public)
        kept, other = (ShownLog.from_json(record._about(name)) for name in ("log", "another log"))
        assert record.log == kept.entries == (plan_entry(digest(first.to_json())),)
        assert other.entries[0] == "plan " + "ab" * 32
        assert all(is_signed(TreeHead, each.head, operator.key.public) for each in (kept, other))


def test_who_signed_another_log_is_asked_for_nothing_more(operator: Operator, cache: Cache, tmp_path: Path) -> None:
    """Or it could show such a list again and again, each time with the answer whether this device saw another."""
    first, second = (a_plan(cache.manifest.vocabulary.sha256, run=run) for run in ("run-1", "run-2"))
    operator.assign(first, operator.task(first, 0))
    assert once(operator, cache.path, tmp_path).what == "reported"
    true, operator.log = operator.log, ["plan " + "ab" * 32]
    operator.assign(second, operator.task(second, 0))
    assert once(operator, cache.path, tmp_path).what == "refused"
    operator.log = [*true, plan_entry(digest(second.to_json()))]
    operator.assign(second, operator.task(second, 0))
    asked = len(operator.asked)
    turn = once(operator, cache.path, tmp_path)
    assert turn.what == "refused" and "signed two logs" in turn.says
    assert len(operator.asked) == asked and len(operator.received) == 1
