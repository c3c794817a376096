"""A listener that writes numbers down elsewhere: what every such tool has in common."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar, Self

from tacit.integrations.published import PublishedNumber, told
from tacit.progress import Event, StageEnded


class ProgressLog(ABC):
    """Give it as `progress=` of any job, in a `with` that closes it; several with `tacit.progress.together`.

    exact: tell all numbers, not only those that may be published. The exact ones (losses and clipped shares of training
    clients, accuracies of held-out ones, times) are not covered by the guarantee, and whoever can read the log
    reads them: choose it for simulations on public text, or a place that is as confidential as the run folder.
    """

    name: ClassVar[str]  # in a line of text, before the colon
    takes: ClassVar[str]  # what stands behind it

    def __init__(self, *, exact: bool = False) -> None:
        self.exact = exact
        self._opened = time.time()

    @classmethod
    @abstractmethod
    def open(cls, place: str, *, exact: bool, run: str) -> Self:
        """The log at a place. run: what it is called there."""

    @abstractmethod
    def write(self, numbers: Sequence[PublishedNumber], when: float) -> None:
        """Keep some numbers. when: seconds since 1970."""

    @abstractmethod
    def flush(self) -> None:
        """What was written can be read when this returns."""

    @abstractmethod
    def close(self, *, failed: bool = False) -> None:
        """Nothing more comes. failed: because something went wrong."""

    def __call__(self, event: Event) -> None:
        """Write down what the event says.

        How long a round takes tells of the text too: unless `exact`, all that is written bears the time of opening.
        """
        numbers = list(told(event, exact=self.exact))
        if numbers:
            self.write(numbers, time.time() if self.exact else self._opened)
        if isinstance(event, StageEnded):
            self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(failed=kind is not None)
