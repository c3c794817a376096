"""Training the same model on everybody's text in one place: what federated learning is measured against.

Nobody's text may be pooled like this outside a simulation, and no guarantee is given: it is the upper
baseline of a federated run that saw as many sentences. The pooled sentences are shuffled anew in every
pass, so that a batch mixes many clients, which is what a client's own batches never do.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol, Self, get_args, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from numpy.typing import NDArray

from tacit.compute.precision import BFLOAT16, Precision
from tacit.data import Cache
from tacit.errors import InputError, TrainingError
from tacit.training.client import Loss, Model
from tacit.training.randomness import generator_for

STEPS_AT_ONCE = 32  # in one compiled call: dispatch and progress cost nothing, and a block is a few megabytes


@runtime_checkable
class HasGradient(Protocol):
    """A loss that knows a faster gradient on processors, in float32 and in bfloat16."""

    def with_gradient(self, model: Model, sentences: Array, *, precision: Precision) -> tuple[Array, Model]:
        """(mean loss, gradient), exact but for the rounding of the precision."""
        ...


@dataclass(frozen=True, kw_only=True)
class CentralTraining:
    """How the pooled text is learnt; the learning rate warms up linearly, then falls to 0 along a cosine."""

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 2e-3  # adam's; sgd with momentum wants about 0.5
    momentum: float = 0.9  # sgd only; adam has its usual 0.9 and 0.999
    warmup: float = 0.05  # share of the steps
    gradient_norm: float = 1.0  # longer gradients are scaled down to it, which keeps a recurrent model from diverging
    batch_size: int = 64
    words: int = 20  # predicted words of a sentence, as in `ClientTraining`
    precision: Precision = "float32"  # bfloat16: of the operands of products; twice as fast where there are units

    def __post_init__(self) -> None:
        if self.optimizer not in ("adam", "sgd"):
            raise InputError(f"central.optimizer={self.optimizer!r} is unknown; it is 'adam' or 'sgd'.")
        for name in ("learning_rate", "gradient_norm"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise InputError(f"central.{name}={value} must be a positive number.")
        for name in ("momentum", "warmup"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"central.{name}={getattr(self, name)} must be in [0, 1).")
        for name in ("batch_size", "words"):
            if getattr(self, name) < 1:
                raise InputError(f"central.{name}={getattr(self, name)} must be at least 1.")
        if self.precision not in get_args(Precision):
            raise InputError(f"central.precision='{self.precision}' is unknown; use float32 or bfloat16.")

    def transformation(self, steps: int) -> optax.GradientTransformation:
        """The optimizer of a run of `steps` steps."""
        warmup = round(self.warmup * steps)
        rate = optax.warmup_cosine_decay_schedule(
            0.0 if warmup else self.learning_rate, self.learning_rate, warmup, steps
        )
        inner = optax.adam(rate) if self.optimizer == "adam" else optax.sgd(rate, momentum=self.momentum)
        return optax.chain(optax.clip_by_global_norm(self.gradient_norm), inner)


class CentralState(NamedTuple):
    """Where a run is: all that its continuation depends on, besides its text, its settings and its key."""

    sentences: int  # seen so far, of those asked for
    loss: float  # mean training loss over the last block of steps; nan before the first
    model: Model
    optimizer: Any  # the optimizer's state


@dataclass(frozen=True, kw_only=True)
class Pool:
    """All sentences of some clients in memory (2 bytes a word for most vocabularies)."""

    ids: NDArray[Any]
    starts: NDArray[np.int64]  # (sentences + 1,)

    @classmethod
    def from_cache(cls, cache: Cache, clients: NDArray[np.int64]) -> Self:
        """Raises: InputError when the clients have no sentence."""
        parts = [cache.sentences(int(client)) for client in clients]
        if not sum(len(lengths) for _, lengths in parts):
            raise InputError(f"the {len(clients)} clients to train on have no sentence; import more text.")
        lengths = np.concatenate([lengths for _, lengths in parts])
        return cls(ids=np.concatenate([ids for ids, _ in parts]), starts=np.append(0, np.cumsum(lengths)))

    def padded(self, chosen: NDArray[np.int64], words: int) -> NDArray[np.int32]:
        """The chosen sentences (n, words + 1), cut and padded; a choice of -1 is a row of padding."""
        offsets = np.arange(words + 1)
        lengths = np.where(chosen < 0, 0, self.starts[chosen + 1] - self.starts[chosen])
        there = offsets[None, :] < lengths[:, None]
        at = np.where(there, self.starts[chosen][:, None] + offsets[None, :], 0)
        return np.where(there, self.ids[at], 0).astype(np.int32)


def central_start(start: Model, sentences: int, settings: CentralTraining) -> CentralState:
    """The state before the first sentence. Raises: InputError when none is asked for."""
    if sentences < 1:
        raise InputError(f"sentences={sentences} must be at least 1.")
    optimizer = settings.transformation(-(-sentences // settings.batch_size))
    return CentralState(0, float("nan"), jax.tree.map(jnp.asarray, start), optimizer.init(start))


def central_states(
    loss: Loss,
    begin: CentralState,
    cache: Cache,
    clients: NDArray[np.int64],
    *,
    sentences: int,
    settings: CentralTraining,
    key: bytes,
) -> Iterator[CentralState]:
    """The state after each block of steps that follows `begin`, which is `central_start`'s or one of these.

    Raises: InputError when there is nothing to train on; TrainingError when the loss is not finite.
    """
    pool = Pool.from_cache(cache, clients)
    block = _block(loss, settings, -(-sentences // settings.batch_size))
    seen, _, model, optimizer = begin
    for chosen in _blocks(len(pool.starts) - 1, sentences, settings.batch_size, key, begin=seen):
        batches = pool.padded(chosen, settings.words).reshape(-1, settings.batch_size, settings.words + 1)
        used = -(-int((chosen >= 0).sum()) // settings.batch_size)
        model, optimizer, mean = block(model, optimizer, batches, np.int32(used))
        seen += int((chosen >= 0).sum())
        if not math.isfinite(float(mean)):
            raise TrainingError(
                f"the loss is {float(mean)} after {seen} sentences, so the model has diverged; lower "
                f"central.learning_rate={settings.learning_rate}."
            )
        yield CentralState(seen, float(mean), model, optimizer)


def _blocks(pooled: int, sentences: int, batch_size: int, key: bytes, *, begin: int = 0) -> Iterator[NDArray[np.int64]]:
    """The sentences of each block of steps from the `begin`-th sentence on, filled up with -1; one pass follows another
    without a gap.
    """
    size = STEPS_AT_ONCE * batch_size
    passes, skipped = divmod(begin, pooled)
    waiting = np.zeros(0, np.int64)
    if skipped:
        waiting, passes = generator_for(key, "central order", passes).permutation(pooled)[skipped:], passes + 1
    for first in range(begin, sentences, size):
        wanted = min(size, sentences - first)
        while len(waiting) < wanted:
            order = generator_for(key, "central order", passes).permutation(pooled)
            waiting, passes = np.concatenate([waiting, order]), passes + 1
        yield np.pad(waiting[:wanted], (0, size - wanted), constant_values=-1)
        waiting = waiting[wanted:]


@lru_cache(maxsize=8)
def _block(loss: Loss, settings: CentralTraining, steps: int) -> Any:
    """The compiled (model, state, batches (STEPS_AT_ONCE, B, L+1), used) -> (model, state, mean loss)."""
    optimizer = settings.transformation(steps)

    def block(model: Model, state: Any, batches: Array, used: Array) -> tuple[Model, Any, Array]:
        def step(i: Array, carry: tuple[Model, Any, Array]) -> tuple[Model, Any, Array]:
            model, state, total = carry
            value, gradient = _with_gradient(loss, settings.precision, model, batches[i])
            change, state = optimizer.update(gradient, state, model)
            return optax.apply_updates(model, change), state, total + value

        model, state, total = lax.fori_loop(0, used, step, (model, state, jnp.float32(0.0)))
        return model, state, total / used

    return jax.jit(block)


def _with_gradient(loss: Loss, precision: Precision, model: Model, sentences: Array) -> tuple[Array, Model]:
    """(mean loss, gradient): on processors by the loss's own fast path, if it has one."""
    if jax.default_backend() != "cpu":
        with jax.default_matmul_precision(BFLOAT16 if precision == "bfloat16" else None):
            return jax.value_and_grad(loss)(model, sentences)
    if isinstance(loss, HasGradient):
        return loss.with_gradient(model, sentences, precision=precision)
    return jax.value_and_grad(loss)(model, sentences)
