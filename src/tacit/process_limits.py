"""What a process of tacit allows itself: one thread for each product of matrices, and no copy of its memory on a disk.

Servers, devices, workers and commands compute in threads or beside other processes already. A library that shares one
product out among threads of its own has them wait for one another, and OpenBLAS's spin while they wait: in a round of
500 devices a report cost ten times the CPU, and workers came too late to say that they lived.
"""

import ctypes
import math
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# What libraries that are loaded later read, and processes that are started from here.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h


def one_thread() -> None:
    """From now on a product of matrices is one thread's, in this process and in those that it starts.

    Whatever its environment allowed: nobody can have said less. For a process that is ours alone; in a caller's,
    `products_by_one_thread` holds for a block.
    """
    os.environ.update(ONE_THREAD)
    _PRODUCTS.limited = True
    if "numpy" in sys.modules:  # its library is loaded, and does not read the environment again
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


def no_core_dumps() -> None:
    """This process, and those that it starts, leave no image of their memory where they crash: keys and text are in it.

    Where the system has no such limit (Windows) nothing is done.
    """
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def give_memory_back() -> None:
    """What this process frees of 64 KiB and more goes back to the system at once, where its allocator is glibc's.

    By itself glibc keeps a freed array for later, and grows for a larger one: a model that comes, is trained and leaves
    would take its place several times.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another allocator
        return
    mallopt(MMAP_THRESHOLD, 1 << 16)


def limit_memory(more: int, status: Path = Path("/proc/self/status")) -> bool:
    """This process gets no more than so many bytes beside those that it has now, for good: what asks for more fails.

    Counted is memory of its own that it may write to (RLIMIT_DATA), however little of it is used. Returns whether the
    system holds the process to it: Linux does, where /proc is mounted; elsewhere nothing is done.
    """
    try:
        import resource

        said = dict(line.partition(":")[::2] for line in status.read_text(encoding="utf-8").splitlines())
        has = int(said["VmData"].split()[0]) * 1024
    except (ImportError, OSError, KeyError):  # a sandbox's kernel may have the file and not the line
        return False
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = has + more if most == resource.RLIM_INFINITY else min(has + more, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    return True


def end_first() -> None:
    """Where memory runs out, Linux ends this process before others; elsewhere nothing is done."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def limit_cpu(more: float) -> None:
    """The system ends this process when it has computed for so many seconds more; not on Windows."""
    try:
        import resource
    except ImportError:
        return
    used, (_, most) = resource.getrusage(resource.RUSAGE_SELF), resource.getrlimit(resource.RLIMIT_CPU)
    limit = math.ceil(used.ru_utime + used.ru_stime + more)
    if most == resource.RLIM_INFINITY or limit < most:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))


@contextmanager
def products_by_one_thread() -> Iterator[None]:
    """NumPy's products inside are one thread's, in whatever process. Cheap: for a single step of a network.

    The limit is the process's. Threads that are inside at a time share it, and the last one to leave takes it away.
    """
    if _PRODUCTS.limited:
        yield
        return
    _PRODUCTS.enter()
    try:
        yield
    finally:
        _PRODUCTS.leave()


class _Products:
    """Who computes by one thread just now."""

    def __init__(self) -> None:
        self.limited = False  # whether the process does, for good
        self._lock, self._inside = threading.Lock(), 0
        self._libraries: Any = None  # a ThreadpoolController of those that NumPy has loaded; to make one takes a while
        self._limit: Any = None

    def enter(self) -> None:
        """One more is inside."""
        with self._lock:
            if self._libraries is None:
                from threadpoolctl import ThreadpoolController

                self._libraries = ThreadpoolController()
            if self._inside == 0:
                self._limit = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def leave(self) -> None:
        """One fewer."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_PRODUCTS = _Products()
