"""The sum over the clients of one worker: each trains as its device would (`client`), and the updates are added."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.aggregation.clipping import clip
from tacit.compute.precision import Precision
from tacit.training.client import (
    NOBODY,
    ClientAlgorithm,
    ClientData,
    ClientTraining,
    ClientWork,
    Descends,
    Loss,
    Model,
    local_update,
    one_client,
    precision_of,
    sgd_step,
)
from tacit.training.secure_updates import RoundEncoding


class ShardSum(NamedTuple):
    """What a worker returns of its clients, as host arrays."""

    # (d,) float32: the sum of the clipped updates; or (length,) uint32: that of the encoded reports
    total: NDArray[np.float32] | NDArray[np.uint32]
    norms: NDArray[np.float32]  # (clients,) before clipping
    finite: NDArray[np.bool_]  # (clients,): False were dropped
    losses: NDArray[np.float32]  # (clients,) mean training loss over the client's batches


@lru_cache(maxsize=8)
def _group_sum(
    loss: Loss,
    unravel: Callable[[Array], Model],
    settings: ClientTraining,
    algorithm: ClientAlgorithm | None,
    precision: Precision | None,
) -> Any:
    """The compiled sum over one group: (flat model, sentences, batches, clip norm) -> (sum, norms, finite, losses).

    precision: of the loss's own step; None: step by its gradient.
    """
    update_of, step = algorithm or local_update, sgd_step(loss, settings, precision)

    def group_sum(flat: Array, sentences: Array, batches: Array, clip_norm: Array) -> tuple[Array, Array, Array, Array]:
        model = unravel(flat)

        def add(total: Model, client: tuple[Array, Array]) -> tuple[Model, tuple[Array, Array, Array]]:
            update, mean_loss = update_of(loss, model, *client, settings, step=step)
            clipped = clip(update, clip_norm)
            total = jax.tree.map(jnp.add, total, clipped.update)
            return total, (clipped.norm, clipped.finite, mean_loss)

        total, looked_at = lax.scan(add, jax.tree.map(jnp.zeros_like, model), (sentences, batches))
        return ravel_pytree(total)[0], *looked_at

    return jax.jit(group_sum)


def encoded_shard_sum(
    work: ClientWork,
    model: Array,
    data: ClientData,
    clients: NDArray[np.int64],
    *,
    seed: bytes,
    clip_norm: float,
    secure: RoundEncoding,
    device: Any,
) -> ShardSum:
    """`shard_sum` of residues: each client's clipped update is encoded by itself, and the integers are added."""
    precision = precision_of(work) if device.platform == "cpu" and isinstance(work.loss, Descends) else None
    part = one_client(work.loss, work.unravel, work.settings, work.algorithm, precision)
    total, finite = secure.sums.zero(), np.ones(len(clients), np.bool_)
    norms, losses = np.zeros((2, len(clients)), np.float32)
    for i in np.flatnonzero(clients != NOBODY):
        update, norms[i], finite[i], losses[i] = part(model, data.sentences[i], data.batches[i], np.float32(clip_norm))
        if finite[i]:
            client, found = int(clients[i]), np.asarray(update)
            report = secure.encoded(found, norm=norms[i], loss=losses[i], seed=seed, client=client)
            total = secure.sums.add(total, report)
    return ShardSum(total, norms, finite, losses)


def shard_sum(work: ClientWork, model: Array, data: ClientData, *, clip_norm: float, device: Any) -> ShardSum:
    """The sum over some clients of their clipped updates, computed on one device where `model` (d,) already is.

    A client whose update is not finite adds nothing and is flagged.
    """
    precision = precision_of(work) if device.platform == "cpu" and isinstance(work.loss, Descends) else None
    group_sum = _group_sum(work.loss, work.unravel, work.settings, work.algorithm, precision)
    placed = jax.device_put((*data, np.float32(clip_norm)), device)
    return ShardSum(*(np.asarray(part) for part in group_sum(model, *placed)))
