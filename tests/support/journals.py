"""Journals of runs as somebody rewrites them who knows how seals are made: every later one, and the head, anew."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tacit.runs.journal import seal_of

Entries = list[tuple[str, Any]]  # (kind, record)


def edited(path: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    """SQL on the database of a run, and nothing else."""
    with closing(sqlite3.connect(path / "run.db")) as database, database:
        for statement in statements:
            database.execute(statement, values)


def entries_of(path: Path) -> Entries:
    """What the journal says."""
    with closing(sqlite3.connect(path / "run.db")) as database:
        rows = database.execute("SELECT kind, content FROM journal ORDER BY entry").fetchall()
    return [(kind, json.loads(content)) for kind, content in rows]


def rewrite(path: Path, change: Callable[[Entries], Entries]) -> None:
    """Other entries with seals that fit."""
    entries, rows, before = change(entries_of(path)), [], "0" * 64
    for number, (kind, record) in enumerate(entries):
        content = record if isinstance(record, str) else json.dumps(record, sort_keys=True)
        before = seal_of(number, before, kind, content)
        rows.append((number, kind, content, before))
    with closing(sqlite3.connect(path / "run.db")) as database, database:
        database.execute("DELETE FROM journal")
        database.executemany("INSERT INTO journal VALUES (?, ?, ?, ?)", rows)
    (path / "head").write_text(f"{len(rows):020d} {before}\n")


def rewrite_each(path: Path, kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Every entry of a kind as `change` makes it."""
    rewrite(path, lambda entries: [(of, change(record) if of == kind else record) for of, record in entries])
