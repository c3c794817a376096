"""Amplification of banded strategies: against quadrature written here, the exact Gaussian, and its own limits."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr

from tacit.errors import AccountingError, InputError
from tacit.privacy import Blt, Independent, Participation, Toeplitz, Tree
from tacit.privacy.amplification import LEAST_NOISE, LOSSES, RENYI, Amplified, CyclicSampling, amplified, bands_of
from tacit.privacy.renyi import epsilon_of_sampled_gaussians, sampled_gaussian_rdp
from tacit.privacy.sensitivity import sensitivity_squared
from tacit.privacy.strategy import Banded, BandedInverse, BandedToeplitz, Dense, Strategy


def above(x: float) -> float:
    """P(a standard normal number > x), without what `scipy.stats` looks at in every call."""
    return float(ndtr(-x))


def tail(epsilon: float, q: float, z: float) -> float:
    """delta(epsilon) of one Poisson-sampled Gaussian, somebody removed: P(x > t) - e^epsilon Q(x > t)."""
    inside = math.exp(epsilon) - (1 - q)
    at = -math.inf if inside <= 0 else z * z * math.log(inside / q) + 0.5
    return float((1 - q) * above(at / z) + q * above((at - 1) / z) - math.exp(epsilon) * above(at / z))


def two_tails(epsilon: float, q: float, z: float) -> float:
    """The same of two compositions: the second's, averaged over the loss of the first."""

    def weighted(x: float) -> float:
        loss = math.log((1 - q) + q * math.exp((2 * x - 1) / (2 * z * z)))
        density = math.exp(-((x / z) ** 2) / 2) / (z * math.sqrt(2 * math.pi))
        return float(density * math.exp(loss) * tail(epsilon - loss, q, z))

    return float(quad(weighted, -9 * z, 9 * z + 1, limit=400)[0])


@pytest.mark.parametrize(
    ("q", "z", "compositions", "delta_of"),
    [
        *[(0.3, 1.5, 2, two_tails), (0.9, 4.0, 1, tail)],
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in [(0.02, 0.8, 2, two_tails), (0.02, 0.8, 1, tail), (0.3, 1.5, 1, tail), (0.9, 4.0, 2, two_tails)]
        ),
    ],
)
def test_against_quadrature(q: float, z: float, compositions: int, delta_of: object) -> None:
    assert callable(delta_of)
    delta, bands = 1e-5, 4
    strategy = BandedToeplitz(coefficients=(1.0, 0.5, 0.25, 0.125))
    norm_of_column = math.sqrt(1 + 0.25 + 0.0625 + 0.015625)
    sampling = CyclicSampling(population=4000, batch=1000 * q, cycle=bands)
    made = amplified(strategy, sampling, rounds=bands * compositions, noise_multiplier=z * norm_of_column)
    assert made.sampled_noise_multiplier == pytest.approx(z, rel=1e-12)
    assert made.compositions == compositions
    exact = brentq(lambda epsilon: delta_of(epsilon, q, z) - delta, 1e-9, 60.0)
    assert made.epsilon(delta) == pytest.approx(exact, abs=3e-4)
    assert made.epsilon(delta) >= exact - 1e-6


def test_without_chance_it_is_the_gaussian() -> None:
    made = amplified(Independent(), CyclicSampling(population=10, batch=10, cycle=1), rounds=25, noise_multiplier=10.0)
    assert made.sampling.probability == 1
    assert made.zcdp_without_sampling == pytest.approx(25 / 200)
    assert made.epsilon(1e-6) == pytest.approx(made.epsilon_without_sampling(1e-6), abs=1e-3)


def test_sampling_helps() -> None:
    strategy = BandedToeplitz(coefficients=(1.0, 0.4, 0.2))
    sampling = CyclicSampling(population=30_000, batch=100, cycle=3)
    made = amplified(strategy, sampling, rounds=60, noise_multiplier=1.0)
    assert made.sampling.probability == pytest.approx(0.01)
    assert made.epsilon(1e-6) < made.epsilon_without_sampling(1e-6) / 3


