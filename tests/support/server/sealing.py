"""Decryptors of sealed rounds in this process, and a plan that names them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.server.documents import a_plan

import tacit
from tacit.contributor.contributor import NoiseContributor
from tacit.jobs.decryptor import DecryptorDesk
from tacit.protocol.messages import AggregationSettings, Plan
from tacit.server.rounds.one_message_rounds import DecryptorAway


@dataclass
class Here:
    """A decryptor without a network, that dies when it is told to."""

    name: str
    folder: Path
    least: int
    away: bool = False
    dies_at: Callable[[int], bool] = lambda message: False  # before the message numbered so of what is asked at once
    seen: list[bytes] = field(default_factory=list)
    operator: str | None = None  # whose runs it adds noise for: the public key
    desk: DecryptorDesk = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """As another process would begin: with what is on disk."""
        self.desk = tacit.decryptor(self.folder, least_reports=self.least)
        if self.operator is not None:
            self.desk.contributor = NoiseContributor(self.folder, self.operator)

    def ask(self, messages: Iterable[bytes]) -> list[bytes]:
        """See DecryptorTransport."""
        if self.away:
            raise DecryptorAway("it is away.")
        return self.desk.answers_at_once(self._until_it_dies(messages))

    def _until_it_dies(self, messages: Iterable[bytes]) -> Iterable[bytes]:
        for number, each in enumerate(messages):
            if self.dies_at(number):
                self.restart()
                raise DecryptorAway("it was killed.")
            self.seen.append(each)
            yield each


def decryptors_in(folder: Path, *, count: int = 2, least: int = 2) -> list[Here]:
    return [Here(f"decryptor {number}", folder / f"decryptor-{number}", least) for number in range(count)]


def sealed_plan(decryptors: Sequence[Here], *, threshold: int, corrupt: int = 1, **changed: object) -> Plan:
    said = AggregationSettings(
        kind="sealed",
        threshold=threshold,
        keepers=tuple(each.desk.identity for each in decryptors),
        boxes=tuple(each.desk.box for each in decryptors),
        corrupt=corrupt,
        contributors=(),
        honest=1,
    )
    return a_plan(aggregation=said, **changed)
