"""Task handlers whose work a child process does (`child.py`): the device decides, writes its record and sends.

A child has so much memory and so long as the owner's policy says. Before text is read, whatever becomes of it is a
refusal, the same for every text. From then on, whatever becomes of it is the report of a device with nothing to say.
It is no sandbox: a child may read what its owner may.
"""

import os
import pickle
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial

from tacit.device import child
from tacit.device.policy import MEGABYTE, Policy
from tacit.device.report_body import MOST_SAID
from tacit.device.task_handler import Draw, PreparedTask, Refuse, TaskHandler
from tacit.errors import CacheError, InputError, TaskRefused
from tacit.federation.cost import Cost
from tacit.networks.training_cost import TrainingCost
from tacit.process_limits import ONE_THREAD
from tacit.protocol.bodies import HEADER, LENGTH_BYTES, Buffer, ReportBody
from tacit.protocol.messages import MatrixFile, Plan, RoundTask

LOADING = 2_000 * MEGABYTE  # of memory for libraries and what they compile, many times what ours take
ESTIMATED = 2  # by this factor a step may take more memory than its sizes say (`TrainingCost.estimate`)
PREPARES_S = 600.0  # at most; of a short round a quarter of the rest
BEGIN = "import sys; sys.path[:] = {path!r}; from tacit.device.child import serve; serve()"
BLOCK = 1 << 16

Handlers = Callable[[], Mapping[str, TaskHandler]]


class ChildEnded(InputError):
    """A child gave no report, or something else."""


