"""What a computation runs on: how many cores, or which accelerator, and in how many digits it multiplies."""

import ctypes
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from tacit.errors import InputError

Products = Literal["float32", "tensorfloat32"]

# Of XLA's pool, which all workers of a process share. With one thread XLA adds up a large array in another order than
# with two or more, so a machine of one core would have bits of its own. Threads beyond the workers only take turns.
LEAST_THREADS = 2

KEPT = 1 << 28  # bytes: freed arrays up to this size, and so much free memory in all, stay with the process
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # as mallopt(3) numbers them


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What changes only the speed; tests assert the same model for any value (on an accelerator to rounding).

    Of accelerators all that JAX lists are used; a CPU multiplies exactly, whatever `products` says.
    """

    workers: Annotated[int, "CPU cores to use; 0 is all. Changes the speed, never the result."] = 0
    chunk: Annotated[int, "Clients that an accelerator trains side by side; 0: as many as its memory holds."] = 0
    products: Annotated[
        Products, "How an accelerator multiplies float32 matrices: tensorfloat32, or float32 to the last digit."
    ] = "tensorfloat32"

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise InputError(f"workers={self.workers} must be 0 (one per core) or more.")
        if self.chunk < 0:
            raise InputError(f"chunk={self.chunk} must be 0 (as many clients as fit) or more.")
        if self.products not in get_args(Products):
            raise InputError(f"products='{self.products}' is unknown; use one of {', '.join(get_args(Products))}.")

    def apply(self, *, processor_only: bool = False) -> None:
        """Give JAX one CPU device a worker, and XLA's pool a thread for each, at least two: large products are cut up
        among whoever is idle there, so that one worker may use two cores (docs/results/speed.md). With `processor_only`
        no accelerator either, for what is compiled for processors and must be the same everywhere.

        A process that has computed with JAX already keeps the devices it has.
        """
        import jax

        if processor_only:
            jax.config.update("jax_platforms", "cpu")  # type: ignore[no-untyped-call]
        flags = os.environ.get("XLA_FLAGS", "")
        if "xla_cpu_multi_thread_eigen" not in flags:
            os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
        _keep_memory()
        workers = self.workers or os.cpu_count() or 1
        os.environ["PJRT_NPROC"] = str(max(workers, LEAST_THREADS))
        with suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", workers)  # type: ignore[no-untyped-call]


def _keep_memory() -> None:
    """Have glibc keep what XLA gives back after each step, for the next one.

    By default it maps large arrays anew each time, and the kernel fills them with zeros page by page: a tenth of a
    client's time (docs/results/speed.md). One arena for all threads, since those of others are at most 64 MB long.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # None: another allocator, which does as it does
    if mallopt is not None:
        for parameter, value in ((MMAP_THRESHOLD, KEPT), (TRIM_THRESHOLD, KEPT), (ARENA_MAX, 1)):
            mallopt(parameter, value)
