"""Keepers of sealed rounds in this process, and a plan that names them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.server.documents import a_plan

import tacit
from tacit.jobs.keeper import KeeperDesk
from tacit.protocol.messages import Aggregation, Plan
from tacit.server.rounds.sealed_rounds import KeeperAway


@dataclass
class Here:
    """A keeper without a network, that dies when it is told to."""

    name: str
    folder: Path
    least: int
    away: bool = False
    dies_at: Callable[[int], bool] = lambda message: False  # before the message numbered so of what is asked at once
    seen: list[bytes] = field(default_factory=list)
    desk: KeeperDesk = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """As another process would begin: with what is on disk."""
        self.desk = tacit.keeper(self.folder, least_reports=self.least)

    def ask(self, messages: Iterable[bytes]) -> list[bytes]:
        """See KeeperTransport."""
        if self.away:
            raise KeeperAway("it is away.")
        return self.desk.answers_at_once(self._until_it_dies(messages))

    def _until_it_dies(self, messages: Iterable[bytes]) -> Iterable[bytes]:
        for number, each in enumerate(messages):
            if self.dies_at(number):
                self.restart()
                raise KeeperAway("it was killed.")
            self.seen.append(each)
            yield each


def keepers_in(folder: Path, *, count: int = 2, least: int = 2) -> list[Here]:
    return [Here(f"keeper {number}", folder / f"keeper-{number}", least) for number in range(count)]


def sealed_plan(keepers: Sequence[Here], *, threshold: int, corrupt: int = 1, **changed: object) -> Plan:
    said = Aggregation(
        kind="sealed",
        threshold=threshold,
        keepers=tuple(each.desk.identity for each in keepers),
        boxes=tuple(each.desk.box for each in keepers),
        corrupt=corrupt,
        contributors=(),
    )
    return a_plan(aggregation=said, **changed)
