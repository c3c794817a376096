"""What a device does, kind by kind of tasks: the few things in which kinds differ, as the session (`session.py`) asks
them.

A kind is one `TaskHandler` (`train.py`, `discover.py`, `count.py`), and an entry in the table that a device is made
with.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeAlias

from tacit.federation.cost import Cost
from tacit.networks.training_cost import TrainingCost
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import MatrixFile, Plan, RoundTask

Draw: TypeAlias = Callable[[int], bytes]  # so many random bytes
SEED_BYTES = 32
OPERATOR = "its operator has to mend it"  # the way out of a task that is none of its plan's


class Refuse(Protocol):
    """Raises TaskRefused: why, and the way out."""

    def __call__(self, why: str, way_out: str = ...) -> NoReturn: ...


@dataclass(frozen=True, kw_only=True)
class PreparedTask:
    """A task that was checked in all respects but the text: from here on nothing is refused.

    `read` reads the text, and may raise anything. `nothing` reads none: it is the report of a device that has nothing
    to say (`TaskHandler.nothing`), made before text is read, and whatever goes wrong becomes it.
    """

    read: Callable[[Draw], ReportBody]
    nothing: Callable[[Draw], ReportBody]


class TaskHandler(Protocol):
    """What a device does in the tasks of one kind."""

    def matrix(self, plan: Plan) -> MatrixFile | None:
        """The file that the plan's numbers are in, where they are in one. Raises: TaskRefused for one that a device
        does not reckon with, before anything of it is fetched.
        """
        ...

    def cost(self, plan: Plan, matrix: bytes | None) -> Cost:
        """What the plan's own numbers cost. matrix: the content of that file. Raises: TaskRefused where that is more
        than the plan claims, or it is not for this device.
        """
        ...

    def check(self, plan: Plan) -> None:
        """Raises: TaskRefused where it cannot do what the plan asks, whatever was typed here."""
        ...

    def check_task(self, plan: Plan, cost: Cost, task: RoundTask, refuse: Refuse) -> TrainingCost | None:
        """What the task takes of the machine, where that is to be asked about; refuses one that asks otherwise than its
        plan reckons with. cost: as `cost` gave it.
        """
        ...

    def prepare(self, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        """Everything but the text. content: what the round begins with. A report draws its random bytes from what it is
        given, the operating system's but in tests that say so. Raises: TaskRefused, CacheError; whatever was typed
        here, the same.
        """
        ...

    def nothing(self, task: RoundTask, draw: Draw) -> ReportBody:
        """The report of a device that has nothing to say, by the task alone: neither text nor content is read."""
        ...

    def reading_s(self, task: RoundTask) -> float:
        """Seconds in which a slow device has read its text and computed the report, by the task's sizes alone."""
        ...
