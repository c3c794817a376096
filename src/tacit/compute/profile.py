"""Where the time of a run goes: seconds by phase, in the thread that plays the rounds and in those beside it.

The phases of the first thread follow one another, so they and `rest` add up to the time that passed. What workers and
the disk do beside it is counted apart: its seconds are of so many threads at once. Two readings of a clock a phase.

Code says in which phase it is (`with phase("noise")`) and knows no profile. Whoever wants to know counts around it
(`with Profile().counting()`); nothing is counted otherwise. Threads that are started with a copy of the context count
for the phase in which they were started.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock
from typing import Any, NamedTuple, Self

# Of the thread that plays the rounds, in the order of a round.
PHASES = {
    "start": "cache opened, model and state made or read",
    "cohort": "drawing who takes part",
    "training": "waiting for the clients' sums",
    "noise": "drawing the round's noise and adding it",
    "server step": "the optimizer",
    "checkpoint": "taking the state out of memory, and waiting for the disk",
    "commit": "the ledger row",
    "evaluation": "waiting for held-out clients to be counted",
    "release": "writing the model",
}
# Of the workers' threads, and of the disk's.
READING, TRAINING, EVALUATING, WRITING = "reading", "training", "evaluating", "writing"
_WORK_OF = {"training": TRAINING, "evaluation": EVALUATING}  # what workers do for a phase


class Profile:
    """Seconds by phase since it was made; threads may add at the same time."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._lock = Lock()
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._beside: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def counting(self) -> Iterator[Self]:
        """Count what is done inside."""
        before = _NOW.set(_Now(self, ""))
        try:
            yield self
        finally:
            _NOW.reset(before)

    def add(self, phase: str, seconds: float) -> None:
        """More of a phase of PHASES."""
        self._spent[phase] += seconds

    def add_beside(self, name: str, seconds: float, *, out_of: str | None = None) -> None:
        """More of what a thread does beside the phases; it is taken away from `out_of`, which is counted around it."""
        with self._lock:
            self._beside[name] += seconds
            if out_of is not None:
                self._beside[out_of] -= seconds

    def to_record(self, workers: int) -> dict[str, Any]:
        """For the run folder and `--json`: seconds in all, by phase, of the workers' threads and of the disk's.

        workers: 0 where others than this process's train; what those do is not known here, so nothing is said of it.
        """
        total = time.perf_counter() - self._began
        phases = {name: self._spent[name] for name in PHASES}
        busy = {name: self._beside[name] for name in (READING, TRAINING, EVALUATING)}
        here = {"count": workers, **busy, "idle": max(workers * total - sum(busy.values()), 0.0)}
        return {
            "seconds": total,
            "phases": {**phases, "rest": max(total - sum(phases.values()), 0.0)},
            **({"workers": here} if workers else {}),
            "disk": {WRITING: self._beside[WRITING]},
        }


class _Now(NamedTuple):
    profile: Profile | None
    phase: str


_NOBODY_COUNTS = _Now(None, "")
_NOW: ContextVar[_Now] = ContextVar("phase", default=_NOBODY_COUNTS)


def current() -> Profile | None:
    """The profile that counts here; None: nobody does."""
    return _NOW.get().profile


@contextmanager
def phase(name: str) -> Iterator[None]:
    """What is done inside is a phase of PHASES; one at a time, in one thread."""
    profile = _NOW.get().profile
    before, began = _NOW.set(_Now(profile, name)), time.perf_counter()
    try:
        yield
    finally:
        _NOW.reset(before)
        if profile is not None:
            profile.add(name, time.perf_counter() - began)


@contextmanager
def beside(name: str, *, out_of: str | None = None) -> Iterator[None]:
    """What is done inside, whatever other threads do at the same time; `out_of` is what is counted around it."""
    profile, began = _NOW.get().profile, time.perf_counter()
    try:
        yield
    finally:
        if profile is not None:
            profile.add_beside(name, time.perf_counter() - began, out_of=out_of)


def of_the_phase() -> AbstractContextManager[None]:
    """What a worker's thread does inside, counted as the work of the phase that it was started in, if that has any."""
    doing = _WORK_OF.get(_NOW.get().phase)
    return nullcontext() if doing is None else beside(doing)
