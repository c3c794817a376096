"""What every mechanism owes: the noise it streams is the noise of the strategy that it declares.

Its slow reference is `dense`, here applied to the seeds in float64. Of a kind of strategy that is not listed here, an
example of the catalogue is tried.
"""

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest
from tests.support.mechanisms.strategies import ROUNDS, Matrix, any_strategy, blts, columns_of, falling, tellings, trees

from tacit.design.catalogue import MECHANISMS
from tacit.errors import InputError
from tacit.mechanisms import NoiseState, NoiseStream, fresh_key, standard_normal_seeds, stream_for
from tacit.mechanisms import seeds as seeds_module
from tacit.mechanisms.banded_inverse import BandedInverseStream
from tacit.mechanisms.grid import grid_for
from tacit.mechanisms.keys import PURPOSES, round_key
from tacit.mechanisms.seeds import BLOCK
from tacit.mechanisms.tree import TreeStream
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import (
    PUBLISHED_BLT,
    Banded,
    BandedInverse,
    BandedToeplitz,
    Blt,
    Dense,
    Independent,
    Strategy,
    Toeplitz,
    Tree,
)

Seeds = npt.NDArray[np.float64]

KEY = bytes(range(16))  # fixed: a noise test that fails must fail for everybody


STRATEGIES: dict[str, Strategy] = {
    "independent": Independent(),
    "tree": Tree(),
    "tree, restarted": Tree(restarts=(3, 9, 10)),
    "tree, variance-reduced": Tree(variance_reduced=True),
    "tree, variance-reduced, restarted": Tree(restarts=(5, 13), variance_reduced=True),
    "blt, one buffer": Blt(theta=(1.0,), omega=(0.5,)),
    "blt, b400": PUBLISHED_BLT["b400"],
    "blt, b100": PUBLISHED_BLT["b100"],
    "banded-toeplitz, one band": BandedToeplitz((2.0,)),
    "banded-toeplitz, two bands": BandedToeplitz((1.0, 0.5)),
    "banded-toeplitz": BandedToeplitz((1.0, 0.6, 0.4, 0.0, 0.2)),
    "banded-inverse, one band": BandedInverse((0.5,)),
    "lambda-cgd": BandedInverse((1.0, -0.9)),
    "banded-inverse": BandedInverse((1.0, -0.5, -0.125, -0.0625, 0.0)),
    "banded": Banded(columns_of(falling(ROUNDS), 4)),
    "toeplitz": Toeplitz(coefficients=tuple(0.8**t for t in range(ROUNDS))),
    "dense": Dense(falling(ROUNDS)),
}
ONCE = Participation(rounds=ROUNDS, min_separation=ROUNDS, max_participations=1)
STRATEGIES |= {
    name: made
    for name, each in MECHANISMS.items()
    if each.matrix is None
    and type(made := each.strategy(ONCE, parameters=each.examples[0])) not in map(type, STRATEGIES.values())
}
every_mechanism = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())


square = st.one_of(st.just(Independent()), blts(), tellings())


def seeds_of(stream: NoiseStream, rounds: int, dimension: int) -> list[Seeds]:
    """(seeds_in(t), dimension) for every round t."""
    return [
        standard_normal_seeds(round.to_bytes(16, "big"), stream.seeds_in(round), dimension) for round in range(rounds)
    ]


def add_noise(stream: NoiseStream, state: NoiseState, total: npt.ArrayLike) -> tuple[jax.Array, NoiseState]:
    return stream.add_noise(state, jnp.asarray(total), stddev=0.25, key=KEY, purpose="model update")


def seeds_added(stream: NoiseStream, state: NoiseState, total: npt.ArrayLike) -> Seeds:
    """What `add_noise` draws in the round of this state, as `next` takes it."""
    keys = stream.round_keys(state, np.asarray(total, np.float32), stddev=0.25, key=KEY, purpose="model update")
    size = np.size(total)
    return np.concatenate(
        [
            standard_normal_seeds(of_round.seeds, stream.seeds_in(drawn), size)
            for drawn, of_round in zip(stream.rounds_drawn(int(state.round)), keys, strict=False)
        ]
    )


def taken(stream: NoiseStream, round: int, seeds: list[Seeds]) -> Seeds:
    """What `next` is given: the seeds of each round that this one draws."""
    return np.concatenate([seeds[drawn] for drawn in stream.rounds_drawn(round)])


