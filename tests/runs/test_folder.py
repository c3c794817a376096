"""The run folder: whole or not there, one trainer, rounds in order, a key that is destroyed."""

import fcntl
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.journals import rewrite_each
from tests.support.made_runs import training_metadata

from tacit.errors import InputError, RunError
from tacit.files import held
from tacit.runs import MetricEntry, Run, StepEntry, TrainingMetadata
from tacit.runs.metadata import TuningMetadata

KEY = bytes(range(16))
METADATA = training_metadata(population=40)


def create(path: Path) -> Run:
    return Run.create(path, 'name = "tiny"\n', METADATA, KEY)


def row(round: int, **changes: Any) -> StepEntry:
    values: dict[str, Any] = {
        "step": round,
        "file": f"round-{round:06d}.safetensors",
        "digest": "0" * 64,
        "releases": ({"what": "model update", "round": round},),
        "measures": {"loss": 4.0 - round, "clipped": 0.5},
    }
    return StepEntry(**{**values, **changes})


def commit(run: Run, round: int, clients: list[int]) -> None:
    run.commit(row(round), clients=np.array(clients), finished=1000.0 + round, seconds=0.5)


def content(path: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_round_with_several_releases_keeps_all_of_them_in_order(tmp_path: Path) -> None:
    with create(tmp_path / "a") as run:
        several = tuple({"what": what, "round": 0} for what in ("model update", "clip estimate", "gaussian sum: x"))
        run.commit(row(0, releases=several), clients=np.array([1]), finished=1.0, seconds=0.5)
        commit(run, 1, [2])
        assert run.steps() == [row(0, releases=several), row(1)]


# -- birth -----------------------------------------------------------------------------------------------------------


def test_a_new_folder_holds_what_it_was_given(tmp_path: Path) -> None:
    with create(tmp_path / "runs" / "a") as run:
        assert run.settings == 'name = "tiny"\n'
        assert (run.path / "settings.toml").read_text() == 'kind = "train"\nname = "tiny"\n'
        assert run.noise_key == KEY
        assert run.metadata == METADATA and run.kind == "train" and run.notes == {}
        assert run.steps_done == 0 and run.steps() == [] and run.last_file is None
        assert [column.tolist() for column in run.participations()] == [[], []]
    assert {file.name for file in (tmp_path / "runs" / "a").iterdir()} >= {"steps", "model", "report", "run.db"}
    assert [file.name for file in (tmp_path / "runs").iterdir()] == ["a"], "no draft stays"


def test_only_its_owner_reads_the_key(tmp_path: Path) -> None:
    create(tmp_path / "a").close()
    assert (tmp_path / "a" / "noise.key").stat().st_mode & 0o777 == 0o600


def test_an_empty_folder_is_taken_and_a_full_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    create(tmp_path / "a").close()
    before = content(tmp_path / "a")
    with pytest.raises(RunError, match=r"exists already and a run never overwrites.*--out.*tacit resume"):
        create(tmp_path / "a")
    assert content(tmp_path / "a") == before
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="exists already"):
        create(tmp_path / "file")
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_the_folder_one_stands_in_may_become_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    create(Path()).close()
    with Run.open(tmp_path / "here") as run:
        assert run.steps_done == 0


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        create(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from tacit.runs import draft, folder
from tests.support.made_runs import training_metadata
draft.sync_folder = lambda path: os.kill(os.getpid(), signal.SIGKILL)
folder.Run.create(Path(sys.argv[1]), "", training_metadata(), bytes(16))
"""


def test_what_a_killed_process_left_of_a_folder_is_swept_and_a_living_ones_draft_is_not(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a")], capture_output=True)
    assert killed.returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".a.") and (left / "noise.key").exists()
    others = [tmp_path / name for name in (".a.b.01234567.draft", ".b.01234567.draft", ".a.notes.draft")]
    alive = tmp_path / ".a.89abcdef.draft"
    for folder in (*others, alive):
        folder.mkdir()
    descriptor = os.open(alive, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    create(tmp_path / "a").close()
    os.close(descriptor)
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "a", alive, *others])


# -- opening ---------------------------------------------------------------------------------------------------------


def test_opening_reads_what_was_written(tmp_path: Path) -> None:
    with create(tmp_path / "a") as run:
        commit(run, 0, [5, 3])
        commit(run, 1, [4])
        run.record_metrics([MetricEntry(step=0, split="validation", name="top1", value=0.125)])
    with Run.open(tmp_path / "a") as run:
        assert run.steps() == [row(0), row(1)]
        assert run.steps_done == 2
        assert run.last_file == tmp_path / "a" / "steps" / "round-000001.safetensors"
        assert [column.tolist() for column in run.participations()] == [[0, 0, 1], [3, 5, 4]]
        assert run.times() == [(0, 1000.0, 0.5), (1, 1001.0, 0.5)]
        assert run.metrics() == [MetricEntry(step=0, split="validation", name="top1", value=0.125)]


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RunError, match=r"is no run folder \(it has no run\.db\); start one with `tacit train"):
            Run.open(path)


def test_a_folder_of_runs_names_them(tmp_path: Path) -> None:
    (tmp_path / "counts").mkdir()
    (tmp_path / "counts" / "run.db").touch()
    with pytest.raises(RunError, match=r"it has no run\.db\); name one of its own: '.*counts'\.$"):
        Run.open(tmp_path)


def foreign(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path)
    with database:
        for statement in statements:
            database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["CREATE TABLE songs (title TEXT)"], "is not a run of tacit's"),
        (["CREATE TABLE metadata (name TEXT, value TEXT)"], "has the format 'unknown'"),
        (
            ["CREATE TABLE metadata (name, value)", "INSERT INTO metadata VALUES ('format', 'a cake')"],
            "has the format 'a cake'",
        ),
        (
            ["CREATE TABLE metadata (name, value)", "INSERT INTO metadata VALUES ('format', '\"tacit run 9\"')"],
            "'tacit run 9'",
        ),
    ],
)
def test_a_foreign_database_is_refused_and_left_as_it_was(tmp_path: Path, statements: list[str], message: str) -> None:
    foreign(tmp_path / "run.db", *statements)
    before = content(tmp_path)
    with pytest.raises(RunError, match=message) as refusal:
        Run.open(tmp_path)
    assert "\n" not in str(refusal.value)
    assert content(tmp_path) == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.db").write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    with pytest.raises(RunError, match=r"is not a run of tacit's \(file is not a database\)"):
        Run.open(tmp_path)


def test_what_is_learnt_later_is_noted_and_metadata_stays(tmp_path: Path) -> None:
    with create(tmp_path / "a") as run:
        assert not run.finished
        run.note("weather", ["rain"])
        run.finish()
        assert run.notes == {"weather": ["rain"], "finished": True} and run.finished
    with Run.open(tmp_path / "a") as run:
        assert run.metadata == METADATA and run.finished


def test_metadata_that_is_damaged_or_of_another_kind_is_named(tmp_path: Path) -> None:
    """By somebody who made all seals fit."""

    def without(record: dict[str, Any]) -> dict[str, Any]:
        del record["metadata"]["population"]
        return record

    create(tmp_path / "a").close()
    rewrite_each(tmp_path / "a", "begun", without)
    with Run.open(tmp_path / "a") as run, pytest.raises(RunError, match="lacks 'population'"):
        _ = run.metadata
    for kind in ("bake", ["train"], None):
        rewrite_each(tmp_path / "a", "begun", lambda record, to=kind: {**record, "metadata": {"kind": to}})
        with Run.open(tmp_path / "a") as run, pytest.raises(RunError, match="of the unknown kind"):
            _ = run.kind


def test_changed_settings_are_refused_with_the_line(tmp_path: Path) -> None:
    with create(tmp_path / "a") as run:
        path = run.path / "settings.toml"
        for text, said in {
            'kind = "tune"\nname = "tiny"\n': r"line 1 was 'kind = \"train\"' and is now 'kind = \"tune\"'",
            'kind = "train"\nname = "tiny"\n# so\n': "line 3 was nothing and is now '# so'",
            'kind = "train"\nname = "tiny"': "in its line ends",
        }.items():
            path.write_text(text)
            with pytest.raises(RunError, match=rf"settings.toml' was changed since the run began \({said}\)"):
                _ = run.settings


def test_a_run_of_another_kind_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with create(tmp_path / "a") as run:
        assert run.of_kind(TrainingMetadata, "nothing").population == 40
        with pytest.raises(InputError, match=r"a run of `tacit train` and not of `tacit tune`; use .*a instead"):
            run.of_kind(TuningMetadata, "use {run} instead")


# -- rounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("round", [0, 2, 5])
def test_a_round_out_of_order_is_refused_and_leaves_nothing(tmp_path: Path, round: int) -> None:
    with create(tmp_path / "a") as run:
        commit(run, 0, [1])
        with pytest.raises(RunError, match=rf"step {round} of .* cannot be released: step 1 is the next"):
            commit(run, round, [7])
        assert run.steps() == [row(0)]
        assert run.participations()[1].tolist() == [1]
        commit(run, 1, [2])
        assert run.steps_done == 2


def test_a_round_is_done_as_a_whole_or_not(tmp_path: Path) -> None:
    """The same client twice breaks the transaction after the ledger row was written: that row must go too."""
    with create(tmp_path / "a") as run:
        with pytest.raises(RunError, match="a client is twice in step 0"):
            commit(run, 0, [1, 1])
        assert run.steps() == [] and run.times() == []
        commit(run, 0, [1])


def test_measuring_twice_keeps_one_number(tmp_path: Path) -> None:
    with create(tmp_path / "a") as run:
        for value in (0.5, 0.5, 0.25):
            run.record_metrics([MetricEntry(step=3, split="test", name="top1", value=value)])
        assert run.metrics() == [MetricEntry(step=3, split="test", name="top1", value=0.25)]


# A process that may write no file of more than 40 kB: what a full disk does to SQLite.
FULL = """
import resource, sys
import numpy as np
from pathlib import Path
from tacit.errors import RunError
from tacit.runs import Run, StepEntry
with Run.open(Path(sys.argv[1])) as run:
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
    try:
        while True:
            n = run.steps_done
            row = StepEntry(step=n, file="c", digest="d", releases=({"what": "x" * 2000},))
            run.commit(row, clients=np.arange(5), finished=0.0, seconds=0.0)
    except RunError as error:
        print(n, error)
"""


def test_a_full_disk_is_one_line_and_loses_no_committed_round(tmp_path: Path) -> None:
    create(tmp_path / "a").close()
    said = subprocess.run([sys.executable, "-c", FULL, str(tmp_path / "a")], capture_output=True, text=True, check=True)
    assert said.stdout.count("\n") == 1
    done, message = said.stdout.split(" ", 1)
    assert "run.db' cannot be written" in message and "tacit resume" in message
    with Run.open(tmp_path / "a") as run:
        assert run.steps_done == int(done) > 0
        assert len(run.participations()[0]) == 5 * int(done)
        commit(run, int(done), [1])
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 40_000


# -- one trainer -----------------------------------------------------------------------------------------------------

LOCK = """
import sys
from pathlib import Path
from tacit.runs import Run
with Run.open(Path(sys.argv[1])) as run, run.locked(): """


def lock_elsewhere(path: Path, then: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", LOCK + then, str(path)], capture_output=True, text=True)


def test_a_second_process_is_refused_and_told_who_trains(tmp_path: Path) -> None:
    with create(tmp_path / "a") as run:
        with run.locked():
            second = lock_elsewhere(tmp_path / "a", "pass")
            assert second.returncode != 0
            assert f"RunError: '{tmp_path}/a' is being worked on by process {os.getpid()}" in second.stderr
        assert lock_elsewhere(tmp_path / "a", "pass").returncode == 0


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    with create(tmp_path / "a") as run:
        killed = lock_elsewhere(tmp_path / "a", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        assert killed.returncode == -9
        with run.locked():
            pass


def test_who_works_on_it_removes_what_killed_processes_left_and_nothing_of_the_living(tmp_path: Path) -> None:
    dead, living, of_another = (tmp_path / f".{name}.draft" for name in ("a.01234567", "a.89abcdef", "b.01234567"))
    with create(tmp_path / "a") as run:
        (dead / "a").mkdir(parents=True)
        living.mkdir()
        of_another.mkdir()
        half = tmp_path / "a" / "steps" / ".release-000000.npz.4711.draft"
        half.touch()
        with held(living), run.locked():
            assert not dead.exists() and not half.exists()
            assert living.is_dir() and of_another.is_dir()


# -- the key ---------------------------------------------------------------------------------------------------------


def test_the_key_is_destroyed_once_and_for_all(tmp_path: Path) -> None:
    with create(tmp_path / "a") as run:
        copy = tmp_path / "same file"
        os.link(tmp_path / "a" / "noise.key", copy)  # another name of the same blocks on disk
        run.tidy()
        run.tidy()
        with pytest.raises(RunError, match="is finished and its noise key destroyed"):
            _ = run.noise_key
        assert copy.read_bytes() != KEY, "the blocks themselves were written over"
    assert KEY not in b"".join(content(tmp_path).values())


def test_a_notebook_shows_what_it_is(tmp_path: Path) -> None:
    with create(tmp_path / "a<b") as run:
        commit(run, 0, [1])
        page = run._repr_html_()
    assert "a&lt;b" in page and "<td>train</td>" in page and "1 (unfinished)" in page
