"""A swarm: so many simulated devices in one event loop, and what they share."""

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.swarm.connection import Place
from tests.swarm.faults import SwarmFaults
from tests.swarm.log import SwarmLog
from tests.swarm.reports import DrawnReports, Reports
from tests.swarm.simulated_device import SimulatedDevice

from tacit.errors import InputError, ServerError
from tacit.extras import of_extra
from tacit.protocol.bodies import ReportBody, read_model, report_body
from tacit.protocol.bounded_http import Server
from tacit.protocol.messages import RoundTask
from tacit.protocol.train import TrainDocument

LOOK_S = 0.05  # between two looks whether it is to end
NOBODY = "0" * 32  # in an assignment's place


@dataclass(frozen=True, kw_only=True)
class SwarmSettings:
    """A swarm, and the server that it tries."""

    server: str  # http://HOST:PORT on loopback, or https://
    operator_key: str  # 64 hexadecimal digits: whose plans, tasks and receipts are believed
    population: str
    devices: int
    seed: int = 0
    faults: SwarmFaults = field(default_factory=SwarmFaults)
    reports: Reports = field(default_factory=lambda: DrawnReports(0))
    # a device's sealed report, made before; None: it seals it
    one_message: Callable[[int, RoundTask], bytes] | None = None
    arrive_s: float = 1.0  # within which devices check in for the first time
    waits: float = 1.0  # share of the time that the server asks them to wait; less than 1 tries more than it asks for
    codes: Sequence[str] = ()  # of enrolment, one for each device; none: they show no tokens
    tasks: int | None = None  # after so many a device comes no more; None: it goes on
    at_once: int = 16  # devices that have a model and a report in memory at a time

    def __post_init__(self) -> None:
        Server.from_url(self.server)
        if not re.fullmatch(r"[0-9a-f]{64}", self.operator_key):
            raise InputError("the operator's key is not 64 lower-case hexadecimal digits; `tacit serve` says it.")
        for name in ("devices", "at_once", "tasks"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise InputError(f"{name}={value} is too few; give 1 or more.")
        if self.codes and len(self.codes) < self.devices:
            raise InputError(
                f"{len(self.codes)} enrolment codes are too few for {self.devices} devices; give each one."
            )
        for name in ("arrive_s", "waits"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name}={getattr(self, name)} is below 0, or no number; give 0 or more.")


class Swarm:
    """Devices that live until they are told to stop. What they saw and did is in `log`."""

    def __init__(self, settings: SwarmSettings) -> None:
        self.settings, self.log, self.place = settings, SwarmLog(), Place.from_url(settings.server)
        self.devices = [SimulatedDevice(number, self) for number in range(settings.devices)]
        self.at_once = asyncio.Semaphore(settings.at_once)
        self.old_report: tuple[str, bytes] | None = None  # (assignment, body) of whoever sends an earlier one
        self.old_assignment: str | None = None
        self._file, self._model = ("", b""), (b"", np.zeros(0, np.float32))
        self._body: tuple[ReportBody, bytes] | None = None

    def run(self, seconds: float, *, until: Callable[[], bool] = lambda: False) -> SwarmLog:
        """For so many seconds, until `until` is true or no device is left, in an event loop of its own."""
        of_extra("deployment", "uvloop").run(self.live(seconds, until))
        return self.log

    async def live(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """The same in the caller's event loop. Raises: what a device raised, which is an error of this program."""
        lives, ended = [asyncio.create_task(device.live()) for device in self.devices], asyncio.Event()

        def is_over(life: asyncio.Task[None]) -> None:
            if life.cancelled() or life.exception() is not None or all(each.done() for each in lives):
                ended.set()

        for each in lives:
            each.add_done_callback(is_over)
        try:
            async with asyncio.timeout(seconds):
                while not until() and not ended.is_set():
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            pass
        finally:
            for each in lives:
                each.cancel()
            results = await asyncio.gather(*lives, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):  # cancelled ones are none
                raise result

    # -- what devices share --------------------------------------------------------------------------------------------

    def shared(self, sha256: str, content: bytes) -> bytes:
        """A file that came, or the copy of it that came before. Raises: ServerError where it is another."""
        if self._file[0] != sha256 or self._file[1] != content:
            if hashlib.sha256(content).hexdigest() != sha256:
                raise ServerError("the model that came has another SHA-256.")
            self._file = sha256, content
        return self._file[1]

    def model_of(self, task: RoundTask, content: bytes) -> NDArray[Any]:
        """The numbers of a shared model."""
        if self._model[0] is not content:
            self._model = content, read_model(content, task.question(TrainDocument).parameters)
        return self._model[1]

    def body_of(self, report: ReportBody, assignment: str) -> bytes:
        """`report_body`; of a report that several devices send, made once but for the assignment in it."""
        if self._body is None or self._body[0] is not report:
            self._body = report, report_body(report, NOBODY)
        return self._body[1].replace(NOBODY.encode(), assignment.encode(), 1)
