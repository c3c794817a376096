"""A live page reads the named folders alone, writes nothing, and lives on whatever becomes of a run."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from tests.jobs.finished_discovery import finished
from tests.support.made_runs import RUNS, write_adaptive_run, write_run
from tests.support.view.looking import Asked, Parsed, client, everywhere, tree
from tests.support.waiting import PATIENCE

from tacit.jobs.report import report
from tacit.privacy import Tree
from tacit.runs import Run, StepEntry
from tacit.runs.glance import glance, mark_of, worked_on_by

STATEMENT = "/statement/0/run"


def until_checked(asked: Asked, address: str, seconds: float = PATIENCE) -> Parsed:
    """The verified statement, when it is there."""
    ends = time.monotonic() + seconds
    while (answer := asked.get(address)).status_code == 202:
        assert time.monotonic() < ends
        time.sleep(0.05)
    return Parsed(answer.text)


def test_pages_of_every_state_of_a_training(tmp_path: Path) -> None:
    for name, values in RUNS.items():
        write_run(tmp_path / name.replace(" ", "-"), **values)
    write_adaptive_run(tmp_path / "adaptive")
    for simulation in (False, True):
        asked = client(tmp_path, simulation=simulation)
        listed = asked.get("/?format=json").json()["runs"]
        while asked.get("/?format=json").json()["waiting"]:
            time.sleep(0.05)
        assert len(listed) == len(RUNS) + 1
        for row in asked.get("/?format=json").json()["runs"]:
            assert row["answer"] and not row["complaint"], row
            page = asked.get(f"/run/{row['place']}")
            assert page.status_code == 200 and row["answer"][:60] in Parsed(page.text).text
            until_checked(asked, f"/statement/{row['place']}")


def test_nothing_is_written_whatever_is_looked_at(tmp_path: Path) -> None:
    """Not even what SQLite makes for itself, and no time of a file changes."""
    report(write_run(tmp_path / "done", strategy=Tree()))
    write_run(tmp_path / "begun", strategy=Tree(), done=3)
    (tmp_path / "words").mkdir()
    finished(tmp_path / "words")
    killed = write_run(tmp_path / "killed", strategy=Tree(), done=5)
    left = sqlite3.connect(killed / "run.db")  # as a process leaves it that is killed: entries in the file beside it
    left.execute("PRAGMA wal_autocheckpoint = 0")
    left.execute("INSERT INTO metadata VALUES ('beside', '1')")
    left.commit()
    shutil.copytree(killed, tmp_path / "copied")
    left.close()
    assert (tmp_path / "copied" / "run.db-wal").stat().st_size
    before = tree(tmp_path)
    for simulation in (False, True):
        asked = client(tmp_path, simulation=simulation)
        places = [each["place"] for each in asked.get("/?format=json").json()["runs"]]
        assert len(places) == 5
        for address in everywhere(places):
            assert asked.get(address).status_code < 500
        for place in places:
            until_checked(asked, f"/statement/{place}")
    assert tree(tmp_path) == before


OUTSIDE = (
    "0/..", "0/../secret", "0/a/../../secret", "1", "-1", "0//etc", "/etc", "0/%2e%2e/secret", "0/link",
    "0/link/run", "0/run\0", "٠/run", "0/run/../../secret", "9" * 400, "",
)  # fmt: skip


@pytest.mark.parametrize("place", OUTSIDE)
@pytest.mark.parametrize("page", ["run", "statement", "file", "server"])
def test_nothing_outside_is_read(page: str, place: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    write_run(inside / "run", strategy=Tree(), rounds=2)
    write_run(tmp_path / "secret", strategy=Tree(), rounds=2, name="classified")
    (inside / "link").symlink_to(tmp_path / "secret")
    asked = client(inside)
    answer = asked.get(f"/{page}/{quote(place, safe='')}", params={"name": "report/statement.json"})
    assert answer.status_code in (404, 422) and "classified" not in answer.text
    assert [each["place"] for each in asked.get("/?format=json").json()["runs"]] == ["0/run"]


@pytest.mark.parametrize(
    "name", ["../settings.toml", "settings.toml", "report/../settings.toml", "simulation/record.json", "report/link",
             "report", "report/", "", "/etc/passwd", "report//etc/passwd", "report/\0"],
)  # fmt: skip
def test_only_files_of_the_report_are_taken_away(name: str, tmp_path: Path) -> None:
    report(write_run(tmp_path / "run", strategy=Tree(), rounds=2))
    (tmp_path / "run" / "report" / "link").symlink_to(tmp_path / "run" / "settings.toml")
    asked = client(tmp_path)
    assert asked.get("/file/0/run", params={"name": name}).status_code in (404, 422)
    shown = asked.get("/file/0/run", params={"name": "report/statement.json"})
    assert shown.status_code == 200 and shown.headers["content-disposition"].startswith("attachment")
    exact = client(tmp_path, simulation=True).get("/file/0/run", params={"name": "simulation/record.json"})
    assert exact.status_code == 200
    links = Parsed(asked.get("/run/0/run").text).links
    assert any("report/statement.json" in each or "statement.json" in each for each in links)
    assert not any("simulation" in each for each in links)


# -- a run that changes under the reader -------------------------------------------------------------------------------

WORKER = """
import sys, time
from pathlib import Path
from tests.support.made_runs import release
import numpy as np
from tacit.privacy import Tree
from tacit.records import to_plain
from tacit.runs import Run, StepEntry
with Run.open(Path(sys.argv[1])) as run, run.locked():
    print("locked", flush=True)
    for line in sys.stdin:
        round = run.steps_done
        row = StepEntry(step=round, file=f"round-{round}", digest="0" * 64, measures={"loss": 5.0, "clipped": 0.5},
                        releases=(to_plain(release(round, Tree(), 6.0)),))
        run.commit(row, clients=np.arange(4) + 4 * (round % 5), finished=1.79e9 + round, seconds=0.5)
        print("done", flush=True)
