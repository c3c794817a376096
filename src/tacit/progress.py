"""Events that a long computation emits, and the type of who listens.

A job takes `progress`, a function of one event, and calls it in the caller's thread: `progress=print` is a display.
An exception that it raises stops the job after the last committed step, and resuming goes on from there.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

T = TypeVar("T")
COMPILING, ANOTHER = "compiling (about 30 s; each kind of work once)", "compiling"  # the first time it is said why
DECODER = "loading the decoder (compiled at the first start ever, 4 to 10 s)"


@dataclass(frozen=True)
class StageBegan:
    """A part of the work begins: `total` steps of it, of which an earlier process has done `done`."""

    stage: str  # what is done, as a user would say it: "training", "reading clients"
    total: int | None = None  # None: not known beforehand
    done: int = 0
    part: bool = False  # one of many alike, such as the trials of a tuning: in a log its end is a line and nothing else
    opening: str = ""  # what takes long before the first step is done; shown until then


@dataclass(frozen=True)
class Advanced:
    """`done` steps of a stage are done; `figures` are named numbers of now, formatted by whoever shows them."""

    stage: str
    done: int
    figures: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class StageEnded:
    """A stage has ended, all of it or as far as was asked."""

    stage: str


@dataclass(frozen=True)
class Evaluated:
    """A model was evaluated after so many rounds (0: the initial model)."""

    rounds: int
    split: str
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Noted:
    """Something that a user may want to know now, and need not act on. `code` names it for programs."""

    code: str
    message: str


@dataclass(frozen=True)
class Warned:
    """Something that a user should know now. `code` names it for programs, `message` says it with a way out."""

    code: str
    message: str


Event = StageBegan | Advanced | StageEnded | Evaluated | Noted | Warned
Progress = Callable[[Event], None]


_compiled: set[Hashable] = set()  # in this process


def compiling(*program: Hashable) -> str:
    """The `opening` of a stage whose steps are a program of XLA's: COMPILING, of a process's later programs ANOTHER, or
    nothing in a process that has it.

    program: what it is compiled for. It counts as compiled from now on.
    """
    opening = "" if program in _compiled else ANOTHER if _compiled else COMPILING
    _compiled.add(program)
    return opening


def silent(event: Event) -> None:
    """Listen to nothing: the default of every job."""


def together(*listeners: Progress) -> Progress:
    """One listener that tells all of these, in their order."""

    def tell(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return tell


def counted(items: Iterable[T], stage: str, progress: Progress, *, total: int | None = None) -> Iterator[T]:
    """The items, one by one, as a stage of `total` steps; an item counts as done when the next one is asked for."""
    progress(StageBegan(stage, total))
    for done, item in enumerate(items, start=1):
        yield item
        progress(Advanced(stage, done))
    progress(StageEnded(stage))
