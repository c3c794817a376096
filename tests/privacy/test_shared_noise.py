"""Noise in shares: what honest parties' integers add up to, against slow references that know nothing of the proof."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from tacit.errors import InputError
from tacit.mechanisms.all_rounds import carrying_stream, largest_deviation, least_fresh_deviation, with_noise_of
from tacit.privacy import Guarantee, Participation, Tree
from tacit.privacy.encoding_choice import encoding_within
from tacit.privacy.shared_noise import UNLIKE, check_honest, check_shared, distance_in_shares, of_one
from tacit.privacy.strategy import Blt, Independent, Strategy

Floats = NDArray[np.float64]
REACH = 80
WHOLE = np.arange(-REACH, REACH + 1)


def nearest(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


@given(st.lists(st.fractions(-50, 50), min_size=1, max_size=6))
def test_rounded_shares_are_their_sum_and_residues_rounded_at_once(parts: list[Fraction]) -> None:
    residues = [each - nearest(each) for each in parts[:-1]]
    assert sum(map(nearest, parts)) == nearest(sum(parts) - sum(residues))


@given(deviation=st.floats(1.0, 2.0), centre=st.floats(-2, 2), of_sum=st.floats(-3, 3))
def test_residues_given_the_sum_are_uniform_within_the_distance_of_two(
    deviation: float, centre: float, of_sum: float
) -> None:
    """The density of (v_1 given v_1 + v_2) modulo 1, wrapped by adding up, which the bound's proof does not do."""
    deviation = max(deviation, math.sqrt(2))
    at = np.linspace(0, 1, 2000, endpoint=False)
    wrapped = norm.pdf(at[:, None] + WHOLE, centre + of_sum / 2, deviation / math.sqrt(2)).sum(axis=1)
    distance = float(np.abs(wrapped - 1).mean() / 2)
    assert distance <= distance_in_shares(deviation, 2) + 1e-13
    assert distance > distance_in_shares(deviation, 2) ** 2.5, "the bound is not beyond all reason"


@given(deviation=st.floats(math.sqrt(3), 2.2), first=st.floats(-1, 1), second=st.floats(-1, 1))
def test_residues_given_the_sum_are_uniform_within_the_distance_of_three(
    deviation: float, first: float, second: float
) -> None:
    at = np.linspace(0, 1, 40, endpoint=False)
    grid = np.arange(-15, 16)
    one, two = (at[:, None] + grid - centre for centre in (first, second))  # (40, 31) each
    precision = np.linalg.inv(deviation**2 * (np.eye(2) - 1 / 3))
    scale = math.sqrt(np.linalg.det(precision)) / (2 * math.pi)
    exponent = (
        precision[0, 0] * one[:, None, :, None] ** 2
        + precision[1, 1] * two[None, :, None, :] ** 2
        + 2 * precision[0, 1] * one[:, None, :, None] * two[None, :, None, :]
    )
    wrapped = scale * np.exp(-exponent / 2).sum(axis=(2, 3))
    assert float(np.abs(wrapped - 1).mean() / 2) <= distance_in_shares(deviation, 3) + 1e-12


def law_of_sum(deviation: float, honest: int) -> Floats:
    """P(sum of rounded normal numbers = n) for n in WHOLE, by convolution."""
    left = -np.abs(WHOLE)  # where digits are not lost
    one = norm.cdf(left + 0.5, scale=deviation) - norm.cdf(left - 0.5, scale=deviation)
    law = one
    for _ in range(honest - 1):
        law = np.convolve(law, one, mode="same")
    return law


def renyi(law: Floats, shift: int, order: int) -> float:
    """Between the sum of others' integers and noise, and the same shifted by one client's integer."""
    near = slice(REACH - 25, REACH + 26)  # beyond, float64 has no digits of the narrowest law
    other = np.roll(law, shift)
    return math.log(float((law[near] ** order / other[near] ** (order - 1)).sum())) / (order - 1)


