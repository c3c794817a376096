"""What was released, round by round, append-only; and the guarantee that follows from that alone.

A ledger records facts, whatever they are. The accountant reads it and refuses, with UnknownRelease, anything
for which it has no theorem: nothing is skipped, and a release that was made twice counts as unknown.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tacit.errors import AccountingError, UnknownRelease
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Record, strategy_from_record

MODEL_UPDATE = "model update"  # the only sequence of releases that is understood so far


@dataclass(frozen=True, kw_only=True)
class RoundRelease:
    """One noised sum that left the aggregator.

    `round` counts from 0; `what` names the sequence it belongs to; `strategy_record` is a strategy's
    `to_record()`, or None where no noise was added; `reports` clients were summed and `dropped` ones sent
    nothing usable.
    """

    round: int
    what: str
    strategy_record: Record | None
    clip_norm: float
    noise_multiplier: float
    reports: int
    dropped: int

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "RoundRelease":
        """What `to_record` wrote; UnknownRelease where a field is missing or one is unknown."""
        known = {field.name for field in fields(cls)}
        if record.keys() != known:
            raise UnknownRelease(
                f"a release with the fields {sorted(record)} is not understood, which needs exactly "
                f"{sorted(known)}; "
                "account it with the version that wrote it."
            )
        return cls(**record)


@dataclass(frozen=True)
class Ledger:
    """The releases of one run in the order in which they were made."""

    releases: tuple[RoundRelease, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "releases", tuple(self.releases))

    def add(self, release: RoundRelease) -> "Ledger":
        """The ledger with one more release at its end; this one stays as it is."""
        return Ledger((*self.releases, release))

    def guarantee(self, participation: Participation) -> Guarantee:
        """What the released sequence promises under `participation`.

        Understood is one sequence of "model update" over the rounds 0, 1, 2, ..., with one strategy, one clip
        norm and one noise multiplier; anything else is an UnknownRelease. A run still under way is accounted
        as the rounds it has released: of a participation that speaks of more, what it says of those.
        AccountingError for an empty ledger, or a participation of fewer rounds than were released.
        """
        if not self.releases:
            raise AccountingError("the ledger is empty, and nothing promises nothing; account after a first round.")
        first = self.releases[0]
        for expected, release in enumerate(self.releases):
            _understand(release, expected, first)
        strategy = None if first.strategy_record is None else strategy_from_record(first.strategy_record)
        return Guarantee(
            participation=participation.first(len(self.releases)),
            strategy=strategy,
            clip_norm=first.clip_norm,
            noise_multiplier=first.noise_multiplier,
        )

    def zcdp(self, participation: Participation) -> float:
        """rho of everything released so far; 0 while that is nothing."""
        return self.guarantee(participation).zcdp if self.releases else 0.0


def _understand(release: RoundRelease, expected: int, first: RoundRelease) -> None:
    """UnknownRelease unless `release` continues the sequence that `first` began."""
    if release.what != MODEL_UPDATE:
        raise UnknownRelease(
            f"the ledger holds a release of {release.what!r} (round {release.round}), and only "
            f"{MODEL_UPDATE!r} can be "
            "accounted; account it with the version that wrote it."
        )
    if release.round != expected:
        raise UnknownRelease(
            f"round {release.round} stands in the ledger where round {expected} belongs, and only rounds "
            "released once "
            "each and in order can be accounted; the noise of a repeated or missing round is not what was "
            "declared."
        )
    for name in ("strategy_record", "clip_norm", "noise_multiplier"):
        here, before = getattr(release, name), getattr(first, name)
        if here != before:
            raise UnknownRelease(
                f"{name} is {here} in round {release.round} and was {before} in round 0, and only a "
                "sequence with one "
                "value can be accounted; start a new run where a setting of the guarantee changes."
            )
