"""What is rounded away of the noise: next to nothing where float64 is carried, a float32 once where that is.

The measure is what it does to the release. The seeds that the streamed noise stands for, C Zhat, are compared with the
seeds given: that is what the guarantee is about (docs/floating-point.md, "What is carried").
"""

import numpy as np
import numpy.typing as npt
import pytest

from tacit.mechanisms import stream_for
from tacit.mechanisms.step_cpu import noise_of
from tacit.privacy.strategy import PUBLISHED_BLT, BandedInverse, BandedToeplitz, Blt, Strategy, Tree

Matrix = npt.NDArray[np.float64]


def seeds_and_noise(strategy: Strategy, rounds: int, dimension: int) -> tuple[Matrix, Matrix]:
    """(rounds, dimension) each; the noise as it is streamed."""
    stream = stream_for(strategy)
    seeds = np.random.default_rng(0).standard_normal((rounds, dimension))
    buffers = np.zeros((stream.memory(rounds), dimension), stream.carries)
    noise = [
        noise_of(stream.step(round), 1, buffers, [seeds[drawn] for drawn in stream.rounds_drawn(round)])
        for round in range(rounds)
    ]
    return seeds, np.array(noise)


def exact_blt(blt: Blt, seeds: Matrix) -> Matrix:
    """Equation 3 of arXiv:2408.08868 in extended precision."""
    omega, theta = np.array(blt.omega, np.longdouble), np.array(blt.theta, np.longdouble)[:, None]
    buffers, rows = np.zeros((len(omega), seeds.shape[1]), np.longdouble), []
    for seed in seeds:
        rows.append(seed - omega @ buffers)
        buffers = theta * buffers + rows[-1]
    return np.array(rows)


@pytest.mark.parametrize("name", PUBLISHED_BLT)
@pytest.mark.parametrize("rounds", [4_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_buffers_lose_nothing(name: str, rounds: int) -> None:
    """Noise to 1e-13 of itself, prefix sums to 1e-12 of theirs, even after 100,000 rounds with 1 - theta = 1e-12."""
    seeds, noise = seeds_and_noise(PUBLISHED_BLT[name], rounds, 16)
    exact = exact_blt(PUBLISHED_BLT[name], seeds)
    assert np.abs(noise - exact).max() < 1e-13 * exact.std()
    apart, prefix = np.cumsum(noise - exact, axis=0), np.cumsum(exact, axis=0)
    assert np.abs(apart).max() < 1e-12 * prefix[rounds // 2 :].std()


@pytest.mark.parametrize("rate", [0.1, 3e-5, 7.7e-7, 1e-8, 7.8749e-12])
def test_a_buffer_fades_at_its_rate(rate: float) -> None:
    """Measured over a million numbers of the size that slow buffers have."""
    draw = np.random.default_rng(0)
    before, seed = 10 * draw.standard_normal((1, 1_000_000)), draw.standard_normal(1_000_000)
    after = before.copy()
    noise_of(stream_for(Blt(theta=(1 - rate,), omega=(1e-30,))).step(1), 1, after, [seed])
    lost = before + seed - after
    assert float((lost * before).sum() / (before**2).sum()) == pytest.approx(1 - (1 - rate), rel=1e-9, abs=1e-18)


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
def test_weights_that_cancel_are_held(share: float) -> None:
    """The share taken back, measured over a million numbers. Over n rounds an error e of it changes a coefficient of C
    by up to n e of itself.
    """
    seeds, noise = seeds_and_noise(BandedInverse((1.0, -share)), 64, 20_000)
    before, taken = seeds[:-1], (seeds - noise)[1:]
    assert float((taken * before).sum() / (before**2).sum()) == pytest.approx(share, abs=1e-15)


def test_what_is_carried_in_float32_is_rounded_once() -> None:
    """The seeds that matrices and trees stream noise of are the given ones to 2^-24 of a number for each that is
    carried.
    """
    assert {stream_for(each).carries for each in (Tree(), BandedToeplitz((1.0, 0.5)))} == {np.float32}
    seeds, noise = seeds_and_noise(BandedToeplitz((1.0, 0.5)), 64, 1_000)
    back = noise + 0.5 * np.pad(noise, ((1, 0), (0, 0)))[:64]
    assert (np.abs(back - seeds)[1:] <= 0.5 * np.abs(noise[:-1]) * 2.0**-24 + 1e-15).all()
    assert np.abs(back - seeds).max() > 2.0**-28
