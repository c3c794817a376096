"""Decryptors' noise: a stream's noise in a basis that changes every round, as integers, against its real-valued
twin.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard
from scipy.stats import chi2, kstest
from tests.support.mechanisms.strategies import STRATEGIES, any_strategy, carrying

from tacit.errors import InputError
from tacit.mechanisms import NoiseStream, all_rounds, standard_normal_seeds, stream_for
from tacit.mechanisms.all_rounds import Basis, carrying_stream, largest_deviation, noise_of_all_rounds
from tacit.privacy.strategy import BandedInverse, Independent, Strategy

FloatArray = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DIMENSION = 16
STDDEV = 900.0  # of a seed, in integers
every_mechanism = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())


def matrix_of(round: int, dimension: int = DIMENSION) -> FloatArray:
    """The round's public orthogonal matrix R: random signs, then Hadamard's."""
    signs = np.random.default_rng(round).choice([-1.0, 1.0], dimension)
    turned: FloatArray = hadamard(dimension) * signs / math.sqrt(dimension)
    return turned


def basis_of(round: int, dimension: int = DIMENSION) -> Basis:
    matrix = matrix_of(round, dimension)
    return Basis(turn=lambda x: matrix @ x, back=lambda x: matrix.T @ x)


def key_of(decryptor: int) -> bytes:
    return decryptor.to_bytes(16, "big")


def whole(stream: NoiseStream, rounds: int, *, decryptor: int = 0, stddev: float = STDDEV) -> list[Integers]:
    state, said = stream.init(DIMENSION), []
    for round in range(rounds):
        about = b"round %d" % round
        integers, state = noise_of_all_rounds(
            stream, state, stddev=stddev, key=key_of(decryptor), bound_to=about, basis=basis_of(round)
        )
        said.append(integers)
    return said


def real(stream: NoiseStream, rounds: int, *, decryptor: int = 0, stddev: float = STDDEV) -> FloatArray:
    """The slow reference, before rounding: the dense map of all seeds in the model's own basis, each round turned."""
    state, seeds = stream.init(DIMENSION), []
    for round in range(rounds):
        about = np.frombuffer(b"round %d" % round, np.uint8)
        keys = stream.round_keys(state, about, stddev=stddev, key=key_of(decryptor), purpose="noise of a keeper")
        drawn = standard_normal_seeds(keys[0].seeds, stream.seeds_in(round), DIMENSION)
        seeds.append(drawn @ matrix_of(round))  # R' Z', row by row
        state = state._replace(round=np.int32(round + 1), keys=np.array([list(keys[0].whole)], np.uint8))
    noise = stream.dense(rounds) @ np.concatenate(seeds)
    return np.array([stddev * matrix_of(round) @ noise[round] for round in range(rounds)])


@given(strategy=any_strategy, rounds=st.integers(1, 20))
def test_it_is_the_streams_noise_turned_and_rounded(strategy: Strategy, rounds: int) -> None:
    stream = carrying(strategy)
    exact = real(stream, rounds)
    for integers, numbers in zip(whole(stream, rounds), exact, strict=True):
        assert integers.dtype == np.int64
        np.testing.assert_allclose(integers, numbers, rtol=0, atol=0.5 + 1e-5 * max(1.0, np.abs(exact).max()))


@every_mechanism
def test_half_an_integer_is_all_that_rounding_moves(strategy: Strategy) -> None:
    """The wrong basis, scale or round is far from it; and the integers are not just truncated."""
    stream = carrying(strategy)
    errors = np.array(whole(stream, 20)) - real(stream, 20)
    assert np.abs(errors).max() <= 0.5 + 0.02  # float32 that trees and matrices carry
    assert kstest(errors.ravel() + 0.5, "uniform").pvalue > 1e-4


@given(strategy=any_strategy, rounds=st.integers(1, 12), decryptors=st.integers(2, 4), seed=st.integers(0, 99))
def test_the_sum_of_streams_is_the_stream_of_summed_seeds(
    strategy: Strategy, rounds: int, decryptors: int, seed: int
) -> None:
    """Linear mechanisms are linear: K decryptors' streams of one strategy add up to a stream of it."""
    stream = carrying(strategy)
    generator = np.random.default_rng(seed)
    drawn = [generator.standard_normal((decryptors, stream.seeds_in(round), 3)) for round in range(rounds)]

    def play(take: Callable[[FloatArray], FloatArray]) -> FloatArray:
        state, said = stream.init(3), []
        for seeds in drawn:
            noise, state = stream.next(state, take(seeds))
            said.append(noise)
        return np.array(said)

    each = [play(lambda seeds, decryptor=decryptor: seeds[decryptor]) for decryptor in range(decryptors)]  # type: ignore[misc]
    together = play(lambda seeds: seeds.sum(axis=0))
    size = max(1.0, float(np.abs(each).max()))
    np.testing.assert_allclose(sum(each), together, rtol=0, atol=1e-5 * size)