@settings(max_examples=40, deadline=None)
@given(
    coefficients=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4).map(lambda values: sorted(values)[::-1]),
    more=st.integers(0, 3),
    rounds=st.integers(1, 14),
)
def test_without_sampling_it_is_the_guarantee_of_coming_every_cycle(
    coefficients: list[float], more: int, rounds: int
) -> None:
    strategy = BandedToeplitz(coefficients=tuple(coefficients))
    cycle = len(coefficients) + more
    sampling = CyclicSampling(population=1000, batch=5, cycle=cycle)
    made = amplified(strategy, sampling, rounds=rounds, noise_multiplier=2.0)
    exact = sensitivity_squared(strategy, Participation.worst_case(rounds, cycle)) / 8
    assert made.zcdp_without_sampling >= exact * (1 - 1e-12)  # the last column of the run may be cut short
    if rounds % cycle == 0:
        assert made.zcdp_without_sampling == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    ("strategy", "bands", "column_norm"),
    [
        (Independent(), 1, 1.0),
        (Toeplitz(coefficients=(2.0, 0.0, 1.0, 0.0, 0.0)), 3, math.sqrt(5)),
        (BandedToeplitz(coefficients=(1.0, 1.0, 0.0)), 2, math.sqrt(2)),
        (Banded(np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 0.0], [4.0, 1.0], [1.0, 0.0]])), 2, math.sqrt(17)),
        (Dense(np.array(np.diag([1.0, 2.0, 1.0, 1.0, 1.0]) + np.diag([1.0] * 3, -2))), 3, math.sqrt(5)),
    ],
    ids=lambda value: getattr(value, "kind", value),
)
def test_bands_and_columns(strategy: Strategy, bands: int, column_norm: float) -> None:
    assert bands_of(strategy, 5) == bands
    sampling = CyclicSampling(population=100, batch=1, cycle=bands)
    made = amplified(strategy, sampling, rounds=5, noise_multiplier=1.0)
    assert made.column_norm == pytest.approx(column_norm)
    if bands > 1:
        with pytest.raises(AccountingError, match=f"give a cycle of at least {bands}"):
            narrow = CyclicSampling(population=100, batch=1, cycle=bands - 1)
            amplified(strategy, narrow, rounds=5, noise_multiplier=1.0)


@pytest.mark.parametrize(
    "strategy", [Tree(), Blt(theta=(0.9,), omega=(0.1,)), BandedInverse(coefficients=(1.0, -0.5))], ids=repr
)
def test_what_is_not_banded_is_refused(strategy: Strategy) -> None:
    with pytest.raises(AccountingError, match="is not banded"):
        bands_of(strategy, 10)


