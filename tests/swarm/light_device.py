"""A light device: it checks in, takes part by the protocol's rules, dies where a script says so; or it is a bad one.

It verifies what a real device verifies of the server (signatures, digests, its own separation), takes note of a
participation before its report leaves, and sends the same bytes again until there is a receipt. It has no budget and no
policy: of those `client/` has tests of its own.
"""

import asyncio
import json
import math
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import TypeAdapter
from tests.swarm import log
from tests.swarm.connection import DIGEST, Answer, Connection, headers_of
from tests.swarm.faults import Fault
from tests.swarm.misbehaviour import wrong_check_in, wrong_report
from tests.swarm.tokens import Wallet

from tacit.device.report_body import body_of
from tacit.errors import ServerError, TaskRefused
from tacit.protocol import messages
from tacit.protocol.bodies import Report
from tacit.protocol.messages import Assignment, ComeBack, Plan, RoundTask, SignedPlan, SignedReceipt
from tacit.protocol.signing import digest, is_signed

if TYPE_CHECKING:
    from tests.swarm.swarm import Swarm

CHECK_IN = "/v1/check-in"
SOON_S, FAILED_S = (1.0, 5.0), (1.0, 3.0)  # until the next turn: after a task; after a turn without an answer
TRIES = 6  # of a report
BUSY, TOKEN_WANTED = 503, 401
_ANSWER: TypeAdapter[ComeBack | Assignment] = TypeAdapter(messages.Answer)


class Died(Exception):
    """The device is gone, between two steps."""


