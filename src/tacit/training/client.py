"""What a client computes, and the sum over a few of them on one XLA device.

What a device does with its text is a function, `ClientAlgorithm`: `local_update`, the papers' local SGD, or another in
its place. On CPU clients train one after another inside one compiled scan (a vmap over clients is 2.4-3.3x slower
there), by the loss's own step where it has one.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, get_args, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.aggregation.clipping import clip
from tacit.compute.precision import Precision, usable_precision
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.cache import Cache

Model = Any  # a pytree of float32 arrays
Loss = Callable[[Model, Array], Array]  # (model, padded sentences (B, L+1)) -> mean loss, ()
Step = Callable[[Model, Array], tuple[Model, Array]]  # the same -> (the model one step of SGD down, mean loss)


@runtime_checkable
class Descends(Protocol):
    """A loss that knows a fast step down its slope on processors, in float32 and in bfloat16."""

    def descend(
        self, model: Model, sentences: Array, learning_rate: float, *, precision: Precision
    ) -> tuple[Model, Array]:
        """(model - learning_rate * gradient, mean loss), exact but for the rounding of the precision."""
        ...


MOST = 100_000  # epochs, sentences, words: more than any device has in a round


@dataclass(frozen=True, kw_only=True)
class ClientTraining:
    """What every client does with its text in a round; changes the result.

    None of it changes the guarantee: whatever a client computes, its update is clipped before the sum.
    """

    epochs: int = 1
    batch_size: int = 16
    learning_rate: float = 0.5
    sentences: int = 64  # of a client with more, a fresh random subset each time: nobody dominates a round
    words: int = 20  # predicted words of a sentence; the rest of a longer one is not used
    proximal: float = 0.0  # FedProx's mu: pulls a client back to the broadcast model, against drift over many steps
    precision: Precision = "float32"  # bfloat16: products on processors that have units for it; 0.3% of an update

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "sentences", "words"):
            if not 1 <= getattr(self, name) <= MOST:
                raise InputError(f"client.{name}={getattr(self, name)} must be at least 1 and at most {MOST:,}.")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InputError(
                f"client.learning_rate={self.learning_rate} must be a positive number; 0.5 is a start for tuning."
            )
        if not 0 <= self.proximal * self.learning_rate < 1:
            raise InputError(
                f"client.proximal={self.proximal} must be 0 or more and below 1/client.learning_rate="
                f"{1 / self.learning_rate:g}, where a step already lands on the broadcast model; use 0.001 to 1."
            )
        if self.precision not in get_args(Precision):
            raise InputError(f"client.precision='{self.precision}' is unknown; use float32 or bfloat16.")


NOBODY = -1  # in the place of a client: shards of one size are one compiled program


class ClientData(NamedTuple):
    """The sentences of a cohort, padded: what the devices would read from their own disks."""

    sentences: NDArray[np.int32]  # (clients, S, L+1), S a multiple of the batch size; empty rows are all padding
    batches: NDArray[np.int32]  # (clients,): how many batches hold anything


class ClientAlgorithm(Protocol):
    """What a device does with its text in a round: any function that JAX can compile, `local_update` by default.

    No guarantee rests on it: whatever comes back is clipped before the sum, and dropped where it is not finite.
    """

    def __call__(
        self, loss: Loss, model: Model, sentences: Array, batches: Array, settings: ClientTraining, *, step: Step
    ) -> tuple[Model, Array]:
        """(update, mean loss ()) from the broadcast model; the update is theta - model, with the model's structure.

        sentences: (S, L+1), of which the first `batches` () batches of settings.batch_size hold text. `step` is one
        step of SGD at settings.learning_rate, by the network's own fast path where it has one.
        """
        ...

    def __hash__(self) -> int:
        """Compiled code is kept by it; functions and frozen dataclasses have one."""
        ...


@dataclass(frozen=True, kw_only=True)
class ClientWork:
    """All that a client's computation depends on besides the broadcast model and its own randomness."""

    loss: Loss
    unravel: Callable[[Array], Model]
    cache: "Cache"
    settings: ClientTraining
    algorithm: ClientAlgorithm | None = None  # None: `local_update`


