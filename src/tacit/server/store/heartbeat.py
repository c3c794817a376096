"""Signs of life from a thread of their own, which no event loop, pool of threads or writer of its process delays."""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tacit.errors import StoreError

log = logging.getLogger("tacit.server")


class Heartbeat:
    """Says again and again that this process lives, while the block lasts; the first time when it begins."""

    def __init__(self, say: Callable[[], None], *, every: float) -> None:
        """say: by `Store.saying`, so that it waits for no other thread of this process. What the store does not take is
        said again. every: so many seconds.
        """
        self._say, self._every, self._ended = say, every, threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()  # nothing is said any more

    def _beat(self) -> None:
        while True:
            try:
                self._say()
            except StoreError as error:
                log.warning("%s", error)
            if self._ended.wait(self._every):
                return


class Silence:
    """Which workers are silent, in the eyes of a coordinator.

    Each says when it was seen, by a clock of its own, which is compared with nothing: silent is one whose word stays
    the same. Time in which the coordinator could not look either (a machine that was suspended, or too busy, or a store
    that took nothing) says nothing of a worker: of the time between two looks a fifth of `seconds` counts at most.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._looked = seconds, float("-inf")
        self._since: dict[str, tuple[float | None, float]] = {}  # by worker: its word, and for how long that stood

    def of(self, words: dict[str, float | None], now: float) -> list[str]:
        """Those of these workers that said nothing new for so long; `now`, by the coordinator's clock, it looks."""
        passed, self._looked = min(max(0.0, now - self._looked), self._seconds / 5), now
        before, self._since = self._since, {}
        for worker, word in words.items():
            said, stood = before.get(worker, (word, -passed))
            self._since[worker] = word, stood + passed if said == word else 0.0
        return sorted(worker for worker, (_, stood) in self._since.items() if stood >= self._seconds)
