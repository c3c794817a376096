"""Where the time of a run goes: seconds by phase, in the thread that plays the rounds and in those beside it.

The phases of the first thread follow one another, so they and `rest` add up to the time that passed. What workers and
the disk do beside it is counted apart: its seconds are of so many threads at once. Two readings of a clock a phase.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.data import Cache
from tacit.training.client import ClientWork, ShardSum
from tacit.training.cohort import Cores

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


class Profile:
    """Seconds by phase since it was made; threads may add at the same time."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._lock = Lock()
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._beside: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what is done inside as a phase of PHASES; one at a time, in one thread."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._spent[name] += time.perf_counter() - began

    @contextmanager
    def beside(self, name: str, *, out_of: str | None = None) -> Iterator[None]:
        """Count what is done inside, whatever other threads do at the same time; `out_of` is counted around it."""
        began = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - began
            with self._lock:
                self._beside[name] += spent
                if out_of is not None:
                    self._beside[out_of] -= spent

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


class MeasuredCores(Cores):
    """The same workers, and what they do is counted: as training with what of it is reading, or as evaluating."""

    def __init__(self, cores: Cores, profile: Profile, doing: str) -> None:
        self.__dict__.update(cores.__dict__)  # devices, pool and queue are shared, not made again
        self._profile, self._doing = profile, doing

    def stream(self, work: Callable[[Any, Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """See Cores."""

        def counted(device: Any, item: Any) -> Any:
            with self._profile.beside(self._doing):
                return jax.block_until_ready(work(device, item))  # type: ignore[no-untyped-call]

        return super().stream(counted, items)

    def shard_sums(
        self, work: ClientWork, model: Array, shards: Sequence[NDArray[np.int64]], *, seed: bytes, clip_norm: float
    ) -> Iterator[ShardSum]:
        """See Cores."""
        counted = replace(work, cache=_MeasuredCache(work.cache, self._profile))
        return super().shard_sums(counted, model, shards, seed=seed, clip_norm=clip_norm)


class _MeasuredCache(Cache):
    """The same cache; the time to read clients' sentences is counted."""

    def __init__(self, cache: Cache, profile: Profile) -> None:
        self.__dict__.update(cache.__dict__)
        self._profile = profile

    def padded(self, client: int, chosen: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        """See Cache."""
        with self._profile.beside(READING, out_of=TRAINING):  # a worker reads its clients inside its shard
            return super().padded(client, chosen, length)
