"""Random edits of any file of a run folder: each is found by who accounts, verifies or goes on with it, or harmless.

Harmless: account, statement, model and, of an unfinished run, what it becomes when it is gone on with are the same to
the last bit. Whoever edits here does not compute seals anew; `test_reconciliation.py` has those who do.
"""

import json
import os
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.jobs.jobs_with_runs import ONE, RUNS, content
from tests.support.made_runs import write_run
from tests.support.training.tiny import MECHANISMS, tiny_cache, tiny_recipe

import tacit
from tacit.errors import TacitError
from tacit.privacy import Tree
from tacit.progress import silent
from tacit.runs import Run
from tacit.runs.metadata import DeploymentUsed

FOUND, HARMLESS, SILENT = "found", "harmless", "SILENT"
ACCOUNTED = {kind: job for kind, job in RUNS.items() if kind not in ("pretrain", "tune")}  # those promise nothing


# -- edits -------------------------------------------------------------------------------------------------------------


def some_file(path: Path, draw: np.random.Generator) -> Path:
    files = sorted(each for each in path.rglob("*") if each.is_file())
    return files[draw.integers(len(files))]


def flipped(path: Path, draw: np.random.Generator) -> str:
    file = some_file(path, draw)
    content = bytearray(file.read_bytes())
    for at in draw.integers(max(len(content), 1), size=int(draw.integers(1, 9))):
        if content:
            content[at] ^= 1 << int(draw.integers(8))
    file.write_bytes(content)
    return f"bits of {file.name}"


def cut(path: Path, draw: np.random.Generator) -> str:
    file = some_file(path, draw)
    os.truncate(file, int(draw.integers(file.stat().st_size + 1)))
    return f"end of {file.name}"


def swapped(path: Path, draw: np.random.Generator) -> str:
    file = some_file(path, draw)
    content = bytearray(file.read_bytes())
    if len(content) > 64:
        a, b = sorted(draw.integers(len(content) - 32, size=2).tolist())
        content[a : a + 32], content[b : b + 32] = content[b : b + 32], content[a : a + 32]
    file.write_bytes(content)
    return f"bytes swapped in {file.name}"


def removed(path: Path, draw: np.random.Generator) -> str:
    file = some_file(path, draw)
    file.unlink()
    return f"no {file.name}"


def exchanged(path: Path, draw: np.random.Generator) -> str:
    one, other = some_file(path, draw), some_file(path, draw)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return f"{one.name} and {other.name} exchanged"


def other_value(value: Any, draw: np.random.Generator) -> Any:
    """A value like it, or of another type."""
    if draw.random() < 0.2:
        return [None, 0, -1, 1.5, "text", b"blob", 2**62][draw.integers(7)]
    if isinstance(value, int):
        return value + int(draw.integers(-2, 3))
    if isinstance(value, bytes):
        whole = np.frombuffer(value, "<i8").copy()
        match draw.integers(3):
            case 0:
                whole = whole[: draw.integers(len(whole) + 1)]
            case 1:
                whole = np.append(whole, draw.integers(20))
            case _:
                whole[draw.integers(len(whole))] += 1
        return whole.tobytes()
    digits = [at for at, each in enumerate(str(value)) if each.isdigit()]
    if not digits:
        return str(value) + " "
    at = digits[draw.integers(len(digits))]
    return str(value)[:at] + str(draw.integers(10)) + str(value)[at + 1 :]


