"""What a client computes, and how a cohort of them is simulated on CPU cores.

On CPU clients train one after another inside one compiled scan (a vmap over clients is 2.4-3.3x slower there), in
groups whose size follows from the cohort's. Groups go to the workers as these come free, and their sums are added in
the order of the groups. So the result depends on the cohort alone, to the last bit, not on how many workers there are.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from queue import SimpleQueue
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.aggregation import clip
from tacit.errors import InputError
from tacit.population import Cache

Model = Any  # a pytree of float32 arrays
Loss = Callable[[Model, Array], Array]  # (model, padded sentences (B, L+1)) -> mean loss, ()

# Clients are summed in groups, one compiled call each. The size is a function of the cohort's alone, because it is
# part of the result (the order of additions): about ten groups, so that any few workers share them evenly, and not
# above 16, where a call's own cost (memory that the system hands out page by page) is no longer seen.
GROUPS, LARGEST_GROUP = 10, 16


@dataclass(frozen=True, kw_only=True)
class ClientTraining:
    """What every client does with its text in a round; changes the result."""

    epochs: int = 1
    batch_size: int = 16
    learning_rate: float = 0.5
    sentences: int = 64  # of a client with more, a fresh random subset each time: nobody dominates a round
    words: int = 20  # predicted words of a sentence; the rest of a longer one is not used

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "sentences", "words"):
            if getattr(self, name) < 1:
                raise InputError(f"client.{name}={getattr(self, name)} must be at least 1.")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InputError(
                f"client.learning_rate={self.learning_rate} must be a positive number; 0.5 is a start for tuning."
            )


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What changes only the speed; a test asserts the same model for any value."""

    workers: int = 0  # 0: one per core

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise InputError(f"workers={self.workers} must be 0 (one per core) or more.")


class ClientData(NamedTuple):
    """The sentences of a cohort, padded: what the phones would read from their own disks."""

    sentences: NDArray[np.int32]  # (clients, S, L+1), S a multiple of the batch size; empty rows are all padding
    batches: NDArray[np.int32]  # (clients,): how many batches hold anything


class CohortSum(NamedTuple):
    """What the server receives of a cohort, and what a simulation may look at besides."""

    total: Array  # (d,) float32: the sum of the clipped updates
    norms: NDArray[np.float32]  # (clients,) before clipping
    finite: NDArray[np.bool_]  # (clients,): False were dropped
    losses: NDArray[np.float32]  # (clients,) mean training loss over the client's batches


