"""The facts of statements of federated analytics: of discovery, and of evaluations of models on devices."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from tacit.errors import InputError
from tacit.privacy.composition import Composition
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.privacy.local_anonymity import Anonymity
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.privacy.participation import Participation
from tacit.privacy.separation import DeviceSeparation
from tacit.privacy.strategy import Record
from tacit.records import to_plain
from tacit.statements.contradictions import (
    ASK,
    check_came,
    check_count,
    check_histogram_numbers,
    check_histograms,
    check_kept,
    check_prefix_layers,
    check_seal,
    check_steps,
)
from tacit.statements.ledger import COUNT_SUM, Ledger, NoisedSum, Release
from tacit.statements.local_releases import LocalReports, local_guarantee, rare_output
from tacit.statements.population import PopulationSpent
from tacit.statements.train_facts import UNITS, all_of, check_key_source, check_probability, choose

SAMPLERS = {
    "random": "a uniform choice among the different things it holds",
    "greedy": "those that it holds most of, ties by a fixed order",
}


@dataclass(frozen=True, kw_only=True)
class DiscoveryFacts:
    """What the statement of a discovery run is made from; InputError, AccountingError or UnknownRelease where they
    contradict each other.

    `releases` is its ledger. `population` clients there were, each one user, or with `resampled` as many users as were
    asked, drawn from them. `key_source` is "operating system" or "fixed seed N"; the vocabulary is that of the devices,
    whose words are never reported, and "private" if it was counted in clients' text; `looked_at` names each other use
    of clients' text, which has no guarantee. `verify_command` is what checks the record of the statement; `seal`
    is the journal's after the last release (see `runs.journal`), `budget` the state of the population's. `outputs` is
    the digest of settings and of all that the steps output (`local_releases.digest_of_outputs`); None before it was
    stated.
    """

    format: ClassVar[str] = "tacit discovery statement 1"

    central_delta: float
    population: int
    resampled: bool
    key_source: str
    sampler: str
    vocabulary_kind: str
    vocabulary_description: str
    verify_command: str
    aggregation: str = "simulated in the clear"
    looked_at: tuple[str, ...]
    anonymity: Anonymity | None
    releases: tuple[LocalReports, ...]
    seal: str | None = None
    budget: PopulationSpent | None = None
    on_devices: bool = False  # real ones, about `population` of them, that come when they may
    outputs: str | None = None

    def __post_init__(self) -> None:
        check_key_source(self.key_source)
        check_seal(self.seal)
        check_seal(self.outputs)
        choose("sampler", self.sampler, tuple(SAMPLERS))
        check_probability("central_delta", self.central_delta)
        check_count("population", self.population, minimum=1)
        check_prefix_layers(self.releases)
        assert self.guarantee  # refuses releases that have none
        if self.budget:
            self.budget.check_covers(local_epsilon=self.guarantee.user_epsilon)
        if self.users > self.population and not self.resampled:
            raise InputError(
                f"{self.users} users were asked of a population of {self.population}, so some were asked twice, "
                "which has no guarantee; or say that they were resampled."
            )
        last = max(release.first_user + release.users for release in self.releases)
        if last > self.population and not self.resampled:
            raise InputError(f"user {last:,} was asked of a population of {self.population:,}; {ASK}.")
        if self.anonymity and self.rare_output > self.anonymity.delta * (1 + 1e-9):
            raise InputError(
                f"the thresholds of the layers promise {self.rare_output:.3g} for k={self.anonymity.k}, not "
                f"{self.anonymity.delta:g}; state what they promise."
            )

    @property
    def users(self) -> int:
        """How many users were asked, in all groups."""
        return sum(release.users for release in self.releases)

    @cached_property
    def guarantee(self) -> LocalGuarantee:
        """What follows from the releases and these facts alone."""
        return local_guarantee(
            self.releases, central_delta=self.central_delta, randomness=self.key_source, resampled=self.resampled
        )

    @cached_property
    def rare_output(self) -> float:
        """What the thresholds promise for the anonymity's k; 1 where none was asked for."""
        return rare_output(self.releases, self.anonymity.k) if self.anonymity else 1.0

    def to_record(self) -> Record:
        """Plain values for JSON, all that `from_record` needs."""
        record = dict(to_plain(self))
        if self.outputs is None:
            del record["outputs"]
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "DiscoveryFacts":
        """The facts that `to_record` wrote; InputError or UnknownRelease where they are no such facts."""
        return all_of(cls, record, may_lack=("outputs",))


