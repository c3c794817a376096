"""What every mechanism is: a stream of noise vectors, and the seeds that drive it.

Notation: n rounds, d numbers in the model, Z the seeds (total seeds, d) with one row per seed in the order in
which they are drawn, C the strategy matrix (`Strategy.dense`). The noise of round t is row t of the product
`dense(n) @ Z`, in units of one seed standard deviation; `dense(n) @ C` is the identity, so that noise and
strategy speak of the same release.
"""

import struct
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
import numpy.typing as npt
from jax import Array
from scipy.linalg import solve_triangular

from tacit.errors import InputError
from tacit.mechanisms.keys import ROUND_KEY_BYTES, RoundKey, round_key
from tacit.mechanisms.seeds import SeedVector
from tacit.mechanisms.step import NoiseStep
from tacit.mechanisms.step_cpu import noise_of, released
from tacit.privacy.strategy import Strategy

FloatArray = npt.NDArray[np.float64]


class NoiseState(NamedTuple):
    """What a stream carries from round to round; checkpoints keep all as it is.

    The number of buffers may grow (`NoiseStream.memory` says how): a reader takes the shape from the file. They change
    in place, so a state serves for one round, and using it again is an error.
    """

    round: npt.NDArray[np.int32]  # (), the round whose noise comes next
    buffers: npt.NDArray[Any]  # (buffers, d), float64 or float32 as `NoiseStream.carries` says
    keys: npt.NDArray[np.uint8]  # (rounds, 32): keys of the rounds before, the last one first; as secret as the key


