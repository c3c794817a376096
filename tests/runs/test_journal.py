"""Attacks on what is written of a run: whatever is changed, removed, added, moved or cut off is found by its place."""

import gc
import json
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from sqlite3 import dbapi2
from typing import Any

import numpy as np
import pytest
from tests.support.journals import Entries, edited, entries_of, rewrite
from tests.support.made_runs import training_metadata

from tacit.errors import RunError
from tacit.runs import MetricEntry, Run, StepEntry, journal
from tacit.runs.draft import commitment_to
from tacit.runs.journal import numbers_of

KEY = bytes(range(16))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three steps with an evaluation and notes, unfinished."""
    path = tmp_path_factory.mktemp("made") / "run"
    with Run.create(path, 'name = "tiny"\n', training_metadata(), KEY, strategy="{}") as run:
        for step in range(3):
            digest = f"{step}" * 64
            row = StepEntry(step=step, file=f"{step}.safetensors", digest=digest, releases=({"round": step},))
            run.commit(row, clients=np.array([step, 7, 5]), finished=1000.0 + step, seconds=0.5)
            run.record_metrics([MetricEntry(step=step, split="test", name="top1", value=0.1 * step)])
        run.note("weather", "rain")
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "run")


def test_a_run_that_nobody_closed_is_closed_in_whichever_thread_collects_it(path: Path) -> None:
    run: Any = Run.open(path)
    run.itself = run  # so that only the collector finds it
    journal = weakref.ref(run._journal)
    database = run._journal._database
    del run
    collector = threading.Thread(target=gc.collect)
    collector.start()
    collector.join()
    assert journal() is None
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        database.execute("SELECT 1")


def read_all(path: Path) -> dict[str, Any]:
    """Whatever can be read of a run."""
    with Run.open(path) as run:
        return {
            "metadata": run.metadata,
            "settings": run.settings,
            "strategy": run.strategy,
            "steps": run.steps(),
            "participations": [column.tolist() for column in run.participations()],
            "metrics": run.metrics(),
            "times": run.times(),
            "notes": run.notes,
            "seals": run.seals,
        }


EDITS = {
    "a release": "UPDATE journal SET content = replace(content, '\"round\": 1', '\"round\": 0') WHERE entry = 3",
    "a digest": "UPDATE journal SET content = replace(content, '1111', '1110') WHERE entry = 3",
    "a time": "UPDATE journal SET content = replace(content, '1001.0', '1001.5') WHERE entry = 3",
    "a metric": "UPDATE journal SET content = replace(content, '0.2', '0.9') WHERE entry = 6",
    "a note": "UPDATE journal SET content = replace(content, 'rain', 'sun') WHERE entry = 7",
    "the metadata": "UPDATE journal SET content = replace(content, '1234', '1235') WHERE entry = 0",
    "a kind": "UPDATE journal SET kind = 'metrics' WHERE entry = 7",
    "a seal": "UPDATE journal SET seal = (SELECT seal FROM journal WHERE entry = 1) WHERE entry = 2",
    "a blob": "UPDATE journal SET content = CAST(content AS BLOB) WHERE entry = 4",
    "an entry less": "DELETE FROM journal WHERE entry = 4",
    "the first less": "DELETE FROM journal WHERE entry = 0",
    "the last less": "DELETE FROM journal WHERE entry = 7",
    "none left": "DELETE FROM journal",
    "one more": "INSERT INTO journal SELECT 8, kind, content, seal FROM journal WHERE entry = 7",
    "one before": "INSERT INTO journal SELECT -1, kind, content, seal FROM journal WHERE entry = 7",
    "two steps swapped": "UPDATE journal SET content = (SELECT content FROM journal AS other "
    "WHERE other.entry = 4 - journal.entry) WHERE entry IN (1, 3)",
    "no journal": "DROP TABLE journal",
    "participation removed": "UPDATE participants SET clients = substr(clients, 1, 16) WHERE step = 1",
    "all of a step": "DELETE FROM participants WHERE step = 1",
    "all participants": "DELETE FROM participants",
    "a client added": "UPDATE participants SET clients = clients || x'0900000000000000' WHERE step = 2",
    "a client changed": "UPDATE participants SET clients = x'0100000000000000' || substr(clients, 9) WHERE step = 2",
    "text for clients": "UPDATE participants SET clients = 'abc' WHERE step = 2",
    "a step of nobody": "INSERT INTO participants VALUES (3, x'0900000000000000')",
    "a step before": "INSERT INTO participants VALUES (-3, x'0900000000000000')",
    "participants swapped": "UPDATE participants SET clients = (SELECT clients FROM participants AS other "
    "WHERE other.step = 2 - participants.step) WHERE step IN (0, 2)",
    "no participants": "DROP TABLE participants",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_of_any_table_is_found(path: Path, edit: str) -> None:
    assert read_all(path)["notes"] == {"weather": "rain"}
    edited(path, edit)
    with pytest.raises(RunError) as refusal:
        read_all(path)
    said = str(refusal.value)
    assert str(path) in said and "\n" not in said


def test_removed_participations_are_named_by_their_step(path: Path) -> None:
    edited(path, EDITS["participation removed"])
    with Run.open(path) as run, pytest.raises(RunError, match=r"participants of step 1 .* are not the 3 clients that"):
        run.participations()


def test_the_first_entry_that_differs_is_named(path: Path) -> None:
    edited(path, EDITS["a digest"], EDITS["a note"])
    with pytest.raises(RunError, match=r"entry 3 of the journal .* is not what was written"):
        Run.open(path)


@pytest.mark.parametrize("name", ["settings.toml", "strategy.json", "head"])
@pytest.mark.parametrize("how", ["changed", "cut", "removed"])
def test_a_file_that_the_journal_or_its_head_knows_cannot_be_another(path: Path, name: str, how: str) -> None:
    file = path / name
    match how:
        case "changed":
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        case "cut":
            file.write_bytes(file.read_bytes()[:-1])
        case "removed":
            file.unlink()
    with pytest.raises(RunError, match=name):
        read_all(path)


def test_a_lost_write_ahead_file_is_found(path: Path, tmp_path: Path) -> None:
    """What a killed trainer leaves: the last entries stand in run.db-wal alone."""
    killed = "import os, signal, sys; from pathlib import Path; from tacit.runs import Run\n"
    killed += "run = Run.open(Path(sys.argv[1])); run.note('last', 1); os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", killed, str(path)])
    assert (path / "run.db-wal").stat().st_size
    shutil.copytree(path, tmp_path / "copy")
    assert read_all(tmp_path / "copy")["notes"]["last"] == 1
    for cut in (lambda wal: wal.unlink(), lambda wal: os.truncate(wal, wal.stat().st_size // 2)):
        shutil.rmtree(tmp_path / "copy")
        shutil.copytree(path, tmp_path / "copy")
        cut(tmp_path / "copy" / "run.db-wal")
        with pytest.raises(RunError, match=r"the journal has lost its end \(run.db-wal was removed"):
            read_all(tmp_path / "copy")


def test_a_head_that_a_kill_left_behind_is_no_damage_and_is_written_by_the_next_entry(path: Path) -> None:
    behind = (path / "head").read_text()
    with Run.open(path) as run:
        run.note("more", 1)
        ahead = (path / "head").read_text()
    (path / "head").write_text(behind)
    with Run.open(path) as run:
        run.note("more", 2)
    assert behind < ahead < (path / "head").read_text()
    assert read_all(path)["notes"]["more"] == 2


def test_who_computes_every_seal_anew_ends_with_another_head(path: Path) -> None:
    """The limit of a chain without a secret: only who has the seal of before sees it."""
    with Run.open(path) as run:
        seals = run.seals

    def without_metrics(entries: Entries) -> Entries:
        return [(kind, record) for kind, record in entries if kind != "metrics" or record["metrics"][0]["step"] != 1]

    rewrite(path, without_metrics)
    after = read_all(path)["seals"]
    assert after[:3] == seals[:3] and after[3] != seals[3]


WRONG: dict[str, Callable[[Entries], Entries]] = {
    "text for a number": lambda all: [(k, {**r, "clients": "three"} if k == "step" else r) for k, r in all],
    "a list for a table": lambda all: [(k, {**r, "step": []} if k == "step" else r) for k, r in all],
    "a step twice": lambda all: [*all[:2], *all[1:]],
    "a step out of order": lambda all: [all[0], *all[3:]],
    "begun twice": lambda all: [*all, all[0]],
    "not begun": lambda all: all[1:],
    "an unknown kind": lambda all: [*all, ("cake", {})],
    "no JSON": lambda all: [*all, ("note", "{")],
    "nested without end": lambda all: [*all, ("note", "[" * 100_000)],
    "an endless number": lambda all: [*all, ("note", '{"name": "n", "value": ' + "9" * 5000 + "}")],
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_wrong_values_under_right_seals_are_one_sentence(path: Path, change: Callable[[Entries], Entries]) -> None:
    rewrite(path, change)
    with pytest.raises(RunError) as refusal:
        read_all(path)
    assert "\n" not in str(refusal.value)


def test_a_damaged_page_is_one_sentence(path: Path) -> None:
    whole = (path / "run.db").read_bytes()
    for begin in range(8, len(whole), 4096):
        (path / "run.db").write_bytes(whole[:begin] + bytes(1000) + whole[begin + 1000 :])
        with pytest.raises(RunError) as refusal:
            read_all(path)
        assert "\n" not in str(refusal.value)


def test_random_bytes_are_one_sentence(path: Path) -> None:
    """SQLite shows what it cannot parse, and what is no UTF-8 was raised as that, by whoever asked."""
    whole, draw = (path / "run.db").read_bytes(), random.Random(7)
    for _ in range(150):
        changed = bytearray(whole)
        for at in [draw.randrange(4096) for _ in range(draw.choice((1, 8, 200)))]:  # the page of the schema
            changed[at] ^= 1 << draw.randrange(8)
        for damaged in (bytes(changed), whole[:16] + draw.randbytes(4096), draw.randbytes(999)):
            (path / "run.db").write_bytes(damaged)
            with suppress(RunError):  # a bit that means nothing is no damage
                read_all(path)


def test_what_was_said_twice_counts_as_said_last_and_both_stay(path: Path) -> None:
    with Run.open(path) as run:
        run.note("weather", "sun")
        assert run.notes["weather"] == "sun"
    assert [record["value"] for kind, record in entries_of(path) if kind == "note"] == ["rain", "sun"]


def test_another_process_is_read_on(path: Path) -> None:
    with Run.open(path) as one, Run.open(path) as other:
        one.note("first", 1)
        other.note("second", 2)
        assert one.notes == other.notes and one.seals == other.seals
    assert read_all(path)["notes"]["second"] == 2


# -- the key -----------------------------------------------------------------------------------------------------------


def test_other_bytes_are_not_the_key(path: Path) -> None:
    (path / "noise.key").write_bytes(bytes(16))
    with Run.open(path) as run, pytest.raises(RunError, match=r"noise.key' is not the noise key that the run began"):
        _ = run.noise_key
    (path / "noise.key").unlink()
    with Run.open(path) as run, pytest.raises(RunError, match="is not finished and has lost its noise key"):
        _ = run.noise_key


def test_the_journal_commits_to_the_key_and_does_not_hold_it(path: Path) -> None:
    assert entries_of(path)[0][1]["noise_key"] == commitment_to(KEY) != commitment_to(bytes(16))
    assert KEY.hex() not in json.dumps(entries_of(path))


def test_what_is_committed_survives_a_power_cut(tmp_path: Path) -> None:
    """As users have it: tests do not wait for disks (tests/conftest.py)."""
    with closing(dbapi2.connect(tmp_path / "run.db")) as database:
        journal._make_durable(database)
        assert database.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_what_a_kill_left_of_a_finished_run_is_destroyed_by_whoever_looks(path: Path) -> None:
    (path / "steps" / "2.safetensors").write_bytes(b"noise buffers")
    with Run.open(path) as run:
        run.finish()
        with run.locked(), Run.open(path):  # whoever is at work destroys it by itself
            assert (path / "noise.key").exists()
    assert (path / "noise.key").exists()
    Run.open(path).close()
    assert not (path / "noise.key").exists() and not list((path / "steps").iterdir())


# -- the folder --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o022])
def test_only_the_owner_enters_the_folder(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        Run.create(tmp_path / "private", "", training_metadata(), KEY).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_read_and_left_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root every folder can be written, so the question is answered for it."""
    whole = read_all(path)
    with Run.open(path) as run:
        run.finish()
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    may = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK and may(place, mode))
    path.chmod(0o500)
    try:
        found = read_all(path)
        assert found["steps"] == whole["steps"] and found["notes"]["finished"]
        assert (path / "noise.key").exists()
        with Run.open(path) as run:
            with pytest.raises(RunError, match="cannot be written; copy it"):
                run.note("more", 1)
            with pytest.raises(RunError, match="cannot be written; copy it"), run.locked():
                pass
    finally:
        path.chmod(0o700)
    assert {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()} == before


def test_participants_are_kept_in_eight_bytes_each_in_order() -> None:
    assert numbers_of(np.array([258, 1])) == bytes([1, *bytes(7), 2, 1, *bytes(6)])