@dataclass(frozen=True, kw_only=True)
class EvaluationFacts:
    """What the statement of an evaluation of models on devices is made from; InputError, AccountingError or
    UnknownRelease where they contradict each other.

    `releases` is its ledger: noised sums of histograms or of whole numbers (central), or sums of local reports.
    `participation` is who was asked how often, measured from the log; `of` says what was evaluated ("models",
    "personalization"), `subjects` which models or settings, `asked` how many clients of the `split` of the `source`
    there were. `delta` is where a central epsilon is given, and 0 for local reports, whose guarantee needs none.
    `looked_at` names each other use of clients' text, which has no guarantee: the exact figures of a simulation.
    `separation` is what real devices without identities keep by themselves, of whom about `asked` were asked.
    `verify_command` checks the statement's record;
    `seal` is the journal's after the last release, `budget` the state of the population's, where the run names one.
    """

    format: ClassVar[str] = "tacit evaluation statement 1"

    of: str
    subjects: tuple[str, ...]
    source: str
    split: str
    asked: int
    delta: float
    looked_at: tuple[str, ...]
    verify_command: str
    key_source: str = OPERATING_SYSTEM
    unit: str = "client"
    aggregation: str = "simulated in the clear"
    participation: Participation
    releases: tuple[Release, ...]
    seal: str | None = None
    budget: PopulationSpent | None = None
    separation: DeviceSeparation | None = None  # what devices without identities keep; None: the log says who came

    def __post_init__(self) -> None:
        choose("unit", self.unit, tuple(UNITS))
        check_key_source(self.key_source)
        check_seal(self.seal)
        check_count("asked", self.asked, minimum=1)
        local = isinstance(self.guarantee, LocalGuarantee)  # refuses releases that have no guarantee
        if local and self.delta != 0:
            raise InputError(f"delta={self.delta:g}: local reports are promised an epsilon at delta 0; give that.")
        if self.of_sums and any(each.what != COUNT_SUM for each in self.releases):
            raise InputError(f"a run releases sums or histograms, and the ledger holds both; {ASK}.")
        if not local:
            check_probability("delta", self.delta)
        self._check_counts()
        if self.budget and isinstance(self.guarantee, LocalGuarantee):
            self.budget.check_covers(local_epsilon=self.epsilon)
        elif self.budget and isinstance(self.guarantee, Composition):
            self.budget.check_covers(zcdp=self.guarantee.zcdp)

    @property
    def of_sums(self) -> bool:
        """Whether a client added whole numbers to many cells; else it was in one cell of each histogram."""
        return any(isinstance(each, NoisedSum) and each.what == COUNT_SUM for each in self.releases)

    def _check_counts(self) -> None:
        reports: dict[int, int] = {}
        check_histogram_numbers(each for each in self.releases if isinstance(each, LocalReports))
        for each in self.releases:
            if isinstance(each, NoisedSum):
                check_count("reports", each.reports, minimum=0)
                check_count("dropped", each.dropped, minimum=0)
                if each.what != COUNT_SUM:
                    check_histograms(each.clip_norm)
            reports[_step(each)] = reports.get(_step(each), 0) + _reports(each)
        check_steps(reports, self.participation.rounds)
        if self.separation is not None:  # a few more come than are asked, and how many devices there are nobody knows
            check_kept(self.participation, sum(reports.values()), self.separation)
            return
        if max(reports.values()) > self.asked:
            raise InputError(f"{self.asked} clients were asked, and the releases are of more; give those of the log.")
        check_came(self.participation, sum(reports.values()), self.asked)

    @cached_property
    def guarantee(self) -> Composition | LocalGuarantee:
        """What follows from the releases and the participation alone."""
        return Ledger(self.releases).account(self.participation)

    @property
    def epsilon(self) -> float:
        """At `delta`: of everything a client's reports say, centrally; or of its one report, locally."""
        if isinstance(self.guarantee, LocalGuarantee):
            return self.guarantee.user_epsilon
        return self.guarantee.epsilon(self.delta)

    def to_record(self) -> Record:
        """Plain values for JSON, all that `from_record` needs."""
        record = dict(to_plain(self))
        if self.separation is None:
            del record["separation"]
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "EvaluationFacts":
        """The facts that `to_record` wrote; InputError or UnknownRelease where they are no such facts."""
        return all_of(cls, record, may_lack=("separation",))


def _step(release: Release) -> int:
    return release.turn - 1 if isinstance(release, LocalReports) else release.round


def _reports(release: Release) -> int:
    return release.reports if isinstance(release, LocalReports) else release.reports + release.dropped
