"""Whether a run is finished, goes on, or was stopped: in a word, and in a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from tacit.reports.blocks import Labels
from tacit.reports.page import Page
from tacit.runs.glance import Glance

AT_REST = frozenset({"UNFINISHED", "NOTHING RELEASED YET"})  # labels that send somebody to `tacit resume`


@dataclass(frozen=True, kw_only=True)
class State:
    """Of one run."""

    word: str  # "running", "stopped" or "finished"
    process: int | None = None  # that works on it

    @property
    def sentence(self) -> str:
        """For people."""
        match self.word:
            case "running":
                return f"Process {self.process} is working on it."
            case "finished":
                return "Finished."
        return "No process of this machine is working on it, and it is not finished; `tacit resume` goes on with it."


def state_of(seen: Glance, process: int | None) -> State:
    """By its journal and its lock."""
    if process is not None and not seen.finished:
        return State(word="running", process=process)
    return State(word="finished" if seen.finished else "stopped")


def when(seconds: float | None) -> str:
    """A time for people, in UTC; a dash where there is none."""
    return "–" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def while_running(page: Page) -> Page:
    """The page of a run that a process works on, without the labels that say what to do where none does: blocks,
    headline and record alike.
    """
    blocks = tuple(
        replace(each, labels=tuple(label for label in each.labels if label.name not in AT_REST))
        if isinstance(each, Labels)
        else each
        for each in page.blocks
    )
    return replace(
        page,
        blocks=tuple(each for each in blocks if not isinstance(each, Labels) or each.labels),
        record=_without(page.record),
        headline=_without(page.headline),
    )


def _without(record: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(record.get("labels"), Sequence):
        return dict(record)
    return {**record, "labels": [each for each in record["labels"] if each not in AT_REST]}
