"""A discovery's ledger: the guarantee is a function of it, users count once, and what is not understood is refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.statements.releases import LAYERS, release

from tacit.errors import AccountingError, UnknownRelease
from tacit.privacy.local_anonymity import rare_votes_tail
from tacit.privacy.local_guarantee import Group, LocalGuarantee
from tacit.randomizers import KaryRandomizedResponse, ProjectiveGeometryResponse, Randomizer
from tacit.records import to_plain
from tacit.statements import Ledger, LocalReports
from tacit.statements.ledger import release_from
from tacit.statements.local_releases import PREFIX_VOTES, rare_output

LEDGER = Ledger(LAYERS)


def changed(position: int, **changes: Any) -> Ledger:
    return Ledger(tuple(replace(each, **changes) if at == position else each for at, each in enumerate(LAYERS)))


def test_the_guarantee_is_that_of_the_groups() -> None:
    groups = (Group(3000, 101), Group(2000, 1001), Group(2500, 101), Group(1000, 5))
    expected = LocalGuarantee(item_epsilon=4.0, contributions=2, groups=groups, central_delta=1e-8)
    assert LEDGER.local_guarantee(central_delta=1e-8) == expected
    seeded = LEDGER.local_guarantee(central_delta=1e-8, randomness="fixed seed 3", resampled=True)
    assert (seeded.randomness, seeded.resampled) == ("fixed seed 3", True)


@pytest.mark.parametrize("made", [ProjectiveGeometryResponse, KaryRandomizedResponse])
def test_every_randomizer_has_the_theorem_of_its_own(made: type[Randomizer]) -> None:
    """Recorded by what devices run; less is proved where only the local epsilon is known."""
    devices = [made(each.domain, each.local_epsilon) for each in LAYERS]
    layers = [
        replace(each, randomizer=of.name, own_support=of.p, other_support=of.q)
        for each, of in zip(LAYERS, devices, strict=True)
    ]
    own = Ledger(tuple(layers)).local_guarantee(central_delta=1e-8)
    assert own.randomizer == made.name and own.item_epsilon == 4.0
    assert own.central.epsilon_upper < replace(own, randomizer="any").central.epsilon_upper


def test_a_record_survives_and_order_does_not_matter() -> None:
    assert tuple(release_from(to_plain(each)) for each in LAYERS) == LAYERS
    assert Ledger().add(LAYERS[0]).add(LAYERS[1]).releases == LAYERS[:2]
    assert (
        Ledger(LAYERS[::-1]).local_guarantee(central_delta=1e-8).central
        == LEDGER.local_guarantee(central_delta=1e-8).central
    )


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=6))
def test_whoever_is_in_two_groups_is_found(groups: list[tuple[int, int]]) -> None:
    """Against counting every user."""
    asked = [user for first, users in groups for user in range(first, first + users)]
    ledger = Ledger(
        tuple(release(first, users, 101, turn=at + 1, least_votes=1) for at, (first, users) in enumerate(groups))
    )
    if len(set(asked)) == len(asked):
        assert ledger.local_guarantee(central_delta=1e-8).user_epsilon == 8.0
    else:
        with pytest.raises(AccountingError, match="ask each user once"):
            ledger.local_guarantee(central_delta=1e-8)


@pytest.mark.parametrize(
    ("position", "changes", "says"),
    [
        (1, {"what": "words as typed"}, "'words as typed', which is none of"),
        (1, {"randomizer": "a hash"}, "randomizer is a hash in layer 2 of pass 1"),
        (1, {"local_epsilon": 5.0}, "local_epsilon is 5.0 in layer 2 of pass 1"),
        (3, {"contributions": 3}, "contributions is 3 in the word counts"),
        (2, {"turn": 1}, "layer 1 of pass 1 stands in the ledger twice"),
        (1, {"own_support": 0.9}, "layer 2 of pass 1: support"),
        (1, {"own_support": 0.5, "randomizer": "k-ary"}, "randomizer is k-ary"),
        (1, {"layer": 0}, "below what it counts from"),
        (1, {"least_votes": 0}, "below what it counts from"),
    ],
)
def test_what_has_no_theorem_is_refused(position: int, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UnknownRelease, match=says):
        changed(position, **changes).local_guarantee(central_delta=1e-8)


def test_support_that_no_randomizer_of_that_epsilon_has_is_refused() -> None:
    """p > e^4 q, whatever the randomizer; and probabilities of another randomizer, for its theorem is of its own."""
    with pytest.raises(UnknownRelease, match="are not those of k-ary"):
        Ledger(tuple(replace(each, randomizer="k-ary") for each in LAYERS)).local_guarantee(central_delta=1e-8)
    loud = [replace(each, randomizer="k-ary", own_support=0.9, other_support=0.01) for each in LAYERS]
    with pytest.raises(UnknownRelease, match="not of a randomizer with its epsilon"):
        Ledger(tuple(loud)).local_guarantee(central_delta=1e-8)


def test_a_randomizer_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnknownRelease, match="came from 'a hash', which is none of"):
        Ledger(tuple(replace(each, randomizer="a hash") for each in LAYERS)).local_guarantee(central_delta=1e-8)


def test_an_empty_ledger_promises_nothing() -> None:
    with pytest.raises(AccountingError, match="empty"):
        Ledger().local_guarantee(central_delta=1e-8)


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {"what": PREFIX_VOTES},
        {**to_plain(LAYERS[0]), "more": 1},
        {**to_plain(LAYERS[0]), "users": 3000.5},
        {**to_plain(LAYERS[0]), "users": True},
        {**to_plain(LAYERS[0]), "own_support": "much"},
        {**to_plain(LAYERS[0]), "own_support": float("nan")},
    ],
    ids=repr,
)
def test_a_record_of_another_kind_is_refused(record: Any) -> None:
    with pytest.raises(UnknownRelease):
        release_from(record)


def test_rare_output_adds_up_over_passes_and_takes_the_worst_layer() -> None:
    def tail(each: LocalReports) -> float:
        return rare_votes_tail(each.own_support, each.other_support, each.reports, 5, each.least_votes)

    tails = [tail(each) for each in LAYERS[:3]]
    assert rare_output(LAYERS, 5) == pytest.approx(max(tails[:2]) + tails[2])
    assert (
        rare_output(LAYERS, 5) <= 2e-3 < rare_output(changed(1, least_votes=LAYERS[1].least_votes - 5).local_reports, 5)
    )
    assert rare_output(changed(0, least_votes=1).local_reports, 5) > 0.99