@pytest.mark.parametrize(
    ("sampling", "rounds", "noise", "complaint"),
    [
        ({"population": 0}, 1, 1.0, "population=0"),
        ({"cycle": 0}, 1, 1.0, "cycle=0"),
        ({"batch": 0.0}, 1, 1.0, "batch=0.0"),
        ({"batch": math.nan}, 1, 1.0, "batch=nan"),
        ({}, 0, 1.0, "rounds=0"),
        ({}, 1, 0.0, "noise_multiplier=0.0"),
    ],
)
def test_what_is_no_sampling_is_refused(sampling: dict[str, float], rounds: int, noise: float, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        drawn = CyclicSampling(**{"population": 10, "batch": 1.0, "cycle": 1, **sampling})
        amplified(Independent(), drawn, rounds=rounds, noise_multiplier=noise)


def run_of(probability: float, noise: float, compositions: int) -> Amplified:
    """Independent noise for 10^9 members, each drawn with this probability."""
    sampling = CyclicSampling(population=10**9, batch=1e9 * probability, cycle=1)
    return amplified(Independent(), sampling, rounds=compositions, noise_multiplier=noise)


@pytest.mark.parametrize(
    ("delta", "epsilon", "by"),
    # dp-accounting 0.6.1 by its PLD accountant at 1e-15, by its RDP accountant (orders 2 to 256) at 2e-16
    [(1e-15, 0.06612228957922249, LOSSES), (2e-16, 0.12535393552548366, RENYI)],
)
def test_where_loss_distributions_end_renyi_divergences_go_on(delta: float, epsilon: float, by: str) -> None:
    """At 2e-16 epsilon was infinite, beside 515 without sampling."""
    sampling = CyclicSampling(population=757_575, batch=250, cycle=1)
    made = amplified(Independent(), sampling, rounds=10_000, noise_multiplier=4.0)
    assert made.epsilon(delta) == made.bounds(delta)[by] == pytest.approx(epsilon, rel=1e-9)


probabilities, noises = st.floats(-6, 0).map(lambda x: 10**x), st.floats(-0.5, 3).map(lambda x: 10**x)
next_to_none = st.floats(-30, math.log10(LEAST_NOISE / 2)).map(lambda x: 10**x)
deltas = st.floats(-300, -0.5).map(lambda x: 10**x)


@settings(max_examples=8, deadline=None)
@given(
    probabilities,
    noises | next_to_none,
    st.sampled_from([1, 7, 100]),
    deltas,
    st.floats(1.05, 10.0),
    st.floats(1.0, 1e3),
)
def test_more_noise_a_larger_delta_and_sampling_never_raise_epsilon(
    probability: float, noise: float, compositions: int, delta: float, louder: float, larger: float
) -> None:
    made = run_of(probability, noise, compositions)
    epsilon = made.epsilon(delta)
    assert 0 <= epsilon <= made.epsilon_without_sampling(delta) and math.isfinite(epsilon)
    assert made.epsilon(min(delta * larger, 0.5)) <= epsilon * (1 + 1e-12)
    near = 1e-4 * math.sqrt(compositions)  # the grid of loss distributions, on either side
    assert run_of(probability, noise * louder, compositions).epsilon(delta) <= epsilon * (1 + 1e-9) + near


@settings(max_examples=15, deadline=None)  # a twelfth of a second each, of three numbers
@given(probabilities, st.floats(0.3, 30), st.integers(2, 12))
def test_renyi_divergences_are_those_of_the_integral(probability: float, noise: float, order: int) -> None:
    """E over N(0, z^2) of the density's ratio to the power alpha, by quadrature with 30 digits."""
    with mpmath.workdps(30):
        q, z, alpha = mpmath.mpf(probability), mpmath.mpf(noise), mpmath.mpf(order)

        def weighted(x: mpmath.mpf) -> mpmath.mpf:
            ratio = (1 - q) + q * mpmath.e ** ((2 * x - 1) / (2 * z * z))
            return ratio**alpha * mpmath.e ** (-(x * x) / (2 * z * z)) / (z * mpmath.sqrt(2 * mpmath.pi))

        points = [-12 * z, 0, alpha / 2, alpha, alpha + 12 * z]
        exact = mpmath.log(mpmath.quad(weighted, points)) / (alpha - 1)
    assert sampled_gaussian_rdp(order, probability, noise) == pytest.approx(float(exact), rel=1e-6, abs=1e-12)


@settings(max_examples=8, deadline=None)
@given(probabilities, st.floats(0.3, 10), st.sampled_from([1, 100]), st.floats(-20, -2).map(lambda x: 10**x))
def test_the_best_order_is_found(probability: float, noise: float, compositions: int, delta: float) -> None:
    """Beside all orders up to 2,000, one after another."""
    found = epsilon_of_sampled_gaussians(probability, noise, compositions, delta)
    for order in range(2, 2000, 7):
        rdp = compositions * sampled_gaussian_rdp(order, probability, noise)
        assert found <= max(0.0, rdp + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("given_values", "complaint"),
    [((1, 0.5, 1.0), "order=1"), ((2, 0.0, 1.0), "probability=0"), ((2, 0.5, 0.0), "noise_multiplier=0")],
)
def test_what_has_no_renyi_divergence_is_refused(given_values: tuple[int, float, float], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        sampled_gaussian_rdp(*given_values)


def test_a_delta_is_a_probability() -> None:
    made = amplified(Independent(), CyclicSampling(population=9, batch=1, cycle=1), rounds=1, noise_multiplier=1.0)
    with pytest.raises(InputError, match="delta=1"):
        made.epsilon(1.0)
