"""What a campaign for new words released, group of people by group, append-only; and the guarantee that follows.

A ledger records facts, whatever they are. The accountant reads all of it and refuses, with UnknownRelease, anything
for which it has no theorem: nothing is skipped. Nobody may be in two groups, because only then nothing adds up.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tacit.errors import AccountingError, UnknownRelease
from tacit.privacy.local_anonymity import rare_votes_tail
from tacit.privacy.local_guarantee import Group, LocalGuarantee, Record
from tacit.privacy.local_subset_selection import SubsetNumbers
from tacit.statements.facts import OPERATING_SYSTEM

PREFIX_VOTES = "prefix votes"  # the answers of a layer with most votes: prefixes to go on with, and words
WORD_COUNTS = "word counts"  # how often each word found before is typed
RANDOMIZERS = ("subset-selection", "projective-geometry", "k-ary")


@dataclass(frozen=True, kw_only=True)
class AnswersRelease:
    """One sum of randomized answers that left the aggregator, and what was output of it.

    The users `first_user` .. `first_user + users - 1` of the campaign were asked, each for `contributions` reports of
    one of `domain` answers, each report by the `randomizer` with `local_epsilon`; a report supports its own value
    with probability `own_support`, any given other with `other_support`. Of prefix votes, what `turn` (the pass) and
    `layer` they are, from 1, and that `prefixes` and `words` were kept, with `least_votes` or more; of word counts,
    how many `words` were counted, and zeros.
    """

    what: str
    turn: int
    layer: int
    first_user: int
    users: int
    contributions: int
    domain: int
    local_epsilon: float
    randomizer: str
    own_support: float
    other_support: float
    least_votes: int
    prefixes: int
    words: int

    @property
    def reports(self) -> int:
        """How many reports were summed."""
        return self.users * self.contributions

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Any) -> "AnswersRelease":
        """What `to_record` wrote; UnknownRelease for anything else."""
        kinds = {field.name: field.type for field in fields(cls)}
        if not isinstance(record, Mapping) or record.keys() != kinds.keys():
            found = sorted(map(str, record)) if isinstance(record, Mapping) else repr(record)
            raise UnknownRelease(
                f"a release with the fields {found} is not understood, which needs exactly {sorted(kinds)}; account "
                "it with the version that wrote it."
            )
        for name, kind in kinds.items():
            given = record[name]
            real = kind is float and isinstance(given, int | float) and math.isfinite(given)
            if isinstance(given, bool) or not (real or (kind is not float and isinstance(given, kind))):  # type: ignore[arg-type]  # annotations are classes here
                raise UnknownRelease(f"a release has {name}={given!r}, which is no {kind}; look at who wrote it.")
        return cls(**record)


@dataclass(frozen=True)
class CampaignLedger:
    """The releases of one campaign."""

    releases: tuple[AnswersRelease, ...] = ()

    def add(self, release: AnswersRelease) -> "CampaignLedger":
        """The ledger with one more release at its end; this one stays as it is."""
        return CampaignLedger((*self.releases, release))

    @property
    def users(self) -> int:
        """How many users were asked, in all groups."""
        return sum(release.users for release in self.releases)

    def guarantee(
        self, *, central_delta: float, randomness: str = OPERATING_SYSTEM, resampled: bool = False
    ) -> LocalGuarantee:
        """What everything in the ledger promises: a pure function of it, wherever the answers came from.

        All reports have one local epsilon, number of contributions and randomizer; each user is in one group, and each
        layer of a pass was released once. UnknownRelease where that is not so, or for a release of an unknown kind;
        AccountingError for an empty ledger, or a user in two groups.
        """
        if not self.releases:
            raise AccountingError("the ledger is empty, and nothing promises nothing; account after a first layer.")
        first = self.releases[0]
        for release in self.releases:
            for name in ("local_epsilon", "contributions", "randomizer"):
                if getattr(release, name) != getattr(first, name):
                    raise UnknownRelease(
                        f"{name} is {getattr(release, name)} in {_named(release)} and {getattr(first, name)} in "
                        f"{_named(first)}, and a campaign has one value; account each part by itself."
                    )
            _check(release)
        self._check_once()
        return LocalGuarantee(
            item_epsilon=first.local_epsilon,
            contributions=first.contributions,
            groups=tuple(Group(release.users, release.domain) for release in self.releases),
            central_delta=central_delta,
            randomizer="subset-selection" if first.randomizer == "subset-selection" else "any",
            randomness=randomness,
            resampled=resampled,
        )

    def rare_output(self, k: int) -> float:
        """The probability, at most, that a given string of fewer than k contributors is output.

        A string is voted on in one layer of each pass, so the worst layers of the passes add up (Boole's inequality).
        """
        worst: dict[int, float] = {}
        for release in self.releases:
            if release.what == PREFIX_VOTES:
                p, q = release.own_support, release.other_support
                tail = rare_votes_tail(p, q, release.reports, k, release.least_votes)
                worst[release.turn] = max(tail, worst.get(release.turn, 0.0))
        return min(1.0, math.fsum(worst.values()))

    def _check_once(self) -> None:
        """UnknownRelease for a layer that was released twice, AccountingError for a user in two groups."""
        seen: dict[tuple[str, int, int], AnswersRelease] = {}
        for release in self.releases:
            key = (release.what, release.turn, release.layer)
            if key in seen:
                raise UnknownRelease(f"{_named(release)} stands in the ledger twice; a layer is released once.")
            seen[key] = release
        for before, release in itertools.pairwise(sorted(self.releases, key=lambda each: each.first_user)):
            if release.first_user < before.first_user + before.users:
                raise AccountingError(
                    f"user {release.first_user} was asked in {_named(before)} and again in {_named(release)}, and "
                    "groups that share users have no guarantee by disjointness; ask each user once."
                )


def _check(release: AnswersRelease) -> None:
    """UnknownRelease unless it is of a kind, a randomizer and numbers that have a theorem."""
    if release.what not in (PREFIX_VOTES, WORD_COUNTS):
        raise UnknownRelease(
            f"the ledger holds a release of {release.what!r}, which is neither {PREFIX_VOTES!r} nor {WORD_COUNTS!r}; "
            "account it with the version that wrote it."
        )
    if release.randomizer not in RANDOMIZERS:
        raise UnknownRelease(
            f"{_named(release)} came from {release.randomizer!r}, which is none of {', '.join(RANDOMIZERS)}."
        )
    least = 1 if release.what == PREFIX_VOTES else 0
    if min(release.turn, release.layer, release.least_votes) < least or min(release.first_user, release.users) < 0:
        raise UnknownRelease(f"{_named(release)} has a number below what it counts from; look at who wrote the ledger.")
    p, q = release.own_support, release.other_support
    # q follows from 1 - p, which is known to 2^-53: at epsilon 30 that is a part in ten thousand of it.
    if not 0 < q < p <= 1 or p > (q + 2**-52) * math.exp(release.local_epsilon) * (1 + 1e-9):
        raise UnknownRelease(f"{_named(release)}: support {p:g} and {q:g} are not of a randomizer with its epsilon.")
    if release.randomizer == "subset-selection":
        numbers = SubsetNumbers(release.domain, release.local_epsilon)
        if not (math.isclose(p, numbers.p, rel_tol=1e-9) and math.isclose(q, numbers.q, rel_tol=1e-9)):
            raise UnknownRelease(f"{_named(release)}: support {p:g} and {q:g} are not those of Subset Selection.")


def _named(release: AnswersRelease) -> str:
    if release.what == PREFIX_VOTES:
        return f"layer {release.layer} of pass {release.turn}"
    return f"the {release.what}"
