"""Logs by one line of text each, as the command takes them: `tensorboard:logs`, `mlflow:http://tracking:5000`."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from tacit.errors import InputError
from tacit.integrations.log import ProgressLog
from tacit.integrations.mlflow import MLflow
from tacit.integrations.tensorboard import TensorBoard
from tacit.progress import Event

LOGS: dict[str, type[ProgressLog]] = {each.name: each for each in (TensorBoard, MLflow)}


class Logs:
    """Several logs as one listener, none among them too. Raises: InputError for a line that names none."""

    def __init__(self, lines: Sequence[str], *, exact: bool = False, run: str) -> None:
        """exact: see `Log`. run: what the run is called in each of them."""
        named = [line.partition(":") for line in lines]
        for line, (name, _, place) in zip(lines, named, strict=True):
            if name not in LOGS or not place:
                known = " or ".join(f"{each.name}:{each.takes}" for each in LOGS.values())
                raise InputError(f"--log {line!r} names no log; give {known}.")
        if exact and not lines:
            raise InputError("--log-exact says what a log is told, and there is none; give --log too, or drop it.")
        self._waiting = [partial(LOGS[name].open, place, exact=exact, run=run) for name, _, place in named]
        self._stack = ExitStack()
        self._logs: list[ProgressLog] = []

    def __call__(self, event: Event) -> None:
        """Tell them all. They are opened when a job says its first word: one that is refused leaves nothing behind.

        Raises: InputError where a log cannot be opened, before the job has written anything.
        """
        while self._waiting:
            self._logs.append(self._stack.enter_context(self._waiting.pop(0)()))
        for log in self._logs:
            log(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, value, trace)
