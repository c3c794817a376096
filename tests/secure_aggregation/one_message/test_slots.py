"""Coordinates in slots of coefficients, beside whole numbers in Python."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError, RoundAborted
from tacit.secure_aggregation.one_message.lattice import PUBLISHED, LatticeParameters, error_bound, published
from tacit.secure_aggregation.one_message.opened_slots import opened
from tacit.secure_aggregation.one_message.ring import as_limbs
from tacit.secure_aggregation.one_message.slots import Slots

SMALL, MIDDLE = published("willow-4096"), published("willow-8192")


def coefficients(slots: Slots, vector: list[int], index: int, checks: int = 1) -> list[int]:
    """The coefficients of a polynomial: checks, coordinates, zeros, a slot after the other."""
    part = vector[index * slots.capacity : (index + 1) * slots.capacity]
    values = [checks] * slots.checks + part
    values += [0] * (slots.parameters.degree * slots.per_coefficient - len(values))
    each = slots.per_coefficient
    return [
        sum(value << (slots.width * at) for at, value in enumerate(values[start : start + each]))
        for start in range(0, len(values), each)
    ]


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_sums_of_many_are_opened(data: st.DataObject, seed: int) -> None:
    largest = data.draw(st.integers(1, 2**26))
    reports = data.draw(st.integers(1, min(2**22, (2**31 - 1) // largest)))
    many = data.draw(st.integers(0, 3))
    margin = data.draw(st.integers(1, (2**31 - 1) // (2 * many))) if many else 0
    parameters, dimension = data.draw(st.sampled_from([SMALL, MIDDLE])), data.draw(st.integers(1, 70_000))
    slots = Slots(parameters, dimension, largest, reports, many, margin)
    words = np.random.default_rng(seed)
    count = data.draw(st.integers(1, min(3, reports)))
    own = words.integers(0, largest, (count, slots.dimension), np.uint32, endpoint=True)
    noise = words.integers(-margin, margin, (many, slots.dimension), endpoint=True)
    clients = np.concatenate([own, (noise + margin).astype(np.uint32)])
    index = data.draw(st.integers(0, slots.polynomials - 1))
    each = [coefficients(slots, client.tolist(), index) for client in clients]
    errors = words.integers(-slots.error_bound, slots.error_bound, slots.parameters.degree, endpoint=True).tolist()
    sums = zip(*each, strict=True)
    total = [sum(values) + (error << slots.parameters.plain_bits) for values, error in zip(sums, errors, strict=True)]
    limbs = np.stack([as_limbs(value) for value in total])
    assert np.array_equal(slots.plain(clients[0], index), np.stack([as_limbs(value) for value in each[0]]))
    expected = (own.sum(axis=0, dtype=np.int64) + noise.sum(axis=0)) % 2**32
    found = opened(slots, limbs, index, count).tolist()
    assert found == expected[index * slots.capacity : (index + 1) * slots.capacity].tolist()


@pytest.mark.parametrize(
    ("name", "reports", "many", "margin"),
    [
        pytest.param(name, *sizes, marks=() if (place + at) % 2 == 0 else pytest.mark.nightly)
        for place, name in enumerate(PUBLISHED)
        for at, sizes in enumerate([(20, 2, 150), (1, 1, 1), (3, 5, 2**28), (2**22, 100, 7)])
    ],
)
def test_sums_are_exact_at_the_edge_of_their_slots(name: str, reports: int, many: int, margin: int) -> None:
    """All at their largest, all at their least, and both in turn, under the largest errors that may be."""
    parameters: LatticeParameters = PUBLISHED[name]
    slots = Slots(parameters, 700, 200, reports, many, margin)
    assert slots.most(reports) < 2**slots.width <= 2 * slots.most(reports)
    for ends in ((1,), (0,), (0, 1)):
        end = np.resize(ends, slots.dimension)
        vector = [slots.most(reports) * int(each) for each in end]
        total = coefficients(slots, vector, 0, checks=reports + many)
        for error in (slots.error_bound, -slots.error_bound):
            limbs = np.stack([as_limbs(value + (error << parameters.plain_bits)) for value in total])
            noise = np.where(end, many * margin, -many * margin)
            assert opened(slots, limbs, 0, reports).tolist() == ((200 * reports * end + noise) % 2**32).tolist()


def test_the_errors_of_wider_slots_stay_within_what_their_parameters_open() -> None:
    """Two bits more are more polynomials, whose union the bound counts, and contributors, whose errors it counts."""
    large = published("willow-16384")
    plain, noisy = Slots(large, 2_424_832, 72, 6_500), Slots(large, 2_424_832, 72, 6_500, 3, 376_692)
    assert (plain.width, plain.per_coefficient, plain.polynomials) == (19, 11, 14)
    assert (noisy.width, noisy.per_coefficient, noisy.polynomials) == (22, 10, 15)
    assert plain.error_bound < noisy.error_bound == error_bound(6_503, 15 * 2**14) < large.most_error
    assert noisy.checks * noisy.width >= 128


SLOTS = Slots(SMALL, 5000, 200, 20)


def spoilt(position: int, by: int) -> None:
    """Open a sum of two whose coefficient at `position` was changed."""
    total = [2 * value for value in coefficients(SLOTS, [0] * 5000, 0)]
    total[position] += by
    opened(SLOTS, np.stack([as_limbs(value) for value in total]), 0, 2)


@pytest.mark.parametrize(
    ("position", "by"),
    [
        (0, 1),  # a check
        (2000, 1 << (SLOTS.width * SLOTS.per_coefficient)),  # a spare bit
        (1250, 2 * 200 + 1),  # a coordinate beyond two clients' largest
        (4095, 1),  # behind the last coordinate
        (7, (SLOTS.error_bound + 1) << SMALL.plain_bits),
        (7, -(SLOTS.error_bound + 1) << SMALL.plain_bits),
    ],
)
def test_a_spoilt_sum_does_not_open(position: int, by: int) -> None:
    spoilt(7, SLOTS.error_bound << SMALL.plain_bits)
    with pytest.raises(RoundAborted, match="does not open: part 1 of 1"):
        spoilt(position, by)


def test_the_sum_of_another_number_of_clients_does_not_open() -> None:
    limbs = np.stack([as_limbs(value) for value in coefficients(SLOTS, [0] * 5000, 0)])
    assert opened(SLOTS, limbs, 0, 1).tolist() == [0] * 5000
    with pytest.raises(RoundAborted, match="does not open"):
        opened(SLOTS, limbs, 0, 2)


def test_what_checks_are_worth() -> None:
    """M uniform below t, whatever q is: each check slot is right with probability 2^-width."""
    for slots in (SLOTS, Slots(published("willow-16384"), 2_424_832, 72, 6_500)):
        assert Fraction(1, 2**slots.width) ** slots.checks <= Fraction(1, 2**128)


def test_the_size_of_a_keyboard_model() -> None:
    slots = Slots(published("willow-16384"), 2_424_832, 72, 6_500)
    assert (slots.width, slots.per_coefficient, slots.polynomials) == (19, 11, 14)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ((0, 100, 50), "dimension=0"),
        ((5, 0, 50), "largest=0"),
        ((5, 100, 0), "reports=0"),
        ((5, 2**16, 2**16), "33 bits"),
        ((5, 1, 10**9), "more than willow-4096 can open"),
        ((5, 1, 50, 10**9, 1), "more than willow-4096 can open"),
        ((5, 100, 50, 1, 0), "a margin of at least 1"),
        ((5, 100, 50, 0, 9), "and 0 where there are none"),
        ((5, 100, 50, -1, 9), "contributors=-1"),
        ((5, 100, 50, 4, 2**29), "noise of 4 parties to 536,870,912 each sum to 33 bits.*fewer contributors or less"),
    ],
)
def test_settings_that_go_together_in_no_way(settings: tuple[int, ...], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Slots(SMALL, *settings)


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        (np.zeros(4999, np.uint32), "uint32[4999]"),
        (np.zeros(5000, np.int64), "int64[5000]"),
        (np.full(5000, 201, np.uint32), "201"),
        (np.full(5000, 2**32 - 1, np.uint32), "up to 200"),
    ],
)
def test_vectors_that_were_not_promised(vector: np.ndarray, reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)):
        SLOTS.check(vector)


def test_a_contributors_vector_reaches_twice_its_margin() -> None:
    slots = Slots(SMALL, 3, 200, 20, 1, 90)
    slots.check(np.full(3, 180, np.uint32), noise=True)
    slots.check(np.full(3, 200, np.uint32))
    with pytest.raises(InputError, match="a coordinate is 181, and this round takes numbers up to 180"):
        slots.check(np.full(3, 181, np.uint32), noise=True)
