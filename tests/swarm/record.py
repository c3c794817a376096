"""The record of a simulated device: a phone's own, in memory."""

import math
import sqlite3
import weakref
from pathlib import Path

from tacit.device.record import RECORD_FORM, DeviceRecord
from tacit.device.state_file import MemoryFile


class MemoryRecord(DeviceRecord):
    """A new one of a device that has taken part nowhere. Nobody copies it, so there is no second place."""

    def __init__(self, operator: str) -> None:
        # Devices report in other threads than they check in, one after the other.
        database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        super().__init__(Path(), MemoryFile(Path(), database, RECORD_FORM))
        weakref.finalize(self, database.close)  # with its device, whenever that is gone
        self.begin(now=0.0, first_time=True, budget_zcdp=math.inf)
        self.pin(operator)

    def _hold(self, *places: Path) -> None:
        """No other process speaks with its operator."""
