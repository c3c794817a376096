"""Coordinates in slots of coefficients, beside whole numbers in Python."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError, RoundAborted
from tacit.secure_aggregation.lattice import published
from tacit.secure_aggregation.ring import as_limbs
from tacit.secure_aggregation.slots import Slots

SMALL, MIDDLE = published("willow-4096"), published("willow-8192")


def coefficients(slots: Slots, vector: list[int], index: int) -> list[int]:
    """The coefficients of a polynomial: checks, coordinates, zeros, a slot after the other."""
    part = vector[index * slots.capacity : (index + 1) * slots.capacity]
    values = [1] * slots.checks + part
    values += [0] * (slots.parameters.degree * slots.per_coefficient - len(values))
    each = slots.per_coefficient
    return [
        sum(value << (slots.width * at) for at, value in enumerate(values[start : start + each]))
        for start in range(0, len(values), each)
    ]


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_sums_of_many_are_opened(data: st.DataObject, seed: int) -> None:
    largest = data.draw(st.integers(1, 2**26))
    reports = data.draw(st.integers(1, min(2**22, (2**32 - 1) // largest)))
    slots = Slots(data.draw(st.sampled_from([SMALL, MIDDLE])), data.draw(st.integers(1, 70_000)), largest, reports)
    words = np.random.default_rng(seed)
    count = data.draw(st.integers(1, min(3, reports)))
    clients = words.integers(0, largest, (count, slots.dimension), np.uint32, endpoint=True)
    index = data.draw(st.integers(0, slots.polynomials - 1))
    each = [coefficients(slots, client.tolist(), index) for client in clients]
    errors = words.integers(-slots.error_bound, slots.error_bound, slots.parameters.degree, endpoint=True).tolist()
    sums = zip(*each, strict=True)
    total = [sum(values) + (error << slots.parameters.plain_bits) for values, error in zip(sums, errors, strict=True)]
    limbs = np.stack([as_limbs(value) for value in total])
    assert np.array_equal(slots.plain(clients[0], index), np.stack([as_limbs(value) for value in each[0]]))
    expected = clients.sum(axis=0, dtype=np.uint64)[index * slots.capacity : (index + 1) * slots.capacity]
    assert slots.opened(limbs, index, count).tolist() == expected.tolist()


SLOTS = Slots(SMALL, 5000, 200, 20)


def spoilt(position: int, by: int) -> None:
    """Open a sum of two whose coefficient at `position` was changed."""
    total = [2 * value for value in coefficients(SLOTS, [0] * 5000, 0)]
    total[position] += by
    SLOTS.opened(np.stack([as_limbs(value) for value in total]), 0, 2)


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
    assert SLOTS.opened(limbs, 0, 1).tolist() == [0] * 5000
    with pytest.raises(RoundAborted, match="does not open"):
        SLOTS.opened(limbs, 0, 2)


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
    ],
)
def test_settings_that_go_together_in_no_way(settings: tuple[int, int, int], reason: str) -> None:
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
