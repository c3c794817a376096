"""What was released, round by round, append-only; and the guarantee that follows from that alone.

A ledger records facts, whatever they are. The accountant reads it and refuses, with UnknownRelease, anything
for which it has no theorem: nothing is skipped, and a release that was made twice counts as unknown.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from tacit.errors import AccountingError, UnknownRelease
from tacit.privacy.composition import BIT_NORM, Composition, ReleasedSequence
from tacit.privacy.guarantee import OPERATING_SYSTEM, Guarantee
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Banded, Dense, Record, Strategy, strategy_from_record
from tacit.records import from_plain
from tacit.statements.local_releases import EVALUATION_HISTOGRAM, LocalReports, local_guarantee

MODEL_UPDATE = "model update"
CLIP_ESTIMATE = "clip estimate"  # the count of updates shorter than the estimate, each bit minus 1/2
TRAINING_LOSS = "training loss"  # the sum of bounded losses, each minus half the bound
COUNT_SUM = "sum of counts"  # of whole numbers, each client's within the clip norm
GAUSSIAN_SUM = "gaussian sum: "  # and any name: a sum that its releaser declares to be as a NoisedSum says
MAY_LACK = (
    "decryptors",
    "honest_decryptors",
)  # of ledgers before there were any: what is promised does not depend on it. No other gap is filled
EVERY_ROUND = (MODEL_UPDATE, CLIP_ESTIMATE, TRAINING_LOSS)
CENTRAL_DELTA = 1e-10  # where nobody says at which delta local reports are to be accounted centrally


@dataclass(frozen=True, kw_only=True)
class NoisedSum:
    """One noised sum that left the aggregator.

    `round` counts from 0; `what` names the sequence it belongs to; `strategy_record` is what `ledger_record`
    says of a strategy, or None where no noise was added; `reports` clients were summed and `dropped` ones took
    part without being in the sum: they sent nothing usable, vanished, or were of a cohort that was given up. Each
    client's summand has norm at most `clip_norm`, or `clip_inflation` times that where summands were encoded; the
    noise is `C^{-1} Z`, seeds of standard deviation `noise_multiplier * clip_norm`,
    one row of C^{-1} for each release of the sequence in turn. `decryptors`
    parties each added noise before anybody saw the sum, any `honest_decryptors` of them together such noise, each an
    equal share of its variance; 0: whoever summed added it, once.
    """

    kind: ClassVar[str] = "noised sum"

    round: int
    what: str
    strategy_record: Record | None
    clip_norm: float
    noise_multiplier: float
    reports: int
    dropped: int
    clip_inflation: float = 1.0
    decryptors: int = 0
    honest_decryptors: int = 1


Release = NoisedSum | LocalReports
R = TypeVar("R", NoisedSum, LocalReports)
RELEASES: Mapping[str, type[Release]] = {each.kind: each for each in (NoisedSum, LocalReports)}
NEEDED = {
    name: tuple(each.name for each in fields(kind) if each.name not in MAY_LACK) for name, kind in RELEASES.items()
}


def release_from(record: Any) -> Release:
    """The release that `to_plain` wrote; UnknownRelease where a key is unknown or missing, or the kind is."""
    found = record.get("kind") if isinstance(record, Mapping) else None
    if not isinstance(record, Mapping) or not isinstance(found, str) or found not in RELEASES:
        raise UnknownRelease(
            f"the ledger holds {found or record!r}, which is neither a {' nor '.join(RELEASES)}; "
            "account it with the version that wrote it."
        )
    kind = RELEASES[found]
    missing = [name for name in NEEDED[found] if name not in record]
    if missing:
        raise UnknownRelease(
            f"a {found} in the ledger lacks '{missing[0]}'; account it with the version that wrote it."
        )
    return from_plain(kind, record, error=UnknownRelease, where=f"a {found} in the ledger")


@dataclass(frozen=True)
class Ledger:
    """The releases of one run in the order in which they were made, and the matrix that they name, if they name one."""

    releases: tuple[Release, ...] = ()
    matrix: Banded | Dense | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "releases", tuple(self.releases))

    def add(self, release: Release) -> "Ledger":
        """The ledger with one more release at its end; this one stays as it is."""
        return replace(self, releases=(*self.releases, release))

    @property
    def noised_sums(self) -> tuple[NoisedSum, ...]:
        """The releases of a run that adds noise to sums; UnknownRelease where there is anything else."""
        return self._all(NoisedSum)

    @property
    def local_reports(self) -> tuple[LocalReports, ...]:
        """The releases of a run whose devices randomise; UnknownRelease where there is anything else."""
        return self._all(LocalReports)

    def account(
        self, participation: Participation, *, central_delta: float = CENTRAL_DELTA
    ) -> Composition | LocalGuarantee:
        """What everything in the ledger promises: of noised sums their `composition`, of local reports what their
        randomizers do (`local_guarantee`, centrally at `central_delta`).

        UnknownRelease for a ledger that holds both, or anything else; AccountingError for an empty one, or for local
        reports where a client took part in two rounds: only disjoint groups of users are understood.
        """
        if not self.releases or not isinstance(self.releases[0], LocalReports):
            return self.composition(participation)
        if participation.max_participations > 1:
            raise AccountingError(
                f"a client was asked in {participation.max_participations} rounds, and local reports of groups that "
                "share clients have no guarantee by disjointness; ask each client once."
            )
        return self.local_guarantee(central_delta=central_delta)

    def local_guarantee(
        self, *, central_delta: float = CENTRAL_DELTA, randomness: str = OPERATING_SYSTEM, resampled: bool = False
    ) -> LocalGuarantee:
        """What local reports, where they are all that was released, promise; see `local_releases.local_guarantee`."""
        return local_guarantee(
            self._all(LocalReports), central_delta=central_delta, randomness=randomness, resampled=resampled
        )

    def guarantee(self, participation: Participation) -> Guarantee:
        """What the model updates promise, where they are all that was released; see `composition`.

        AccountingError where the ledger holds another sequence besides: the updates alone would understate it.
        """
        sequences = self.composition(participation).sequences
        if [each.what for each in sequences] != [MODEL_UPDATE]:
            names = ", ".join(repr(each.what) for each in sequences)
            raise AccountingError(
                f"the ledger holds {names}, and the guarantee of the model updates alone is not that of all; "
                "account it by its composition."
            )
        return sequences[0].guarantee

    def composition(self, participation: Participation) -> Composition:
        """What everything in the ledger promises under `participation`, sequence by sequence and together.

        Understood are, by name, "model update", "clip estimate" and "training loss" over the rounds 0, 1, 2, ...,
        "evaluation histogram", "sum of counts" and "gaussian sum: ..." over any rounds. A sequence has one strategy and
        one noise multiplier; its clip norm may change only where its strategy starts afresh (a tree's restart), because
        only then is the noise of the rounds before and after independent. Anything else is an UnknownRelease.

        A run still under way is accounted as the rounds it has released: of a participation that speaks of more,
        what it says of those. For a sequence that skips rounds the participation is that of its own rounds: exact
        where they are evenly spaced or have independent noise, else one that allows more than can happen.
        AccountingError for an empty ledger, or a participation of fewer rounds than were released.
        """
        if not self.releases:
            raise AccountingError("the ledger is empty, and nothing promises nothing; account after a first round.")
        found: dict[str, list[NoisedSum]] = {}
        for release in self.noised_sums:
            found.setdefault(release.what, []).append(release)
        sequences = (_account(what, releases, participation, self.matrix) for what, releases in found.items())
        return Composition(tuple(sequences))

    def zcdp(self, participation: Participation) -> float:
        """rho of everything released so far; 0 while that is nothing."""
        return self.composition(participation).zcdp if self.releases else 0.0

    def _all(self, kind: type[R]) -> tuple[R, ...]:
        """The releases; UnknownRelease unless all are of one kind, because no theorem adds the two."""
        for release in self.releases:
            if not isinstance(release, kind):
                raise UnknownRelease(
                    f"the ledger holds a {getattr(release, 'kind', type(release).__name__)} where only {kind.kind} is "
                    "accounted: one theorem covers noised sums, another local reports, none both; account each kind "
                    "in a ledger of its own."
                )
        return cast("tuple[R, ...]", self.releases)


def ledger_record(strategy: Strategy | None) -> Record | None:
    """What a row of the ledger says of a strategy: everything; of a matrix its kind, shape and SHA-256, which name it.

    A matrix may be megabytes, and every round has a row.
    """
    return None if strategy is None else strategy.reference()


def strategy_of(record: Mapping[str, Any] | None, matrix: Banded | Dense | None) -> Strategy | None:
    """The strategy that `ledger_record` spoke of; UnknownRelease where it named another matrix than `matrix`."""
    if record is None or "sha256" not in record:
        return None if record is None else strategy_from_record(record)
    if matrix is None or ledger_record(matrix) != record:
        there = "none is" if matrix is None else f"that of {matrix.digest.hex()[:16]}... is"
        raise UnknownRelease(
            f"the noise is of the {record.get('kind')} matrix with SHA-256 {str(record['sha256'])[:16]}... and {there} "
            "at hand; put the strategy.json of this run back."
        )
    return matrix


def _account(
    what: str, releases: Sequence[NoisedSum], participation: Participation, matrix: Banded | Dense | None
) -> ReleasedSequence:
    """What the sequence `what` promises; UnknownRelease where it is none that has a theorem."""
    first, last = releases[0], releases[-1]
    _check_name(first)
    _check_rounds(what, releases)
    for release in releases:
        if not (release.clip_norm > 0 and 1 <= release.clip_inflation < math.inf):
            raise UnknownRelease(
                f"round {release.round} ({what!r}) has clip_norm={release.clip_norm} and clip_inflation="
                f"{release.clip_inflation}, and a bound is above 0, times 1 or more; look at who wrote the ledger."
            )
    for release in releases[1:]:
        for name in ("strategy_record", "noise_multiplier", "decryptors", "honest_decryptors"):
            if getattr(release, name) != getattr(first, name):
                raise _changed(name, release, first)
    guarantee = Guarantee(
        participation=_own_participation([release.round for release in releases], participation),
        strategy=strategy_of(first.strategy_record, matrix),
        clip_norm=last.clip_norm,
        noise_multiplier=first.noise_multiplier,
        clip_inflation=max(release.clip_inflation for release in releases),
    )
    return ReleasedSequence(what=what, guarantee=guarantee, clip_norms=_clip_norms(releases, guarantee))


def accountable(what: str) -> bool:
    """Whether a sequence of that name has a meaning, and so a guarantee."""
    declared = what.startswith(GAUSSIAN_SUM) and what != GAUSSIAN_SUM
    return what in (*EVERY_ROUND, EVALUATION_HISTOGRAM, COUNT_SUM) or declared


def _check_name(release: NoisedSum) -> None:
    """UnknownRelease unless the sequence is one whose meaning is known."""
    what = release.what
    if not accountable(what):
        raise UnknownRelease(
            f"the ledger holds a release of {what!r} (round {release.round}), which is none of {MODEL_UPDATE!r}, "
            f"{CLIP_ESTIMATE!r}, {TRAINING_LOSS!r}, {EVALUATION_HISTOGRAM!r}, {COUNT_SUM!r} and '{GAUSSIAN_SUM}...'; "
            "account it with the version that wrote it."
        )


def _check_rounds(what: str, releases: Sequence[NoisedSum]) -> None:
    """UnknownRelease unless each round is released once and in order, and none is left out that belongs."""
    before = -1
    for position, release in enumerate(releases):
        if release.round <= before or (what in EVERY_ROUND and release.round != position):
            expected = f"round {position}" if what in EVERY_ROUND else f"one after {before}"
            raise UnknownRelease(
                f"round {release.round} stands in the ledger where {expected} belongs ({what!r}), and only rounds "
                "released once each and in order can be accounted; "
                "the noise of a repeated or missing round is not what was declared."
            )
        before = release.round


def _clip_norms(releases: Sequence[NoisedSum], guarantee: Guarantee) -> tuple[tuple[int, float], ...]:
    """The clip norms and where each began to hold; UnknownRelease where one changes without a restart."""
    held = [(0, releases[0].clip_norm)]
    for position, (before, release) in enumerate(itertools.pairwise(releases), start=1):
        for name in ("clip_norm", "clip_inflation"):
            if getattr(release, name) != getattr(before, name) and not guarantee.starts_afresh(position):
                raise _changed(name, release, before)
        if release.clip_norm != before.clip_norm:
            held.append((position, release.clip_norm))
    if releases[0].what == CLIP_ESTIMATE and held != [(0, BIT_NORM)]:
        raise UnknownRelease(
            f"the clip estimate was released with clip_norm {held[-1][1]}, and a bit minus 1/2 has norm {BIT_NORM}; "
            f"release counts of shifted bits with clip_norm {BIT_NORM} and noise multiplier 2 x their noise."
        )
    return tuple(held)


def _changed(name: str, release: NoisedSum, before: NoisedSum) -> UnknownRelease:
    return UnknownRelease(
        f"{name} is {getattr(release, name)} in round {release.round} and was {getattr(before, name)} in round "
        f"{before.round} ({before.what!r}), and only a sequence with one value can be accounted (a clip norm may "
        "change where the strategy restarts); start a new run where a setting of the guarantee changes."
    )


def _own_participation(rounds: list[int], participation: Participation) -> Participation:
    """What `participation` says of a sequence released in these of its rounds, counted by themselves."""
    reached = participation.first(rounds[-1] + 1)
    if len(rounds) == reached.rounds:
        return reached
    when = np.array(rounds)
    later = np.searchsorted(when, when + reached.min_separation)  # the first own round in which one may come again
    gaps = (later - np.arange(when.size))[later < when.size]
    separation = int(gaps.min()) if gaps.size else when.size
    most, at = 1, int(later[0])
    while at < when.size:
        most, at = most + 1, int(later[at])
    return Participation(
        rounds=when.size, min_separation=separation, max_participations=min(most, reached.max_participations)
    )
