"""Runs as rows of a list: the answer of each, read from what its report says of it, as cheaply as can be.

A finished run has `report.json`, whose digest stands in its journal; all else is looked at as its page is. Rows are
kept by what was written last, and a list is answered in time with the rows that are there: the others follow.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from tacit.errors import RunError, TacitError
from tacit.reports.blocks import Block, Labels, Paragraph, Tiles
from tacit.reports.page import PUBLISHED, SIMULATION
from tacit.runs.glance import Glance, glance, mark_of, worked_on_by
from tacit.view.folders import Folders
from tacit.view.looks import Looks, kept_json, steadily
from tacit.view.state import state_of

PATIENCE = 0.4  # seconds that a list waits for rows that are not read yet
LONGEST = 2_000_000  # bytes of a report.json that is read for a row
TOP1, FREE, START = "top1_accuracy", "best free model", "start"
WAITING = "being read"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A run in a list; None is what is not known, or may not be shown."""

    place: str
    name: str
    kind: str = ""
    state: str = ""
    done: int = 0
    planned: int | None = None
    epsilon: float | None = None
    epsilon_planned: float | None = None
    delta: float | None = None
    accuracy: float | None = None
    free: float | None = None  # accuracy of the best model that costs no privacy
    gain: float | None = None
    answer: str = ""
    labels: tuple[str, ...] = ()
    created: float | None = None  # Unix seconds
    changed: float = 0.0  # the same, to sort by: when a round ended follows from clients' text, and is not shown
    complaint: str = ""

    @property
    def progress(self) -> str:
        """Rounds done, of those planned."""
        return f"{self.done:,}" if self.planned is None else f"{self.done:,} of {self.planned:,}"

    @property
    def waits(self) -> bool:
        """Whether it is not read yet."""
        return self.complaint == WAITING

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        known = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "changed"}
        return {**known, "state": WAITING} if self.waits else known


class Rows:
    """All runs of the named folders."""

    def __init__(self, folders: Folders, looks: Looks) -> None:
        self._folders, self._looks = folders, looks
        self._kept: dict[str, tuple[Any, Row]] = {}
        self._lock = threading.Lock()
        self._behind: threading.Thread | None = None

    def all(self, patience: float = PATIENCE) -> tuple[list[Row], int]:
        """(a row of each run, how many are still being read)."""
        places, begun = self._folders.runs(), perf_counter()
        found: list[Row] = []
        waiting: list[str] = []
        for place in places:
            row = self._of(place, read=perf_counter() - begun < patience)
            if row is None:
                waiting.append(place)
                row = Row(place=place, name=place.rpartition("/")[2] or place, complaint=WAITING)
            found.append(row)
        with self._lock:
            for gone in self._kept.keys() - set(places):
                del self._kept[gone]
            if waiting and (self._behind is None or not self._behind.is_alive()):
                self._behind = threading.Thread(target=self._read, args=(waiting,), daemon=True)
                self._behind.start()
        return found, len(waiting)

    def _read(self, places: list[str]) -> None:
        for place in places:
            self._of(place, read=True)

    def _of(self, place: str, *, read: bool) -> Row | None:
        """None where it is not kept, and was not to be read."""
        try:
            path = self._folders.folder(place)
        except TacitError as error:  # gone since it was found
            return Row(place=place, name=place.rpartition("/")[2], complaint=str(error))
        mark = (mark_of(path), worked_on_by(path))
        with self._lock:
            kept = self._kept.get(place)
        if kept is not None and kept[0] == mark:
            return kept[1]
        if not read:
            return None
        row = self._read_row(place, path)
        with self._lock:
            self._kept[place] = (mark, row)
        return row

    def _read_row(self, place: str, path: Path) -> Row:
        changed = mark_of(path)[2][1] / 1e9
        try:
            seen = steadily(path, lambda: glance(path))
        except RunError as error:
            return Row(place=place, name=path.name, complaint=str(error), changed=changed)
        state = state_of(seen, worked_on_by(path))
        known: dict[str, Any] = {
            "place": place,
            "kind": seen.kind,
            "state": state.word,
            "done": seen.done,
            "planned": seen.planned,
            "created": seen.created,
            "changed": changed,
        }
        try:
            record = self._report(path, seen)
            if record is not None and "opening" in record:
                return Row(**known, **_said(record, path.name))
            look = self._looks.look(path)
        except (TacitError, OSError) as error:
            return Row(**known, name=path.name, complaint=str(error))
        if look.page is None:
            return Row(**known, name=path.name, answer=look.why)
        if "opening" in look.page.record:
            return Row(**known, **_said(look.page.record, path.name))
        return Row(
            **known, name=path.name, answer=answer(look.page.title, look.page.blocks), labels=named(look.page.blocks)
        )

    def _report(self, path: Path, seen: Glance) -> Mapping[str, Any] | None:
        """The page for programs, of a finished run that kept it; None where there is none."""
        name = f"{SIMULATION if self._looks.simulation else PUBLISHED}/report.json"
        found = kept_json(path, seen, name, most=LONGEST)
        return found if isinstance(found, Mapping) else None


def answer(title: str, blocks: tuple[Block, ...]) -> str:
    """What a page answers; else what it says first: a sentence, or its title and the figures under it."""
    told = [block for block in blocks if isinstance(block, Paragraph) and not block.soft]
    if said := next((block.text for block in told if block.answer), ""):
        return said.partition("\n\n")[0]
    for block in blocks:
        if isinstance(block, Paragraph) and not block.soft:
            return block.text.partition("\n\n")[0]
        if isinstance(block, Tiles):
            return f"{title}: {', '.join(f'{value} {name}' for name, value in block.tiles)}."
    return title


def named(blocks: tuple[Block, ...]) -> tuple[str, ...]:
    """The names of a page's warnings."""
    return tuple(label.name for block in blocks if isinstance(block, Labels) for label in block.labels)


def _said(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What the record of a training's page says: exact numbers only where it has them."""
    planned, realised = _table(record.get("planned")), _table(record.get("realised"))
    beside = _table(record.get("beside"))
    free = _table(beside.get(FREE) or beside.get(START))
    accuracy = _number(_table(record.get("test")).get(TOP1))
    if accuracy is None:
        accuracy = _number(_table(record.get("validation")).get(TOP1))
    return {
        "name": str(record.get("name", name)),
        "answer": str(record["opening"]),
        "labels": tuple(map(str, record.get("labels", ()))),
        "epsilon": _number(realised.get("epsilon")),
        "epsilon_planned": _number(planned.get("epsilon")),
        "delta": _number(planned.get("delta")),
        "accuracy": accuracy,
        "free": _number(free.get(TOP1)),
        "gain": _number(free.get("gain")),
    }


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    """Of an estimate its value; infinite ones are text in a file."""
    if hasattr(value, "value"):
        value = value.value
    if isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return float("inf") if value == "inf" else None
