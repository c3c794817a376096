"""What an owner sees of a device and may do to it: what left it, what is left, a week's budget, a pause, forgetting."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.device.operator import HOUR, NOON, POPULATION, Operator, Wire, a_plan, once
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import Cache
from tacit.device import owner
from tacit.device.policy import Policy
from tacit.device.record import FILE, opened
from tacit.device.session import Machine
from tacit.device.weekly_budget import WEEK, check_week, spent_since
from tacit.errors import DeviceError, InputError, TaskRefused
from tacit.protocol.log_proofs import leaf_of
from tacit.protocol.signing import digest
from tacit.server.log.merkle_tree import MerkleTree

DAY = 24 * HOUR


def took_part(operator: Operator, cache: Cache, state: Path, words: str, *rounds: int, **policy: Any) -> list[str]:
    """What came of each of these rounds of one run, two hours apart a round."""
    plan, found = a_plan(words), []
    for round in rounds:
        operator.assign(plan, operator.task(plan, round))
        turn = once(operator, cache.path, state, now=NOON + round * 2 * HOUR, policy=Policy(**policy))
        found.append(turn.what if turn.what == "reported" else turn.says)
    return found


def test_it_shows_what_left_to_whom_and_what_is_left(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    assert took_part(operator, cache, tmp_path, words, 0, 5) == ["reported"] * 2
    before = (tmp_path / FILE).read_bytes()
    shown = tacit.device_status(tmp_path)
    with opened(tmp_path, now=NOON) as record:
        spent = record.spent()
        assert shown == tacit.device_status(tmp_path), "a device may run meanwhile"
    (run,) = shown.runs
    assert (run.population, run.run, run.kind, run.rounds, run.received) == (POPULATION, "run-1", "train", (0, 5), 2)
    assert run.zcdp == shown.spent_zcdp == shown.week_zcdp == spent > 0 and run.first == NOON
    assert shown.operators == (operator.key.public,) and shown.left_zcdp == 4.0 - spent
    assert (shown.plans, shown.budget_zcdp_week, shown.paused) == (1, None, False)
    root = MerkleTree(map(leaf_of, operator.log)).root().hex()
    assert shown.logs == (owner.KeptLog(operator=operator.key.public, size=1, root=root),)
    said = str(shown)
    assert f"kept: 1 entries of the log of {operator.key.public}, of root {root}" in said
    for part in ("2 times a clipped update of a model", "which the operator could read", "of 4 in all", "run-1 of key"):
        assert part in said, said
    printed = CliRunner().invoke(app, ["device", "--state", str(tmp_path), "--show"])
    assert printed.exit_code == 0 and "2 times a clipped update" in printed.stdout
    record_of = json.loads(CliRunner().invoke(app, ["device", "--state", str(tmp_path), "--show", "--json"]).stdout)
    assert record_of == json.loads(json.dumps(shown.to_record())) and record_of["schema"] == "tacit.device_status"
    assert (tmp_path / FILE).read_bytes() == before


def test_a_pause_keeps_it_from_asking_anybody(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    took_part(operator, cache, tmp_path, words, 0)
    asked = len(operator.asked)
    paused = CliRunner().invoke(app, ["device", "--state", str(tmp_path), "--pause"])
    assert paused.exit_code == 0 and "PAUSED" in paused.stdout

    def turn() -> Any:
        return tacit.run_device(
            "http://localhost:1",
            cache.path,
            tmp_path,
            population=POPULATION,
            once=True,
            machine=Machine(clock=lambda: NOON + DAY),
            through=Wire(operator),
            probes=[],
        )

    assert (turn().what, len(operator.asked)) == ("not eligible", asked)
    assert "--resume` ends that" in turn().says
    assert not tacit.device_status(tmp_path, pause=False).paused
    assert turn().what == "idle" and len(operator.asked) > asked


def test_what_was_spent_is_never_forgotten(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    took_part(operator, cache, tmp_path, words, 0)
    with opened(tmp_path, now=NOON) as record:
        record.pin(operator.key.public)
        for number in range(3):
            plan = a_plan(words, run=f"other-{number}")
            record.keep_plan(digest(plan.to_json()), operator.key.plan(plan.to_json()))
            record.observe(operator.task(plan, 0))
        with pytest.raises(DeviceError, match="another process runs the device"):
            tacit.device_status(tmp_path, forget=True)
    before = tacit.device_status(tmp_path)
    after = tacit.device_status(tmp_path, forget=True)
    assert (before.plans, after.plans) == (4, 1) and "3 plans" in after.forgotten
    assert after.runs == before.runs and after.spent_zcdp == before.spent_zcdp > 0 and after.since is None
    assert "would spend it again" in after.forgotten
    (again,) = took_part(operator, cache, tmp_path, words, 0)
    assert "took part in it already" in again or "apart" in again, again
    assert took_part(operator, cache, tmp_path, words, 5) == ["reported"]


def test_a_week_has_a_budget_of_its_own(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    took_part(operator, cache, tmp_path, words, 0)
    spent = tacit.device_status(tmp_path).spent_zcdp
    (tmp_path / "policy.toml").write_text(f"budget_zcdp_week = {1.5 * spent}\n", encoding="utf-8")
    assert tacit.device_status(tmp_path).left_zcdp == pytest.approx(0.5 * spent)
    other = a_plan(words, run="run-2")

    def asked(after: float) -> Any:
        operator.assign(other, operator.task(other, 0, opens=NOON + after))
        policy = Policy(budget_zcdp_week=1.5 * spent)
        return once(operator, cache.path, tmp_path, now=NOON + after, policy=policy)

    refused = asked(6 * DAY)
    assert refused.what == "refused" and "the runs of seven days to zCDP" in refused.says
    assert "budget_zcdp_week=" in refused.says and refused.spent == spent
    assert asked(7 * DAY + HOUR).what == "reported"


parts = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.floats(0, 4 * WEEK), st.floats(0.01, 1.0)), min_size=1, max_size=12
)


@given(parts, st.floats(0.5, 3.0))
def test_no_seven_days_cost_more_than_the_owner_allows(wished: list[tuple[str, float, float]], allowed: float) -> None:
    """Whole runs, whichever seven days one looks at; and k of them at most k times that."""
    done: list[dict[str, Any]] = []
    for run, at, more in sorted(wished, key=lambda each: each[1]):
        own = [each["zcdp"] for each in done if each["plan"] == run]
        zcdp = max(own, default=0.0) + more  # what a run has cost never falls
        try:
            check_week(done, run, zcdp, allowed=allowed, now=at, what="round 0")
        except TaskRefused:
            continue
        done.append({"plan": run, "at": at, "zcdp": zcdp})
    final = {run: max(each["zcdp"] for each in done if each["plan"] == run) for run in {each["plan"] for each in done}}
    for each in done:
        until = [other for other in done if other["at"] <= each["at"]]
        assert spent_since(until, each["at"] - WEEK) <= allowed * (1 + 1e-9)
    weeks = {int(each["at"] // WEEK) for each in done}
    assert math.fsum(final.values()) <= len(weeks) * allowed * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda path: tacit.device_status(path / "none"), "no device has been there"),
        (lambda path: tacit.device_status(path / "none", pause=True), "no device has been there"),
        (lambda path: tacit.device_status(path, pause="yes"), "pause='yes' is of the type str"),
        (lambda path: tacit.device_status(path, forget=1), "forget=1 is of the type int"),
    ],
)
def test_what_cannot_be_is_refused(call: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_record_that_is_none_is_said_and_left(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"x" * 4096)
    with pytest.raises(DeviceError, match="cannot be used"):
        owner.device_status(tmp_path)
    assert (tmp_path / FILE).read_bytes() == b"x" * 4096
    refused = CliRunner().invoke(app, ["device", "--state", str(tmp_path)])
    assert refused.exit_code == 2 and "--server and --data" in refused.stderr
