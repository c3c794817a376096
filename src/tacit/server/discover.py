"""Word discovery on real devices: its served file, its plan, and a group's question as they get it."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import tomli_w

from tacit.code_digest import code_digest
from tacit.discovery.collect import DiscoverQuestion
from tacit.discovery.settings import DiscoverySettings
from tacit.errors import InputError
from tacit.jobs.devices import KEYS, RealDevices
from tacit.jobs.discover.job import begun, devices_of, discover, vocabulary_digest
from tacit.jobs.discover.job import settings_of as discovery_of
from tacit.parsing import parsed_toml
from tacit.progress import Progress
from tacit.protocol.discover import DiscoverDocument, ListedWordsDocument, LocalReportsDocument, PrefixesDocument
from tacit.protocol.messages import UNATTESTED, VERSION, LocalPrivacy, Plan, Separation
from tacit.records import from_plain, to_plain
from tacit.runs import Run
from tacit.server.rounds.rounds import ServedRounds
from tacit.server.served import Enrolment, ServedAnalytics, aggregation_of
from tacit.text.vocabulary import Vocabulary

OWN = ("kind", "vocabulary", "delta", *KEYS)  # keys of a file that are no setting of discovery


@dataclass(frozen=True, kw_only=True)
class ServedWords(ServedAnalytics):
    """A file of kind "discover": a name, [deployment], the vocabulary that devices know, and the settings."""

    vocabulary: Path
    settings: DiscoverySettings
    delta: float | None

    def __post_init__(self) -> None:
        self.devices.check_noise(local=True)
        settings, reports = self.settings, self.settings.reports
        reports.check_effort(settings.prefixes * settings.alphabet.size + 1)
        reports.check_no_sum_wraps(max(*settings.users_of_layers, settings.counting_users))

    @classmethod
    def from_toml(cls, text: str, *, where: str) -> Self:
        """See ServedJob."""
        try:
            table = parsed_toml(text)
        except ValueError as error:
            raise InputError(f"{where} is no TOML: {error}; mend that line.") from None
        vocabulary = table.get("vocabulary")
        if not isinstance(vocabulary, str):
            raise InputError(
                f"{where} names no vocabulary, the words that devices are not to report; add vocabulary = 'FILE'."
            )
        rest = {name: value for name, value in table.items() if name not in OWN}
        return cls(
            devices=RealDevices.from_table(table, where=where),
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
        return dataclasses.replace(self, vocabulary=self.vocabulary.absolute())

    def begun(self, out: Path, collector: ServedRounds, progress: Progress) -> Run:
        """See ServedJob."""
        return begun(self.vocabulary, out, self.settings, collector, delta=self.delta, progress=progress)

    def run(self, out: Path, collector: ServedRounds, progress: Progress) -> None:
        """See ServedJob."""
        discover(None, self.vocabulary, out, self.settings, delta=self.delta, collector=collector, progress=progress)

    def document(self, question: DiscoverQuestion) -> tuple[DiscoverDocument, bytes]:
        """See ServedJob; the content is the words that devices are not to report."""
        said = question.question.to_plain()
        about = PrefixesDocument if said["about"] == "prefixes" else ListedWordsDocument
        reports = LocalReportsDocument(**dataclasses.asdict(question.settings))
        return DiscoverDocument(kind="discover", question=about(**said), reports=reports), self._known

    @cached_property
    def _known(self) -> bytes:
        return Vocabulary.load(self.vocabulary).to_json().encode()

    @staticmethod
    def plan(run: Run, enrolment: Enrolment) -> Plan:
        """See ServedJob. What a device sends is priced as a whole: its reports' epsilons add up, and epsilon-DP is
        epsilon^2/2-zCDP (Bun & Steinke 2016, arXiv:1605.02065, Proposition 1.4).
        """
        devices, settings = devices_of(run), discovery_of(run)
        epsilon, least = settings.reports.user_epsilon, settings.fewest_users
        return Plan(
            version=VERSION,
            kind="discover",
            population=devices.deployment.population,
            run=devices.name,
            recipe=run.settings,
            code=code_digest(),
            privacy=LocalPrivacy(
                kind="local",
                zcdp=epsilon**2 / 2,
                local_epsilon=epsilon,
                report_goal=least,
                rounds=settings.groups,
                max_participations=1,
            ),
            separation=Separation(rounds=settings.groups, timer_seconds=None, clock="start"),
            aggregation=aggregation_of(devices.deployment, "plain", threshold=least),
            vocabulary=vocabulary_digest(run),
            attestation=UNATTESTED,
            enrolment=enrolment,
        )