def gather(cache: "Cache", clients: NDArray[np.int64], settings: ClientTraining, seed: bytes) -> ClientData:
    """A random subset of each client's sentences, in random order, cut and padded.

    A client's choice follows from (seed, client) alone, as on a device: not from who else is in the cohort or shard.
    NOBODY has no text, hence an update of zero.
    """
    rows = -(-settings.sentences // settings.batch_size) * settings.batch_size
    sentences = np.zeros((len(clients), rows, settings.words + 1), np.int32)
    batches = np.zeros(len(clients), np.int32)
    for i in np.flatnonzero(clients != NOBODY):
        client = clients[i]
        chosen = own_generator(seed, int(client)).permutation(cache.sentence_count(int(client)))[: settings.sentences]
        sentences[i, : len(chosen)] = cache.padded(int(client), chosen, settings.words + 1)
        batches[i] = -(-len(chosen) // settings.batch_size)
    return ClientData(sentences, batches)


def own_generator(seed: bytes, client: int) -> np.random.Generator:
    """A client's own randomness in a round."""
    digest = hashlib.sha256(seed + client.to_bytes(8, "little")).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def local_update(
    loss: Loss, model: Model, sentences: Array, batches: Array, settings: ClientTraining, *, step: Step | None = None
) -> tuple[Model, Array]:
    """Local SGD from the broadcast model [paper 1, Alg. 1, ClientUpdate]: (theta - theta_t, mean loss).

    sentences: (S, L+1); the first `batches` batches of them are used, in order, `epochs` times. step: a faster one
    than by the loss's gradient. With settings.proximal = mu the objective of every step is loss + mu/2 |theta -
    theta_t|^2 [FedProx, arXiv:1812.06127, eq. 2].
    """
    steps = settings.epochs * batches
    descend = step or partial(_by_gradient, loss, settings.learning_rate)

    def one(i: Array, carry: tuple[Model, Array]) -> tuple[Model, Array]:
        theta, total = carry
        batch = lax.dynamic_slice_in_dim(sentences, lax.rem(i, batches) * settings.batch_size, settings.batch_size)
        below, value = descend(theta, batch)
        if settings.proximal:
            pull = settings.learning_rate * settings.proximal
            below = jax.tree.map(lambda b, at, start: b - pull * (at - start), below, theta, model)
        return below, total + value

    theta, total = lax.fori_loop(0, steps, one, (model, jnp.float32(0.0)))
    return jax.tree.map(jnp.subtract, theta, model), total / jnp.maximum(steps, 1)


def _by_gradient(loss: Loss, learning_rate: float, theta: Model, batch: Array) -> tuple[Model, Array]:
    value, gradient = jax.value_and_grad(loss)(theta, batch)
    return jax.tree.map(lambda p, g: p - learning_rate * g, theta, gradient), value


def precision_of(work: ClientWork, platform: str = "cpu") -> Precision:
    """What this machine's devices of a platform (JAX's name) compute in; a run's record should say it.

    An accelerator multiplies in the requested precision; a processor needs units for it, and a loss with its own step.
    """
    if platform != "cpu":
        return work.settings.precision
    return usable_precision(work.settings.precision) if isinstance(work.loss, Descends) else "float32"


def sgd_step(loss: Loss, settings: ClientTraining, precision: Precision | None = None) -> Step:
    """One step of SGD: the loss's own in this precision; None: by its gradient."""

    def step(theta: Model, batch: Array) -> tuple[Model, Array]:
        if precision is None or not isinstance(loss, Descends):
            return _by_gradient(loss, settings.learning_rate, theta, batch)
        return loss.descend(theta, batch, settings.learning_rate, precision=precision)

    return step


@lru_cache(maxsize=8)
def one_client(
    loss: Loss,
    unravel: Callable[[Array], Model],
    settings: ClientTraining,
    algorithm: ClientAlgorithm | None,
    precision: Precision | None,
) -> Any:
    """What one client computes, compiled: (flat model, sentences, batches, clip norm) -> (clipped update (d,), norm,
    finite, loss). precision: as for a group.
    """
    update_of, step = algorithm or local_update, sgd_step(loss, settings, precision)

    def part(flat: Array, sentences: Array, batches: Array, clip_norm: Array) -> tuple[Array, ...]:
        update, mean_loss = update_of(loss, unravel(flat), sentences, batches, settings, step=step)
        clipped = clip(update, clip_norm)
        return ravel_pytree(clipped.update)[0], clipped.norm, clipped.finite, mean_loss

    return jax.jit(part)