@given(
    sums=st.lists(st.integers(-(2**30), 2**30), min_size=1, max_size=20),
    noise=st.floats(-(2.0**20), 2.0**20),
)
def test_adding_integers_and_rounding_commute(sums: list[int], noise: float) -> None:
    """x + round(z) = round(x + z) for integers x: what makes the release post-processing of x + z."""

    def nearest(value: float) -> int:
        return math.floor(value + 0.5)

    for x in sums:  # exact: 31 bits and 20, with the 32 after the point that are kept
        z = math.ldexp(math.floor(math.ldexp(noise, 20)), -20)
        assert x + nearest(z) == nearest(x + z)


@every_mechanism
def test_k_decryptors_cost_the_root_of_k(strategy: Strategy) -> None:
    """The variance of the last of 8 rounds, two decryptors together; the scale of one, and of three, is rejected."""
    stream, decryptors, runs = carrying(strategy), 2, 30
    rows = np.linalg.norm(stream.dense(8), axis=1)
    assert largest_deviation(stream, 8) == pytest.approx(rows.max(), rel=1e-6)
    total = np.array(
        [
            sum(whole(stream, 8, decryptor=run * decryptors + decryptor)[-1] for decryptor in range(decryptors))
            for run in range(runs)
        ]
    )
    found = float((total.astype(np.float64) ** 2).sum())

    def plausible(of_decryptors: int) -> bool:
        square = of_decryptors * ((STDDEV * rows[-1]) ** 2 + 1 / 12)
        return bool(chi2.ppf(1e-4, total.size) < found / square < chi2.ppf(1 - 1e-4, total.size))

    assert plausible(decryptors)
    assert not plausible(decryptors - 1) and not plausible(decryptors + 1)


def test_small_noise_is_rounded_right() -> None:
    """A deviation of a third: most integers are 0, and their law is that of the rounded normal."""
    said = np.concatenate(whole(stream_for(Independent()), 400, stddev=1 / 3))
    share = float((said == 0).mean())
    assert abs(share - math.erf(0.5 * 3 / math.sqrt(2))) < 4 * math.sqrt(0.25 / said.size)
    assert set(np.unique(np.abs(said))) <= {0, 1, 2}


@every_mechanism
def test_another_round_has_other_noise_from_then_on(strategy: Strategy) -> None:
    stream = carrying(strategy)

    def played(names: list[bytes]) -> list[Integers]:
        state, said = stream.init(DIMENSION), []
        for round, name in enumerate(names):
            integers, state = noise_of_all_rounds(
                stream, state, stddev=STDDEV, key=key_of(7), bound_to=name, basis=basis_of(round)
            )
            said.append(integers)
        return said

    first, again, other = played([b"a", b"b", b"c"]), played([b"a", b"b", b"c"]), played([b"a", b"x", b"c"])
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert np.array_equal(first[0], other[0])
    assert not np.array_equal(first[1], other[1]) and not np.array_equal(first[2], other[2])


def test_seeds_that_would_be_drawn_again_are_refused() -> None:
    stream = stream_for(BandedInverse((1.0, -0.9)))
    with pytest.raises(InputError, match="draws_again=False"):
        noise_of_all_rounds(stream, stream.init(DIMENSION), stddev=1.0, key=key_of(1), bound_to=b"", basis=basis_of(0))


@every_mechanism
def test_what_is_beside_the_fresh_seed_does_not_feel_it_in_its_last_bit(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof holds for b known before Z' is drawn. It was what is left of the whole noise, rounded with Z' in it."""
    stream, beside, drawn = carrying_stream(strategy), list[bytes](), all_rounds._seeds
    released = all_rounds.released

    def kept(step: Any, own: int, rows: FloatArray, *given: Any, **named: Any) -> Any:
        beside.append(rows.tobytes())
        return released(step, own, rows, *given, **named)

    monkeypatch.setattr(all_rounds, "released", kept)
    for changed in (5, 6):  # of a tree, or where one begins afresh, one of the two has nothing beside its seed
        for other in (0.0, 1.0, -3.7):

            def seeds(
                of: Any, state: Any, *given: Any, changed: int = changed, other: float = other
            ) -> list[FloatArray]:
                rows, at = drawn(of, state, *given), int(state.round)
                fresh = stream.step(at).fresh(stream.seeds_in(at))
                return [row + other * (at == changed and place == fresh) for place, row in enumerate(rows)]

            monkeypatch.setattr(all_rounds, "_seeds", seeds)
            whole(stream, changed + 1)
    assert beside[5] == beside[11] == beside[17] and beside[24] == beside[31] == beside[38]
    assert any(np.frombuffer(each).any() for each in beside) or isinstance(strategy, Independent)
