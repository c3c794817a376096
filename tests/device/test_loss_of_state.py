"""A lifetime budget does not forget: copies put back, folders removed, kills between two writes, several operators."""

import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY
from tests.support.device.operator import HOUR, NOON, POPULATION, Clock, Operator, Wire, a_plan, once
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import Cache
from tacit.device.policy import Policy
from tacit.device.record import COPY, FILE, JOURNAL, NEW, journal_of, opened
from tacit.device.session import Machine
from tacit.device.weekly_budget import WEEK
from tacit.errors import DeviceError, InputError
from tacit.protocol.operator_key import OperatorKey

DAY = 24 * HOUR
OTHER = OperatorKey(bytes([9] * 32))


class Life:
    """A device and the runs of an operator that it is asked for, each at round 0 and, where it refused, at round 6."""

    def __init__(self, operator: Operator, cache: Cache, state: Path, words: str) -> None:
        self.operator, self.cache, self.state, self.words = operator, cache, state, words
        self.runs, self.said = itertools.count(), list[str]()
        self.policy = Policy()

    @property
    def journal(self) -> Path:
        return journal_of(self.state)

    def asked(self, runs: int, *, first_time: bool = False) -> int:
        """In how many of so many new runs it takes part."""
        before = len(self.operator.received)
        self.operator.answers.clear()
        for number in itertools.islice(self.runs, runs):
            plan = a_plan(self.words, run=f"run-{number}")
            for round in (0, 6):
                opens = NOON + number * DAY + round * HOUR
                self.operator.assign(plan, self.operator.task(plan, round, opens=opens))
                turn = once(
                    *(self.operator, self.cache.path, self.state),
                    now=opens,
                    policy=self.policy,
                    first_time=first_time,
                )
                self.said.append(turn.says)
                first_time = False
                if turn.what == "reported":
                    break
        return len(self.operator.received) - before