class NoiseStream(ABC):
    """The noise of one run, in units of `Guarantee.seed_stddev`."""

    strategy: Strategy
    """The strategy matrix that this noise belongs to, as the accountant takes it."""
    carries: ClassVar[type[np.floating]] = np.float64
    """What is carried: float64 where its rounding would come back for ever, float32 where it comes once (and no
    cheaper half of the memory is given up): docs/floating-point.md, "What is carried"."""

    @property
    def draws_back(self) -> int:
        """How many rounds back a round draws seeds again instead of keeping them."""
        return 0

    def seeds_in(self, round: int) -> int:
        """How many fresh standard normal vectors this round (0-based) needs: one, except in trees."""
        return 1

    def rounds_drawn(self, round: int) -> tuple[int, ...]:
        """The rounds whose seeds this round takes, in the order in which it takes them: its own, then earlier ones."""
        return tuple(round - back for back in range(min(round, self.draws_back) + 1))

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
        return NoiseState(
            np.zeros((), np.int32),
            np.zeros((self.memory(0), dimension), self.carries),
            np.zeros((0, ROUND_KEY_BYTES), np.uint8),
        )

    def next(self, state: NoiseState, seeds: npt.ArrayLike) -> tuple[FloatArray, NoiseState]:
        """The noise (d,) float64 of round `state.round` in the residual form, and the state after it.

        seeds: standard normal, (rows, d) with the `seeds_in` rows of each of `rounds_drawn`; another shape raises
        InputError, and so does a round that the strategy does not define. The old state is spent. Bit-identical
        whatever the number of threads.
        """
        round, rows = int(state.round), np.asarray(seeds, np.float64)
        self._check(round)
        expected = (sum(map(self.seeds_in, self.rounds_drawn(round))), state.buffers.shape[1])
        if rows.shape != expected:
            raise InputError(
                f"round {round} was given seeds of shape {rows.shape}, but this mechanism needs {expected}: draw "
                f"stream.seeds_in(t) vectors of the model's dimension for each t of stream.rounds_drawn({round})."
            )
        buffers = _taken_over(state, self.memory(round + 1))
        noise = noise_of(self.step(round), self.seeds_in(round), buffers, list(rows))
        return noise, NoiseState(np.asarray(round + 1, np.int32), buffers, state.keys)

    def add_noise(
        self, state: NoiseState, total: Array, *, stddev: float, key: bytes, purpose: str
    ) -> tuple[Array, NoiseState]:
        """total (d,) float32 + stddev * the noise of round `state.round`, released on a grid, and the state after it.

        `stddev` is that of a seed (`Guarantee.seed_stddev`). The seeds are `standard_normal_seeds` of a key that is
        bound to all that they are added to (`round_keys`); they are drawn, used and forgotten piece by piece. The
        result is the nearest multiple of `grid_for(stddev * weight of the fresh seed)`. Computed on the host, with the
        same bits whatever the number of threads and the accelerator. Raises InputError as `next` does.
        """
        round, dimension = int(state.round), state.buffers.shape[1]
        if total.shape != (dimension,):
            raise InputError(
                f"the sum has shape {total.shape} and its noise ({dimension},): start a stream for each size of model."
            )
        self._check(round)
        summed = np.asarray(total, np.float32)
        keys = self.round_keys(state, summed, stddev=stddev, key=key, purpose=purpose)
        noisy, after = self._played(state, keys, summed, stddev)
        return jax.device_put(noisy, may_alias=True), after  # nobody writes to it any more

    def replayed(self, state: NoiseState, keys: npt.NDArray[np.uint8]) -> NoiseState:
        """The state after rounds that were played from `state` on: what `add_noise` gave back after them, to the bit.

        keys: (rounds, 32), those rounds' keys, the last first. What is carried follows from seeds alone, whatever they
        were added to, so 32 bytes a round can stand in for buffers. The old state is spent. Raises InputError as
        `next` does.
        """
        nothing = np.zeros(state.buffers.shape[1], np.float32)
        for row in np.asarray(keys, np.uint8)[::-1]:
            self._check(int(state.round))
            earlier = [RoundKey(bytes(each)) for each in state.keys]
            _, state = self._played(state, [RoundKey(bytes(row)), *earlier], nothing, 1.0)
        return state

    def _played(
        self, state: NoiseState, keys: list[RoundKey], summed: npt.NDArray[np.float32], stddev: float
    ) -> tuple[npt.NDArray[np.float32], NoiseState]:
        """What is released of round `state.round` with these keys, its own first, and the state after it."""
        round = int(state.round)
        seeds = [
            SeedVector(of_round.seeds, vector)
            for drawn, of_round in zip(self.rounds_drawn(round), keys, strict=False)
            for vector in range(self.seeds_in(drawn))
        ]
        buffers = _taken_over(state, self.memory(round + 1))
        noisy = released(self.step(round), self.seeds_in(round), buffers, seeds, summed, stddev)
        kept = np.array([list(each.whole) for each in keys[: max(1, self.draws_back)]], np.uint8)
        return noisy, NoiseState(np.asarray(round + 1, np.int32), buffers, kept)

    def round_keys(
        self, state: NoiseState, summed: npt.NDArray[Any], *, stddev: float, key: bytes, purpose: str
    ) -> list[RoundKey]:
        """The key of the seeds of round `state.round`, and those of the rounds before it that the state holds.

        The key is bound to the sum, to the standard deviation, to what the round does with its seeds, and, by the key
        of the round before, to all earlier rounds. InputError where an earlier key is missing that the round needs.
        """
        round = int(state.round)
        before = [RoundKey(bytes(row)) for row in np.asarray(state.keys, np.uint8)]
        if len(before) < min(round, max(1, self.draws_back)):
            raise InputError(
                f"the noise state of round {round} holds the keys of {len(before)} earlier rounds and needs "
                f"{min(round, max(1, self.draws_back))}: go on from a state that add_noise gave back."
            )
        bound_to = struct.pack("<d", stddev) + self.step(round).to_bytes()
        last = before[0].whole if before else b""
        return [round_key(key, purpose, round, bound_to=bound_to, summed=summed, before=last), *before]

    def _check(self, round: int) -> None:
        """InputError beyond the rounds that the strategy says."""
        defined = self.strategy.rounds_defined
        if defined is not None and round >= defined:
            raise InputError(
                f"a {self.strategy.kind} strategy of {defined} rounds has no noise for round {round} (counted from 0): "
                f"design one for more rounds, or take a mechanism that runs on (tree, blt, banded-toeplitz, "
                "banded-inverse)."
            )


def _taken_over(state: NoiseState, rows: int) -> npt.NDArray[Any]:
    """The buffers of a state to be written in, with as many rows, new ones zero. The state itself is spent by it."""
    given = state.buffers
    if not given.flags.writeable:
        raise InputError(
            f"the noise state of round {int(state.round)} was used before and its buffers have moved on: take the "
            "state that came back with the noise, or load the checkpoint."
        )
    if len(given) == rows:
        buffers = given.view()
    else:
        buffers = np.zeros((rows, given.shape[1]), given.dtype)
        buffers[: len(given)] = given
    given.flags.writeable = False
    return buffers
