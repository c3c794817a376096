"""Word discovery on real devices: its served file, and the collector that puts each group's question to them."""

import dataclasses
import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import tomli_w

from tacit.discovery.collect import QuestionTask
from tacit.discovery.settings import DiscoverySettings
from tacit.discovery.trie import SummedReports
from tacit.errors import InputError, RunError
from tacit.jobs.devices import KEYS, RealDevices
from tacit.jobs.discover.job import begun, discover
from tacit.progress import Progress
from tacit.protocol.discover import ListedWordsAsked, LocalReportsAsked, PrefixesAsked, WordsAsked
from tacit.recipe.deployment_section import DeploymentSection
from tacit.records import from_plain, to_plain
from tacit.runs import Run
from tacit.server.rounds.rounds import ServedRounds, Wanted
from tacit.server.store.round_states import Total
from tacit.text.vocabulary import Vocabulary

OWN = ("kind", "vocabulary", "delta", *KEYS)  # keys of a file that are no setting of discovery


class ServedQuestions(ServedRounds):
    """Groups of real devices that are asked for words, a round each; see `tacit.discovery.collect.Collector`.

    A group is whoever comes first: each device answers the run once, and sees to that by itself.
    """

    came = 0
    _asks_for: tuple[RealDevices, bytes] | None = None

    def knows(self, devices: RealDevices, vocabulary: Vocabulary) -> None:
        """Who is asked, and the words that they are not to report."""
        self._asks_for = devices, vocabulary.to_json().encode()

    @property
    def devices(self) -> RealDevices:
        """Whom it asks."""
        return self._known[0]

    @property
    def clients(self) -> int:
        """About how many devices there are."""
        return self.devices.deployment.devices

    def collect(self, task: QuestionTask) -> SummedReports:
        """See Collector. Raises: what `ServedRounds.sum_of` does."""
        content = self._known[1]
        wanted = Wanted(
            asked=self.asked(task.group, content, _asks(task)),
            content=content,
            goal=task.users,
            least=task.users,
            check=partial(_check, task),
        )
        values, total, self.came = self.sum_of(wanted)
        return SummedReports(values.astype(np.int64), total.reports * task.settings.contributions)

    @property
    def _known(self) -> tuple[RealDevices, bytes]:
        if self._asks_for is None:
            raise RunError("this collector knows no devices yet; `tacit serve` says which.")
        return self._asks_for


def _asks(task: QuestionTask) -> WordsAsked:
    """The question as its devices get it."""
    said = task.question.to_plain()
    kind = PrefixesAsked if said["about"] == "prefixes" else ListedWordsAsked
    return WordsAsked(
        kind="discover", question=kind(**said), reports=LocalReportsAsked(**dataclasses.asdict(task.settings))
    )


def _check(task: QuestionTask, values: Any, total: Total) -> None:
    """See Wanted. Raises: InputError for a sum that no honest reports have."""
    most = total.reports * task.settings.contributions
    if values.max(initial=0) > most:
        raise InputError(f"an answer has {values.max():,} votes of {most:,} reports, so a device sent what is none.")


@dataclass(frozen=True, kw_only=True)
class ServedWords:
    """A file of kind "discover": a name, [deployment], the vocabulary that devices know, and the settings."""

    collector: ClassVar[type[ServedRounds]] = ServedQuestions
    devices: RealDevices
    vocabulary: Path
    settings: DiscoverySettings
    delta: float | None

    def __post_init__(self) -> None:
        asked, reports = self.settings, self.settings.reports
        reports.check_effort(asked.prefixes * asked.alphabet.size + 1)
        reports.check_no_sum_wraps(max(*asked.users_of_layers, asked.counting_users))

    @property
    def name(self) -> str:
        """See ServedJob."""
        return self.devices.name

    @property
    def deployment(self) -> DeploymentSection:
        """See ServedJob."""
        return self.devices.deployment

    @classmethod
    def from_toml(cls, text: str, *, where: str) -> Self:
        """See ServedJob."""
        table = tomllib.loads(text)
        vocabulary = table.get("vocabulary")
        if not isinstance(vocabulary, str):
            raise InputError(
                f"{where} names no vocabulary, the words that devices are not to report; add vocabulary = 'FILE'."
            )
        rest = {name: value for name, value in table.items() if name not in OWN}
        return cls(
            devices=RealDevices.of(table, where=where),
            vocabulary=Path(vocabulary),
            settings=from_plain(DiscoverySettings, rest, where=where),
            delta=table.get("delta"),
        )

    def to_toml(self) -> str:
        """See ServedJob."""
        own = {"kind": "discover", **self.devices.to_plain(), "vocabulary": str(self.vocabulary), "delta": self.delta}
        said = own | to_plain(self.settings)
        return tomli_w.dumps({name: value for name, value in said.items() if value is not None})

    def placed(self, data: Path | None) -> Self:
        """See ServedJob; it reads no cache."""
        Vocabulary.load(self.vocabulary)
        return type(self)(**{**vars(self), "vocabulary": self.vocabulary.absolute()})

    def begun(self, out: Path, collector: ServedRounds, progress: Progress) -> Run:
        """See ServedJob."""
        asking = self._asking(collector)
        return begun(self.vocabulary, out, self.settings, asking, delta=self.delta, progress=progress)

    def run(self, out: Path, collector: ServedRounds, progress: Progress) -> None:
        """See ServedJob."""
        asking = self._asking(collector)
        discover(None, self.vocabulary, out, self.settings, delta=self.delta, collector=asking, progress=progress)

    def _asking(self, collector: ServedRounds) -> ServedQuestions:
        assert isinstance(collector, ServedQuestions)  # as it was asked for
        collector.knows(self.devices, Vocabulary.load(self.vocabulary))
        return collector