@pytest.fixture
def life(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> Life:
    """One whose budget six participations fit into."""
    found = Life(operator, cache, tmp_path / "state", words)
    assert found.asked(1, first_time=True) == 1
    dear = tacit.device_status(found.state).spent_zcdp
    found.policy = Policy(budget_zcdp=6.5 * dear)
    (found.state / "policy.toml").write_text(f"budget_zcdp = {6.5 * dear}\n", encoding="utf-8")
    return found


def removed(life: Life, copies: Path) -> None:
    shutil.rmtree(life.state)


def older_copy(life: Life, copies: Path) -> None:
    removed(life, copies)
    shutil.copytree(copies / "state", life.state)


def older_copy_in_place(life: Life, copies: Path) -> None:
    for each in ("device.db", "device.db.changed"):
        shutil.copyfile(copies / "state" / each, life.state / each)
        shutil.copystat(copies / "state" / each, life.state / each)


def journal_removed(life: Life, copies: Path) -> None:
    shutil.rmtree(life.journal)


def older_journal(life: Life, copies: Path) -> None:
    journal_removed(life, copies)
    shutil.copytree(copies / "journal", life.journal)


@pytest.mark.parametrize("lost", [removed, older_copy, older_copy_in_place, journal_removed, older_journal])
@pytest.mark.parametrize("when", [3, 6])
def test_what_one_place_lost_the_other_knows(
    lost: Callable[[Life, Path], None], when: int, life: Life, tmp_path: Path
) -> None:
    """Twelve runs where six fit, in earlier versions: now six, and none fewer, for nothing is lost."""
    shutil.copytree(life.state, tmp_path / "copies" / "state")
    if life.journal.exists():  # where a version has one
        shutil.copytree(life.journal, tmp_path / "copies" / "journal")
    life.asked(when - 1)
    lost(life, tmp_path / "copies")
    life.asked(12)
    assert len(life.operator.received) == 6, life.said
    with opened(life.state, now=NOON) as record:
        assert not record.losses and len(record.participations()) == 6


def both(*lost: Callable[[Life, Path], None]) -> Callable[[Life, Path], None]:
    def happens(life: Life, copies: Path) -> None:
        for each in lost:
            each(life, copies)

    happens.__name__ = " and ".join(each.__name__ for each in lost)
    return happens


LOST = {
    both(removed, journal_removed): NEW,
    both(removed, older_journal): COPY,
    both(older_copy, journal_removed): COPY,
    both(older_copy, older_journal): COPY,
    both(older_copy_in_place, older_journal): COPY,
}


@pytest.mark.parametrize("lost", LOST, ids=lambda each: each.__name__)
def test_what_both_places_lost_is_charged_as_all(
    lost: Callable[[Life, Path], None], life: Life, tmp_path: Path
) -> None:
    shutil.copytree(life.state, tmp_path / "copies" / "state")
    shutil.copytree(life.journal, tmp_path / "copies" / "journal")
    life.asked(3)
    lost(life, tmp_path / "copies")
    (life.state / "policy.toml").exists() or life.state.mkdir(exist_ok=True)
    (life.state / "policy.toml").write_text(f"budget_zcdp = {life.policy.budget_zcdp}\n", encoding="utf-8")
    assert life.asked(4) == 0 and "budget_zcdp=" in life.said[-1], life.said
    with opened(life.state, now=NOON) as record:
        (loss,) = record.losses
        assert loss.why == LOST[lost] and math.isclose(record.spent(), life.policy.budget_zcdp)
    shown = tacit.device_status(life.state)
    assert shown.left_zcdp == 0 and shown.lost_zcdp == loss.zcdp > 0 and shown.since == loss.at
    assert "were new, or copies" in str(shown) and "raise budget_zcdp" in str(shown) and "a snapshot" in str(shown)
    life.policy = Policy(budget_zcdp=life.policy.budget_zcdp * 2)  # its owner allows as much again, and no more
    assert life.asked(12) <= 6


def test_a_week_after_everything_was_lost_a_weekly_budget_begins_anew(life: Life) -> None:
    """Where no budget but the week's is set, staying away for one is enough: a run that was under way is left."""
    week = life.policy.budget_zcdp
    life.policy = Policy(budget_zcdp=math.inf, budget_zcdp_week=week)
    life.asked(2)
    shutil.rmtree(life.state)
    shutil.rmtree(life.journal)
    told = [life.asked(1) for _ in range(12)]
    assert told[:7] == [0] * 7 and sum(told[8:]) > 0, life.said
    with opened(life.state, now=NOON) as record:
        (loss,) = record.losses
        assert all(each["at"] > loss.at + WEEK for each in record.participations())


def test_no_run_that_was_under_way_when_all_was_lost(
    operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    """What a round costs with others that nobody knows, nobody knows."""
    plan, policy = a_plan(words), Policy(budget_zcdp=math.inf)

    def asked(round: int) -> str:
        operator.assign(plan, operator.task(plan, round))
        return once(
            *(operator, cache.path, tmp_path / "state"),
            now=NOON + 2 * round * HOUR,
            policy=policy,
            first_time=round == 0,
        ).says

    asked(0)
    shutil.rmtree(tmp_path / "state")
    shutil.rmtree(journal_of(tmp_path / "state"))
    for round in (5, 10, 30):
        assert "the run was under way" in asked(round)
    assert len(operator.received) == 1


def test_its_owner_may_say_that_it_took_part_nowhere_where_nothing_says_otherwise(life: Life) -> None:
    for folder in (life.state, life.journal):
        shutil.rmtree(folder)
    assert life.asked(1) == 0  # a new record, of which nothing is known
    assert life.asked(1, first_time=True) == 1  # its owner says what it is
    shutil.rmtree(life.state)
    with pytest.raises(InputError, match=r"--first-time says that this device took part nowhere, and '.*' has 1 part"):
        life.asked(1, first_time=True)
    assert life.asked(1) == 1


def test_a_journal_lies_outside_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state"
    with pytest.raises(InputError, match="would be lost with it"), opened(state, state / "journal", now=NOON):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--journal"), opened(state, tmp_path / "file", now=NOON):
        pass
    monkeypatch.setenv("XDG_DATA_HOME", "here")
    with pytest.raises(InputError, match="give --journal"), opened(state, now=NOON):
        pass
    assert not state.exists()
    with opened(state, tmp_path / "other", now=NOON):
        assert (tmp_path / "other" / JOURNAL).exists() and (state / FILE).exists()


def test_nobody_else_looks_into_folders_that_were_there_before(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (life.state, life.journal):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
    life.asked(1, first_time=True)
    assert [folder.stat().st_mode & 0o777 for folder in (life.state, life.journal)] == [0o700, 0o700]

    def refused(folder: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)  # as for a folder of another user's
    os.chmod(life.journal, 0o750)
    with opened(life.state, now=NOON):
        pass
    os.chmod(life.journal, 0o777)
    (life.journal / "notes").touch()
    with opened(life.state, now=NOON):
        pass
    (life.journal / "notes").unlink()
    with pytest.raises(InputError, match=r"anybody may write in .*chmod 700"), opened(life.state, now=NOON):
        pass


def test_the_command_keeps_its_journal_where_it_is_told(cache: Cache, tmp_path: Path) -> None:
    places = ["--state", str(tmp_path / "state"), "--journal", str(tmp_path / "elsewhere")]
    asked = ["--server", "http://127.0.0.1:9", "--data", str(cache.path), "--operator-key", OTHER.public]
    turn = CliRunner().invoke(app, ["device", *places, *asked, "--first-time", "--once", "--json"])
    assert turn.exit_code == 0 and (tmp_path / "elsewhere" / JOURNAL).is_file(), turn.stderr
    assert not journal_of(tmp_path / "state").exists()
    shown = CliRunner().invoke(app, ["device", *places, "--show"])
    assert shown.exit_code == 0 and f"operator: {OTHER.public}" in shown.stdout and "a snapshot" in shown.stdout


def test_a_damaged_journal_is_said_and_made_again(life: Life) -> None:
    (life.journal / JOURNAL).write_bytes(b"x" * 4096)
    with pytest.raises(DeviceError, match="move it away: it is made again"):
        life.asked(1)
    (life.journal / JOURNAL).unlink()
    assert life.asked(7) == 5
    with opened(life.state, now=NOON) as record:
        assert not record.losses


def test_a_record_that_is_replaced_while_it_is_open_is_noticed(life: Life, tmp_path: Path) -> None:
    shutil.copytree(life.state, tmp_path / "copy")
    with opened(life.state, now=NOON) as record:
        record.pin(life.operator.key.public)
        shutil.rmtree(life.state)
        with pytest.raises(DeviceError, match="while this device ran"):
            record.keep_tokens({})
    shutil.copytree(tmp_path / "copy", life.state)
    with opened(life.state, now=NOON) as record:
        record.pin(life.operator.key.public)
        shutil.copyfile(tmp_path / "copy" / FILE, life.state / FILE)
        with pytest.raises(DeviceError, match="an older copy put in its place, while this device ran"):
            record.keep_tokens({})


# -- several operators -------------------------------------------------------------------------------------------------


def test_one_budget_for_all_operators(operator: Operator, words: str, cache: Cache, tmp_path: Path) -> None:
    """The same names of runs, as strangers choose them; what one asked counts for the other, in the week as well."""
    other, plan = Operator(key=OTHER), a_plan(words)
    theirs = a_plan(words, code="cd" * 32)  # another plan by the same names

    def asked(by: Operator, number: int, policy: Policy) -> str:
        said = plan if by is operator else theirs
        by.assign(said, by.task(said, number * 5, task=f"{number:031x}{'a' if by is operator else 'b'}"))
        return once(by, cache.path, tmp_path, now=NOON + number * 10 * HOUR, policy=policy, key=by.key.public).says

    assert "signed for it" in asked(operator, 0, Policy()) and "signed for it" in asked(other, 1, Policy())
    shown = tacit.device_status(tmp_path)
    assert [each.operator for each in shown.runs] == list(shown.operators) == [operator.key.public, OTHER.public]
    assert shown.spent_zcdp == math.fsum(each.zcdp for each in shown.runs) > shown.runs[0].zcdp > 0
    assert {each["operator"] for each in shown.to_record()["runs"]} == {operator.key.public, OTHER.public}
    for key in shown.operators:
        assert f"operator: {key}" in str(shown) and f"by {key[:16]}..." in str(shown)
    tight = shown.spent_zcdp * 1.01
    for by, number in ((operator, 2), (other, 3)):
        assert "would bring everything to zCDP" in asked(by, number, Policy(budget_zcdp=tight))
        assert "the runs of seven days to zCDP" in asked(by, number, Policy(budget_zcdp_week=tight))
    assert len(operator.received) == len(other.received) == 1
    run: dict[str, Any] = {"population": POPULATION, "once": True, "through": Wire(operator), "probes": []}
    run["machine"] = Machine(clock=Clock(NOON + 99 * HOUR))
    with pytest.raises(InputError, match=r"has pinned several operators .*give --operator-key"):
        tacit.run_device("http://localhost:1", cache.path, tmp_path, **run)
    turn = tacit.run_device("http://localhost:1", cache.path, tmp_path, operator_key=operator.key.public, **run)
    assert turn.what == "idle"


def test_forgetting_keeps_what_every_operator_had(life: Life) -> None:
    other = Life(Operator(key=OTHER), life.cache, life.state, life.words)
    other.runs = life.runs
    life.asked(1)
    plan = a_plan(life.words, run="theirs")
    other.operator.assign(plan, other.operator.task(plan, 0, opens=NOON + 9 * DAY, task="ab" * 16))
    assert once(other.operator, life.cache.path, life.state, now=NOON + 9 * DAY).what == "reported"
    before = tacit.device_status(life.state)
    forgotten = CliRunner().invoke(app, ["device", "--state", str(life.state), "--forget", "--json"])
    assert forgotten.exit_code == 0, forgotten.stderr
    after = tacit.device_status(life.state)
    assert (
        after.runs == before.runs
        and after.spent_zcdp == before.spent_zcdp == json.loads(forgotten.stdout)["spent_zcdp"]
    )
    assert len({each.operator for each in after.runs}) == 2
    assert before.logs == after.logs and [each.operator for each in after.logs] == [*after.operators]


# -- processes ---------------------------------------------------------------------------------------------------------

PROCESS = """
import sys
from pathlib import Path
from tests.support.device.operator import NOON, Operator, a_plan
from tacit.device.record import opened
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import digest

state, journal, seed, begin, most = Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:])
operator = Operator(key=OperatorKey(bytes([seed] * 32)))
plan = a_plan("ab" * 32, run="run")
print("ready", flush=True)
sys.stdin.readline()
with opened(state, journal, now=NOON, first_time=True) as record:
    record.pin(operator.key.public)
    for number in range(begin, begin + 100):
        own = plan.model_copy(update={"run": f"run-{seed}-{number}"})
        record.keep_plan(digest(own.to_json()), operator.key.plan(own.to_json()))
        task = operator.task(own, 0, task=f"{seed:016x}{number:016x}")
        with record.deciding():
            if record.spent() + 1.0 > most:
                break
            record.take_part(task, assignment="ab" * 16, at=NOON + number, zcdp=1.0)
        print(task.task, flush=True)
"""


def process(state: Path, seed: int, begin: int = 0, most: int = 20) -> "subprocess.Popen[str]":
    arguments = [str(state), str(state.with_name("journal")), *map(str, (seed, begin, most))]
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, *arguments],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "src")])},
    )