@pytest.mark.parametrize("honest", [1, 2, 3, 5])
@pytest.mark.parametrize("order", [2, 4])
def test_what_shares_promise_is_what_is_accounted(honest: int, order: int) -> None:
    """zCDP of a whole Gaussian, from the law of the sum; shares by h, not its root, and one too few promise less."""
    whole, shift = 6.0, 2
    accounted = order * shift**2 / (2 * whole**2)
    assert renyi(law_of_sum(whole / math.sqrt(honest), honest), shift, order) <= accounted * (1 + 1e-9)
    if honest > 1:
        assert renyi(law_of_sum(whole / honest, honest), shift, order) > 1.2 * accounted
        assert renyi(law_of_sum(whole / math.sqrt(honest), honest - 1), shift, order) > 1.2 * accounted


PARTICIPATION = Participation(rounds=9, min_separation=3, max_participations=3)
STRATEGIES: dict[str, Strategy] = {
    "independent": Independent(),
    "tree": Tree(),
    "blt": Blt(theta=(0.9, 0.5), omega=(0.1, 0.2)),
}


def guarantee(strategy: Strategy, noise: float = 6.0) -> Guarantee:
    return Guarantee(
        participation=PARTICIPATION, strategy=strategy, clip_norm=0.5, noise_multiplier=noise, clip_inflation=1.01
    )


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("honest", [1, 2, 7])
def test_honest_shares_have_the_variance_that_is_accounted(name: str, honest: int) -> None:
    whole = guarantee(STRATEGIES[name])
    one = of_one(whole, honest)
    assert honest * one.seed_stddev**2 == pytest.approx(whole.seed_stddev**2, rel=1e-14)
    assert one.strategy == whole.strategy


@pytest.mark.parametrize("name", STRATEGIES)
def test_margins_are_for_the_noise_that_there_is(name: str) -> None:
    """As if the noise multiplier were that of one; and no coarser, nor wider, for what each adds alone."""
    encoding, whole = encoding_within(500, 0.5, 10), guarantee(STRATEGIES[name])
    shared = with_noise_of(6, encoding, whole, honest=3)
    assert shared == with_noise_of(6, encoding, of_one(whole, 3))
    assert shared.margin < with_noise_of(6, encoding, whole).margin and shared.scale == encoding.scale


def test_the_least_fresh_noise_is_found_by_playing_the_stream() -> None:
    stream = carrying_stream(STRATEGIES["tree"])
    least = least_fresh_deviation(stream, 9)
    assert 0 < least <= largest_deviation(stream, 9)
    weights = [abs(stream.step(round).seeds[0]) for round in range(9)]
    assert least <= max(weights)


def test_integers_too_coarse_for_shares_are_refused() -> None:
    encoding = encoding_within(20, 0.5, 10, inflation=1.9)
    with pytest.raises(InputError, match="honest_decryptors=2 leave each decryptor fresh noise of"):
        with_noise_of(3, encoding, guarantee(Independent(), noise=0.3), honest=2)
    with_noise_of(3, encoding, guarantee(Independent(), noise=0.3))
    check_shared(8.0, honest=2, draws=10**12)
    assert 10**6 * distance_in_shares(3.5, 2) > UNLIKE, "what is refused is near what is allowed"
    with pytest.raises(InputError, match="in 1,000,000 draws"):
        check_shared(3.5, honest=2, draws=10**6)
    assert distance_in_shares(0.0, 1) == 0.0 and distance_in_shares(1.0, 2) == 1.0


@pytest.mark.parametrize(("parties", "honest", "corrupt"), [(3, 0, 0), (3, 4, 0), (3, 3, 1), (4, 3, 2), (300, 101, 0)])
def test_more_honest_than_there_can_be_are_refused(parties: int, honest: int, corrupt: int) -> None:
    with pytest.raises(InputError, match=f"honest_decryptors={honest} of {parties} decryptors"):
        check_honest(parties, honest, corrupt=corrupt)
    check_honest(parties, 1, corrupt=corrupt)