def gather(
    cache: Cache, clients: NDArray[np.int64], settings: ClientTraining, generator: np.random.Generator
) -> ClientData:
    """A random subset of each client's sentences, in random order, cut and padded."""
    rows = -(-settings.sentences // settings.batch_size) * settings.batch_size
    sentences = np.zeros((len(clients), rows, settings.words + 1), np.int32)
    batches = np.zeros(len(clients), np.int32)
    for i, client in enumerate(clients):
        chosen = generator.permutation(cache.sentence_count(int(client)))[: settings.sentences]
        sentences[i, : len(chosen)] = cache.padded(int(client), chosen, settings.words + 1)
        batches[i] = -(-len(chosen) // settings.batch_size)
    return ClientData(sentences, batches)


def local_update(
    loss: Loss, model: Model, sentences: Array, batches: Array, settings: ClientTraining
) -> tuple[Model, Array]:
    """Local SGD from the broadcast model [paper 1, Alg. 1, ClientUpdate]: (theta - theta_t, mean loss).

    sentences: (S, L+1); the first `batches` batches of them are used, in order, `epochs` times.
    """
    steps = settings.epochs * batches

    def step(i: Array, carry: tuple[Model, Array]) -> tuple[Model, Array]:
        theta, total = carry
        batch = lax.dynamic_slice_in_dim(sentences, lax.rem(i, batches) * settings.batch_size, settings.batch_size)
        value, gradient = jax.value_and_grad(loss)(theta, batch)
        return jax.tree.map(lambda p, g: p - settings.learning_rate * g, theta, gradient), total + value

    theta, total = lax.fori_loop(0, steps, step, (model, jnp.float32(0.0)))
    return jax.tree.map(jnp.subtract, theta, model), total / jnp.maximum(steps, 1)


@lru_cache(maxsize=8)
def _group_sum(loss: Loss, unravel: Callable[[Array], Model], settings: ClientTraining) -> Any:
    """The compiled sum over one group: (flat model, sentences, batches, clip norm) -> (sum, norms, finite, losses)."""

    def group_sum(flat: Array, sentences: Array, batches: Array, clip_norm: Array) -> tuple[Array, Array, Array, Array]:
        model = unravel(flat)

        def add(total: Model, client: tuple[Array, Array]) -> tuple[Model, tuple[Array, Array, Array]]:
            update, mean_loss = local_update(loss, model, *client, settings)
            clipped = clip(update, clip_norm)
            total = jax.tree.map(jnp.add, total, clipped.update)
            return total, (clipped.norm, clipped.finite, mean_loss)

        total, looked_at = lax.scan(add, jax.tree.map(jnp.zeros_like, model), (sentences, batches))
        return ravel_pytree(total)[0], *looked_at

    return jax.jit(group_sum)


class Cores:
    """The workers: one XLA CPU device each, fed from one queue."""

    def __init__(self, hardware: Hardware) -> None:
        devices = jax.local_devices()
        wanted = hardware.workers or len(devices)
        if wanted > len(devices):
            raise InputError(
                f"workers={wanted} is more than the {len(devices)} devices of this process; use at most that."
            )
        self.devices = devices[:wanted]
        self._free: SimpleQueue[Any] = SimpleQueue()
        for device in self.devices:
            self._free.put(device)
        self._pool = ThreadPoolExecutor(wanted, thread_name_prefix="worker")

    def map(self, work: Callable[[Any, Any], Any], items: list[Any]) -> list[Any]:
        """[work(device, item) ...] in the order of the items, each on whichever worker is free."""

        def run(item: Any) -> Any:
            device = self._free.get()
            try:
                return jax.block_until_ready(work(device, item))  # type: ignore[no-untyped-call]
            finally:
                self._free.put(device)

        return list(self._pool.map(run, items))


def group_size(clients: int) -> int:
    """How many clients of a cohort are summed in one compiled call."""
    return min(max(clients // GROUPS, 1), LARGEST_GROUP)


def train_clients(
    loss: Loss,
    unravel: Callable[[Array], Model],
    model: Array,
    data: ClientData,
    settings: ClientTraining,
    *,
    clip_norm: float,
    cores: Cores,
) -> CohortSum:
    """The sum over a cohort of clipped updates; a client whose update is not finite adds nothing and is flagged.

    model: flat (d,) float32. The last group is filled up with clients who have no text: their update is zero.
    """
    clients = len(data.batches)
    group = group_size(clients)
    missing = -clients % group
    sentences = np.concatenate([data.sentences, np.zeros((missing, *data.sentences.shape[1:]), np.int32)])
    batches = np.concatenate([data.batches, np.zeros(missing, np.int32)])
    group_sum = _group_sum(loss, unravel, settings)
    broadcast = {device: jax.device_put(model, device) for device in cores.devices}
    limit = np.float32(clip_norm)

    def one_group(device: Any, start: int) -> tuple[Array, Array, Array, Array]:
        here = slice(start, start + group)
        return group_sum(broadcast[device], *jax.device_put((sentences[here], batches[here], limit), device))  # type: ignore[no-any-return]

    sums = cores.map(one_group, list(range(0, len(batches), group)))
    total = np.zeros(model.shape, np.float32)
    for part, *_ in sums:
        total += np.asarray(part)
    norms, finite, losses = (np.concatenate([np.asarray(s[i]) for s in sums])[:clients] for i in (1, 2, 3))
    return CohortSum(jnp.asarray(total), norms, finite, losses)
