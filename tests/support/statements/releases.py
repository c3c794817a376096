"""Releases that ledgers and statements are made of."""

from dataclasses import replace
from typing import Any

from tacit.privacy import Independent
from tacit.privacy.local_anonymity import absolute_threshold
from tacit.privacy.local_subset_selection import SubsetNumbers
from tacit.statements import LocalReports, NoisedSum
from tacit.statements.local_releases import PREFIX_VOTES, WORD_COUNTS


def counted(layer: int, users: int, first_user: int, **changes: Any) -> LocalReports:
    """A histogram of 5 cells from reports with epsilon 2, one a user."""
    numbers = SubsetNumbers(5, 2.0)
    usual = LocalReports(
        what="evaluation histogram",
        turn=1,
        layer=layer,
        first_user=first_user,
        users=users,
        contributions=1,
        domain=5,
        local_epsilon=2.0,
        randomizer="subset-selection",
        own_support=numbers.p,
        other_support=numbers.q,
        least_votes=0,
        prefixes=0,
        words=0,
    )
    return replace(usual, **changes)


def noised(step: int, histograms: int, clients: int) -> NoisedSum:
    """Histograms with noise multiplier 3: every count has standard deviation 3 sqrt(histograms)."""
    return NoisedSum(
        round=step,
        what="evaluation histogram",
        strategy_record=Independent().to_record(),
        clip_norm=histograms**0.5,
        noise_multiplier=3.0,
        reports=clients,
        dropped=0,
    )


def release(first_user: int, users: int, domain: int, **changed: Any) -> LocalReports:
    """Prefix votes by Subset Selection with epsilon 4, as a discovery writes them."""
    numbers = SubsetNumbers(domain, 4.0)
    settings: dict[str, Any] = dict(
        what=PREFIX_VOTES,
        turn=1,
        layer=1,
        contributions=2,
        local_epsilon=4.0,
        randomizer="subset-selection",
        own_support=numbers.p,
        other_support=numbers.q,
        least_votes=absolute_threshold(numbers.p, numbers.q, 2 * users, min(5, users), 1e-3),
        prefixes=10,
        words=0,
    )
    return LocalReports(**{**settings, **dict(first_user=first_user, users=users, domain=domain), **changed})


LAYERS = (
    release(0, 3000, 101),
    release(3000, 2000, 1001, layer=2, words=3),
    release(5000, 2500, 101, turn=2),
    release(7500, 1000, 5, what=WORD_COUNTS, turn=0, layer=0, least_votes=0, prefixes=0, words=3),
)
