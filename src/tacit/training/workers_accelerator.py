"""A cohort on one accelerator: its clients are trained side by side, as many at a time as its memory holds.

Clients with equally many batches share a chunk, because a chunk takes as long as its longest client. The next chunk is
read and sent while one is computed, and the sum stays on the device until the last. Sums are added in the order of the
chunks, so a chunk size gives one result (as far as the device's own operations do: a GPU adds the gradients of equal
words in any order unless XLA_FLAGS has --xla_gpu_deterministic_ops=true), and another size the same within rounding:
the sums of cores and of any chunk size agree to 1e-5 of their norm in float32.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.aggregation.clipping import clip
from tacit.compute import Hardware
from tacit.compute.precision import BFLOAT16
from tacit.compute.profile import READING, TRAINING, beside
from tacit.errors import TrainingError
from tacit.training.client import (
    NOBODY,
    ClientAlgorithm,
    ClientTraining,
    ClientWork,
    Loss,
    Model,
    gather,
    local_update,
    sgd_step,
)
from tacit.training.secure_updates import Residues, RoundEncoding
from tacit.training.shards import ShardSum

PROBED = 8  # clients of the chunk whose need of memory is extrapolated
LARGEST_CHUNK = 512  # about where launching kernels no longer costs; more only takes memory
LARGEST_ENCODED = 64  # where each update goes to the host: two chunks of 2.4 M parameters take 1.2 GB there
SPARE = 0.35  # share of the memory that is left to evaluation, to buffers of the noise, and to fragments
READ_AHEAD = 2  # chunks


class _Chunk(NamedTuple):
    """Clients that are trained side by side; `places` are theirs in the cohort."""

    places: NDArray[np.int64]
    sentences: Array  # (chunk, S, L+1), on the device; rows beyond len(places) are padding
    batches: Array  # () when all have as many, so that no client must wait; else (chunk,)


class Accelerator:
    """One accelerator as the `Workers` of a cohort."""

    def __init__(self, hardware: Hardware, *, device: Any = None) -> None:
        """device: JAX's; the first by default (a CPU device computes the same, for tests)."""
        self._hardware = hardware
        self._device = jax.local_devices()[0] if device is None else device

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
        """See Workers; here the sum over all shards at once.

        Raises: TrainingError when the device has not enough memory, with a chunk size that may do; or no units for
        the products that are asked for.
        """
        clients = np.concatenate(shards)
        clients = clients[clients != NOBODY]
        work.cache.read_ahead(clients)
        size = 1
        try:
            size = self.chunk_size(work, len(model), len(clients), encoded=secure is not None)
            if secure is None:
                yield self._cohort_sum(work, model, clients, size, seed, clip_norm)
            else:
                yield self._encoded_sum(work, model, clients, size, seed, clip_norm, secure)
        except jax.errors.JaxRuntimeError as error:
            if BFLOAT16 in str(error):  # XLA: "Unsupported algorithm on the current device(s): ALG_DOT_BF16_BF16_F32"
                raise TrainingError(
                    f"client.precision = 'bfloat16' was asked for, and the device '{self._device}' has no units for "
                    "it (NVIDIA's have since Ampere); use client.precision = 'float32'. What was done before is safe."
                ) from error
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            advice = f"a smaller chunk: --chunk {size // 2}" if size > 1 else "a smaller client.batch_size or model"
            raise TrainingError(
                f"the device '{self._device}' is out of memory with {size} clients side by side; use {advice}. "
                "What was done before is safe."
            ) from error

    def chunk_size(self, work: ClientWork, parameters: int, clients: int, *, encoded: bool = False) -> int:
        """Clients side by side: as many as the hardware settings request, else as many as fit, in chunks of nearly
        equal size.
        """
        chunk = self._hardware.chunk or self._largest(work, parameters, encoded=encoded)
        return -(-clients // -(-clients // chunk))

    def _largest(self, work: ClientWork, parameters: int, *, encoded: bool) -> int:
        memory = self._memory()
        if memory is None:
            return PROBED
        needs = self._compiled(work, parameters, PROBED, equal=True, encoded=encoded).memory_analysis()
        if not encoded:
            return fitting(memory, needs.temp_size_in_bytes / PROBED)
        # Updates of two chunks come out, and go to the host to be encoded.
        most = fitting(memory, (needs.temp_size_in_bytes + 2 * needs.output_size_in_bytes) / PROBED)
        return min(most, LARGEST_ENCODED)

    def _memory(self) -> int | None:
        """Bytes of the device; None where it does not say, as a CPU."""
        stats = self._device.memory_stats() or {}
        return stats.get("bytes_limit")

    def _cohort_sum(
        self, work: ClientWork, model: Array, clients: NDArray[np.int64], size: int, seed: bytes, clip_norm: float
    ) -> ShardSum:
        model, clip_at = jax.device_put((model, np.float32(clip_norm)), self._device)
        total = jax.device_put(np.zeros(model.shape, np.float32), self._device)
        norms, losses = np.zeros((2, len(clients)), np.float32)
        finite = np.zeros(len(clients), np.bool_)
        looked_at = (norms, finite, losses)
        waiting: tuple[NDArray[np.int64], list[Array]] | None = None
        for chunk in self._chunks(work, clients, size, seed):
            with beside(TRAINING):
                step = self._compiled(work, len(model), size, equal=chunk.batches.ndim == 0)
                total, *each = step(total, model, chunk.sentences, chunk.batches, clip_at)
                if waiting is not None:  # one chunk is computed while the next is on its way, no more
                    _put_down(looked_at, *waiting)
                waiting = chunk.places, each
        with beside(TRAINING):
            if waiting is not None:
                _put_down(looked_at, *waiting)
            return ShardSum(np.asarray(total), *looked_at)

    def _encoded_sum(
        self,
        work: ClientWork,
        model: Array,
        clients: NDArray[np.int64],
        size: int,
        seed: bytes,
        clip_norm: float,
        secure: RoundEncoding,
    ) -> ShardSum:
        """Every update of a chunk to the host, where cores encode and add them while the next chunk is computed."""
        model, clip_at = jax.device_put((model, np.float32(clip_norm)), self._device)
        total = secure.sums.zero()
        norms, losses = np.zeros((2, len(clients)), np.float32)
        finite = np.zeros(len(clients), np.bool_)

        def put_down(pool: ThreadPoolExecutor, places: NDArray[np.int64], updates: Array, each: list[Array]) -> None:
            nonlocal total
            _put_down((norms, finite, losses), places, each)
            on_host = np.asarray(updates)

            def encoded(row: np.int64) -> Residues:
                at = places[row]
                return secure.encoded(on_host[row], norm=norms[at], loss=losses[at], seed=seed, client=int(clients[at]))

            for residues in pool.map(encoded, np.flatnonzero(finite[places])):
                total = secure.sums.add(total, residues)

        waiting: tuple[NDArray[np.int64], Array, list[Array]] | None = None
        with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="encoder") as pool:
            for chunk in self._chunks(work, clients, size, seed):
                with beside(TRAINING):
                    step = self._compiled(work, len(model), size, equal=chunk.batches.ndim == 0, encoded=True)
                    updates, *each = step(model, chunk.sentences, chunk.batches, clip_at)
                    if waiting is not None:
                        put_down(pool, *waiting)
                    waiting = chunk.places, updates, each
            with beside(TRAINING):
                if waiting is not None:
                    put_down(pool, *waiting)
                return ShardSum(total, norms, finite, losses)

    def _chunks(self, work: ClientWork, clients: NDArray[np.int64], size: int, seed: bytes) -> Iterator[_Chunk]:
        """The cohort in chunks, the clients with most batches first, each read and sent while others are computed."""
        settings = work.settings
        counts = [min(work.cache.sentence_count(int(client)), settings.sentences) for client in clients]
        order = np.argsort([-count // settings.batch_size for count in counts], kind="stable")  # -(batches)

        def read(places: NDArray[np.int64]) -> _Chunk:
            with beside(READING):
                data = gather(work.cache, clients[places], settings, seed)
                missing = size - len(places)
                sentences = np.pad(data.sentences, ((0, missing), (0, 0), (0, 0)))
                batches = np.pad(data.batches, (0, missing))  # a client of no batch has update 0
                if (batches == batches[0]).all():
                    batches = batches[0]
                return _Chunk(places, *jax.device_put((sentences, batches), self._device))

        ahead: deque[Future[_Chunk]] = deque()
        with ThreadPoolExecutor(1, thread_name_prefix="reader") as reader:
            for start in range(0, len(clients), size):
                ahead.append(reader.submit(copy_context().run, read, order[start : start + size]))
                if len(ahead) > READ_AHEAD:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def _compiled(self, work: ClientWork, parameters: int, size: int, *, equal: bool, encoded: bool = False) -> Any:
        # A recipe's bfloat16 is that of the operands here too; numbers stay in memory as float32.
        products = BFLOAT16 if work.settings.precision == "bfloat16" else self._hardware.products
        of = (work.loss, work.unravel, work.settings, work.algorithm)
        return _compiled(self._device, *of, parameters, size, equal, encoded, products)


def fitting(memory: int, needed: float) -> int:
    """How many clients of `needed` bytes fit on a device of `memory` bytes; from 1 to LARGEST_CHUNK."""
    return int(min(max((1 - SPARE) * memory / max(needed, 1.0), 1), LARGEST_CHUNK))


def _put_down(looked_at: Sequence[NDArray[Any]], places: NDArray[np.int64], each: list[Array]) -> None:
    for column, values in zip(looked_at, each, strict=True):
        column[places] = np.asarray(values)[: len(places)]


@lru_cache(maxsize=8)
def _compiled(device: Any, *of: Any) -> Any:
    """What `chunk_program` of these gives, compiled for the device."""
    program, shapes = chunk_program(*of)
    placed = jax.sharding.SingleDeviceSharding(device)
    there = [jax.ShapeDtypeStruct(*shape, sharding=placed) for shape in shapes]  # type: ignore[no-untyped-call]
    return program.lower(*there).compile()


def chunk_program(
    loss: Loss,
    unravel: Callable[[Array], Model],
    settings: ClientTraining,
    algorithm: ClientAlgorithm | None,
    parameters: int,
    size: int,
    equal: bool,
    encoded: bool,
    products: str,
) -> tuple[Any, list[tuple[tuple[int, ...], Any]]]:
    """A function to be compiled, and the shape and type of each array that it takes.

    (total, flat model, sentences, batches, clip norm) -> (total, norms, finite, losses); the total is donated.
    encoded: (flat model, sentences, batches, clip norm) -> (clipped updates (size, parameters), norms, finite, losses).
    products: what `jax.default_matmul_precision` takes; it holds for whatever loss and algorithm multiply.
    """
    update_of, step = algorithm or local_update, sgd_step(loss, settings)

    def chunk(flat: Array, sentences: Array, batches: Array, clip_norm: Array) -> tuple[Any, ...]:
        model = unravel(flat)

        def one(sentences: Array, batches: Array) -> tuple[Model, Array, Array, Array]:
            update, mean_loss = update_of(loss, model, sentences, batches, settings, step=step)
            clipped = clip(update, clip_norm)
            return clipped.update, clipped.norm, clipped.finite, mean_loss

        # Where counts differ, vmap runs the loop to the longest and keeps what a client had when it was through.
        with jax.default_matmul_precision(products):
            return jax.vmap(one, in_axes=(0, None if equal else 0))(sentences, batches)

    def chunk_sum(total: Array, *of: Array) -> tuple[Array, ...]:
        updates, *looked_at = chunk(*of)
        summed = jax.tree.map(lambda update: update.sum(axis=0), updates)
        return total + ravel_pytree(summed)[0], *looked_at

    def chunk_of_updates(*of: Array) -> tuple[Array, ...]:
        updates, *looked_at = chunk(*of)
        return jax.vmap(lambda update: ravel_pytree(update)[0])(updates), *looked_at

    rows = -(-settings.sentences // settings.batch_size) * settings.batch_size
    shapes: list[tuple[tuple[int, ...], Any]] = [
        ((parameters,), np.float32),
        ((size, rows, settings.words + 1), np.int32),
        (() if equal else (size,), np.int32),
        ((), np.float32),
    ]
    if encoded:
        return jax.jit(chunk_of_updates), shapes
    return jax.jit(chunk_sum, donate_argnums=0), [shapes[0], *shapes]
