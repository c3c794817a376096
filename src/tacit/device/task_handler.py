"""What a device does, kind by kind of tasks: the few things in which kinds differ, as the loop (`device.py`) asks them.

A kind is one `Doing` (`training.py`, `words.py`), and an entry in the table that a device is made with.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from tacit.protocol.bodies import Report
from tacit.protocol.messages import MatrixFile, Plan, RoundTask

Fetch: TypeAlias = Callable[[MatrixFile], bytes]  # the file with its SHA-256. Raises: ServerError; TaskRefused
Draw: TypeAlias = Callable[[int], bytes]  # so many random bytes
SEED_BYTES = 32


class Price(Protocol):
    """What a plan costs, by its own numbers and not by what it claims."""

    @property
    def plan(self) -> Plan:
        """Of which plan."""
        ...

    @property
    def zcdp(self) -> float:
        """rho of a whole run."""
        ...

    def spent(self, rounds: Sequence[int]) -> float:
        """rho of one device's participations in these different rounds; 0 for none. Never falls with a round more."""
        ...


class Doing(Protocol):
    """What a device does in the tasks of one kind."""

    def price(self, plan: Plan, fetch: Fetch) -> Price:
        """What the plan's own numbers cost. fetch: gets those that are in a file. Raises: TaskRefused where that is
        more than it claims, or it is not for this device; what `fetch` does.
        """
        ...

    def check(self, plan: Plan) -> None:
        """Raises: TaskRefused where it cannot do what the plan asks, or has no text for it."""
        ...

    def report(self, plan: Plan, task: RoundTask, content: bytes, *, draw: Draw) -> Report:
        """What the device reports. content: what the round begins with. draw: where random bytes come from; the
        operating system's, but in tests that say so. Raises: TaskRefused; DeviceError.
        """
        ...
