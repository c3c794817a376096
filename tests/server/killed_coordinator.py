"""A coordinator that dies at a chosen step."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection
from tests.support.server.fleet import Fleet

from tacit.server.store.blobs import BlobStore
from tacit.server.store.store import Store


class Killed(BaseException):
    """As good as kill -9: nothing after it runs but another process."""


class KilledAt:
    """A store and blobs whose coordinator dies before or after its n-th transaction or blob."""

    def __init__(self, fleet: Fleet, step: int, *, after: bool, patch: pytest.MonkeyPatch) -> None:
        self.steps, self._step, self._after = 0, step, after
        self.store = Store(
            fleet.store._engine, fleet.store._at_ease, clock=fleet.clock
        )  # of the coordinator alone: workers have their own
        self.store._one_writer = fleet.store._one_writer
        patch.setattr(self.store, "writing", self._writing)
        put, self._workers = BlobStore.put, False

        def counted(blobs: BlobStore, name: str, content: bytes, **how: bool) -> None:
            if name.startswith(("partials", "sealed")):  # of workers
                return put(blobs, name, content, **how)
            return self._stepped(lambda: put(blobs, name, content, **how))

        patch.setattr(BlobStore, "put", counted)

    def _stepped(self, act: Callable[[], None]) -> None:
        self.steps += 1
        if self.steps == self._step and not self._after:
            raise Killed
        act()
        if self.steps == self._step:
            raise Killed

    @contextmanager
    def _writing(self, *, durable: bool = True) -> Iterator[Connection]:
        self.steps += 1
        if self.steps == self._step and not self._after:
            raise Killed
        with Store.writing(self.store, durable=durable) as connection:
            yield connection
        if self.steps == self._step:
            raise Killed