def let_go(each: "subprocess.Popen[str]") -> None:
    assert each.stdin is not None and each.stdout is not None and each.stdout.readline() == "ready\n"
    each.stdin.write("\n")
    each.stdin.flush()


def test_two_processes_for_two_operators_share_one_budget(tmp_path: Path) -> None:
    """Each decides and writes while the other waits, for milliseconds: no update is lost, nothing is spent twice."""
    both = [process(tmp_path / "state", seed) for seed in (1, 2)]
    for each in both:
        let_go(each)
    told = [each.communicate(timeout=120)[0].split() for each in both]
    assert [each.returncode for each in both] == [0, 0]
    with opened(tmp_path / "state", tmp_path / "journal", now=NOON) as record:
        assert len(record.participations()) == len({*told[0], *told[1]}) == 20 and record.spent() == 20.0
        assert len(record.operators) == 2 and not record.losses


@pytest.mark.long
def test_a_killed_process_loses_nothing_that_it_had_told(tmp_path: Path) -> None:
    """At any instant: its next start finds a whole record, which nothing is charged for."""
    told = set[str]()
    for turn in range(12):
        with process(tmp_path / "state", 1, turn * 1000, most=10_000) as each:
            let_go(each)
            assert each.stdout is not None
            if turn % 3:
                told.add(each.stdout.readline().strip())
            time.sleep(0.007 * turn)
            each.send_signal(signal.SIGKILL)
            told |= set(each.stdout.read().split())
        with opened(tmp_path / "state", tmp_path / "journal", now=NOON, first_time=True) as record:
            kept = {task for (task,) in record._rows("SELECT task FROM participations")}
            assert {task for task in told if len(task) == 32} <= kept and not record.losses, turn
            assert record.spent() == len(kept)
    assert len(kept) >= 8
