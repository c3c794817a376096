"""Whether a run is finished, goes on, or was stopped: in a word, and in a sentence."""

from dataclasses import dataclass
from datetime import UTC, datetime

from tacit.runs.glance import Glance


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
