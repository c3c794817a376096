"""A round's cohort in fixed shards, and the sum over what `Workers` return of them.

A cohort is cut into shards by a rule that looks at the cohort alone. A worker returns the sum over one shard, and the
sums are added in the order of the shards as they arrive. So the result is the same to the last bit, however many
workers there are and however fast, and memory does not grow with the cohort.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.aggregation import Aggregation, FloatSum
from tacit.training.client import NOBODY, ClientWork
from tacit.training.secure_updates import OpenedSum, Residues, RoundEncoding
from tacit.training.shards import ShardSum

# The rule is part of the result (the order of additions). About 32 shards, so that any few workers share them evenly;
# not above 64 clients, so that a worker's memory and what is lost with it stay small.
SHARDS, LARGEST_SHARD = 32, 64


class CohortSum(NamedTuple):
    """What the server receives of a cohort, and what a simulation may look at besides."""

    total: Array  # (d,) float32: the sum of the clipped updates, and of decryptors' noise
    norms: NDArray[np.float32]  # (clients,) before clipping
    counted: NDArray[np.bool_]  # (clients,): False are not in the sum: not finite, or vanished before they reported
    losses: NDArray[np.float32]  # (clients,) mean training loss over the client's batches
    opened: OpenedSum | None = None  # all that a server of encoded reports learns; None: they came in the clear


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
    noise: Sequence[Residues] = (),
) -> CohortSum:
    """The sum over a cohort of clipped updates; a client whose update is not finite adds nothing and is not counted.

    model: flat (d,) float32. clients: numbers in the cache. seed: of the clients' own randomness in this round.
    secure: how each report is encoded before any is added; the sum is opened at the end. None: in the clear. Where it
    says so, the reports of the first clients are added by the protocol that they play, and some of them vanish.
    noise: the words of each decryptor for a sum of encoded updates.
    Raises: RoundAborted where the protocol is, and where fewer reports came than the threshold.
    """
    sums: Aggregation[Any, NDArray[Any], Any] = FloatSum(len(model)) if secure is None else secure.sums
    total: NDArray[Any] = sums.zero()
    playing = 0 if secure is None or secure.played is None else min(secure.played.devices, len(clients))
    norms: list[NDArray[np.float32]] = []
    finite, losses = [], []
    reports: list[Residues] = []  # of those who play

    def summed(shards: Sequence[NDArray[np.int64]]) -> Iterator[ShardSum]:
        return workers.shard_sums(work, model, shards, seed=seed, clip_norm=clip_norm, secure=secure)

    alone = (part for client in clients[:playing] for part in summed([client[None]]))  # a sum of one is what it sends
    rest = summed(shards_of(clients[playing:])) if playing < len(clients) else ()
    for part in chain(alone, rest):
        if len(reports) < playing:
            reports.append(part.total.astype(np.uint32, copy=False))
        else:
            total = sums.merge(total, part.total)
        norms.append(part.norms)
        finite.append(part.finite)
        losses.append(part.losses)
    everybody = slice(len(clients))  # nobody's places come last
    seen = np.concatenate(norms)[everybody], np.concatenate(finite)[everybody], np.concatenate(losses)[everybody]
    if secure is None:
        return CohortSum(jnp.asarray(total), *seen)
    opened, counted = opened_sum(secure, total, reports, seen[1], noise=noise, seed=seed)
    return CohortSum(jnp.asarray(opened.total), seen[0], counted, seen[2], opened)


def opened_sum(
    secure: RoundEncoding,
    others: Residues,
    reports: Sequence[Residues],
    finite: NDArray[np.bool_],
    *,
    noise: Sequence[Residues] = (),
    seed: bytes,
) -> tuple[OpenedSum, NDArray[np.bool_]]:
    """(what the server learns, who of the cohort is in the sum): `reports` of the first clients and the others' sum,
    which is spent.

    The first play their protocol, where any do. finite: (clients,); who has nothing to report sends no message, and is
    missed as one that vanished. noise: each decryptor's words, in the protocol where one is played; no sum is opened
    without. seed: of the round; who else vanishes follows from it. Raises: RoundAborted.
    """
    if not finite.any():
        return secure.unopened(), finite
    counted, parts, words = finite.copy(), [others], [secure.noise(each) for each in noise]
    if reports:
        silent = dict.fromkeys(np.flatnonzero(~finite[: len(reports)]).tolist(), 0)
        played, included = secure.play(reports, secure.vanishing(seed) | silent, words)
        parts.append(played)
        counted[: len(reports)] = included
    else:
        parts += words
    return secure.opened(reduce(secure.sums.merge, parts), int(counted.sum())), counted
