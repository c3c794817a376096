"""A round's cohort in fixed shards, and the sum over what `Workers` return of them.

A cohort is cut into shards by a rule that looks at the cohort alone. A worker returns the sum over one shard, and the
sums are added in the order of the shards as they arrive. So the result is the same to the last bit, however many
workers there are and however fast, and memory does not grow with the cohort.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.training.client import NOBODY, ClientWork, ShardSum
from tacit.training.secure_updates import RoundEncoding

# The rule is part of the result (the order of additions). About 32 shards, so that any few workers share them evenly;
# not above 64 clients, so that a worker's memory and what is lost with it stay small.
SHARDS, LARGEST_SHARD = 32, 64


class CohortSum(NamedTuple):
    """What the server receives of a cohort, and what a simulation may look at besides."""

    total: Array  # (d,) float32: the sum of the clipped updates
    norms: NDArray[np.float32]  # (clients,) before clipping
    finite: NDArray[np.bool_]  # (clients,): False were dropped
    losses: NDArray[np.float32]  # (clients,) mean training loss over the client's batches


class Workers(Protocol):
    """Whoever can train the shards of a cohort."""

    def shard_sums(
        self,
        work: ClientWork,
        model: Array,
        shards: Sequence[NDArray[np.int64]],
        *,
        seed: bytes,
        clip_norm: float,
        secure: RoundEncoding | None = None,
    ) -> Iterator[ShardSum]:
        """The sums over the shards' clients (numbers in the cache), in the order of the shards, a few in memory.

        One sum a shard; an accelerator gives one over all of them. secure: each client's update is encoded so, and the
        sums are those of residues; None: sums of updates.
        """
        ...


def shard_size(clients: int) -> int:
    """How many clients of a cohort of so many one worker trains at a time."""
    return min(max(clients // SHARDS, 1), LARGEST_SHARD)


def shards_of(clients: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The cohort (clients,) cut into shards of equal size, the last one filled up with NOBODY."""
    size = shard_size(len(clients))
    filled = np.pad(clients, (0, -len(clients) % size), constant_values=NOBODY)
    return list(filled.reshape(-1, size))


def train_cohort(
    work: ClientWork,
    model: Array,
    clients: NDArray[np.int64],
    *,
    seed: bytes,
    clip_norm: float,
    workers: Workers,
    secure: RoundEncoding | None = None,
) -> CohortSum:
    """The sum over a cohort of clipped updates; a client whose update is not finite adds nothing and is flagged.

    model: flat (d,) float32. clients: numbers in the cache. seed: of the clients' own randomness in this round.
    secure: how each update is encoded before any is added; the sum is decoded at the end. None: in the clear. Where it
    says so, the residues of the first clients are added by the protocol that they play.
    """
    total: NDArray[Any] = np.zeros(model.shape, np.float32) if secure is None else secure.nothing()
    playing = 0 if secure is None or secure.played is None else secure.played.devices
    norms: list[NDArray[np.float32]] = []
    finite, losses = [], []
    played: list[NDArray[np.uint32]] = []

    def sums(shards: Sequence[NDArray[np.int64]]) -> Iterator[ShardSum]:
        return workers.shard_sums(work, model, shards, seed=seed, clip_norm=clip_norm, secure=secure)

    alone = (part for client in clients[:playing] for part in sums([client[None]]))  # a sum of one is what it sends
    rest = sums(shards_of(clients[playing:])) if playing < len(clients) else ()
    for part in chain(alone, rest):
        if len(norms) >= playing:
            total += part.total
        elif part.finite[0]:
            played.append(part.total.astype(np.uint32, copy=False))
        norms.append(part.norms)
        finite.append(part.finite)
        losses.append(part.losses)
    if secure is not None and playing:
        np.add(total, secure.total_of(played), out=total)
    everybody = slice(len(clients))  # nobody's places come last
    usable = np.concatenate(finite)[everybody]
    return CohortSum(
        jnp.asarray(total if secure is None else secure.decoded(total, int(usable.sum()))),
        np.concatenate(norms)[everybody],
        usable,
        np.concatenate(losses)[everybody],
    )
