"""When something was written: one look at a few times of files, twice a second, however many browsers listen."""

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from tacit.errors import TacitError
from tacit.runs.glance import mark_of, worked_on_by
from tacit.runs.journal import HEAD
from tacit.view.folders import DEVICE, STORE, Folders

EVERY = 0.5  # seconds
LIST_EVERY = 4  # turns between two looks at the list of all, at a server, at a device
WALK = 10.0  # seconds between two looks at which runs there are, and on which of them somebody works
ALL = ""  # the place of the list
OTHERS = (STORE, f"{STORE}-wal", DEVICE)  # what is written of servers and devices


class Changes:
    """Marks of places, told to whoever waits for another one."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._marks: dict[str, str] = {}
        self._waiting: Counter[str] = Counter()
        self._told = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._walked, self._places, self._working = -WALK - 1.0, list[str](), list[str]()

    def mark(self, place: str) -> str:
        """Of a run, or of the list of all: another whenever something was written."""
        return hashlib.sha256(repr(self._seen(place)).encode()).hexdigest()[:16]

    def _seen(self, place: str) -> Any:
        if place != ALL:
            try:
                path = self._folders.folder(place)
            except TacitError:
                return None
            return (mark_of(path), worked_on_by(path), [_written(path / name) for name in OTHERS])
        return [(each, self._last_written(each)) for each in self._listed()], self._working

    def _is_run(self, place: str) -> bool:
        """A server's store is written many times a second, and its page is no faster for that."""
        try:
            return place != ALL and (self._folders.folder(place) / HEAD).exists()
        except TacitError:
            return False

    def _listed(self) -> list[str]:
        """Which runs there are, looked for anew every WALK seconds."""
        if monotonic() - self._walked > WALK:
            self._walked = monotonic()
            self._places = self._folders.runs()
            self._working = [each for each in self._places if self._worked_on(each)]
        return self._places

    def _worked_on(self, place: str) -> bool:
        try:
            return worked_on_by(self._folders.folder(place)) is not None
        except TacitError:
            return False

    def _last_written(self, place: str) -> int:
        """When an entry of a run's journal was written, in nanoseconds: one look at one file of each of hundreds."""
        number, _, inside = place.partition("/")
        return _written(self._folders.roots[int(number)] / inside / HEAD)

    async def of(self, place: str, known: str) -> AsyncIterator[str]:
        """The mark of a place as soon as it is another than `known`, and each later one."""
        self._waiting[place] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            if place not in self._marks:
                self._marks[place] = await asyncio.to_thread(self.mark, place)
            while True:
                async with self._told:
                    while self._marks.get(place) == known:
                        await self._told.wait()
                    known = self._marks.get(place, known)
                yield known
        finally:
            self._waiting[place] -= 1
            if not self._waiting[place]:
                del self._waiting[place]
                self._marks.pop(place, None)

    async def _look(self) -> None:
        turn = 0
        while self._waiting:
            await asyncio.sleep(EVERY)
            turn += 1
            places = [each for each in self._waiting if turn % LIST_EVERY == 0 or self._is_run(each)]
            found = {place: await asyncio.to_thread(self.mark, place) for place in places}
            changed = {place: mark for place, mark in found.items() if self._marks.get(place) != mark}
            if changed:
                async with self._told:
                    self._marks |= {place: mark for place, mark in changed.items() if place in self._waiting}
                    self._told.notify_all()

    async def close(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task


def _written(path: Path) -> int:
    """When a file was written, in nanoseconds; 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
