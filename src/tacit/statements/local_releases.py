"""Sums of reports that devices randomised themselves, group of users by group; and the guarantee that follows.

A ledger records facts, whatever they are. The accountant reads all of it and refuses, with UnknownRelease, anything
for which it has no theorem: nothing is skipped. Nobody may be in two groups, because only then nothing adds up.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import AccountingError, UnknownRelease
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.privacy.local_anonymity import rare_votes_tail
from tacit.privacy.local_guarantee import PROVED, Group, LocalGuarantee
from tacit.privacy.local_supports import SUPPORTS

PREFIX_VOTES = "prefix votes"  # the answers of a layer with most votes: prefixes to go on with, and words
WORD_COUNTS = "word counts"  # how often each word found before is typed
LARGEST_EPSILON = 700  # e^709 is the largest number of float64; a hundredth of it protects nobody
EVALUATION_HISTOGRAM = "evaluation histogram"  # how many users are in each cell; of noised sums, too


@dataclass(frozen=True, kw_only=True)
class LocalReports:
    """One sum of randomized answers that left the aggregator, and what was output of it.

    The users `first_user` .. `first_user + users - 1` of the run were asked, each for `contributions` reports of
    one of `domain` answers, each report by the `randomizer` with `local_epsilon`; a report supports its own value
    with probability `own_support`, any given other with `other_support`. Of prefix votes, what `turn` (the pass) and
    `layer` they are, from 1, and that `prefixes` and `words` were kept, with `least_votes` or more; of word counts,
    how many `words` were counted, and zeros. Of an evaluation histogram `turn` is the step, `layer` which of the step's
    histograms it is, both from 1, and the others zeros.
    """

    kind: ClassVar[str] = "local reports"

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

    def __post_init__(self) -> None:
        for name, most in (("local_epsilon", LARGEST_EPSILON), ("own_support", 1), ("other_support", 1)):
            if not 0 < getattr(self, name) <= most:
                raise UnknownRelease(f"local reports have {name}={getattr(self, name)}; look at who wrote the ledger.")


def local_guarantee(
    releases: Sequence[LocalReports],
    *,
    central_delta: float,
    randomness: str = OPERATING_SYSTEM,
    resampled: bool = False,
) -> LocalGuarantee:
    """What sums of local reports promise together: a pure function of them, wherever the reports came from.

    All reports have one local epsilon, number of contributions and randomizer; each user is in one group, and each
    layer of a pass was released once. A question that was put to nobody releases nothing. UnknownRelease where that is
    not so, or for a release of an unknown kind; AccountingError where nothing was released, or a user is in two groups.
    """
    if not any(release.users for release in releases):
        raise AccountingError("the ledger is empty, and nothing promises nothing; account after a first layer.")
    first = releases[0]
    for release in releases:
        for name in ("local_epsilon", "contributions", "randomizer"):
            if getattr(release, name) != getattr(first, name):
                raise UnknownRelease(
                    f"{name} is {getattr(release, name)} in {_named(release)} and {getattr(first, name)} in "
                    f"{_named(first)}, and a run has one value; account each part by itself."
                )
        _check(release)
    _check_once(releases)
    return LocalGuarantee(
        item_epsilon=first.local_epsilon,
        contributions=first.contributions,
        groups=tuple(Group(release.users, release.domain) for release in releases if release.users),
        central_delta=central_delta,
        randomizer=PROVED[first.randomizer],
        randomness=randomness,
        resampled=resampled,
    )


def rare_output(releases: Iterable[LocalReports], k: int) -> float:
    """The probability, at most, that a given string of fewer than k contributors is output.

    A string is voted on in one layer of each pass, so the worst layers of the passes add up (Boole's inequality).
    """
    worst: dict[int, float] = {}
    for release in releases:
        if release.what == PREFIX_VOTES:
            p, q = release.own_support, release.other_support
            tail = rare_votes_tail(p, q, release.reports, k, release.least_votes)
            worst[release.turn] = max(tail, worst.get(release.turn, 0.0))
    return min(1.0, math.fsum(worst.values()))


def digest_of_outputs(settings: Mapping[str, Any], steps: Iterable[tuple[str, str]]) -> str:
    """The SHA-256 of what a run was asked and of what it output, step by step: (name of its file, SHA-256 of that)."""
    asked = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    lines = (f"{name} {digest}\n" for name, digest in (("settings", asked), *steps))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _check_once(releases: Sequence[LocalReports]) -> None:
    """UnknownRelease for a layer that was released twice, AccountingError for a user in two groups."""
    seen: set[tuple[str, int, int]] = set()
    for release in releases:
        key = (release.what, release.turn, release.layer)
        if key in seen:
            raise UnknownRelease(f"{_named(release)} stands in the ledger twice; a layer is released once.")
        seen.add(key)
    for before, release in itertools.pairwise(sorted(releases, key=lambda each: each.first_user)):
        if release.first_user < before.first_user + before.users:
            raise AccountingError(
                f"user {release.first_user} was asked in {_named(before)} and again in {_named(release)}, and "
                "groups that share users have no guarantee by disjointness; ask each user once."
            )


def _check(release: LocalReports) -> None:
    """UnknownRelease unless it is of a kind, a randomizer and numbers that have a theorem."""
    kinds = (PREFIX_VOTES, WORD_COUNTS, EVALUATION_HISTOGRAM)
    if release.what not in kinds:
        raise UnknownRelease(
            f"the ledger holds a release of {release.what!r}, which is none of {', '.join(map(repr, kinds))}; "
            "account it with the version that wrote it."
        )
    if release.randomizer not in PROVED:
        raise UnknownRelease(
            f"{_named(release)} came from {release.randomizer!r}, which is none of {', '.join(PROVED)}."
        )
    least = 1 if release.what == PREFIX_VOTES else 0
    numbered = 0 if release.what == WORD_COUNTS else 1
    kept = release.prefixes + release.words
    counts = (
        *(release.least_votes - least, release.first_user, release.users, release.contributions - 1),
        *(release.domain - 2, release.prefixes, release.words, release.turn - numbered, release.layer - numbered),
    )
    if min(counts) < 0 or max(counts) > 2**53 or (not numbered and (release.turn or release.layer)):
        raise UnknownRelease(
            f"{_named(release)} has a number below what it counts from, or above 2^53; look at who wrote the ledger."
        )
    if kept > release.domain or (release.what == PREFIX_VOTES and kept and release.least_votes > release.reports):
        raise UnknownRelease(
            f"{_named(release)} kept {kept} of {release.domain} answers with {release.least_votes} or more of "
            f"{release.reports} votes, which cannot be; look at who wrote the ledger."
        )
    p, q = release.own_support, release.other_support
    # q follows from 1 - p, which is known to 2^-53: at epsilon 30 that is a part in ten thousand of it.
    if not 0 < q < p <= 1 or p > (q + 2**-52) * math.exp(release.local_epsilon) * (1 + 1e-9):
        raise UnknownRelease(f"{_named(release)}: support {p:g} and {q:g} are not of a randomizer with its epsilon.")
    kind = PROVED[release.randomizer]
    if kind != "any":  # its theorem is of these probabilities
        known = SUPPORTS[kind](release.domain, release.local_epsilon)
        if not (_is_close(p, known.p) and _is_close(q, known.q)):
            raise UnknownRelease(f"{_named(release)}: support {p:g} and {q:g} are not those of {release.randomizer}.")


def _is_close(recorded: float, known: float) -> bool:
    return math.isclose(recorded, known, rel_tol=1e-9, abs_tol=2**-52)


def _named(release: LocalReports) -> str:
    if release.what == PREFIX_VOTES:
        return f"layer {release.layer} of pass {release.turn}"
    if release.what == EVALUATION_HISTOGRAM:
        return f"histogram {release.layer} of step {release.turn}"
    return f"the {release.what}"
