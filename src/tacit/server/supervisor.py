"""Processes that are started, told what to do, watched, and started again when they die."""

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tacit.errors import StoreError
from tacit.server.metrics import forget_process
from tacit.server.process import READY, REFUSED, REFUSES

LOOK_S = 0.2  # between two looks at the processes
LONGEST_REST_S = 60.0  # before one that keeps dying is started again
HEALTHY_S = 60.0  # after which a death is not counted with those before
ENDING_S = 40.0  # that a process has to end by itself

log = logging.getLogger("tacit.server")


@dataclass(frozen=True)
class Role:
    """What a process is to be."""

    role: str  # worker or coordinator
    name: str
    settings: Mapping[str, Any]
    descriptors: Sequence[int] = ()  # that it inherits
    ends: bool = False  # whether it may be done at some time; one that may not is started again


@dataclass
class Child:
    """A role, and the process that plays it now."""

    role: Role
    process: "subprocess.Popen[str] | None" = None
    started: float = 0.0
    deaths: int = 0
    not_before: float = 0.0
    done: bool = False
    ready: threading.Event = field(default_factory=threading.Event)
    refusal: str | None = None
    _listener: threading.Thread | None = None

    def start(self) -> None:
        """A process for it."""
        command = [sys.executable, "-m", "tacit.server.process", self.role.role, self.role.name]
        self.ready.clear()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            pass_fds=tuple(self.role.descriptors),
            start_new_session=True,  # Ctrl-C is the supervisor's to pass on
        )
        self.started = time.monotonic()
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(dict(self.role.settings)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # it died already, which the next look finds
            pass
        self._listener = threading.Thread(target=self._listen, args=(self.process,), daemon=True)
        self._listener.start()

    def refused(self) -> str:
        """Why it does not go on, for people."""
        return f"{self.role.name} cannot go on: {self.refusal or 'its log above says why'}"

    def forget(self) -> None:
        """Its process has ended."""
        if self.process is not None and self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        if self._listener is not None:
            self._listener.join()  # what it told at last was heard
        if self.process is not None:
            forget_process(self.process.pid)
        self.process = None

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if line.strip() == READY:
                    self.ready.set()
                elif line.startswith(REFUSED):
                    self.refusal = line.removeprefix(REFUSED).strip()


class Supervisor:
    """Keeps processes running until all that may end have ended, or it is told to stop."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._children = [Child(role) for role in roles]

    def run(self, stop: threading.Event, *, ready: Callable[[], None] = lambda: None) -> bool:
        """Until `stop` is set, or every role that ends is done: whether they are.

        ready: called once, when all that serve do.
        Raises: StoreError with the words of a process that refuses to go on, once no other has anything to do; every
        process is ended before.
        """
        told = False
        try:
            for child in self._children:
                child.start()
            while not stop.is_set():
                for child in self._children:
                    self._look_at(child)
                if not told and all(child.ready.is_set() for child in self._children if not child.role.ends):
                    told = True
                    ready()
                ending = [child for child in self._children if child.role.ends]
                if ending and all(child.done for child in ending):
                    if refused := [child.refused() for child in ending if child.refusal is not None]:
                        raise StoreError(" ".join(refused))
                    return True
                stop.wait(LOOK_S)
            return False
        finally:
            self._end()

    def _look_at(self, child: Child) -> None:
        """Start again what died. Raises: StoreError for what refuses to go on."""
        now = time.monotonic()
        if child.process is None:
            if not child.done and now >= child.not_before:
                child.start()
            return
        code = child.process.poll()
        if code is None:
            return
        child.forget()
        if code == REFUSES and not child.role.ends:
            raise StoreError(child.refused())
        if code == REFUSES:
            log.error("%s", child.refused())
        if child.role.ends and code in (0, REFUSES):
            child.done = True
            return
        child.deaths = 1 if now - child.started > HEALTHY_S else child.deaths + 1
        rest = 0.0 if child.deaths == 1 else min(LONGEST_REST_S, 2.0 ** (child.deaths - 2))
        child.not_before = now + rest
        log.warning("%s ended (%s); it is started again in %g s", child.role.name, _how(code), rest)

    def _end(self) -> None:
        """All of them, at once."""
        for child in self._children:
            if child.process is not None:
                child.process.terminate()
        last = time.monotonic() + ENDING_S
        for child in self._children:
            if child.process is None:
                continue
            try:
                child.process.wait(max(0.0, last - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("%s did not end in %g s and is killed", child.role.name, ENDING_S)
                child.process.kill()
                child.process.wait()
            child.forget()


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
