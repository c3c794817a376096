"""A simulated device: a phone's session over this process's own network, which dies where a script says so, or lies.

What it believes, when it takes part and what it remembers are the rules of `tacit.device`; here are its network, what
it reports, and what goes wrong. Its plans are made up, so that nothing follows from their recipes: it goes by what they
claim, and its owner accepts everything. Of costs and policies `tests/device` has tests.
"""

import asyncio
import json
import math
import os
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from tests.swarm import log
from tests.swarm.connection import SwarmConnection
from tests.swarm.faults import SEALED, Fault
from tests.swarm.misbehaviour import wrong_check_in, wrong_report, wrong_sealed
from tests.swarm.record import MemoryRecord

from tacit.device.policy import Policy
from tacit.device.separation import SealedAttempt
from tacit.device.session import Machine, Session, Steps
from tacit.device.task_handler import Draw, PreparedTask, Refuse
from tacit.device.train import encoding_of, no_update
from tacit.device.turn import SOON, Pause, SessionOutcome
from tacit.errors import ServerError
from tacit.federation.cost import Cost
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Assignment, MatrixFile, Plan, RoundTask
from tacit.protocol.one_message_shape import settings_of
from tacit.protocol.requests import Answer, Ask
from tacit.secure_aggregation.secrets import KEY_BYTES, Identity

if TYPE_CHECKING:
    from tests.swarm.swarm import Swarm

CHECK_IN, REPORTS = "/v1/check-in", "/v1/reports/"
NAMED = {  # in the log, by how paths begin
    CHECK_IN: "check-in",
    "/v1/plans/": "plan",
    "/v1/models/": "model",
    "/v1/log/": "log",
    "/v1/tokens/key": "token key",
    "/v1/tokens": "tokens",
}
ANYTHING = Policy(
    kinds=("train",),
    largest_zcdp=math.inf,
    largest_epsilon=math.inf,
    budget_zcdp=math.inf,
    smallest_noise_multiplier=0.0,
    smallest_cohort=1,
    largest_model_mb=math.inf,
    largest_report_mb=math.inf,
    send_after_s=0.0,
    show_after_s=0.0,
    largest_memory_mb=math.inf,
    largest_operations=math.inf,
)


class Died(BaseException):
    """The device is gone, between two steps: as of a process that is killed, nothing of it catches that."""


@dataclass(frozen=True, kw_only=True)
class CountedRounds(Cost):
    """Of a made-up plan each round costs 1, so that a record says for how many rounds its device paid."""

    def spent(self, rounds: Sequence[int]) -> float:
        return float(len(rounds))


