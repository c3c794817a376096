"""A round's cohort in fixed shards, and who trains them: the cores of this machine or other workers.

A cohort is cut into shards by a rule that looks at the cohort alone. A worker returns the sum over one shard, and the
sums are added in the order of the shards as they arrive. So the result is the same to the last bit, however many
workers there are and however fast, and memory does not grow with the cohort.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, Protocol, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.training.client import NOBODY, ClientWork, ShardSum, gather, shard_sum

# The rule is part of the result (the order of additions). About 32 shards, so that any few workers share them evenly;
# not above 64 clients, so that a worker's memory and what is lost with it stay small.
SHARDS, LARGEST_SHARD = 32, 64

Products = Literal["float32", "tensorfloat32"]


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What changes only the speed; tests assert the same model for any value (on an accelerator to rounding)."""

    workers: int = 0  # cores; 0: all. Not accelerators: of those, all that JAX lists
    chunk: int = 0  # clients that an accelerator trains side by side; 0: as many as its memory holds
    products: Products = "tensorfloat32"  # how an accelerator multiplies float32 matrices; a CPU does so exactly

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise InputError(f"workers={self.workers} must be 0 (one per core) or more.")
        if self.chunk < 0:
            raise InputError(f"chunk={self.chunk} must be 0 (as many clients as fit) or more.")
        if self.products not in get_args(Products):
            raise InputError(f"products='{self.products}' is unknown; use one of {', '.join(get_args(Products))}.")


class CohortSum(NamedTuple):
    """What the server receives of a cohort, and what a simulation may look at besides."""

    total: Array  # (d,) float32: the sum of the clipped updates
    norms: NDArray[np.float32]  # (clients,) before clipping
    finite: NDArray[np.bool_]  # (clients,): False were dropped
    losses: NDArray[np.float32]  # (clients,) mean training loss over the client's batches


class Workers(Protocol):
    """Whoever can train the shards of a cohort."""

    def shard_sums(
        self, work: ClientWork, model: Array, shards: Sequence[NDArray[np.int64]], *, seed: bytes, clip_norm: float
    ) -> Iterator[ShardSum]:
        """The sums over the shards' clients (numbers in the cache), in the order of the shards, a few in memory.

        One sum a shard; an accelerator gives one over all of them.
        """
        ...


class Cores:
    """The workers of this machine: one XLA device each, fed from one queue; a core, or an accelerator if it has any."""

    def __init__(self, hardware: Hardware) -> None:
        devices = jax.local_devices()
        cores_asked = hardware.workers if devices[0].platform == "cpu" else 0  # which says nothing of accelerators
        wanted = cores_asked or len(devices)
        if wanted > len(devices):
            raise InputError(
                f"workers={wanted} is more than the {len(devices)} devices of this process; use at most that."
            )
        self.devices = devices[:wanted]
        self._free: SimpleQueue[Any] = SimpleQueue()
        for device in self.devices:
            self._free.put(device)
        self._pool = ThreadPoolExecutor(wanted, thread_name_prefix="worker")

    def map(self, work: Callable[[Any, Any], Any], items: Sequence[Any]) -> list[Any]:
        """[work(device, item) ...] in the order of the items, each on whichever worker is free."""
        return list(self.stream(work, items))

    def stream(self, work: Callable[[Any, Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """The results of `map` one by one; at most two a worker are computed ahead of what was taken."""

        def run(item: Any) -> Any:
            device = self._free.get()
            try:
                return jax.block_until_ready(work(device, item))  # type: ignore[no-untyped-call]
            finally:
                self._free.put(device)

        ahead: deque[Future[Any]] = deque()
        for item in items:
            ahead.append(self._pool.submit(run, item))
            if len(ahead) > 2 * len(self.devices):
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def shard_sums(
        self, work: ClientWork, model: Array, shards: Sequence[NDArray[np.int64]], *, seed: bytes, clip_norm: float
    ) -> Iterator[ShardSum]:
        """See Workers."""
        everybody = np.concatenate(shards)
        work.cache.read_ahead(everybody[everybody != NOBODY])
        broadcast = {device: jax.device_put(model, device) for device in self.devices}

        def one_shard(device: Any, clients: NDArray[np.int64]) -> ShardSum:
            data = gather(work.cache, clients, work.settings, seed)
            return shard_sum(work, broadcast[device], data, clip_norm=clip_norm, device=device)

        return self.stream(one_shard, shards)


def shards_of(clients: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The cohort (clients,) cut into shards of equal size, the last one filled up with NOBODY."""
    size = min(max(len(clients) // SHARDS, 1), LARGEST_SHARD)
    filled = np.pad(clients, (0, -len(clients) % size), constant_values=NOBODY)
    return list(filled.reshape(-1, size))


def train_cohort(
    work: ClientWork, model: Array, clients: NDArray[np.int64], *, seed: bytes, clip_norm: float, workers: Workers
) -> CohortSum:
    """The sum over a cohort of clipped updates; a client whose update is not finite adds nothing and is flagged.

    model: flat (d,) float32. clients: numbers in the cache. seed: of the clients' own randomness in this round.
    """
    total = np.zeros(model.shape, np.float32)
    norms, finite, losses = [], [], []
    for part in workers.shard_sums(work, model, shards_of(clients), seed=seed, clip_norm=clip_norm):
        total += part.total
        norms.append(part.norms)
        finite.append(part.finite)
        losses.append(part.losses)
    everybody = slice(len(clients))  # nobody's places come last
    return CohortSum(
        jnp.asarray(total),
        np.concatenate(norms)[everybody],
        np.concatenate(finite)[everybody],
        np.concatenate(losses)[everybody],
    )
