"""Processes of this machine as workers, for work in Python, which threads cannot share: results come in order.

`multiprocessing` would run the caller's script again in each of them, unless the script guards itself; these import
nothing but what they are sent.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from tacit.errors import RunError, TacitError
from tacit.process_limits import ONE_THREAD, one_thread

BEGIN = "import sys; sys.path[:] = {path!r}; from tacit.compute.processes import serve; serve({descriptor})"


class Processes:
    """So many workers, each a process that holds the same work; use it in a `with` block, which ends them.

    They end by themselves, too, with the item that they have begun, when this process is gone, however it went.
    """

    def __init__(self, workers: int, work: Callable[[Any], Any]) -> None:
        """work: of one item; it, the items and the results are pickled. The processes start with the first item."""
        self._workers, self._work = workers, work
        self._free: SimpleQueue[Connection] = SimpleQueue()
        self._started: list[tuple[Connection, subprocess.Popen[bytes]]] = []
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="process")  # each waits for one of them

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for _, process in self._started:
            process.kill()  # nothing of theirs is half written: results are written here
            process.wait()
        self._pool.shutdown(cancel_futures=True)
        for ours, _ in self._started:
            ours.close()

    def stream(self, items: Iterable[Any]) -> Iterator[Any]:
        """[work(item) ...] in the order of the items, one by one; at most two a worker are computed ahead.

        Raises: the TacitError that the work raised; RunError where a worker ended, by a lack of memory, say.
        """
        ahead: deque[Future[Any]] = deque()
        for item in items:
            if not self._started:
                self._start()
            ahead.append(self._pool.submit(self._compute, item))
            if len(ahead) > 2 * self._workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def _start(self) -> None:
        work = pickle.dumps(self._work, protocol=pickle.HIGHEST_PROTOCOL)
        for _ in range(self._workers):
            ours, theirs = Pipe()
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-c", BEGIN.format(path=sys.path, descriptor=theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env=os.environ | ONE_THREAD,  # a worker has one core
                )
            self._started.append((ours, process))
        for ours, process in self._started:
            with _lost(process):
                ours.send_bytes(work)
            self._free.put(ours)

    def _compute(self, item: Any) -> Any:
        """The result of one item, by whoever is free."""
        ours = self._free.get()
        process = next(process for each, process in self._started if each is ours)
        try:
            with _lost(process):
                ours.send(item)
                done, result = ours.recv()
        finally:
            self._free.put(ours)
        if not done:
            raise result
        return result


class _lost:  # noqa: N801 - a context
    """Says what became of a worker that does not answer."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if isinstance(error, EOFError | ConnectionError):
            raise RunError(
                f"worker process {self._process.pid} ended with the code {self._process.wait()}: what it said stands "
                "above; where that is nothing it was killed, for lack of memory perhaps: use fewer workers."
            ) from error


def serve(descriptor: int) -> None:
    """A worker's whole life: the work comes first, then item after item, until nobody is there to ask."""
    one_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; who asked decides, and then is gone
    with Connection(descriptor) as asking, suppress(EOFError, ConnectionError):
        work = pickle.loads(asking.recv_bytes())
        while True:
            item = asking.recv()
            try:
                answer = True, work(item)
            except TacitError as error:  # raised where it was asked for; any other is a defect, and ends this process
                answer = False, error
            asking.send(answer)