def streamed(stream: NoiseStream, seeds: list[Seeds]) -> Matrix:
    state = stream.init(seeds[0].shape[1])
    return np.array([np.asarray(noise, np.float64) for noise, state in rest_of(stream, state, seeds)])


def rest_of(stream: NoiseStream, state: NoiseState, seeds: list[Seeds]) -> list[tuple[Matrix, NoiseState]]:
    """What the stream says from `state` on, to the end of the seeds."""
    steps = []
    for round in range(int(state.round), len(seeds)):
        noise, state = stream.next(state, taken(stream, round, seeds))
        steps.append((noise, state))
    assert int(state.round) == len(seeds)
    return steps


def stacked(seeds: list[Seeds]) -> Matrix:
    return np.concatenate(seeds).astype(np.float64)


def assert_close_in_float32(found: Matrix, exact: Matrix) -> None:
    """Within float32's rounding of what was added up: a BLT of large weights grows, and its errors with it."""
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5 * max(1.0, float(np.abs(exact).max())))


# -- the noise is the declared strategy's --------------------------------------------------------------------


@given(strategy=any_strategy, rounds=st.integers(1, 40))
def test_streamed_noise_is_the_dense_map_of_the_seeds(strategy: Strategy, rounds: int) -> None:
    stream = stream_for(strategy)
    seeds = seeds_of(stream, rounds, 3)
    dense = stream.dense(rounds)
    assert dense.shape == (rounds, sum(len(fresh) for fresh in seeds))
    assert_close_in_float32(streamed(stream, seeds), dense @ stacked(seeds))


@given(strategy=any_strategy, rounds=st.integers(1, 40))
def test_dense_map_undoes_the_strategy_that_is_accounted_for(strategy: Strategy, rounds: int) -> None:
    """Noise dense @ Z on updates X is dense @ (C X + Z): what is released is C X + Z, and decoding is exact.

    For trees this is unbiasedness: whatever weights the nodes have, the rounds come out with weight one.
    """
    stream = stream_for(strategy)
    assert stream.strategy == strategy
    np.testing.assert_allclose(stream.dense(rounds) @ strategy.dense(rounds), np.eye(rounds), atol=1e-10)


@given(strategy=square, rounds=st.integers(1, 40))
def test_streamed_noise_of_a_square_strategy_is_its_inverse(strategy: Strategy, rounds: int) -> None:
    stream = stream_for(strategy)
    seeds = seeds_of(stream, rounds, 3)
    inverse = np.linalg.inv(strategy.dense(rounds))
    assert_close_in_float32(streamed(stream, seeds), inverse @ stacked(seeds))


@given(blt=blts(), rounds=st.integers(1, 40))
def test_equation_3_in_float64_is_the_inverse(blt: Blt, rounds: int) -> None:
    """The recurrence itself, without float32's rounding: paper 4, Equation 3, one coordinate per seed."""
    buffers = np.zeros((len(blt.theta), rounds))
    rows = []
    for seed in np.eye(rounds):
        noise = seed - np.array(blt.omega) @ buffers
        buffers = np.array(blt.theta)[:, None] * buffers + noise
        rows.append(noise)
    np.testing.assert_allclose(rows, np.linalg.inv(blt.dense(rounds)), rtol=0, atol=1e-9)
    np.testing.assert_allclose(stream_for(blt).dense(rounds), rows, rtol=0, atol=1e-9)


# -- trees: which nodes, which weights -----------------------------------------------------------------------


@given(tree=trees(), rounds=st.integers(1, 40))
def test_a_node_is_drawn_in_the_round_that_completes_it(tree: Tree, rounds: int) -> None:
    """The seeds are the rows of the strategy's node matrix, in its order."""
    stream = TreeStream(tree)
    nodes = stream.nodes(rounds)
    matrix = tree.dense(rounds)
    assert [(int(row.argmax()), int(row.sum())) for row in matrix] == nodes
    completed = [start + size - 1 for start, size in nodes]
    assert completed == [round for round in range(rounds) for _ in range(stream.seeds_in(round))]


