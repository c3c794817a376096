"""The record of a simulated device: a phone's own, in memory."""

import sqlite3
import weakref
from pathlib import Path

from tacit.device.record import DeviceRecord


class MemoryRecord(DeviceRecord):
    """A new one of a device that has taken part nowhere. Nobody copies it, so nothing is noted of its file."""

    def __init__(self, operator: str) -> None:
        # Devices report in other threads than they check in, one after the other.
        database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        super().__init__(Path(), database)
        weakref.finalize(self, database.close)  # with its device, whenever that is gone
        self._begin(0.0, first_time=True)
        self.pin(operator)

    def _tell_change(self, *, changing: bool) -> None:
        """There is no file to tell of."""

    def _number(self) -> str:
        return "memory"
