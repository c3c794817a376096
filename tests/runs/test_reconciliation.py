"""Attacks by somebody who makes every seal fit: the ledger, the log and the files still have to agree."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.journals import rewrite_each
from tests.support.made_runs import REPORT_GOAL, write_run

from tacit.errors import InputError, RunError
from tacit.jobs.account.run import account_run
from tacit.jobs.report import report
from tacit.jobs.resume import resume
from tacit.jobs.statement import statement, verify
from tacit.privacy import Tree
from tacit.runs import Run
from tacit.runs.journal import numbers_of
from tacit.runs.metadata import DeploymentUsed
from tacit.runs.reconciliation import reconciled


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("made") / "run", strategy=Tree(), rounds=12, done=10)


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    """A copy of a run of ten rounds of twelve: clients 0 to 19 come in turn, every fifth round."""
    return shutil.copytree(made, tmp_path / "run")


def with_participants(path: Path, step: int, clients: list[int]) -> None:
    """Others took part in a step, by log and journal."""
    numbers = numbers_of(np.array(clients))
    new = {"clients": len(clients), "participants": sha256(numbers).hexdigest()}
    with closing(sqlite3.connect(path / "run.db")) as database, database:
        database.execute("UPDATE participants SET clients = ? WHERE step = ?", (numbers, step))
    rewrite_each(path, "step", lambda record: {**record, **new} if record["step"]["step"] == step else record)


def with_release(path: Path, step: int, **changed: Any) -> None:
    """A step released another thing, by the journal."""

    def other(record: dict[str, Any]) -> dict[str, Any]:
        if record["step"]["step"] != step:
            return record
        (release,) = record["step"]["releases"]
        return {**record, "step": {**record["step"], "releases": [{**release, **changed}]}}

    rewrite_each(path, "step", other)


def said_secure(path: Path, **changed: Any) -> None:
    """The run says of itself that its updates were summed as integers."""
    secure = {
        "parameters": 1000,
        "dimension": 1024,
        "clip_norm": 1.0,
        "scale": 500.0,
        "report_goal": REPORT_GOAL,
        "sigmas": 10.0,
        "inflation": 1.005,
        "bits": 12,
        "clipping_probability": 1e-15,
        "threshold": 2,
        "protocol": None,
        "protocol_clients": 0,
        "protocol_dropout": 0.0,
        "decryptors": 0,
    }
    rewrite_each(
        path, "begun", lambda each: {**each, "metadata": {**each["metadata"], "secure": {**secure, **changed}}}
    )


ATTACKS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a participation less": (
        lambda path: with_participants(path, 3, [12, 13, 14]),
        r"step 3 of .* has 3 reports and 1 dropped clients, and 3 participations",
    ),
    "a fake client": (lambda path: with_participants(path, 3, [12, 13, 14, 15, 99]), "step 3 .* and 5 participations"),
    "a client nobody has": (
        lambda path: with_participants(path, 3, [12, 13, 14, 120]),
        "step 3 of .* names the client 120, and there are 120 in the cache",
    ),
    "a client below all": (lambda path: with_participants(path, 3, [12, 13, 14, -1]), "names the client -1"),
    "a client far above": (
        lambda path: with_participants(path, 3, [12, 13, 14, 2**62]),
        "names the client 4611686",
    ),
    "a client too soon": (
        lambda path: with_participants(path, 3, [0, 13, 14, 15]),
        r"step 3 of .* names the client 0, which took part 1 times before, last in step 0; the draw keeps 5 steps",
    ),
    "reports more": (lambda path: with_release(path, 3, reports=4), "has 4 reports and 1 dropped clients, and 4 part"),
    "reports below none": (lambda path: with_release(path, 3, reports=5, dropped=-1), "has 5 reports and -1 dropped"),
    "reports in words": (lambda path: with_release(path, 3, reports="three"), "has -1 reports"),
    "another round": (lambda path: with_release(path, 3, round=4), "step 3 of .* released a sum of round 4"),
    "nothing released": (
        lambda path: rewrite_each(path, "step", lambda each: {**each, "step": {**each["step"], "releases": []}}),
        "step 0 of .* released nothing",
    ),
    "more clients than there are": (
        lambda path: rewrite_each(
            path, "begun", lambda each: {**each, "metadata": {**each["metadata"], "population": 19}}
        ),
        "the log of .* names 20 clients, and there are 19 to take part",
    ),
    "an encoding that nobody counted": (said_secure, r"step 0 of .* counts no encoding, which lengthens updates by"),
    "decryptors that added no noise": (
        lambda path: said_secure(path, decryptors=3),
        "step 0 of .* released a sum without the noise of just 3 decryptors",
    ),
    "decryptors of one step": (
        lambda path: with_release(path, 3, decryptors=2),
        "step 3 of .* released a sum without the noise of just 0 decryptors",
    ),
    "a sum below the threshold": (
        lambda path: said_secure(path, threshold=4, inflation=1.0),
        "step 1 of .* opened a sum of 3 reports, fewer than the threshold 4",
    ),
    "another state": (
        lambda path: (path / "steps" / "round-000009.safetensors").write_bytes(b"other") and None,
        "is not the file that step 9 names",
    ),
    "steps cut off": (
        lambda path: [(path / "steps" / f"round-00001{at}.safetensors").write_bytes(b"") for at in (0, 1)] and None,
        "has 2 files of steps that its journal does not know .*: the journal has lost its end",
    ),
}


@pytest.mark.parametrize(("attack", "said"), ATTACKS.values(), ids=ATTACKS)
def test_what_cannot_be_true_is_refused_by_its_first_row(path: Path, attack: Callable[[Path], None], said: str) -> None:
    with Run.open(path) as run:
        assert reconciled(run) is run
    attack(path)
    with Run.open(path) as run, pytest.raises(RunError, match=said) as refusal:
        reconciled(run)
    assert "\n" not in str(refusal.value) and "restore the folder from a copy" in str(refusal.value)


# -- devices without identities ----------------------------------------------------------------------------------------


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """The same run of devices that keep three rounds between and a timer of 2.5 seconds; one round a second."""
    devices = DeploymentUsed(population="phones", devices=100, rounds=5, timer_seconds=2.5)
    return write_run(tmp_path / "counted", strategy=Tree(), rounds=12, done=10, deployment=devices)


def with_step(path: Path, step: int, **changed: Any) -> None:
    rewrite_each(path, "step", lambda each: {**each, **changed} if each["step"]["step"] == step else each)


def named_too(path: Path) -> None:
    with closing(sqlite3.connect(path / "run.db")) as database, database:
        database.execute("INSERT INTO participants VALUES (3, ?)", (numbers_of(np.arange(4)),))


COUNTED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a device less": (lambda path: with_step(path, 3, clients=3), "3 reports and 1 dropped clients, and 3 particip"),
    "a device more": (lambda path: with_step(path, 3, clients=5), "3 reports and 1 dropped clients, and 5 particip"),
    "a clock set back": (
        lambda path: with_step(path, 3, finished=1_790_000_001.0),
        r"step 3 of .* finished 1 seconds before it can have begun",
    ),
    "a round before the run": (
        lambda path: with_step(path, 0, finished=1_789_999_999.0),
        r"step 0 of .* finished 1 seconds before it can have begun",
    ),
    "a step that names its devices": (
        lambda path: with_step(path, 3, participants=sha256(b"").hexdigest()),
        "step 3 in .* names who took part",
    ),
    "names beside the count": (named_too, "step 3 in .* names who took part"),
}


@pytest.mark.parametrize(("attack", "said"), COUNTED.values(), ids=COUNTED)
def test_a_log_of_counts_that_cannot_be_true_is_refused(
    counted: Path, attack: Callable[[Path], None], said: str
) -> None:
    with Run.open(counted) as run:
        assert reconciled(run) is run and run.counts().tolist() == [4] * 10
    attack(counted)
    with Run.open(counted) as run, pytest.raises(RunError, match=said) as refusal:
        reconciled(run)
    assert "\n" not in str(refusal.value) and "restore the folder from a copy" in str(refusal.value)


def test_an_edited_time_or_count_is_found_though_nothing_else_is_wrong_with_it(counted: Path) -> None:
    """Rounds three seconds later would let a device with a timer come in each; the statement tells them apart."""
    whole = account_run(counted)
    assert whole.realised is not None
    stated = statement(counted)
    assert all(line.holds for line in verify(stated, run=counted).lines)
    with closing(sqlite3.connect(counted / "run.db")) as database, database:
        database.execute("UPDATE journal SET content = replace(content, '\"clients\": 4', '\"clients\": 5')")
    with pytest.raises(RunError, match="is not what was written"):
        account_run(counted)
    for step in range(10):
        with_step(counted, step, clients=4, finished=1_790_000_000.0 + 3 * step)
    failed = {line.name for line in verify(stated, run=counted).failed}
    assert "run.seal" in failed


def test_who_took_part_is_not_made_up_from_a_log_that_does_not_say(counted: Path) -> None:
    """An empty log would say that nobody came twice."""
    with Run.open(counted) as run, pytest.raises(RunError, match=r"step 0 in .* has 4 devices without identities"):
        run.participations()


@pytest.mark.parametrize("job", [account_run, statement, report, resume])
def test_whoever_accounts_for_a_run_looks(path: Path, job: Callable[[Path], Any]) -> None:
    with_participants(path, 3, [12, 13, 14])
    with pytest.raises(RunError, match="ledger and log are not of one run"):
        job(path)


def test_deleted_participations_do_not_lower_epsilon(path: Path) -> None:
    """On 4a0d271 `DELETE FROM participations WHERE step >= 5` gives a lower epsilon, and a statement that verifies."""
    whole = account_run(path)
    with closing(sqlite3.connect(path / "run.db")) as database, database:
        database.execute("DELETE FROM participants WHERE step >= 5")
    with pytest.raises(RunError, match=r"participants of step 5 .* are not the 4 clients that took part"):
        account_run(path)
    assert whole.realised is not None


def test_a_state_that_a_kill_left_before_its_row_is_no_contradiction(path: Path) -> None:
    (path / "steps" / "round-000010.safetensors").write_bytes(b"computed, not committed")
    with Run.open(path) as run:
        assert reconciled(run).steps_done == 10


@pytest.mark.parametrize(("hook", "clients"), [("sampler", [0, 13, 14, 15]), ("collector", [0, 13, 14, 9_999])])
def test_what_ours_does_not_enforce_is_measured_and_not_refused(tmp_path: Path, hook: str, clients: list[int]) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), rounds=5, every=5, hooks={hook: "made.by:hand"})
    with_participants(path, 3, clients)
    with Run.open(path) as run:
        reconciled(run)
    assert len(clients) == REPORT_GOAL


def test_a_finished_run_on_read_only_media_is_accounted_stated_verified_and_reported_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.reports.drawing.render", lambda figure, kind: b"")  # drawing takes its time
    path = write_run(tmp_path / "run", strategy=Tree(), rounds=5, every=5)
    report(path)
    usual = (account_run(path).to_record(), statement(path).to_json(), verify(path))
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    may = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK and may(place, mode))  # root may always
    path.chmod(0o500)
    try:
        assert (account_run(path).to_record(), statement(path).to_json(), verify(path)) == usual
        assert report(path, out=tmp_path / "out").html.is_file()
        with pytest.raises(InputError, match=r"cannot be written; say where else its report goes \(--out"):
            report(path)
    finally:
        path.chmod(0o700)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
