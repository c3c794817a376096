"""The steps of the page's proof of the check: by counting in small fields, and by numbers for the real parameters.

`Small` is the check by its formulas, in whole numbers modulo any prime; one test holds it against the real loops.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.secure_aggregation.discrete_gaussian import WIDTH
from tacit.secure_aggregation.one_message.lattice import FAILURE_BITS, PUBLISHED, LatticeParameters
from tacit.secure_aggregation.one_message.report_check import (
    PICKS,
    TESTS,
    Challenge,
    as_row,
    check_range,
    check_values,
    code_sums,
    key_parts,
    opened_parts,
)
from tacit.secure_aggregation.secrets import seeded
from tacit.secure_aggregation.shares import PRIME, lagrange, split

Chances = npt.NDArray[np.float64]
SETS = pytest.mark.parametrize("parameters", list(PUBLISHED.values()), ids=lambda each: each.name)


# -- the check in any field --------------------------------------------------------------------------------------------


def interpolated(prime: int, nodes: list[int], values: list[int], at: int) -> int:
    """Of the polynomial of lowest degree, by Lagrange's formula."""
    total = 0
    for i, value in enumerate(values):
        weight = value
        for j, node in enumerate(nodes):
            if j != i:
                weight = weight * (at - node) * pow(nodes[i] - node, -1, prime) % prime
        total += weight
    return total % prime


