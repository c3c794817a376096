"""What is written of a run, entry by entry, and what all entries say together.

An entry is a kind and JSON. What was said twice of one thing (a metric, a note, a file) counts as it was said last.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tacit.errors import RunError
from tacit.parsing import parsed_json
from tacit.records import from_plain, to_plain


@dataclass(frozen=True, kw_only=True)
class StepEntry:
    """One finished step: the file after it, what was released (the ledger entries), and what was measured."""

    step: int
    file: str  # its name in `steps/`
    digest: str  # SHA-256 of that file: of a round, of its whole state (model, optimizer, noise, clock, clip norm)
    releases: tuple[Mapping[str, Any], ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MetricEntry:
    """One number of an evaluation after so many steps (0: the initial model)."""

    step: int
    split: str
    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class RunBegunEntry:
    """The first entry: what never changes."""

    entry: ClassVar[str] = "begun"
    metadata: Mapping[str, Any]
    settings: str  # all of settings.toml
    strategy: str | None  # SHA-256 of strategy.json
    noise_key: str | None  # the commitment to it; None where nothing is drawn from a key
    salt: str  # random: nobody can check from a seal that was published a guess of what it seals


@dataclass(frozen=True, kw_only=True)
class Done:
    """A committed step: its rows of the ledger, its participants, and its time."""

    entry: ClassVar[str] = "step"
    step: StepEntry
    clients: int  # how many took part
    participants: str | None  # SHA-256 of their numbers, as `participants` keeps them; None: they have none
    finished: float  # Unix seconds
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """An evaluation."""

    entry: ClassVar[str] = "metrics"
    metrics: tuple[MetricEntry, ...]


@dataclass(frozen=True, kw_only=True)
class NoteEntry:
    """What was learnt after the run began."""

    entry: ClassVar[str] = "note"
    name: str
    value: Any


@dataclass(frozen=True, kw_only=True)
class _Disk:
    writing: float


@dataclass(frozen=True, kw_only=True)
class _Workers:
    count: int
    reading: float
    training: float
    evaluating: float
    idle: float


@dataclass(frozen=True, kw_only=True)
class _Spent:
    """Where the seconds of one call went."""

    seconds: float
    phases: Mapping[str, float]
    disk: _Disk
    workers: _Workers | None = None


@dataclass(frozen=True, kw_only=True)
class _Flag:
    value: bool


@dataclass(frozen=True, kw_only=True)
class _Text:
    value: str


@dataclass(frozen=True, kw_only=True)
class _Texts:
    value: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class _TimesNote:
    value: tuple[_Spent, ...]


@dataclass(frozen=True, kw_only=True)
class _SuggestedWords:
    prompt: str
    words: tuple[tuple[str, float], ...]  # with their probabilities


@dataclass(frozen=True, kw_only=True)
class _Suggestions:
    value: tuple[_SuggestedWords, ...]


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """Sums over the clients of a split: `evaluation.comparison models` says what they mean."""

    predicted: tuple[float, ...]
    sums: Mapping[str, Mapping[str, tuple[float, ...]]]


@dataclass(frozen=True, kw_only=True)
class _HeldAgainst:
    """What a model was held against, on the clients of two splits."""

    trigram: str  # the public text that it counted, or why there is none
    counted: bool  # whether there is one
    test: _Counted
    validation: _Counted
    rungs: Mapping[str, str] = field(default_factory=dict)  # what was chosen for each; older runs have a trigram alone


@dataclass(frozen=True, kw_only=True)
class _ComparisonModels:
    value: _HeldAgainst


# What notes are by name; others are looked at by whoever reads them, or are the user's.
NOTES: Mapping[str, type] = {
    **dict.fromkeys(("finished", "noise key destroyed"), _Flag),
    **dict.fromkeys(("precision", "diverged", "recipe"), _Text),
    **dict.fromkeys(("trials", "missing"), _Texts),
    "profile": _TimesNote,
    "comparison_models": _ComparisonModels,
    "suggestions": _Suggestions,
}


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Files that were written into the folder for others to read: in place of what was below `of` before."""

    entry: ClassVar[str] = "files"
    of: tuple[str, ...]  # files or folders, as paths from the run folder
    files: Mapping[str, str]  # SHA-256 by path from the run folder


Entry = RunBegunEntry | Done | Measured | NoteEntry | Kept
KINDS: Mapping[str, type[Entry]] = {each.entry: each for each in (RunBegunEntry, Done, Measured, NoteEntry, Kept)}


def content_of(entry: Entry) -> str:
    """The entry as it is written."""
    return json.dumps(to_plain(entry), sort_keys=True)


def entry_of(kind: object, content: object, where: str) -> Entry:
    """What was written. Raises: RunError where it is nothing that this version writes."""
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(content, str):
        raise RunError(f"{where} is of the unknown kind {kind!r}; use the version that wrote it.")
    try:
        record = parsed_json(content)
    except ValueError as error:
        raise RunError(f"{where} is no JSON ({error}); restore the folder from a copy.") from error
    return from_plain(KINDS[kind], record, error=RunError, where=where)


class Written:
    """All entries of a run so far, by what they are of."""

    def __init__(self) -> None:
        self.begun: RunBegunEntry | None = None
        self.done: list[Done] = []
        self.metrics: dict[tuple[str, str, int], MetricEntry] = {}
        self.notes: dict[str, Any] = {}
        self.files: dict[str, str] = {}
        self.seals: list[str] = []  # after each entry
        self.step_seals: list[str] = []  # after the first entry, and after each step

    def take(self, entry: Entry, seal: str, where: str) -> None:
        """One more. Raises: RunError where it cannot follow those before it."""
        if isinstance(entry, RunBegunEntry) != (not self.seals):
            raise RunError(f"{where} is no entry that may stand there; restore the folder from a copy.")
        match entry:
            case RunBegunEntry():
                self.begun = entry
            case Done():
                if entry.step.step != len(self.done):
                    raise RunError(
                        f"{where} is step {entry.step.step} where step {len(self.done)} belongs; restore the folder "
                        "from a copy."
                    )
                self.done.append(entry)
            case Measured():
                self.metrics |= {(each.split, each.name, each.step): each for each in entry.metrics}
            case NoteEntry():
                if entry.name in NOTES:
                    from_plain(
                        NOTES[entry.name], {"value": entry.value}, error=RunError, where=f"'{entry.name}' of {where}"
                    )
                self.notes[entry.name] = entry.value
            case Kept():
                before = {name: sha for name, sha in self.files.items() if not is_below(name, entry.of)}
                self.files = {**before, **entry.files}
        self.seals.append(seal)
        if isinstance(entry, RunBegunEntry | Done):
            self.step_seals.append(seal)


def check_clock(written: Written, finished: float, run: str) -> None:
    """RunError where the next step would finish before the last one did: how often a device with a timer could come
    is counted by these times, and a clock that was set back would hide it.
    """
    if written.done and finished < (last := written.done[-1].finished):
        raise RunError(
            f"the clock says that a step of '{run}' finished {last - finished:.3g} seconds before the one before it, "
            "and the devices' timers are counted by it; set the clock right, and go on with the run."
        )


def is_below(name: str, places: tuple[str, ...]) -> bool:
    """Whether a path is one of `places`, or below one."""
    return any(name == place or name.startswith(f"{place}/") for place in places)
