"""TensorBoard: a file of events in a folder, which `tensorboard --logdir FOLDER` draws."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

from tacit.errors import InputError
from tacit.files import as_path
from tacit.integrations.log import Log, library
from tacit.integrations.published import Told


class TensorBoard(Log):
    """Writes into a folder, one for each run; a run that goes on later adds a file to it.

    Raises: InputError where tensorboardX (extra `tensorboard`) is not installed, or the place is no folder.
    """

    name: ClassVar[str] = "tensorboard"
    takes: ClassVar[str] = "FOLDER"

    def __init__(self, folder: str | os.PathLike[str], *, exact: bool = False) -> None:
        """exact: see `Log`; leave it out where others can read the folder."""
        super().__init__(exact=exact)
        place = as_path("folder", folder)
        if place.exists() and not place.is_dir():
            raise InputError(f"{place} is a file; give a folder, in which each run has its own.")
        writer = library("tensorboardX", "tensorboardX", self.name).SummaryWriter
        self._writer = writer(str(place))

    @classmethod
    def open(cls, place: str, *, exact: bool, run: str) -> Self:
        """Into the folder `run` of the folder at `place`."""
        return cls(Path(place).expanduser() / run, exact=exact)

    def write(self, numbers: Sequence[Told], when: float) -> None:
        """A scalar each."""
        for each in numbers:
            self._writer.add_scalar(each.name, each.value, each.step, walltime=when)

    def flush(self) -> None:
        """To the file."""
        self._writer.flush()

    def close(self, *, failed: bool = False) -> None:
        """The file is whole either way."""
        self._writer.close()