class SimulatedTraining:
    """Its tasks to train; see TaskHandler."""

    def __init__(self, device: "SimulatedDevice") -> None:
        self._device = device

    def matrix(self, plan: Plan) -> MatrixFile | None:
        return None

    def cost(self, plan: Plan, matrix: bytes | None) -> Cost:
        return CountedRounds(zcdp=float(plan.privacy.rounds))

    def check(self, plan: Plan) -> None:
        """All can be done."""

    def check_task(self, plan: Plan, cost: Cost, task: RoundTask, refuse: Refuse) -> None:
        """All is asked as it should be."""

    def prepare(self, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        self._device.step("fetched")
        swarm = self._device.swarm
        model = swarm.model_of(task, content)

        def read(draw: Draw) -> ReportBody:
            self._device.made = made = swarm.settings.reports.report(self._device.number, plan, task, model)
            self._device.step("trained")
            return made

        return PreparedTask(read=read, nothing=partial(self.nothing, task))

    def nothing(self, task: RoundTask, draw: Draw) -> ReportBody:
        return no_update(task, encoding_of(task), draw)

    def reading_s(self, task: RoundTask) -> float:
        return 0.0


class DyingRecord(MemoryRecord):
    """One whose device may die when it is noted that it takes part."""

    def __init__(self, device: "SimulatedDevice") -> None:
        super().__init__(device.swarm.settings.operator_key)
        self._device = device

    def take_part(
        self, task: RoundTask, *, assignment: str, at: float, zcdp: float, attempt: SealedAttempt | None = None
    ) -> None:
        super().take_part(task, assignment=assignment, at=at, zcdp=zcdp, attempt=attempt)
        self._device.step("recorded")


class SimulatedSession(Session):
    """A phone's, which tells its device what it was given, and sends what was made before where there is any."""

    def __init__(self, device: "SimulatedDevice", code: str | None) -> None:
        skew = device.draw.gauss(0.0, device.swarm.settings.faults.skew_s)
        super().__init__(
            record=DyingRecord(device),
            policy=ANYTHING,
            handlers={"train": SimulatedTraining(device)},
            population=device.swarm.settings.population,
            machine=Machine(clock=lambda: time.time() + skew, draw=device.draw.randbytes),
            code=code,
        )
        self._device = device

    def assigned(self, assignment: Assignment) -> Steps[SessionOutcome]:
        self._device.given = assignment
        self._device.step("assigned")
        return (yield from super().assigned(assignment))

    def body(self, plan: Plan, task: RoundTask, report: ReportBody, assignment: str) -> bytes:
        swarm = self._device.swarm
        if task.sealed is None:
            return swarm.body_of(report, assignment)
        if (made := swarm.settings.one_message) is not None:
            return made(self._device.number, task)
        if self._device.fault in SEALED:
            return wrong_sealed(self._device.fault, settings_of(task.sealed), Identity(os.urandom(KEY_BYTES)))
        return super().body(plan, task, report, assignment)


class SimulatedDevice:
    """One device of a swarm."""

    def __init__(self, number: int, swarm: "Swarm") -> None:
        settings = swarm.settings
        self.number, self.swarm = number, swarm
        self.draw = random.Random(f"device {settings.seed} {number}")
        self.fault = settings.faults.kind_of(number, settings.seed)
        self.given: Assignment | None = None  # in this turn
        self.made: ReportBody | None = None  # its last one
        self._dies_at: str | None = None
        self._answered: Answer | None = None  # to its report, the last one of this turn
        self._code = settings.codes[number] if settings.codes else None
        self._left = math.inf if settings.tasks is None else settings.tasks

    async def live(self) -> None:
        """Turn after turn, each as late as the server asked, until it is cancelled or had as many tasks as it may."""
        await asyncio.sleep(self.draw.uniform(0.0, self.swarm.settings.arrive_s))
        session = SimulatedSession(self, self._code)
        while self._left > 0:
            wait = await self._turn(session)
            early = self.fault is Fault.EARLY
            if early:  # it forgets when it took part
                session = SimulatedSession(self, self._code)
            await asyncio.sleep((0.05 if early else 1.0) * self.swarm.settings.waits * self.draw.uniform(*wait))

    async def _turn(self, session: SimulatedSession) -> tuple[float, float]:
        """Look once whether there is something to do, and do it. Returns in how many seconds to come again."""
        if self.fault in (Fault.GARBAGE, Fault.SLOW_LORIS):
            try:
                async with self._connected() as connection:
                    await wrong_check_in(self, connection)
            except ServerError:
                self.swarm.log.unanswered += 1
            return SOON
        self.given = self._answered = None
        self._dies_at = self.swarm.settings.faults.dies_at(self.draw) if self.fault is None else None
        try:
            turn = await self._driven(session)
        except Died as died:
            self._note(session, log.DIED, str(died))
            return SOON
        except asyncio.CancelledError:
            self._note(session, log.UNANSWERED, "the swarm ended")
            raise
        if turn.what == "idle":
            self.swarm.log.idle += 1
        self._note(session, *self._ended(turn))
        return turn.wait

    async def _driven(self, session: SimulatedSession) -> SessionOutcome:
        """What the session comes to. What follows a task's answers is work, and goes into a thread. Raises: Died."""
        steps = session.turn()
        step, ended = _next(steps, None)
        async with AsyncExitStack() as memory:
            while ended is None:
                if isinstance(step, Pause):
                    await asyncio.sleep(self.swarm.settings.waits * step.seconds)
                    step, ended = _next(steps, None)
                    continue
                if step.file is not None:  # models and reports of so many devices are in memory
                    await memory.enter_async_context(self.swarm.at_once)
                try:
                    answer = await self._asked(step)
                except ServerError as error:
                    self.swarm.log.unanswered += 1
                    step, ended = _next(steps, error)
                    continue
                if step.path == CHECK_IN:
                    step, ended = _next(steps, answer)
                else:
                    step, ended = await asyncio.to_thread(_next, steps, answer)
        return ended

    def _ended(self, turn: SessionOutcome) -> tuple[str, str]:
        """How a task ended, and in which words."""
        if turn.what == "refused":
            return log.STAYED_AWAY, turn.says
        if turn.what == "reported":
            return log.RECEIVED, ""
        if self._answered is not None and 400 <= self._answered.status < 500:
            return log.REFUSED, kind_of(self._answered)
        return log.UNANSWERED, turn.says

    def _note(self, session: SimulatedSession, how: str, says: str) -> None:
        if self.given is None:
            return
        self._left -= 1
        task = self.given.signed_task.read(RoundTask)
        fault = None if self.fault is None else self.fault.value
        took_part = task.round in session.record.rounds(task.plan)
        said = task.run, task.round, task.task, self.given.assignment, task.content.sha256, took_part, fault, how, says
        self.swarm.log.parts.append(log.TaskOutcome(self.number, *said, session.record.spent()))

    def step(self, step: str) -> None:
        """Raises: Died."""
        if self._dies_at == step:
            raise Died(step)

    # -- requests ------------------------------------------------------------------------------------------------------

    async def _asked(self, ask: Ask) -> Answer:
        """The answer to one request of the session, over a connection of its own. Raises: ServerError; Died."""
        async with self._connected() as connection:
            if ask.method == "POST" and ask.path.startswith(REPORTS):
                self._answered = await self._reported(connection, ask)
                return self._answered
            body = ask.body
            if ask.path == CHECK_IN and self.fault is Fault.FORGED_TOKEN:
                body = json.dumps({**json.loads(body), "token": self.draw.randbytes(32).hex()}).encode()
            what = next((name for begins, name in NAMED.items() if ask.path.startswith(begins)), "place given back")
            answer = await self.ask(connection, what, ask.method, ask.path, body, ask.headers, ask.seconds)
        if ask.file is None:
            return answer
        if answer.status != 200:
            raise ServerError(f"the {ask.file.what} is answered by {answer.status}.")
        return answer._replace(body=await asyncio.to_thread(self.swarm.shared, ask.file.sha256, answer.body))

    async def _reported(self, connection: SwarmConnection, ask: Ask) -> Answer:
        """Raises: ServerError; Died."""
        if self._dies_at in ("half sent", "sent"):
            whole = connection.head("POST", ask.path, len(ask.body), ask.headers) + ask.body
            await connection.send(whole[: len(whole) // 2] if self._dies_at == "half sent" else whole)
            if self._dies_at == "sent":  # what is on its way arrives, before the connection is gone
                await asyncio.sleep(0.2)
            raise Died(self._dies_at)
        if self.fault is not None and self._answered is None:
            given, made = cast(Assignment, self.given), cast(ReportBody, self.made)
            wrong = await wrong_report(self, connection, given, made, ask.body, self.swarm)
            if wrong is not None:
                return wrong
        return await self.ask(connection, "report", "POST", ask.path, ask.body, ask.headers, ask.seconds)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[SwarmConnection]:
        """A connection of its own, after the delay of its network. Raises: ServerError."""
        faults = self.swarm.settings.faults
        if faults.delay_s:
            await asyncio.sleep(self.draw.expovariate(1 / faults.delay_s))
        connection = await SwarmConnection.to(self.swarm.place)
        try:
            yield connection
        finally:
            connection.close()

    async def ask(
        self,
        connection: SwarmConnection,
        what: str,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        seconds: float = 60.0,
    ) -> Answer:
        """The answer, counted in the log. Raises: ServerError, also where the network loses it."""
        if self.draw.random() < self.swarm.settings.faults.lose:
            await connection.send(connection.head(method, path, len(body), headers) + body)
            raise ServerError("the network lost the answer.")
        answer = await connection.ask(method, path, body=body, seconds=seconds, more=headers)
        self.swarm.log.answers[what, answer.status] += 1
        return answer


def _next(steps: Steps[SessionOutcome], answer: Answer | ServerError | None) -> tuple[Any, SessionOutcome | None]:
    """(the session's next step, None), or (None, the turn) where it has ended: no thread hands StopIteration on."""
    try:
        return (steps.throw(answer) if isinstance(answer, ServerError) else steps.send(answer)), None
    except StopIteration as ended:
        return None, ended.value


def kind_of(answer: Answer) -> str:
    """The kind of a refusal, as its Problem says; its status where it is none."""
    try:
        return str(json.loads(answer.body)["type"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status}"
