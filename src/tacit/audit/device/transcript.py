"""All that can be seen of a device's turns from outside, but for what its report says."""

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple


class Request(NamedTuple):
    """What one request showed. Of a report its bytes count by their number alone."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | int


@dataclass(frozen=True)
class Transcript:
    """Of one device and one operator. Each field is an observable, the same for texts that cannot be told apart.

    requests: in their order. times: seconds after the start, of each of them. record: what a thief of the record reads.
    accepted: whether each report is one of its task, as a server checks it. ended: of each turn how, and between which
    seconds the next one follows. How long a device asks its clock to wait is its own: what shows is when it goes on.
    silent: reports that say nothing, which the owner alone is told; no observable.
    """

    requests: tuple[Request, ...]
    times: tuple[float, ...]
    record: tuple[tuple[Any, ...], ...]
    accepted: tuple[bool, ...]
    ended: tuple[tuple[str, float, float], ...]
    silent: int = field(default=0, compare=False)

    def differs(self, other: "Transcript") -> tuple[str, ...]:
        """The observables in which both differ."""
        return tuple(name for name in OBSERVABLES if getattr(self, name) != getattr(other, name))


OBSERVABLES = tuple(each.name for each in fields(Transcript) if each.compare)