class Children:
    """One child at a time, for the tasks of one device; use it in a `with` block, or call `end` after each turn."""

    def __init__(self, handlers: Handlers, policy: Policy, clock: Callable[[], float]) -> None:
        """handlers: makes them, here and in each child, where it is unpickled. clock: of the device, Unix seconds."""
        self._make, self._policy, self._clock = handlers, policy, clock
        self._child: Child | None = None

    @property
    def handlers(self) -> Mapping[str, TaskHandler]:
        """Of every kind; what touches a model or a text happens in a child."""
        return {kind: Isolated(handler, self) for kind, handler in self._make().items()}

    def prepare(self, handler: TaskHandler, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        """See TaskHandler: of the child's. Raises: TaskRefused, also where it did not live to prepare the task."""
        self.end()
        now, reading_s = self._clock(), handler.reading_s(task)
        prepares_s = min(PREPARES_S, self._policy.reads_within_s(task, now, PREPARES_S))
        reads_s = self._policy.reads_within_s(task, now, reading_s)
        allowed = int(ESTIMATED * self._policy.largest_memory_mb * MEGABYTE)
        work = child.Work(
            handlers=self._make,
            plan=plan,
            task=task,
            loading_bytes=LOADING + allowed,
            reading_bytes=allowed,
            cpu_s=(prepares_s + reads_s) * (os.cpu_count() or 1),
        )
        try:
            self._child = Child(work, content)
            self._child.prepare(prepares_s)
        except (ChildEnded, OSError) as error:
            raise TaskRefused(f"round {task.round} of run {task.run!r} cannot be prepared: {error}") from error
        return PreparedTask(read=partial(self._read, handler, task), nothing=partial(handler.nothing, task))

    def end(self) -> None:
        """No child is left."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _read(self, handler: TaskHandler, task: RoundTask, draw: Draw) -> ReportBody:
        assert self._child is not None  # whoever prepared the task reads for it
        return self._child.read(task, self._policy.reads_within_s(task, self._clock(), handler.reading_s(task)))


class Isolated:
    """See TaskHandler; what plan and task say by themselves is looked at here."""

    def __init__(self, handler: TaskHandler, children: Children) -> None:
        self._handler, self._children = handler, children

    def matrix(self, plan: Plan) -> MatrixFile | None:
        """See TaskHandler."""
        return self._handler.matrix(plan)

    def cost(self, plan: Plan, matrix: bytes | None) -> Cost:
        """See TaskHandler."""
        return self._handler.cost(plan, matrix)

    def check(self, plan: Plan) -> None:
        """See TaskHandler."""
        self._handler.check(plan)

    def check_task(self, plan: Plan, cost: Cost, task: RoundTask, refuse: Refuse) -> TrainingCost | None:
        """See TaskHandler."""
        return self._handler.check_task(plan, cost, task, refuse)

    def prepare(self, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        """See TaskHandler."""
        return self._children.prepare(self._handler, plan, task, content)

    def nothing(self, task: RoundTask, draw: Draw) -> ReportBody:
        """See TaskHandler."""
        return self._handler.nothing(task, draw)

    def reading_s(self, task: RoundTask) -> float:
        """See TaskHandler."""
        return self._handler.reading_s(task)


class Child:
    """One process, from its start to its end."""

    def __init__(self, work: child.Work, content: bytes) -> None:
        """content: what the round begins with. Raises: OSError where no process can be started."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", BEGIN.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is the device's, and whatever the child starts ends with it
            env=os.environ | ONE_THREAD,
        )
        self._work, self._content, self._printed = work, content, bytearray()

    def prepare(self, seconds: float) -> None:
        """Let it load and check everything but text. Raises: TaskRefused, CacheError as the handler; ChildEnded."""
        frames = pickle.dumps(self._work, protocol=pickle.HIGHEST_PROTOCOL), self._content
        self._content = b""
        what, said = self._answer(frames, seconds, most=child.TEXT)
        if what == child.REFUSED:
            raise TaskRefused(printable(said))
        if what == child.DAMAGED:
            raise CacheError(printable(said))
        if what != child.PREPARED:
            raise ChildEnded("its process says what nobody asked it.")

    def read(self, task: RoundTask, seconds: float) -> ReportBody:
        """Its report, checked as a server checks it; it is killed then. Raises: ChildEnded, InputError.

        That it is gone is not waited for: a process that has much memory takes time to end, which would show.
        """
        from tacit.protocol.served_bodies import read_report  # loaded when there is one to read

        shape = task.asks.shape()
        most = max(LENGTH_BYTES + HEADER + shape.bytes, child.TEXT)
        try:
            what, said = self._answer([child.READ], seconds, most=most)
        finally:
            self._kill()
        if what == child.REPORT:
            return read_report(said, shape, "")
        raise ChildEnded(printable(said) if what == child.NO_REPORT else "its process says what nobody asked it.")

    def end(self) -> None:
        """Whatever it does, it is over."""
        self._kill()
        with self._process:
            pass  # closes its pipes, and waits for it

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _answer(self, frames: Iterable[bytes], seconds: float, *, most: int) -> tuple[bytes, memoryview]:
        """(what a frame says, its content), after these were sent. Raises: ChildEnded for a child that dies, takes
        longer or says more than `most` bytes.
        """
        until, heard, head = time.monotonic() + seconds, bytearray(), len(child.PREPARED) + child.LENGTH
        waiting = [memoryview(part) for frame in frames for part in (child.length_of(frame), frame) if part]
        given, told, printed = self._pipes
        with selectors.DefaultSelector() as pipes:
            os.set_blocking(given, False)
            pipes.register(given, selectors.EVENT_WRITE)
            pipes.register(told, selectors.EVENT_READ)
            pipes.register(printed, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in pipes.select(max(0.0, until - time.monotonic()))}
                if time.monotonic() >= until:
                    raise ChildEnded(f"its process took longer than {seconds:.3g} s{self._last_words}.")
                if given in ready and not _written(given, waiting):
                    pipes.unregister(given)
                if printed in ready:
                    block = os.read(printed, BLOCK)
                    self._printed = (self._printed + block)[-MOST_SAID:]
                    if not block:
                        pipes.unregister(printed)
                if told in ready:
                    if not (block := os.read(told, BLOCK)):
                        raise ChildEnded(f"its process {self._death(until)}{self._last_words}.")
                    heard += block
                    length = int.from_bytes(heard[1:head], "little") if len(heard) >= head else 0
                    if length > most or len(heard) > head + length:
                        raise ChildEnded("its process says more than a report.")
                    if len(heard) >= head and len(heard) == head + length:
                        return bytes(heard[:1]), memoryview(heard)[head:]

    @property
    def _pipes(self) -> tuple[int, int, int]:
        """Descriptors: what it is given, what it tells, what it prints."""
        process = self._process
        assert process.stdin and process.stdout and process.stderr  # all of them are ours
        return process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno()

    def _death(self, until: float) -> str:
        try:
            code = self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return "closed its output"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with the code {code}"

    @property
    def _last_words(self) -> str:
        return f" ({printable(self._printed)})" if self._printed else ""


def _written(pipe: int, waiting: list[memoryview]) -> bool:
    """Whether more is waiting, when as much was written as the pipe takes; all of it where nobody reads any more."""
    try:
        waiting[0] = waiting[0][os.write(pipe, waiting[0][:BLOCK]) :]
    except BrokenPipeError:
        waiting.clear()
    if waiting and not waiting[0]:
        del waiting[0]
    return bool(waiting)


def printable(said: Buffer) -> str:
    """What a child says, for its owner: in one line, and no order to a terminal."""
    text = bytes(said).decode(errors="replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