@given(restarts=st.sets(st.integers(1, 30), max_size=3), rounds=st.integers(1, 40))
def test_plain_prefix_sums_are_the_nodes_of_the_binary_digits(restarts: set[int], rounds: int) -> None:
    """Each prefix sum of the noise adds up as few nodes as can cover its rounds, each round once."""
    tree = Tree(restarts=tuple(sorted(restarts)))
    begins = [0, *(at for at in tree.restarts if at < rounds)]
    prefixes = np.cumsum(TreeStream(tree).dense(rounds), axis=0)
    assert np.isin(prefixes, (0.0, 1.0)).all()
    for round, prefix in enumerate(prefixes):
        np.testing.assert_array_equal(prefix @ tree.dense(rounds), np.arange(rounds) <= round, err_msg=f"round {round}")
        lengths = [later - earlier for earlier, later in pairwise([*(at for at in begins if at <= round), round + 1])]
        assert prefix.sum() == sum(length.bit_count() for length in lengths)


@pytest.mark.parametrize("level", range(6))
def test_variance_reduction_is_the_best_estimate_from_below(level: int) -> None:
    """After 2^l rounds the weights are those of least squares on all nodes: 1^T C^+, the best unbiased."""
    size = 2**level
    tree = Tree(variance_reduced=True)
    weights = TreeStream(tree).dense(size).sum(axis=0)
    np.testing.assert_allclose(weights, np.ones(size) @ np.linalg.pinv(tree.dense(size)), atol=1e-12)
    assert weights @ weights == pytest.approx(size / (2 * size - 1))  # V_l = 2^l/(2^(l+1) - 1)


def test_variance_reduction_never_adds_noise() -> None:
    plain, reduced = (np.cumsum(TreeStream(Tree(variance_reduced=it)).dense(64), axis=0) for it in (False, True))
    assert ((reduced**2).sum(axis=1) <= (plain**2).sum(axis=1)).all()
    assert (reduced[63] ** 2).sum() < 0.51 * (plain[63] ** 2).sum()


# -- the scale -----------------------------------------------------------------------------------------------


@every_mechanism
def test_noise_has_its_scale_and_no_other(strategy: Strategy) -> None:
    stream, rounds = stream_for(strategy), 16
    noise = streamed(stream, seeds_of(stream, rounds, 4_000))
    dense = stream.dense(rounds)
    for round in (0, 6, 7, 15):
        stddev = np.linalg.norm(dense[round])
        assert kstest(noise[round] / stddev, "norm").pvalue > 1e-3
        assert kstest(noise[round] / (1.5 * stddev), "norm").pvalue < 1e-3
        assert kstest(noise[round] * 1.5 / stddev, "norm").pvalue < 1e-3


@every_mechanism
def test_prefix_sums_have_the_variance_of_the_dense_map(strategy: Strategy) -> None:
    """What the model sees: all noise so far. 20,000 coordinates give the variance to 1% (one sigma)."""
    stream, rounds = stream_for(strategy), 16
    measured = np.cumsum(streamed(stream, seeds_of(stream, rounds, 20_000)), axis=0).var(axis=1)
    expected = (np.cumsum(stream.dense(rounds), axis=0) ** 2).sum(axis=1)
    np.testing.assert_allclose(measured, expected, rtol=0.05)


# -- state in, state out -------------------------------------------------------------------------------------


def saved_and_loaded(state: NoiseState) -> NoiseState:
    saved = io.BytesIO()
    np.savez(saved, **state._asdict())
    return NoiseState(**np.load(io.BytesIO(saved.getvalue())))


@every_mechanism
@pytest.mark.parametrize("at", [1, 4, 7, 8, 13])
def test_resuming_changes_nothing(strategy: Strategy, at: int) -> None:
    stream, rounds = stream_for(strategy), 16
    seeds = seeds_of(stream, rounds, 37)
    (_, state) = rest_of(stream, stream.init(37), seeds[:at])[-1]
    again = saved_and_loaded(state)
    uninterrupted = [noise for noise, _ in rest_of(stream, state, seeds)]
    for before, (after, _) in zip(uninterrupted, rest_of(stream_for(strategy), again, seeds), strict=True):
        assert before.tobytes() == after.tobytes()


