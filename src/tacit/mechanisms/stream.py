"""What every mechanism is: a stream of noise vectors, and the seeds that drive it.

Notation: n rounds, d numbers in the model, Z the seeds (total seeds, d) with one row per seed in the order in
which they are drawn, C the strategy matrix (`Strategy.dense`). The noise of round t is row t of the product
`dense(n) @ Z`, in units of one seed standard deviation; `dense(n) @ C` is the identity, so that noise and
strategy speak of the same release.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array
from scipy.linalg import solve_triangular

from tacit.errors import InputError
from tacit.mechanisms import step_accelerator as device
from tacit.mechanisms import step_cpu as blocks
from tacit.mechanisms.seeds import SeedSource, standard_normal_seeds
from tacit.mechanisms.step import NoiseStep
from tacit.privacy.strategy import Strategy

Vector = npt.NDArray[np.float32]


class NoiseState(NamedTuple):
    """What a stream carries from round to round; checkpoints keep both as they are.

    The number of buffers may grow (`NoiseStream.memory` says how): a reader takes the shape from the file. On a CPU
    they are NumPy's and change in place, on an accelerator they are JAX's and are donated; either way a state serves
    for one round, and using it again is an error.
    """

    round: npt.NDArray[np.int32] | Array  # () int32, the round whose noise comes next
    buffers: Vector | Array  # (buffers, d) float32


class NoiseStream(ABC):
    """The noise of one run, in units of `Guarantee.seed_stddev`."""

    strategy: Strategy
    """The strategy matrix that this noise belongs to, as the accountant takes it."""

    def seeds_in(self, round: int) -> int:
        """How many fresh standard normal vectors this round (0-based) needs: one, except in trees."""
        return 1

    def rounds_drawn(self, round: int) -> tuple[int, ...]:
        """The rounds whose seeds this round takes, in the order in which it takes them: its own, and earlier ones
        where a stream draws them again instead of keeping them.
        """
        return (round,)

    def memory(self, rounds: int) -> int:
        """How many vectors of the model's size are carried when so many rounds are done: what the strategy says."""
        return self.strategy.memory(rounds)

    @abstractmethod
    def step(self, round: int) -> NoiseStep:
        """What this round does with its seeds and with the `memory(round)` vectors carried."""

    def dense(self, rounds: int) -> npt.NDArray[np.float64]:
        """The map from seeds to noise, (rounds, total seeds), written down slowly: the tests' oracle. C^{-1}."""
        inverse: npt.NDArray[np.float64] = solve_triangular(self.strategy.dense(rounds), np.eye(rounds), lower=True)
        return inverse

    def init(self, dimension: int) -> NoiseState:
        """The state before round 0 for a model of `dimension` numbers: buffers of zeros."""
        if dimension < 1:
            raise InputError(f"dimension={dimension} must be at least 1: the number of parameters of the model.")
        return NoiseState(np.zeros((), np.int32), np.zeros((self.memory(0), dimension), np.float32))

    def next(self, state: NoiseState, seeds: Vector | Array) -> tuple[Array, NoiseState]:
        """The noise (d,) float32 of round `state.round` in the residual form, and the state after it.

        seeds: standard normal, (rows, d) with the `seeds_in` rows of each of `rounds_drawn`; another shape raises
        InputError, and so does a round that the strategy does not define. The old state is spent. Bit-identical
        whatever the number of threads.
        """
        round = int(state.round)
        self._check(round)
        expected = (sum(map(self.seeds_in, self.rounds_drawn(round))), state.buffers.shape[1])
        if seeds.shape != expected:
            raise InputError(
                f"round {round} was given seeds of shape {tuple(seeds.shape)}, but this mechanism needs "
                f"{expected}: draw stream.seeds_in(t) vectors of the model's dimension for each t of "
                f"stream.rounds_drawn({round})."
            )
        return self._run(state, list(np.asarray(seeds, np.float32)), None, 1.0)

    def add_noise(
        self, state: NoiseState, total: Array, *, stddev: float, key: bytes, purpose: str
    ) -> tuple[Array, NoiseState]:
        """total (d,) + stddev * the noise of round `state.round`, and the state after it: `next` for a round that is
        played for good.

        The seeds are `standard_normal_seeds(key, purpose, ...)`; on a CPU they are drawn, used and forgotten piece
        by piece. Bit-identical whatever the number of threads. Raises InputError as `next` does. `stddev` is that of
        a seed (`Guarantee.seed_stddev`).
        """
        round, dimension = int(state.round), state.buffers.shape[1]
        if total.shape != (dimension,):
            raise InputError(
                f"the sum has shape {total.shape} and its noise ({dimension},): start a stream for each size of model."
            )
        self._check(round)
        seeds: list[Vector | SeedSource] = []
        for drawn in self.rounds_drawn(round):
            count = self.seeds_in(drawn)
            if count == 1:
                seeds.append(SeedSource(key, purpose, drawn))
            else:  # the second vector begins within a counter block, which cannot be entered in its middle
                seeds.extend(standard_normal_seeds(key, purpose, drawn, count, dimension))
        return self._run(state, seeds, total, stddev)

    def _check(self, round: int) -> None:
        """InputError beyond the rounds that the strategy says."""
        defined = self.strategy.rounds_defined
        if defined is not None and round >= defined:
            raise InputError(
                f"a {self.strategy.kind} strategy of {defined} rounds has no noise for round {round} (counted from 0): "
                f"design one for more rounds, or take a mechanism that runs on (tree, blt, banded-toeplitz, "
                "banded-inverse)."
            )

    def _run(
        self, state: NoiseState, seeds: Sequence[Vector | SeedSource], onto: Array | None, scale: float
    ) -> tuple[Array, NoiseState]:
        """onto + scale * noise, where this machine computes best."""
        round, (_, dimension) = int(state.round), state.buffers.shape
        step, after = self.step(round), np.asarray(round + 1, np.int32)
        if jax.default_backend() == "cpu":
            buffers = _taken_over(state, self.memory(round + 1))
            given = None if onto is None else np.asarray(onto, np.float32)
            noise = blocks.run_step(step, buffers, seeds, given, scale)
            return jax.device_put(noise, may_alias=True), NoiseState(after, buffers)  # nobody writes to it any more
        rows = [seed.draw(dimension) if isinstance(seed, SeedSource) else seed for seed in seeds]
        carried = jnp.asarray(state.buffers)
        carried = jnp.pad(carried, ((0, self.memory(round + 1) - len(carried)), (0, 0)))
        on_device, carried = device.run_step(step, carried, jnp.asarray(np.stack(rows)), onto, scale)
        return on_device, NoiseState(after, carried)


def _taken_over(state: NoiseState, rows: int) -> Vector:
    """The buffers of a state to be written in, with as many rows, new ones zero. The state itself is spent by it."""
    given = state.buffers
    if not isinstance(given, np.ndarray):
        given = np.array(given)
    if not given.flags.writeable:
        raise InputError(
            f"the noise state of round {int(state.round)} was used before and its buffers have moved on: take the "
            "state that came back with the noise, or load the checkpoint."
        )
    if len(given) == rows:
        buffers = given.view()
    else:
        buffers = np.zeros((rows, given.shape[1]), np.float32)
        buffers[: len(given)] = given
    given.flags.writeable = False
    return buffers
