"""What float32 rounds away of the noise, against float64: why the buffers may be float32, and which weights may not.

The measure is what it does to the release. Errors of the noise are counted in standard deviations of the noise; errors
of its prefix sums, which learning sees, in theirs; and the seeds that the streamed noise stands for, C Zhat, are
compared with the seeds given.
"""

import numpy as np
import numpy.typing as npt
import pytest

from tacit.mechanisms import stream_for
from tacit.mechanisms.step_cpu import run_step
from tacit.privacy import Participation
from tacit.privacy.sensitivity import sensitivity_squared
from tacit.privacy.strategy import PUBLISHED_BLT, BandedInverse, BandedToeplitz, Blt, Strategy

Matrix = npt.NDArray[np.float64]


def seeds_and_noise(strategy: Strategy, rounds: int, dimension: int) -> tuple[Matrix, Matrix]:
    """(rounds, dimension) each; the noise as it is streamed."""
    stream = stream_for(strategy)
    seeds = np.random.default_rng(0).standard_normal((rounds, dimension), np.float32)
    buffers = np.zeros((stream.memory(rounds), dimension), np.float32)
    noise = [
        run_step(stream.step(round), buffers, [seeds[drawn] for drawn in stream.rounds_drawn(round)], None, 1.0)
        for round in range(rounds)
    ]
    return seeds.astype(np.float64), np.array(noise, np.float64)


def exact_blt(blt: Blt, seeds: Matrix) -> Matrix:
    """Equation 3 of arXiv:2408.08868 in float64."""
    omega, theta = np.array(blt.omega), np.array(blt.theta)[:, None]
    buffers, rows = np.zeros((len(omega), seeds.shape[1])), []
    for seed in seeds:
        rows.append(seed - omega @ buffers)
        buffers = theta * buffers + rows[-1]
    return np.array(rows)


@pytest.mark.parametrize("name", PUBLISHED_BLT)
@pytest.mark.parametrize("rounds", [4_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_float32_buffers_lose_nothing_that_is_seen(name: str, rounds: int) -> None:
    """Noise to 1e-5 of itself, prefix sums to 1e-4 of theirs, even after 100,000 rounds with 1 - theta = 1e-12."""
    seeds, noise = seeds_and_noise(PUBLISHED_BLT[name], rounds, 16)
    exact = exact_blt(PUBLISHED_BLT[name], seeds)
    assert np.abs(noise - exact).max() < 1e-5 * exact.std()
    apart, prefix = np.cumsum(noise - exact, axis=0), np.cumsum(exact, axis=0)
    assert np.abs(apart).max() < 1e-4 * prefix[rounds // 2 :].std()


@pytest.mark.parametrize("rate", [0.1, 3e-5, 7.7e-7, 1e-8, 1e-9])
def test_a_buffer_fades_at_its_rate(rate: float) -> None:
    """Measured over two million numbers of the size that slow buffers have: to 1e-6 of itself or to 1e-9."""
    draw = np.random.default_rng(0)
    before, seeds = (draw.standard_normal((1, 2_000_000), np.float32) for _ in range(2))
    before *= 10
    after = before.copy()
    run_step(stream_for(Blt(theta=(1 - rate,), omega=(1e-30,))).step(1), after, list(seeds), None, 1.0)
    lost = before.astype(np.float64) + seeds - after
    assert float((lost * before).sum() / (before.astype(np.float64) ** 2).sum()) == pytest.approx(
        rate, rel=1e-6, abs=1e-9
    )


@pytest.mark.parametrize("rate", [3e-5, 7.7e-7])
def test_a_rate_rounded_to_float32_keeps_the_sensitivity_and_a_factor_does_not(rate: float) -> None:
    run = Participation(rounds=10_000_000, min_separation=1_000_000, max_participations=10)

    def sensitivity(theta: float) -> float:
        return sensitivity_squared(Blt(theta=(theta, 0.9), omega=(0.01, 0.2)), run) ** 0.5

    exact, by_rate, by_factor = map(sensitivity, (1 - rate, 1 - float(np.float32(rate)), float(np.float32(1 - rate))))
    assert by_rate == pytest.approx(exact, rel=1e-7)
    assert by_factor != pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("rounds", [2_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_noise_by_substitution_is_that_of_the_seeds_to_their_last_places(rounds: int) -> None:
    """C applied to the streamed noise gives the seeds back: rounding does not build up, however near C is to singular.

    The coefficients are those of the square root of the triangle of ones, cut off at 64.
    """
    coefficients = np.cumprod([1.0, *(1 - 0.5 / lag for lag in range(1, 64))])
    seeds, noise = seeds_and_noise(BandedToeplitz(tuple(coefficients)), rounds, 8)
    back = sum(c * np.pad(noise, ((lag, 0), (0, 0)))[:rounds] for lag, c in enumerate(coefficients))
    assert np.std(back - seeds) < 1e-6
    assert np.std((back - seeds)[rounds // 2 :]) < 1.1 * np.std((back - seeds)[rounds // 4 : rounds // 2])


@pytest.mark.parametrize("share", [1 - 1e-5, 0.1])
def test_weights_that_cancel_are_held_to_more_than_float32(share: float) -> None:
    """The share taken back, measured over a million numbers: right to 1e-9, where float32 would be off by up to 3e-8.

    Over n rounds an error e of the share changes a coefficient of C by up to n e of itself.
    """
    seeds, noise = seeds_and_noise(BandedInverse((1.0, -share)), 64, 20_000)
    before, taken = seeds[:-1], (seeds - noise)[1:]
    assert float((taken * before).sum() / (before**2).sum()) == pytest.approx(share, abs=2e-10)
    assert abs(float(np.float32(share)) - share) > 1e-9