"""


def worker(path: Path) -> "subprocess.Popen[str]":
    """A process that works on a run: a round for each line that it is sent."""
    made = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": os.pathsep.join([p for p in sys.path if p])},
    )
    assert made.stdout and made.stdout.readline() == "locked\n"
    return made


def a_round(process: "subprocess.Popen[str]") -> None:
    assert process.stdin and process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_a_run_that_is_killed_resumed_moved_and_deleted(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), done=3)
    asked = client(tmp_path)

    def seen() -> tuple[str, int]:
        record = asked.get("/run/0/run?format=json").json()
        listed = asked.get("/?format=json").json()["runs"][0]
        assert (record["state"], record["steps"]) == (listed["state"], listed["done"])
        assert record["headline"]["rounds"] == record["steps"]
        return record["state"], record["steps"]

    def labelled() -> bool:
        """Whether it is called UNFINISHED, on its page, in its record and in the list alike."""
        record = asked.get("/run/0/run?format=json").json()
        found = {
            "UNFINISHED" in Parsed(asked.get("/run/0/run").text).text,
            "UNFINISHED" in record["report"]["labels"],
            "UNFINISHED" in asked.get("/?format=json").json()["runs"][0]["labels"],
        }
        assert len(found) == 1
        return found.pop()

    assert seen() == ("stopped", 3) and labelled()
    process = worker(path)
    try:
        assert worked_on_by(path) == process.pid and seen() == ("running", 3)
        assert not labelled() and "process" in Parsed(asked.get("/run/0/run").text).text.lower()
        a_round(process)
        assert seen() == ("running", 4)
        before = tree(path)
        assert until_checked(asked, STATEMENT).text and tree(path) == before, "while a writer has it open, too"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert seen() == ("stopped", 4) and labelled()
    process = worker(path)
    try:
        a_round(process)
        assert seen() == ("running", 5)
    finally:
        process.communicate()
    assert seen() == ("stopped", 5)

    path.rename(tmp_path / "moved")
    gone = asked.get("/run/0/run")
    assert gone.status_code == 422 and "moved or deleted" in Parsed(gone.text).text
    assert asked.get("/run/0/moved").status_code == 200
    assert [row["place"] for row in asked.get("/?format=json").json()["runs"]] == ["0/moved"]
    shutil.rmtree(tmp_path / "moved")
    assert asked.get("/run/0/moved").status_code == 422
    assert asked.get("/?format=json").json()["runs"] == []


def damaged_journal(path: Path) -> None:
    with sqlite3.connect(path / "run.db") as database:
        database.execute("UPDATE journal SET content = replace(content, '6.0', '7.0') WHERE entry = 4")
    database.close()


def cut_database(path: Path) -> None:
    content = (path / "run.db").read_bytes()
    (path / "run.db").write_bytes(content[: len(content) // 2])


DAMAGE = {
    "journal": damaged_journal,
    "cut": cut_database,
    "empty": lambda path: (path / "run.db").write_bytes(b""),
    "noise": lambda path: (path / "run.db").write_bytes(os.urandom(5000)),
    "head": lambda path: (path / "head").write_bytes(b"\xff\xfe"),
    "no head": lambda path: (path / "head").unlink(),
    "settings": lambda path: (path / "settings.toml").write_text("kind = 1\n"),
    "a folder": lambda path: ((path / "run.db").unlink(), (path / "run.db").mkdir()),
    "report": lambda path: (path / "report" / "record.json").write_text("[" * 10_000),
    "page": lambda path: (path / "report" / "report.json").write_text("{}"),
    "statement": lambda path: (path / "report" / "statement.json").write_text("{}"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_run_is_one_sentence(how: str, tmp_path: Path) -> None:
    """Wherever it is damaged, while it is looked at: never a 500, and what is wrong is said."""
    report(write_run(tmp_path / "run", strategy=Tree(), rounds=4))
    asked = client(tmp_path)
    assert asked.get("/run/0/run").status_code == 200 and asked.get("/").status_code == 200
    assert "All" in until_checked(asked, STATEMENT).text
    DAMAGE[how](tmp_path / "run")
    answers = [asked.get(each) for each in ("/", "/run/0/run", "/run/0/run?format=json", "/?format=json")]
    assert {answer.status_code for answer in answers} <= {200, 404, 422}
    said = " ".join(Parsed(answer.text).text for answer in answers[:2]) + until_checked(asked, STATEMENT).text
    assert any(
        word in said for word in ("damaged", "is not what", "cannot be read", "restore", "FAILS", "moved", "No run")
    )
    assert "Traceback" not in said
    page = answers[2].json()
    assert page["ok"] or page["error"].count("\n") == 0


# -- a glance ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RUNS)
def test_a_glance_says_what_the_run_says(kind: str, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", **RUNS[kind])
    with Run.open(path) as run:
        seen = glance(path)
        assert (seen.kind, seen.done, seen.finished) == (run.kind, run.steps_done, run.finished)
        assert seen.files == run.files and seen.created == run.metadata.created
        assert seen.last == (run.times()[-1][1] if run.steps_done else None)


def test_whatever_is_written_changes_the_mark(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", strategy=Tree(), done=0)
    marks = [mark_of(path)]
    with Run.open(path) as run:
        for write in (
            lambda: run.note("x", 1),
            lambda: report(path),
            lambda: run.commit(StepEntry(step=0, file="a", digest="0" * 64), clients=np.arange(0), seconds=1.0),
        ):
            write()
            assert mark_of(path) != marks[-1]
            marks.append(mark_of(path))
    assert worked_on_by(path) is None


LOOKED_AT = """
import sys
from pathlib import Path
from tests.support.view.looking import client
found = client(Path(sys.argv[1])).get("/")
assert found.status_code == 200 and "<article" in found.text
print(*sorted({"numpy", "scipy", "jax", "pydantic", "tacit.statements.statement"} & sys.modules.keys()))
"""


def test_a_list_of_finished_runs_needs_no_mathematics(tmp_path: Path) -> None:
    """The first page comes a second after the start: nothing is imported for it that takes as long by itself."""
    report(write_run(tmp_path / "run", strategy=Tree()))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    code = [sys.executable, "-c", LOOKED_AT, str(tmp_path)]
    assert subprocess.run(code, capture_output=True, text=True, env=env, check=True).stdout.split() == []
