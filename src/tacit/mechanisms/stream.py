"""What every mechanism is: a stream of noise vectors, and the seeds that drive it.

Notation: n rounds, d numbers in the model, Z the seeds (total seeds, d) with one row per seed in the order in
which they are drawn, C the strategy matrix (`Strategy.dense`). The noise of round t is row t of the product
`dense(n) @ Z`, in units of one seed standard deviation; `dense(n) @ C` is the identity, so that noise and
strategy speak of the same release.
"""

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from tacit.errors import InputError
from tacit.privacy.strategy import Blt, Independent, Strategy, Tree

KEY_BYTES = 16  # Philox has a key of 128 bits
# What seeds are drawn for; append only, because the place in this tuple is part of the generator's counter.
PURPOSES = ("model update", "clip norm")
BLOCK = 1 << 18  # seeds from one counter block, 1 MiB: changing it changes every seed


class NoiseState(NamedTuple):
    """What a stream carries from round to round; checkpoints keep both as they are.

    The number of buffers may grow (trees have one per level reached): a reader takes the shape from the file.
    """

    round: Array  # () int32, the round whose noise comes next
    buffers: Array  # (buffers, d) float32


class NoiseStream(Protocol):
    """The noise of one run, in units of `Guarantee.seed_stddev`."""

    @property
    def strategy(self) -> Strategy:
        """The strategy matrix that this noise belongs to, as the accountant takes it."""

    def seeds_in(self, round: int) -> int:
        """How many fresh standard normal vectors this round (0-based) needs."""

    def init(self, dimension: int) -> NoiseState:
        """The state before round 0 for a model of `dimension` numbers."""

    def next(self, state: NoiseState, seeds: npt.NDArray[np.float32] | Array) -> tuple[Array, NoiseState]:
        """The noise (d,) float32 of round `state.round` in the residual form, and the state after it.

        seeds: (seeds_in(round), d) standard normal; another shape raises InputError (under an outer jit,
        where the round is not known, the caller answers for it). The old state's buffers are donated: once
        `next` was called, only the new state is good. Bit-identical whatever the number of threads.
        """

    def dense(self, rounds: int) -> npt.NDArray[np.float64]:
        """The map from seeds to noise, (rounds, total seeds), written down slowly: the tests' oracle."""


def stream_for(strategy: Strategy) -> NoiseStream:
    """The stream of a strategy; InputError for one that can be accounted for but not streamed."""
    # Imported here because each of these files builds on this one.
    from tacit.mechanisms.blt import BltStream
    from tacit.mechanisms.independent import IndependentStream
    from tacit.mechanisms.tree import TreeStream

    match strategy:
        case Independent():
            return IndependentStream(strategy)
        case Tree():
            return TreeStream(strategy)
        case Blt():
            return BltStream(strategy)
        case _:
            raise InputError(
                f"{type(strategy).__name__} noise cannot be streamed one round at a time: use Independent, Tree or Blt."
            )


def check_seeds(stream: NoiseStream, state: NoiseState, seeds: npt.NDArray[np.float32] | Array) -> None:
    """InputError unless the seeds are those of this round; says nothing under an outer jit."""
    if isinstance(state.round, jax.core.Tracer):
        return
    round = int(state.round)
    expected = (stream.seeds_in(round), state.buffers.shape[1])
    if seeds.shape != expected:
        raise InputError(
            f"round {round} was given seeds of shape {tuple(seeds.shape)}, but this mechanism needs "
            f"{expected}: draw stream.seeds_in({round}) vectors of the model's dimension."
        )


def new_state(buffers: int, dimension: int) -> NoiseState:
    """Round 0 and so many buffers of zeros."""
    if dimension < 1:
        raise InputError(f"dimension={dimension} must be at least 1: the number of parameters of the model.")
    return NoiseState(jnp.zeros((), jnp.int32), jnp.zeros((buffers, dimension), jnp.float32))


def fresh_key() -> bytes:
    """A key of 128 bits from the operating system: what private noise is made of."""
    return secrets.token_bytes(KEY_BYTES)


def standard_normal_seeds(key: bytes, purpose: str, round: int, count: int, dimension: int) -> npt.NDArray[np.float32]:
    """Standard normal vectors (count, dimension) float32: a pure function of the arguments, in no other
    order.

    NumPy's Philox4x64-10 under `key`, counter words (running, block, purpose, round) from the lowest: blocks
    of 2**18 numbers start 2**64 steps apart, so threads may fill them and neither their number nor the order
    matters. The values are those of NumPy's ziggurat and may change with a new NumPy (its NEP 19); a golden
    test watches. Philox is a statistical generator, not a cipher: the server that adds the noise is trusted
    to keep the key.
    """
    if len(key) != KEY_BYTES:
        raise InputError(f"a noise key has {len(key)} bytes, but must have {KEY_BYTES}: take one from fresh_key().")
    if purpose not in PURPOSES:
        raise InputError(f"purpose={purpose!r} is not one that seeds are drawn for: {', '.join(PURPOSES)}.")
    if round < 0 or count < 0 or dimension < 1:
        raise InputError(
            f"round={round}, count={count}, dimension={dimension} cannot be: rounds and counts begin at 0, "
            "a dimension at 1."
        )
    words = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    flat = np.empty(count * dimension, np.float32)

    def fill(block: int) -> None:
        counter = np.array([0, block, PURPOSES.index(purpose), round], dtype=np.uint64)
        generator = np.random.Generator(np.random.Philox(key=words, counter=counter))
        generator.standard_normal(out=flat[block * BLOCK : (block + 1) * BLOCK], dtype=np.float32)

    with ThreadPoolExecutor() as pool:  # NumPy fills without the interpreter's lock
        list(pool.map(fill, range(-(-flat.size // BLOCK))))
    return flat.reshape(count, dimension)