def by_sql(path: Path, draw: np.random.Generator) -> str:
    """A row removed, changed, added or exchanged with another, or all rows from one on removed."""
    with closing(sqlite3.connect(path / "run.db")) as database, database:
        tables = sorted(name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
        tables = [name for name in tables if database.execute(f"SELECT 1 FROM {name}").fetchone()]
        table = tables[draw.integers(len(tables))]
        key, *others = [column[1] for column in database.execute(f"PRAGMA table_info({table})")]
        rows = database.execute(f"SELECT * FROM {table} ORDER BY {key}").fetchall()
        one, other = (rows[draw.integers(len(rows))] for _ in range(2))
        at = int(draw.integers(1, len(others) + 1))
        what = ["removed", "changed", "added", "exchanged", "cut", "renumbered"][draw.integers(6)]
        match what:
            case "removed":
                database.execute(f"DELETE FROM {table} WHERE {key} = ?", (one[0],))
            case "changed":
                value = other_value(one[at], draw)
                database.execute(f"UPDATE OR IGNORE {table} SET {others[at - 1]} = ? WHERE {key} = ?", (value, one[0]))
            case "added":
                new = other_value(rows[-1][0], draw)
                database.execute(f"INSERT OR IGNORE INTO {table} VALUES ({','.join('?' * len(one))})", (new, *one[1:]))
            case "exchanged":
                for to, row in ((one[0], other), (other[0], one)):
                    database.execute(f"UPDATE {table} SET {others[at - 1]} = ? WHERE {key} = ?", (row[at], to))
            case "cut":
                database.execute(f"DELETE FROM {table} WHERE {key} >= ?", (one[0],))
            case "renumbered":
                database.execute(f"UPDATE OR REPLACE {table} SET {key} = ? WHERE {key} = ?", (other[0], one[0]))
    return f"{table}: row {what}"


EDITS = (flipped, cut, swapped, removed, exchanged, by_sql, by_sql, by_sql)


# -- what comes of them ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A folder that is edited, and how it is gone on with, if it is."""

    path: Path
    resumed: Callable[[Path], dict[str, Any]] | None = None
    accounted: bool = True


def said(path: Path, accounted: bool) -> dict[str, Any]:
    """The account, the statement and the model; of what promises nothing, all that it computed and left for readers.
    Raises: TacitError where somebody finds an edit.
    """
    verified = tacit.verify(path)
    if not verified.holds:
        raise TacitError(str(verified.failed[0]))
    if not accounted:
        left = [file for place in ("model", "report", "simulation") for file in sorted((path / place).rglob("*.*"))]
        return {"content": content(path), "files": {file.relative_to(path): file.read_bytes() for file in left}}
    figures = tacit.account_run(path).to_record()
    statement = tacit.statement(path).to_json()
    return {
        "account": json.dumps({**figures, "run": ""}, sort_keys=True),
        "statement": statement.replace(str(path), "RUN"),
        "model": {file.name: file.read_bytes() for file in sorted((path / "model").glob("*"))},
    }


def outcome(case: Case, whole: dict[str, Any], path: Path, seed: int) -> tuple[str, str]:
    """What an edit comes to, and what it was. An exception that is none of tacit's is not caught."""
    try:
        what = EDITS[seed % len(EDITS)](path, np.random.default_rng(seed))
    except sqlite3.Error:
        return HARMLESS, "refused by SQLite"
    try:
        found = said(path, case.accounted)
        if case.resumed is not None and found == whole["said"]:
            return (HARMLESS if case.resumed(path) == whole["resumed"] else SILENT), what
        return (HARMLESS if found == whole["said"] else SILENT), what
    except TacitError:
        return FOUND, what


def tally(cases: dict[str, Case], edits: int, path: Path) -> Counter[str]:
    """Of how many random edits of copies of each case, at `path`, came what; a silent one is no result."""
    counted: Counter[str] = Counter()
    for name, case in cases.items():
        shutil.copytree(case.path, path)
        whole = {"said": said(path, case.accounted), "resumed": None if case.resumed is None else case.resumed(path)}
        shutil.rmtree(path)
        for seed in range(edits):
            shutil.copytree(case.path, path)
            came, what = outcome(case, whole, path, seed)
            assert came != SILENT, f"{name}: {what} (seed {seed}) is found by nobody and changes what is said"
            shutil.rmtree(path)
            counted[came] += 1
    sys.stdout.write(f"{edits} random edits of each of {', '.join(cases)}: {dict(counted)}, 0 silently different\n")
    return counted


def kept_open(path: Path, to: Path) -> Path:
    """A copy as a kill leaves it, with what stands in the write-ahead file alone."""
    with Run.open(path) as run:
        run.note("weather", "rain")
        return shutil.copytree(path, to)


def with_report(path: Path) -> Path:
    tacit.report(path)
    return path


def test_random_edits_of_a_run_made_by_hand_are_found_or_harmless(tmp_path: Path) -> None:
    path = with_report(write_run(tmp_path / "unfinished", strategy=Tree(), rounds=6, done=5, every=5))
    counted = tally({"killed": Case(kept_open(path, tmp_path / "killed"))}, 10, tmp_path / "edited")
    assert counted[FOUND] > 4


def test_random_edits_of_a_run_of_devices_without_identities_are_found_or_harmless(tmp_path: Path) -> None:
    devices = DeploymentUsed(population="phones", devices=100, rounds=5, timer_seconds=2.5)
    path = with_report(write_run(tmp_path / "counted", strategy=Tree(), rounds=6, done=5, deployment=devices))
    counted = tally({"counted": Case(path)}, 10, tmp_path / "edited")
    assert counted[FOUND] > 4


@pytest.mark.long
def test_random_edits_of_runs_of_every_kind_are_found_or_harmless(tmp_path: Path) -> None:
    cache = tiny_cache(tmp_path / "tiny" / "cache")
    for kind, job in RUNS.items():
        job.call(cache, tmp_path / kind, silent)
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS["blt"], rounds={"rounds": 5})
    tacit.train(recipe, tmp_path / "begun", hardware=ONE, until=3)
    tacit.report(tmp_path / "begun")

    def gone_on(path: Path) -> dict[str, Any]:
        tacit.resume(path, hardware=ONE)
        return content(path)

    cases = {kind: Case(tmp_path / kind, accounted=kind in ACCOUNTED) for kind in RUNS}
    cases["unfinished"] = Case(kept_open(tmp_path / "begun", tmp_path / "killed"), resumed=gone_on)
    counted = tally(cases, 60, tmp_path / "edited")
    assert counted.total() == 60 * len(cases) and counted[FOUND] > 200