class LightDevice:
    """One device of a swarm."""

    def __init__(self, number: int, swarm: "Swarm") -> None:
        settings = swarm.settings
        self.number, self._swarm = number, swarm
        self.draw = random.Random(f"device {settings.seed} {number}")
        self.fault = settings.faults.kind_of(number, settings.seed)
        self._skew = self.draw.gauss(0.0, settings.faults.skew_s)
        self._plans: dict[str, SignedPlan] = {}
        self._took_part: dict[str, list[int]] = {}  # rounds, by run
        self._dies_at: str | None = None
        code = settings.codes[number] if settings.codes else None
        self._wallet = None if code is None else Wallet(code, settings.operator_key, self.draw.randbytes)
        self._left = math.inf if settings.tasks is None else settings.tasks

    async def live(self) -> None:
        """Turn after turn, each as late as the server asked, until it is cancelled or had as many tasks as it may."""
        await asyncio.sleep(self.draw.uniform(0.0, self._swarm.settings.arrive_s))
        while self._left > 0:
            wait = await self.turn()
            hurry = 0.05 if self.fault is Fault.EARLY else 1.0
            await asyncio.sleep(hurry * self._swarm.settings.waits * self.draw.uniform(*wait))

    async def turn(self) -> tuple[float, float]:
        """Check in once and do what there is to do. Returns in how many seconds to come again, from and to."""
        try:
            async with self._connected() as connection:
                if self.fault in (Fault.GARBAGE, Fault.SLOW_LORIS):
                    await wrong_check_in(self, connection)
                    return SOON_S
                answer = await self.ask(connection, "check-in", "POST", CHECK_IN, self._check_in())
                if answer.status == TOKEN_WANTED and self._wallet is not None:
                    async with self._connected() as other:  # which its code goes over
                        token = await self._wallet.token(self, other)
                    answer = await self.ask(connection, "check-in", "POST", CHECK_IN, self._check_in(token))
                if answer.status != 200:
                    return FAILED_S
                said = _ANSWER.validate_json(answer.body)
                if isinstance(said, ComeBack):
                    self._swarm.log.idle += 1
                    return said.after_s, max(said.after_s, said.before_s)
        except ServerError:
            self._swarm.log.unanswered += 1
            return FAILED_S
        await self._assigned(said)
        return SOON_S

    def _check_in(self, token: str | None = None) -> bytes:
        said: dict[str, Any] = {
            "version": messages.VERSION,
            "population": self._swarm.settings.population,
            "versions": {"train": 1},
            "token": self.draw.randbytes(32).hex() if self.fault is Fault.FORGED_TOKEN else token,
        }
        return json.dumps(said).encode()

    # -- a task --------------------------------------------------------------------------------------------------------

    async def _assigned(self, given: Assignment) -> None:
        """Take part, or not; the log has how it ended."""
        task = given.signed_task.task
        self._left -= 1
        self._dies_at = self._swarm.settings.faults.dies_at(self.draw) if self.fault is None else None
        says = ""
        try:
            self._step("assigned")
            plan = await self._plan_of(given)
            away = self._why_away(plan, task)
            how, says = await self._stay_away(given, away) if away else await self._take_part(plan, given)
        except TaskRefused as refusal:
            how, says = log.STAYED_AWAY, str(refusal)
        except Died as died:
            how, says = log.DIED, str(died)
        except ServerError as error:
            how, says = log.UNANSWERED, str(error)
        except asyncio.CancelledError:
            self._note(given, log.UNANSWERED, "the swarm ended")
            raise
        self._note(given, how, says)

    def _note(self, given: Assignment, how: str, says: str) -> None:
        task = given.signed_task.task
        fault = None if self.fault is None else self.fault.value
        took_part = task.round in self._took_part.get(task.run, [])
        said = task.run, task.round, task.task, given.assignment, task.content.sha256, took_part, fault, how, says
        self._swarm.log.parts.append(log.Part(self.number, *said))

    async def _plan_of(self, given: Assignment) -> Plan:
        """The plan of the task, both signed by the operator. Raises: ServerError."""
        task, operator = given.signed_task.task, self._swarm.settings.operator_key
        if not self._swarm.verified(given.signed_task.signature, lambda: is_signed(given.signed_task, operator)):
            raise ServerError("the task is not the operator's.")
        signed = self._plans.get(task.plan) or await self._fetched_plan(task.plan)
        if not self._swarm.verified(task.plan, lambda: _is_plan(signed, task.plan, operator)):
            raise ServerError("the plan is not the operator's.")
        self._plans[task.plan] = signed
        return signed.plan

    def _why_away(self, plan: Plan, task: RoundTask) -> str:
        """Why it does not take part, by its own rules; nothing where it does."""
        before, now = self._took_part.get(task.run, []), time.time() + self._skew
        if self.fault is Fault.EARLY:
            return ""
        if before and task.round - before[-1] < (plan.separation.rounds or 1):
            return "rounds apart"
        if plan.privacy.max_participations is not None and len(before) >= plan.privacy.max_participations:
            return "most participations"
        return "its clock says that the round is over" if now > task.deadline else ""

    async def _stay_away(self, given: Assignment, why: str) -> tuple[str, str]:
        """Give the place back. Raises: ServerError."""
        path, headers = f"/v1/reports/{given.assignment}", {"Authorization": f"Bearer {given.secret}"}
        async with self._connected() as connection:
            await self.ask(connection, "place given back", "DELETE", path, headers=headers)
        return log.STAYED_AWAY, why

    async def _take_part(self, plan: Plan, given: Assignment) -> tuple[str, str]:
        """(how it ended, in which words). Raises: Died; ServerError; TaskRefused."""
        task = given.signed_task.task
        async with self._swarm.at_once:  # models and reports of so many devices are in memory
            model = await self._model(task)
            self._step("fetched")
            report = await asyncio.to_thread(self._swarm.settings.reports.report, self.number, plan, task, model)
            self._step("trained")
            self._took_part.setdefault(task.run, []).append(task.round)
            self._step("recorded")
            body = await asyncio.to_thread(self._body, plan, task, report, given.assignment)
            if self.fault is not None and (sent := await self._wrong(given, report, body)) is not None:
                return sent
            return await self._send(given, body)

    async def _fetched_plan(self, name: str) -> SignedPlan:
        """Raises: ServerError."""
        async with self._connected() as connection:
            answer = await self.ask(connection, "plan", "GET", f"/v1/plans/{name}")
        if answer.status != 200:
            raise ServerError(f"the plan is answered by {answer.status}.")
        return SignedPlan.model_validate_json(answer.body)

    async def _model(self, task: RoundTask) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The round's model, which every device fetches, and one copy of which the swarm keeps. Raises: ServerError."""
        async with self._connected() as connection:
            answer = await self.ask(connection, "model", "GET", task.content.path, seconds=300.0)
        if answer.status != 200:
            raise ServerError(f"the model is answered by {answer.status}.")
        return await asyncio.to_thread(self._swarm.model_of, task, answer.body)

    def _body(self, plan: Plan, task: RoundTask, report: Report, assignment: str) -> bytes:
        if task.sealed is None:
            return self._swarm.body_of(report, assignment)
        if (sealed := self._swarm.settings.sealed) is not None:
            return sealed(self.number, task)
        return body_of(plan, task, report, assignment, draw=self.draw.randbytes)

    async def _send(self, given: Assignment, body: bytes) -> tuple[str, str]:
        """The report, again and again until there is an answer that stands. Raises: Died; ServerError."""
        path, headers = f"/v1/reports/{given.assignment}", await asyncio.to_thread(headers_of, given.secret, body)
        for tried in range(TRIES):
            if tried:
                await asyncio.sleep(self._swarm.settings.waits * self.draw.uniform(0.5, 1.5) * 2**tried)
            try:
                async with self._connected() as connection:
                    await self._die_in_sending(connection, path, headers, body)
                    answer = await self.ask(connection, "report", "POST", path, body, headers, 300.0)
            except ServerError:
                self._swarm.log.unanswered += 1
                continue
            if answer.status == 200:
                return (log.RECEIVED, "") if self._is_receipt(given, headers, answer) else (log.UNANSWERED, "")
            if answer.status != BUSY:
                return log.REFUSED, kind_of(answer)
        raise ServerError("no answer to a report")

    async def _die_in_sending(self, connection: Connection, path: str, headers: dict[str, str], body: bytes) -> None:
        """Raises: Died."""
        if self._dies_at in ("half sent", "sent"):
            whole = connection.head("POST", path, len(body), headers) + body
            await connection.send(whole[: len(whole) // 2] if self._dies_at == "half sent" else whole)
            if self._dies_at == "sent":  # what is on its way arrives, before the connection is gone
                await asyncio.sleep(0.2)
            raise Died(self._dies_at)

    def _is_receipt(self, given: Assignment, headers: Mapping[str, str], answer: Answer) -> bool:
        signed, operator = SignedReceipt.model_validate_json(answer.body), self._swarm.settings.operator_key
        said = signed.receipt.assignment, signed.receipt.sha256
        return said == (given.assignment, headers[DIGEST]) and is_signed(signed, operator)

    async def _wrong(self, given: Assignment, report: Report, body: bytes) -> tuple[str, str] | None:
        """What a byzantine device does in place of its report; None: it then sends that. Raises: ServerError."""
        async with self._connected() as connection:
            answer = await wrong_report(self, connection, given, report, body, self._swarm)
        if answer is None:
            return None
        return (log.RECEIVED, "") if answer.status == 200 else (log.REFUSED, kind_of(answer))

    # -- requests ------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        """A connection of its own, after the delay of its network. Raises: ServerError."""
        faults = self._swarm.settings.faults
        if faults.delay_s:
            await asyncio.sleep(self.draw.expovariate(1 / faults.delay_s))
        connection = await Connection.to(self._swarm.place)
        try:
            yield connection
        finally:
            connection.close()

    async def ask(
        self,
        connection: Connection,
        what: str,
        method: str,
        path: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        seconds: float = 60.0,
    ) -> Answer:
        """The answer, counted in the log. Raises: ServerError, also where the network loses it."""
        if self.draw.random() < self._swarm.settings.faults.lose:
            await connection.send(connection.head(method, path, len(body), headers) + body)
            raise ServerError("the network lost the answer.")
        answer = await connection.ask(method, path, body=body, seconds=seconds, more=headers)
        self._swarm.log.answers[what, answer.status] += 1
        return answer

    def _step(self, step: str) -> None:
        """Raises: Died."""
        if self._dies_at == step:
            raise Died(step)


def kind_of(answer: Answer) -> str:
    """The kind of a refusal, as its Problem says; its status where it is none."""
    try:
        return str(json.loads(answer.body)["type"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status}"


def _is_plan(signed: SignedPlan, name: str, operator: str) -> bool:
    return digest(signed.plan) == name and is_signed(signed, operator)