@every_mechanism
@pytest.mark.parametrize(("whole", "at"), [(0, 3), (1, 2), (3, 12), (8, 8)])
def test_rounds_are_played_again_from_their_keys(strategy: Strategy, whole: int, at: int) -> None:
    """A checkpoint may hold 32 bytes a round in place of the buffers: what was summed and how loud leaves nothing."""
    stream, size = stream_for(strategy), BLOCK // 8 + 3
    state, keys = stream.init(size), []
    for round in range(at):
        if round == whole:
            before = saved_and_loaded(state)
        total = jnp.full(size, np.float32(round + 0.3))
        _, state = stream.add_noise(state, total, stddev=0.1 + round, key=KEY, purpose="model update")
        keys.insert(0, state.keys[0])
    if whole == at:
        before = saved_and_loaded(state)
    again = stream.replayed(before, np.array(keys[: at - whole], np.uint8).reshape(-1, 32))
    for one, other in zip(state, again, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@every_mechanism
def test_memory_is_as_said(strategy: Strategy) -> None:
    """And is carried from the round in which it is first needed."""
    stream = stream_for(strategy)
    steps = rest_of(stream, stream.init(3), seeds_of(stream, 40, 3))
    assert len(stream.init(3).buffers) == stream.memory(0)
    assert [len(state.buffers) for _, state in steps] == [stream.memory(done) for done in range(1, 41)]


def test_how_much_is_carried() -> None:
    carried = {name: stream_for(strategy).memory(40) for name, strategy in STRATEGIES.items()}
    assert carried["independent"] == carried["lambda-cgd"] == carried["banded-inverse, one band"] == 0
    assert carried["blt, b400"] == 4
    assert carried["tree"] == 6
    assert carried["banded-toeplitz"] == 4
    assert carried["banded"] == carried["banded-inverse"] == 3
    assert carried["toeplitz"] == carried["dense"] == 40


@every_mechanism
def test_a_state_serves_for_one_round(strategy: Strategy) -> None:
    """Its buffers have moved on; to use them again would release something else."""
    stream = stream_for(strategy)
    seeds, state = seeds_of(stream, 9, 5), stream.init(5)
    for round in range(9):
        _, after = stream.next(state, taken(stream, round, seeds))
        with pytest.raises(InputError, match=f"the noise state of round {round} was used before.*load the checkpoint"):
            stream.next(state, taken(stream, round, seeds))
        state = after


@every_mechanism
@pytest.mark.parametrize("dimension", [5, BLOCK // 3 + 7, 2 * BLOCK + 40_001])
def test_adding_noise_is_the_sum_and_the_next_noise(strategy: Strategy, dimension: int) -> None:
    """Seeds that are drawn piece by piece are the seeds, bit for bit, and what is released is on the grid."""
    stream = stream_for(strategy)
    rounds = 5 if dimension < BLOCK else 2
    one, two = stream.init(dimension), stream.init(dimension)
    total = np.linspace(-1.0, 1.0, dimension, dtype=np.float32)
    for round in range(rounds):
        step, own = stream.step(round), stream.seeds_in(round)
        noise, one = stream.next(one, seeds_added(stream, two, total))
        grid = grid_for(0.25 * abs(step.seeds[step.fresh(own)]))
        noisy, two = add_noise(stream, two, total)
        np.testing.assert_array_equal(noisy, grid * np.rint((total + 0.25 * noise) / grid))
    np.testing.assert_array_equal(one.buffers, two.buffers)


@every_mechanism
def test_an_accelerator_gets_the_same_bits(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is the host's work, whatever trains."""
    stream = stream_for(strategy)

    def played() -> list[bytes]:
        state, released = stream.init(29), []
        for _ in range(5):
            noisy, state = add_noise(stream, state, jnp.ones(29))
            released.append(np.asarray(noisy).tobytes())
        return released

    here = played()
    monkeypatch.setattr(jax, "default_backend", lambda: "accelerator")
    assert played() == here


def test_seeds_that_are_drawn_again_are_those_that_were_kept() -> None:
    strategy = BandedInverse((1.0, -0.5, -0.125, -0.0625))
    keeps, draws = (BandedInverseStream(strategy, draws_again=again) for again in (False, True))
    assert (keeps.memory(9), draws.memory(9)) == (3, 0)
    assert draws.rounds_drawn(1) == (1, 0)
    assert draws.rounds_drawn(9) == (9, 8, 7, 6)
    seeds = seeds_of(keeps, 20, 50)
    np.testing.assert_allclose(streamed(keeps, seeds), streamed(draws, seeds), rtol=0, atol=1e-14)


FOUR = (PUBLISHED_BLT["b400"], Tree(variance_reduced=True), BandedToeplitz((1.0, 0.5, 0.3)), BandedInverse((1.0, -0.9)))


@pytest.mark.parametrize("strategy", FOUR, ids=lambda strategy: strategy.kind)
def test_bits_do_not_depend_on_the_number_of_threads(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    dimension, stream = 2 * BLOCK + 1, stream_for(strategy)

    def digest(threads: int) -> str:
        opened: list[int] = []

        def pool() -> ThreadPoolExecutor:
            opened.append(threads)
            return ThreadPoolExecutor(threads)

        monkeypatch.setattr(seeds_module, "ThreadPoolExecutor", pool)
        found, state, total = hashlib.sha256(), stream.init(dimension), jnp.ones(dimension)
        for _ in range(3):
            noisy, state = stream.add_noise(state, total, stddev=0.3, key=bytes(16), purpose="model update")
            found.update(bytes(noisy))
        found.update(state.buffers.tobytes() + state.keys.tobytes())
        assert opened, "three blocks need no threads"
        return found.hexdigest()

    assert digest(1) == digest(3)


# -- refusals ------------------------------------------------------------------------------------------------


@every_mechanism
def test_seeds_of_another_shape_are_refused(strategy: Strategy) -> None:
    stream = stream_for(strategy)
    for shape in ((2, 4), (1, 3), (0, 4)):
        with pytest.raises(InputError, match=r"round 0 was given seeds of shape .* needs \(1, 4\)"):
            stream.next(stream.init(4), np.zeros(shape, np.float32))
    with pytest.raises(InputError, match="dimension=0"):
        stream.init(0)


def test_a_sum_of_another_size_is_refused() -> None:
    stream = stream_for(Independent())
    with pytest.raises(InputError, match=r"the sum has shape \(3,\) and its noise \(4,\)"):
        stream.add_noise(stream.init(4), jnp.zeros(3), stddev=1.0, key=KEY, purpose="model update")


@pytest.mark.parametrize("name", ["banded", "toeplitz", "dense"])
def test_rounds_that_a_matrix_does_not_say_are_refused(name: str) -> None:
    stream = stream_for(STRATEGIES[name])
    state = stream.init(2)._replace(round=np.int32(ROUNDS), buffers=np.zeros((stream.memory(ROUNDS), 2), np.float32))
    refusal = rf"a {name} strategy of {ROUNDS} rounds has no noise for round {ROUNDS} .*design one for more.*runs on"
    with pytest.raises(InputError, match=refusal):
        stream.next(state, np.zeros((1, 2), np.float32))
    with pytest.raises(InputError, match=refusal):
        stream.add_noise(state, jnp.zeros(2), stddev=1.0, key=KEY, purpose="model update")


# -- the keys ------------------------------------------------------------------------------------------------


def test_seeds_are_bound_to_all_that_they_are_added_to_and_scaled_by() -> None:
    """A key for each secret, purpose, round, way of using seeds, earlier round and sum; one bit is another sum."""

    def seeds(
        key: bytes = KEY,
        purpose: str = "model update",
        round: int = 7,
        bound_to: bytes = b"how",
        before: bytes = bytes(32),
        summed: npt.NDArray[np.generic] | None = None,
    ) -> bytes:
        summed = ones if summed is None else summed
        return round_key(key, purpose, round, bound_to=bound_to, before=before, summed=summed).seeds

    ones, last, first = np.ones((3, 300_000), np.float32)
    last[-1], first[0] = np.nextafter(last[-1], 2), np.nextafter(first[0], 2)
    others = [seeds(key=bytes(16)), seeds(round=8), seeds(bound_to=b"ho"), seeds(before=bytes(31) + b"1")]
    others += [seeds(purpose=other) for other in PURPOSES[1:]]
    others += [seeds(summed=each) for each in (last, first, last[:-1], last.reshape(3, -1), last.view(np.int32))]
    assert seeds() == seeds()
    assert len({seeds(), *others}) == 1 + len(others)


@every_mechanism
def test_two_sums_never_have_the_same_noise(strategy: Strategy) -> None:
    """Two copies of a run that go on with other data: nothing cancels, now or later; with the same data, all is equal.

    In round 3 the sums differ, and in the rounds after it they are the same again: what was drawn for them differs too,
    or the correlated noise of round 3 would come out as the difference of later rounds.
    """
    stream, size = stream_for(strategy), 3_000
    state = stream.init(size)
    for _ in range(3):
        _, state = add_noise(stream, state, jnp.zeros(size))
    copies = [saved_and_loaded(state) for _ in range(3)]
    seeds: list[list[Seeds]] = [[], [], []]
    for later in range(3):
        for copy, total in enumerate((0.0, 0.0, 1e-3 if later == 0 else 0.0)):
            sums = np.full(size, total, np.float32)
            own = stream.seeds_in(3 + later)
            seeds[copy].append(seeds_added(stream, copies[copy], sums)[:own])
            _, copies[copy] = add_noise(stream, copies[copy], sums)
    for one, equal, other in zip(*seeds, strict=True):
        np.testing.assert_array_equal(one, equal)
        for row, apart in zip(one, other, strict=True):
            assert abs(np.corrcoef(row, apart)[0, 1]) < 5 / size**0.5
            assert kstest((row - apart) / 2**0.5, "norm").pvalue > 1e-4


def test_a_state_without_the_keys_that_a_round_needs_is_refused() -> None:
    stream = stream_for(BandedInverse((1.0, -0.9)))
    with pytest.raises(InputError, match="round 4 holds the keys of 0 earlier rounds and needs 1"):
        add_noise(stream, stream.init(3)._replace(round=np.int32(4)), jnp.ones(3))


# -- the seeds -----------------------------------------------------------------------------------------------


def test_seeds_are_a_pure_function_of_the_key() -> None:
    def draw(key: bytes = KEY, count: int = 2) -> bytes:
        return standard_normal_seeds(key, count, BLOCK // 2 + 1).tobytes()

    assert draw() == draw() != draw(key=bytes(16))
    assert draw(count=1) == draw()[: len(draw()) // 2]  # asking for more does not change the first


def test_blocks_and_vectors_of_seeds_do_not_repeat_each_other() -> None:
    seeds = standard_normal_seeds(KEY, 2, 3 * BLOCK)
    blocks = [hashlib.sha256(block.tobytes()).digest() for block in seeds.reshape(6, BLOCK)]
    assert len(set(blocks)) == 6
    assert abs(np.corrcoef(seeds[0, :BLOCK], seeds[0, BLOCK : 2 * BLOCK])[0, 1]) < 5 / BLOCK**0.5
    assert abs(np.corrcoef(*seeds)[0, 1]) < 5 / seeds.shape[1] ** 0.5
    assert kstest(seeds[0, BLOCK - 50_000 : BLOCK + 50_000], "norm").pvalue > 0.01


def test_seeds_are_those_of_earlier_releases() -> None:
    """A resumed run must draw what it would have drawn. Source: this function when its words became AES's, x86-64.

    Number 48 was drawn in its strip's wedge, 1525 in the tail; 5 of the second vector has counters of its own.
    """
    golden = ["-0x1.07ffa41c3777ap+0", "0x1.92bf03b1fb234p+0", "-0x1.90acec5c0f7a0p+0", "-0x1.0e9b4b665229dp+2"]
    one, two = standard_normal_seeds(KEY, 2, 8000)
    assert [float(number).hex() for number in one[[0, 1, 48, 1525]]] == golden
    assert float(two[5]).hex() == "0x1.710ebf555f07bp-3"


def test_keys_come_from_the_operating_system() -> None:
    assert len({fresh_key() for _ in range(100)}) == 100
    assert all(len(fresh_key()) == 16 for _ in range(3))


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"key": b"short"}, "has 5 bytes"),
        ({"purpose": "weather"}, "purpose='weather'"),
        ({"round": -1}, "round=-1"),
    ],
)
def test_keys_of_nonsense_are_refused(values: dict[str, object], complaint: str) -> None:
    sensible = {"key": KEY, "purpose": "model update", "round": 0, "bound_to": b"", "summed": np.zeros(3)}
    with pytest.raises(InputError, match=complaint):
        round_key(**(sensible | values))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [({"key": b"short"}, "has 5 bytes"), ({"count": -1}, "count=-1"), ({"dimension": 0}, "dimension=0")],
)
def test_seeds_of_nonsense_are_refused(values: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        standard_normal_seeds(**({"key": KEY, "count": 1, "dimension": 3} | values))  # type: ignore[arg-type]
