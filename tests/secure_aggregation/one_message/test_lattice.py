"""Published parameters and what is proved of them."""

import math

import numpy as np
import pytest
from scipy.stats import kstest
from tests.conftest import REPOSITORY

from tacit.errors import InputError
from tacit.secure_aggregation.discrete_gaussian import WIDTH, sample
from tacit.secure_aggregation.one_message.hardness import (
    STANDARD_BITS,
    STANDARD_WIDTH,
    bits_lost_to_clients,
    core_svp_bits,
    reduced_width,
)
from tacit.secure_aggregation.one_message.lattice import (
    PUBLISHED,
    LatticeParameters,
    error_bound,
    public_polynomial,
    published,
)
from tacit.secure_aggregation.secrets import seeded

every = pytest.mark.parametrize("parameters", PUBLISHED.values(), ids=lambda each: each.name)


def is_prime(number: int) -> bool:
    """Miller and Rabin with the bases that decide every number below 3.3 * 10^24 (Sorenson and Webster 2015)."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41):
        powers = [pow(base, odd << at, number) for at in range(twos)]
        if powers[0] != 1 and number - 1 not in powers:
            return False
    return True


@every
def test_the_standard_gives_each_published_set_128_bits(parameters: LatticeParameters) -> None:
    assert all(is_prime(prime) for prime in parameters.primes)
    assert math.log2(parameters.ring.modulus) <= STANDARD_BITS[parameters.degree]
    assert parameters.ring.degree == parameters.degree


def test_other_parameters_are_refused() -> None:
    with pytest.raises(InputError, match=r"'homemade' are no published.*willow-16384"):
        published("homemade")


def test_the_revealed_sum_leaves_keys_as_wide_as_the_standard_has_them() -> None:
    assert reduced_width() >= STANDARD_WIDTH == pytest.approx(3.1915, abs=1e-4)
    # Willow's own width, 4.5, is wide enough only where very many honest clients share the sum.
    assert reduced_width(4.5) < STANDARD_WIDTH
    assert reduced_width(honest=1000) > reduced_width(honest=3) > reduced_width(honest=2) == float(WIDTH) / 2


def test_the_reduction_loses_less_than_2_to_the_minus_128() -> None:
    """eta_epsilon(Z^m) <= sqrt(ln(2 m (1 + 1/epsilon)) / pi) (Micciancio and Regev 2007, Lemma 3.3), and Theorem 1 asks
    for a Gaussian parameter of at least sqrt(2) eta; m counts a key and the errors of 100 polynomials.
    """
    parameter, numbers = reduced_width() * math.sqrt(2 * math.pi), 101 * 2**14
    inverse = math.exp(math.pi * parameter**2 / 2) / (2 * numbers) - 1
    assert math.log2(inverse) > 128


def test_the_bound_on_errors_is_the_tail_of_their_sum() -> None:
    reports, coefficients = 6_500, 14 * 2**14
    bound = error_bound(reports, coefficients)
    assert coefficients * 2 * math.exp(-(bound**2) / (2 * reports * float(WIDTH) ** 2)) <= 2**-64
    assert coefficients * 2 * math.exp(-((0.99 * bound) ** 2) / (2 * reports * float(WIDTH) ** 2)) > 2**-64
    sums = sample(reports * 200, seeded(bytes(32))).reshape(200, reports).sum(axis=1)
    assert kstest(sums / (float(WIDTH) * math.sqrt(reports)), "norm").pvalue > 0.01
    assert abs(sums).max() < bound < 12 * float(WIDTH) * math.sqrt(reports)


@every
def test_errors_up_to_the_most_leave_the_sum_within_half_of_q(parameters: LatticeParameters) -> None:
    plain = 1 << parameters.plain_bits
    assert plain * parameters.most_error + plain - 1 < parameters.ring.modulus / 2
    assert plain * (parameters.most_error + 2) + plain > parameters.ring.modulus / 2
    assert error_bound(50_000_000, 64 * parameters.degree) <= parameters.most_error


def test_public_polynomials_follow_from_the_seed_and_are_uniform() -> None:
    parameters = published("willow-4096")
    seed = bytes(range(32))
    found = public_polynomial(parameters, seed, 3)
    assert np.array_equal(found, public_polynomial(parameters, seed, 3))
    others = [public_polynomial(parameters, seed, 4), public_polynomial(parameters, bytes(32), 3)]
    assert not any(np.any(found == other) for other in others)
    for row, prime in zip(found, parameters.primes, strict=True):
        assert kstest(row / prime, "uniform").pvalue > 0.01
        assert int(row.max()) < prime


def test_a_word_beyond_its_prime_is_left_out() -> None:
    """A set with a prime just above a power of two leaves out nearly half of all words."""
    prime = next(p for p in range((1 << 20) + 1, 1 << 21, 128) if is_prime(p))
    few = LatticeParameters("few", 64, (prime,), 4)
    rows = np.concatenate([public_polynomial(few, bytes(32), index)[0] for index in range(64)])
    assert int(rows.max()) < prime and kstest(rows / prime, "uniform").pvalue > 0.01


def test_the_page_says_the_core_svp_count_and_the_factor_of_the_hybrid() -> None:
    """Whoever reads "128 bits" reads beside it what the proof loses to the number of clients, and a lower count."""
    page = (REPOSITORY / "docs" / "secure-aggregation-protocols.md").read_text(encoding="utf-8")
    lost = [bits_lost_to_clients(clients) for clients in (6_500, 12_200_000)]
    assert f"{lost[0]:.1f} bits at 6,500 clients, {lost[1]:.1f} at 12.2 million" in page
    assert bits_lost_to_clients(2) == 0.0
    for name, dimension, bits in (("4096", 4096, 76), ("8192", 8192, 200), ("16384", 16384, 244)):
        count = core_svp_bits(dimension, bits, reduced_width())
        assert f"| `willow-{name}` | {count:.0f} bits | {count - lost[0]:.0f} | {count - lost[1]:.0f} |" in page
    # NewHope (2016), Kyber512, Kyber1024. Source: `LWE_primal_cost` of github.com/pq-crystals/security-estimates at
    # f4ebcc3, its least block over samples from n/3 to n; that script simulates BKZ where ours has its root factor.
    for dimension, modulus, deviation, bits in (
        (1024, 12289, math.sqrt(8), 283.7),
        (512, 3329, math.sqrt(1.5), 118.5),
        (1024, 3329, 1.0, 256.5),
    ):
        assert core_svp_bits(dimension, math.log2(modulus), deviation) == pytest.approx(bits, abs=1.5)
    assert core_svp_bits(4096, 109, 3.25) < core_svp_bits(4096, 76, 3.25)
