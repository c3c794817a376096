"""Shares: enough rebuild, fewer tell nothing, and the loops are the polynomials of Python's integers."""

import itertools
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError, ProtocolError
from tacit.secure_aggregation import secrets, shares
from tacit.secure_aggregation.masked import secret_shares
from tacit.secure_aggregation.shares import PRIME

SECRET = bytes(range(32))


def slow_value(points: Sequence[int], values: Sequence[int], at: int) -> int:
    """The value at `at` of the polynomial through these points modulo p, by Lagrange's formula as it is printed."""
    total = 0
    for i, point in enumerate(points):
        term = values[i]
        for other in (*points[:i], *points[i + 1 :]):
            term = term * (at - other) * pow(point - other, -1, PRIME) % PRIME
        total += term
    return total % PRIME


@given(seed=st.integers(0, 2**32), parties=st.integers(1, 12), packed=st.integers(1, 4), columns=st.integers(0, 3))
def test_enough_shares_rebuild_and_lie_on_one_polynomial(seed: int, parties: int, packed: int, columns: int) -> None:
    chance = random.Random(seed)
    parties += packed - 1
    threshold = chance.randint(1, parties - packed + 1)
    points = chance.sample(range(1, 1000), parties)
    hidden = np.array(
        [[chance.choice([0, 1, PRIME - 1, chance.randrange(PRIME)]) for _ in range(columns)] for _ in range(packed)],
        np.uint32,
    ).reshape(packed, columns)
    held = shares.split(hidden, points, threshold, chance.randbytes, packed=packed)
    enough = threshold + packed - 1
    chosen = chance.sample(range(parties), enough)
    rebuilt = shares.rebuilt(held[chosen], [points[each] for each in chosen], packed=packed)
    assert np.array_equal(rebuilt, hidden)
    for column in range(columns):
        values = [int(held[each, column]) for each in chosen]
        nodes = [points[each] for each in chosen]
        assert [slow_value(nodes, values, -1 - row) for row in range(packed)] == hidden[:, column].tolist()
        assert [slow_value(nodes, values, point) for point in points] == held[:, column].tolist()


@given(seed=st.integers(0, 2**32), parties=st.integers(1, 70))
def test_a_secret_of_32_bytes_comes_back(seed: int, parties: int) -> None:
    chance = random.Random(seed)
    secret = chance.choice([chance.randbytes(32), bytes(32), b"\xff" * 32])
    threshold = chance.randint(1, parties)
    held = secret_shares.split_secret(secret, range(1, parties + 1), threshold, chance.randbytes)
    assert {len(share) for share in held} == {secret_shares.SHARE_BYTES}
    chosen = chance.sample(range(parties), threshold)
    assert secret_shares.rebuilt_secret([held[each] for each in chosen], [each + 1 for each in chosen]) == secret


@pytest.mark.parametrize("packed", [1, 2])
def test_fewer_than_the_threshold_hold_uniform_numbers_whatever_the_secret(packed: int) -> None:
    """In a field one could count all polynomials; in this one, one checks that shares of 0 and of p - 1 look alike."""
    points, threshold, draw = [1, 2, 3, 4], 3, secrets.seeded(SECRET)
    for value in (0, PRIME - 1):
        hidden = np.full((packed, 40_000), value, np.uint32)
        held = shares.split(hidden, points, threshold, draw, packed=packed)
        for one, other in itertools.combinations(range(4), 2):
            cells = Counter(zip((held[one] >> 28).tolist(), (held[other] >> 28).tolist(), strict=True))
            expected = 40_000 / 64
            chi_squared = sum(
                (cells[place] - expected) ** 2 / expected for place in itertools.product(range(8), repeat=2)
            )
            assert chi_squared < 120  # 63 degrees of freedom: 1e-5
        # The test sees a secret: one share more, combined, is constant.
        enough = threshold + packed - 1
        assert np.unique(shares.rebuilt(held[:enough], points[:enough], packed=packed)).tolist() == [value]


def test_any_secret_fits_too_few_shares() -> None:
    """For every secret there is a share of one more party that makes it the secret: fewer than t tell nothing."""
    held = secret_shares.split_secret(SECRET, [1, 2, 3], 3, secrets.seeded(SECRET))
    known = [shares.elements(share, secret_shares.LIMBS) for share in held[:2]]
    for other in (bytes(32), b"\xff" * 32, bytes(reversed(SECRET))):
        number = int.from_bytes(other, "little")
        limbs = [number >> 30 * limb & (2**30 - 1) for limb in range(secret_shares.LIMBS)]
        third = [
            slow_value([-1, 1, 2], [limb, int(known[0][at]), int(known[1][at])], 3) for at, limb in enumerate(limbs)
        ]
        made_up = np.array(third, np.uint32).tobytes()
        assert secret_shares.rebuilt_secret([*held[:2], made_up], [1, 2, 3]) == other


def test_shares_of_no_secret_are_noticed() -> None:
    held = secret_shares.split_secret(b"\xff" * 32, [1, 2, 3], 2, secrets.seeded(SECRET))
    with pytest.raises(ProtocolError, match="not those of one secret"):
        secret_shares.rebuilt_secret([held[0], held[0][:-4] + held[1][-4:]], [1, 2])


@pytest.mark.parametrize("data", [b"", bytes(35), bytes(37), PRIME.to_bytes(4, "little") * 9, b"\xff" * 36])
def test_what_is_no_share_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        secret_shares.rebuilt_secret([data], [1])


@pytest.mark.parametrize("points", [[], [0, 1], [1, 1], [-1, 2], [1, 2**24 + 1]])
def test_parties_have_numbers_of_their_own(points: list[int]) -> None:
    with pytest.raises(InputError, match="numbered from 1"):
        secret_shares.split_secret(SECRET, points, 1, secrets.seeded(SECRET))
    with pytest.raises(InputError, match="numbered from 1"):
        shares.rebuilt(np.zeros((len(points), 1), np.uint32), points)


def test_thresholds_and_secrets_that_cannot_be_are_refused() -> None:
    draw = secrets.seeded(SECRET)
    for threshold, packed, rows in [(0, 1, 1), (4, 1, 1), (3, 2, 2), (1, 2, 1)]:
        with pytest.raises(InputError, match="do not go together"):
            shares.split(np.zeros((rows, 1), np.uint32), [1, 2, 3], threshold, draw, packed=packed)
    with pytest.raises(InputError, match=f"must be below {PRIME}"):
        shares.split(np.full((1, 1), PRIME, np.uint32), [1, 2, 3], 2, draw)
    with pytest.raises(InputError, match="one of each"):
        shares.rebuilt(np.zeros((2, 1), np.uint32), [1, 2, 3])


def test_random_elements_are_below_the_prime() -> None:
    words = iter([b"\xff\xff\xff\x7f" + bytes(4) + b"\xff\xff\xff\xff", b"\x05\0\0\0\xff\xff\xff\x7f", b"\x06\0\0\0"])
    assert shares.uniform(3, lambda _: next(words)).tolist() == [5, 0, 6]


def test_sums_of_many_products_do_not_overflow() -> None:
    weights = np.full((1, 5000), PRIME - 1, np.uint32)
    values = np.full((5000, 2), PRIME - 1, np.uint32)
    assert shares.combined(weights, values).tolist() == [[5000, 5000]]
