"""TensorBoard: a file of events in a folder, which `tensorboard --logdir FOLDER` draws."""

import os
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Self

from tacit.errors import InputError
from tacit.files import as_path
from tacit.integrations.event_file import event, first_event, record
from tacit.integrations.log import ProgressLog
from tacit.integrations.published import PublishedNumber


class TensorBoard(ProgressLog):
    """Writes into a folder, one for each run; a run that goes on later adds a file to it. Nothing need be installed.

    Raises: InputError where the place is no folder; OSError where it cannot be written.
    """

    name: ClassVar[str] = "tensorboard"
    takes: ClassVar[str] = "FOLDER"

    def __init__(self, folder: str | os.PathLike[str], *, exact: bool = False) -> None:
        """exact: see `Log`; leave it out where others can read the folder."""
        super().__init__(exact=exact)
        place = as_path("folder", folder)
        if place.exists() and not place.is_dir():
            raise InputError(f"{place} is a file; give a folder, in which each run has its own.")
        place.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns() // 1000 / 1e6:.6f}"  # TensorBoard reads them in this order
        self._file = open(place / name, "xb")  # noqa: SIM115  (close() closes it)
        self._file.write(record(first_event(self._opened)))

    @classmethod
    def open(cls, place: str, *, exact: bool, run: str) -> Self:
        """Into the folder `run` of the folder at `place`."""
        return cls(Path(place).expanduser() / run, exact=exact)

    def write(self, numbers: Sequence[PublishedNumber], when: float) -> None:
        """Numbers of one step are one event, which can be read when this returns."""
        for step, each in groupby(numbers, lambda number: number.step):
            self._file.write(record(event([(number.name, number.value) for number in each], step, when)))
        self._file.flush()

    def flush(self) -> None:
        """It is in the file already."""
        self._file.flush()

    def close(self, *, failed: bool = False) -> None:
        """The file is whole either way."""
        self._file.close()