@dataclass(frozen=True)
class Small:
    """One test and one sum of the code, of a key of `packed` numbers (one column), by the page's formulas.

    row: what a number of the key is multiplied with, sum_c sign_c alpha - v; gamma: sum_c sign_c gamma.
    """

    prime: int
    decryptors: int
    corrupt: int
    row: tuple[int, ...]
    gamma: int
    code: int

    @property
    def quorum(self) -> int:
        return (self.decryptors + self.corrupt) // 2 + 1

    @property
    def packed(self) -> int:
        return self.quorum - self.corrupt

    def shares(self, secrets: tuple[int, ...], free: tuple[int, ...]) -> list[int]:
        nodes = [-1 - each for each in range(self.quorum)]
        return [interpolated(self.prime, nodes, [*secrets, *free], k + 1) for k in range(self.decryptors)]

    def parts(self, shares: list[int], masks: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Of the first `quorum` decryptors: each one's sum of the code, then one of the test for each packed number."""
        found = []
        for share, (mask, *others) in zip(shares[: self.quorum], masks[: self.quorum], strict=True):
            tests = [(x * share - less) % self.prime for x, less in zip(self.row, others, strict=True)]
            found.append(((self.code * share + mask) % self.prime, *tests))
        return found

    def value(self, parts: list[tuple[int, ...]]) -> int:
        """y, between -p/2 and p/2."""
        nodes = [k + 1 for k in range(self.quorum)]
        of_key = [interpolated(self.prime, nodes, [each[1 + r] for each in parts], -1 - r) for r in range(self.packed)]
        found = (self.gamma - sum(of_key)) % self.prime
        return found - self.prime if found > self.prime // 2 else found


@given(seed=st.binary(min_size=32, max_size=32), decryptors=st.integers(2, 6), data=st.data())
@settings(max_examples=20, deadline=None)
def test_the_small_check_is_the_real_one(seed: bytes, decryptors: int, data: st.DataObject) -> None:
    """A ring of as many numbers as one column packs has one column; every test is compared, at p = 2^31 - 1."""
    corrupt = data.draw(st.integers(1, decryptors - 1))
    quorum = (decryptors + corrupt) // 2 + 1
    packed = quorum - corrupt
    draw, degree, points = seeded(seed), packed, [k + 1 for k in range(decryptors)]
    chance = np.random.default_rng(list(seed))
    alpha, gamma = chance.integers(0, PRIME, (2, degree)).astype(np.uint32)
    key, masks = (
        chance.integers(0, PRIME, degree).astype(np.uint32),
        chance.integers(0, PRIME, (quorum, TESTS * packed)),
    )
    shares = split(key.reshape(packed, 1), points, corrupt + 1, draw, packed=packed)[:quorum]
    challenge = Challenge.from_seed(draw(32), degree, 1)
    found = (key_parts(challenge, as_row(alpha)[None], 64, shares, packed).astype(np.int64) - masks) % PRIME
    code = code_sums(challenge, shares, np.zeros((quorum, 2), np.uint32))
    weights = lagrange(points[:quorum], [PRIME - 1 - each for each in range(packed)])
    values = check_values(challenge, gamma[None], opened_parts(found.astype(np.uint32), weights))
    for test in range(0, TESTS, 8):
        row, total = [64 - int(each) % 128 for each in challenge.factors[test]], 0
        for word in map(int, challenge.words[test]):
            i, sign = word * degree >> 64, (word & 1) - (word >> 1 & 1)
            total += sign * int(gamma[i])
            for m in range(degree):
                row[m] += sign * int(alpha[(i - m) % degree]) * (1 if m <= i else -1)
        small = Small(PRIME, decryptors, corrupt, tuple(row), total, int(challenge.code[0, 0]))
        mine = slice(test * packed, (test + 1) * packed)
        parts = small.parts(shares.ravel().tolist(), [(0, *each) for each in masks[:, mine].tolist()])
        assert [list(each[1:]) for each in parts] == found[:, mine].tolist()
        assert [each[0] for each in parts] == code[:, 0].tolist()
        assert small.value(parts) == values[test]


# -- it says nothing else ----------------------------------------------------------------------------------------------


Views = dict[int, tuple[tuple[list[int], list[int]], ...]]


def views(small: Small, key: tuple[int, ...], spy: int) -> Views:
    """What server and spy see, over all that the client draws but key and errors: each view once, and how often.

    Of the report the parts; of the spy's box all. Masks reach from -2 to 1, and S is 1; of shares, of masks of the
    code and of those of the test every polynomial is counted. By the spy's share, which comes once; given the share,
    what is of the code and what is of the test do not depend on each other.
    """
    p, quorum, packed, found = small.prime, small.quorum, small.packed, Views()
    polynomials = list(itertools.product(range(p), repeat=quorum))
    masks = {each: small.shares(each[:packed], each[packed:]) for each in polynomials}
    of_code = np.array(list(masks.values()))
    together = [
        (first, *others)
        for others in itertools.product(polynomials, repeat=packed - 1)
        for whole in range(-2, 2)
        for first in ends(polynomials, (whole - sum(each[r + 1] for r, each in enumerate(others))) % p)
    ]
    of_test = np.array([[masks[each] for each in ways] for ways in together])  # (ways, packed, decryptors)
    nodes = [k + 1 for k in range(quorum)]
    weights = np.array(
        [
            [interpolated(p, nodes, [int(each == k) for each in range(quorum)], -1 - r) for k in range(quorum)]
            for r in range(packed)
        ]
    )
    for free in itertools.product(range(p), repeat=small.corrupt):
        shares = np.array(small.shares(key, free))
        assert int(shares[spy]) not in found
        code = (small.code * shares[:quorum] + of_code[:, :quorum]) % p
        tests = (np.outer(small.row, shares[:quorum]) - of_test[:, :, :quorum]) % p
        values = (small.gamma - (tests * weights).sum((1, 2)) + 1) % p - 1
        kept = np.isin(values, (-1, 0))
        seen = (
            np.concatenate([code, of_code[:, [spy]]], axis=1),
            np.concatenate([tests[kept].reshape(-1, packed * quorum), of_test[kept][:, :, spy]], axis=1),
        )
        found[int(shares[spy])] = tuple(counted(each @ p ** np.arange(each.shape[1])) for each in seen)
    return found


def ends(polynomials: list[tuple[int, ...]], first: int) -> list[tuple[int, ...]]:
    return [each for each in polynomials if each[0] == first]


def counted(numbers: npt.NDArray[np.int64]) -> tuple[list[int], list[int]]:
    values, often = np.unique(numbers, return_counts=True)
    return values.tolist(), often.tolist()


@pytest.mark.parametrize(
    ("decryptors", "corrupt", "prime"), [(2, 1, 11), (3, 1, 7)], ids=["two decryptors", "two numbers packed"]
)
def test_two_keys_for_one_ciphertext_look_alike(decryptors: int, corrupt: int, prime: int) -> None:
    """Whatever T decryptors and the server see is as likely under one explanation of the ciphertexts as under another.

    Exactly, for keys and errors with |y - u| at most S = 1; and not beyond, where the page promises nothing.
    """
    quorum = (decryptors + corrupt) // 2 + 1
    row = (3, 5)[: quorum - corrupt]
    zero = (0,) * len(row)
    for gamma, code in ((1, 2), (0, 1)):
        small = Small(prime, decryptors, corrupt, row, gamma, code)
        keys = itertools.product(range(prime), repeat=len(row))
        sums = {key: (gamma - sum(x * s for x, s in zip(row, key, strict=True)) + 1) % prime - 1 for key in keys}
        near = [key for key, x in sums.items() if abs(x) <= 1]
        other, beyond = next(key for key in near if key != zero), next(key for key, x in sums.items() if x == 3)
        for spy in range(decryptors):
            seen = views(small, zero, spy)
            assert seen == views(small, other, spy) and len(seen) == prime
        assert seen != views(small, beyond, spy)


def test_a_mask_that_is_used_twice_would_tell() -> None:
    """The difference of two values under one mask is that of what they hide; so each try takes new ones."""
    one, two = (Small(11, 2, 1, (3,), gamma, 2) for gamma in (0, 1))
    masks = [(0, 4), (0, 5)]
    first, second = (each.value(each.parts(each.shares((1,), (6,)), masks)) for each in (one, two))
    assert (second - first) % 11 == 1


# -- who does not fit is named -----------------------------------------------------------------------------------------


def window_chance(chances: Chances, window: int) -> Chances:
    """Of each beginning of a window of so many neighbours modulo p: that a number falls into it."""
    around = np.concatenate([[0.0], np.cumsum(np.concatenate([chances, chances]))])
    begins = np.arange(chances.size)
    found: Chances = around[begins + window] - around[begins]
    return found


def pick_chances(wrong: tuple[int, ...], prime: int) -> Chances:
    """Of sign times a coefficient, of these (gamma_j - alpha_j s)_i, all picks alike."""
    chances = np.zeros(prime)
    for each in wrong:
        for sign, share in ((0, 0.5), (1, 0.25), (-1, 0.25)):
            chances[sign * each % prime] += share / len(wrong)
    return chances


def test_of_all_wrong_coefficients_a_test_passes_as_seldom_as_the_page_says() -> None:
    """(1 + (1 - f)^picks) / 2 bounds all vectors of coefficients, in all windows, if f are beyond the window's length.

    By counting, of three coefficients modulo 29; the bound is reached where f = 1 and where f = 0.
    """
    prime, window, picks, reached = 29, 4, 3, set()
    for wrong in itertools.combinations_with_replacement(range(prime), 3):
        chances = np.fft.irfft(np.fft.rfft(pick_chances(wrong, prime)) ** picks, prime)
        share = sum(window <= each <= prime - window for each in wrong) / 3
        bound = (1 + (1 - share) ** picks) / 2
        most = float(window_chance(chances, window).max())
        assert most <= bound + 1e-9
        if most > bound - 1e-9:
            reached.add(share)
    assert {0.0, 1.0} <= reached


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_of_every_large_number_at_most_half_of_the_factors_pass(factor: int) -> None:
    """All numbers of a small field and all windows, in the real ones' proportions of window to field and less."""
    prime = 2053
    for window in (prime // 16 - 1, prime // 32, prime // 128):
        least = window if factor == 1 else -(-window // (factor - 1))
        for number in range(least, prime // 2 + 1):
            chances = np.zeros(prime)
            np.add.at(chances, np.arange(-factor, factor) * number % prime, 1)
            assert window_chance(chances, window).max() <= factor, (number, window)


def key_bound(window: float, factor: int) -> float:
    """B: a key longer than this in the Euclidean norm passes a test with probability at most 1/2 (the page's lemma)."""
    if factor == 1:
        return 4 * window
    away = 1.2  # of the roundings' standard deviation times sqrt 12
    return window / (0.498 * math.sqrt(2) * factor * (1 - 1 / (12 * away**2)) - 2 * away)


@given(
    factor=st.sampled_from([1, 8, 16]),
    data=st.data(),
    over=st.floats(1.0, 3.0),
)
@settings(max_examples=60, deadline=None)
def test_a_long_key_of_small_numbers_passes_half_of_the_tests_at_most(
    factor: int, data: st.DataObject, over: float
) -> None:
    """The lemma, by exact distributions: no number alone is beyond the bound on one, their norm is beyond B."""
    prime, window = 40_009, 2_500 if factor > 1 else 40
    most = window / max(factor - 1, 1)
    numbers: list[int] = []
    least = over * key_bound(window, factor)
    sizes = st.floats(0.1, 0.999)
    shape = data.draw(st.lists(sizes, min_size=1, max_size=12))
    while math.hypot(*numbers) < least:
        numbers.append(round(most * shape[len(numbers) % len(shape)]) or 1)
    one = np.zeros(prime)
    one[np.arange(-factor, factor) % prime] = 1 / (2 * factor)
    of_factor, frequencies = np.fft.fft(one), np.arange(prime // 2 + 1)
    spectrum = np.ones(frequencies.size, np.complex128)
    for number in numbers:
        spectrum *= of_factor[frequencies * number % prime]
    chances = np.fft.irfft(spectrum, prime)
    assert window_chance(chances, window).max() <= 0.5


@SETS
def test_what_passes_modulo_p_opens_modulo_q(parameters: LatticeParameters) -> None:
    """Roundings add at most half a key's norm times sqrt(N), by Cauchy and Schwarz: with B for the norm, below q/2."""
    known, degree = check_range(parameters), parameters.degree
    window = 2 * known.most
    assert window == 126 * known.shift
    bound = key_bound(window, known.factor)
    assert (
        {4096: 21.7, 8192: 23, 16384: 22.8}[degree] - 0.1
        < math.log2(bound)
        < {4096: 21.7, 8192: 23, 16384: 22.8}[degree]
    )
    share = (window + 1 + math.sqrt(degree) / 2 * bound) / PRIME
    assert share < {4096: 0.115, 8192: 0.18, 16384: 0.275}[degree] < 0.5
    # numbers one by one bound it in no way: roundings of half a unit each, and of such a key
    alone = window / max(known.factor - 1, 1)
    assert alone * degree / 2 > PRIME / 2
    # the sum of the part that varies wraps round the field too seldom to matter: Hoeffding, in the page's 0.498
    varied = math.hypot(bound, alone) * (2 * known.factor - 1)
    assert 2 * math.exp(-2 * ((PRIME - window) / 2) ** 2 / varied**2) < 0.002


@SETS
def test_chances_on_the_page_are_those_of_the_parameters(parameters: LatticeParameters) -> None:
    window = 2 * check_range(parameters).most / PRIME
    pairs = math.comb(PICKS, 2)
    unseen = 2.0**-PICKS * (1 + pairs / parameters.degree)  # no pick has a sign, or two in one coefficient cancel
    garbage = unseen + (1 - unseen) * window
    assert garbage < {4096: 2**-4, 8192: 2**-9.9, 16384: 2**-4}[parameters.degree]
    assert garbage**TESTS < 2.0**-256

    def random(share: float) -> float:
        seen = 1 - (1 - share / 2) ** PICKS
        return math.log2(1 - seen + seen * window) * TESTS

    def worst(share: float) -> float:
        return math.log2((1 + (1 - share) ** PICKS) / 2) * TESTS

    if parameters.degree == 16384:
        assert -50 < random(1 / 14) < -49 and -7.1 < random(1 / 100) < -6.9
        assert -40 < worst(1 / 14) < -39 and -6.9 < worst(1 / 109) < -6.3
    assert worst(1.0) == -TESTS
    assert math.log2(PRIME**-2) > -62 - 1e-6


def meetings(picks: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """The ways in which so many picks meet in coefficients: partitions, largest part first."""
    if picks == 0:
        yield ()
    for first in range(min(picks, most or picks), 0, -1):
        for rest in meetings(picks - first, first):
            yield first, *rest


@SETS
def test_an_honest_report_is_beyond_its_bound_once_in_2_to_the_64(parameters: LatticeParameters) -> None:
    """With the challenge's chances counted: how many picks have a sign, and how many of those meet in one coefficient.

    Errors and roundings are bounded as for 16 picks that all have signs and never meet; those that meet have one sign
    here. Roundings of public polynomials are taken as uniform, and their squares' sum as twice what that gives.
    """
    known, degree = check_range(parameters), parameters.degree
    bits = 3 + math.log2(TESTS) + FAILURE_BITS
    tail = math.sqrt(2 * math.log(2.0) * bits) * float(WIDTH)
    scale = PRIME * 2.0**parameters.plain_bits / parameters.ring.modulus
    whole = PICKS * (scale + 1) + tail * (4 * scale + math.sqrt(PICKS * degree / 6) + known.factor * math.sqrt(degree))
    assert whole < known.shift
    failed = 2 * 2.0**-bits  # of the factors, at any challenge
    for signs in range(1, PICKS + 1):
        for parts in meetings(signs):
            ways = math.factorial(signs)
            for part in parts:
                ways //= math.factorial(part)
            for many in Counter(parts).values():
                ways //= math.factorial(many)
            chance = (
                ways
                * math.prod((degree - each) / degree for each in range(len(parts)))
                * degree ** (len(parts) - signs)
            )
            squares = sum(part**2 for part in parts)
            failed += math.comb(PICKS, signs) / 2**PICKS * chance * 2 * 2 * 2.0 ** (-bits * PICKS / squares)
    assert TESTS * failed < 2.0**-FAILURE_BITS
