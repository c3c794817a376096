"""A device's turn without I/O: it decides which requests to send, and which answers to accept.

A turn is a generator. It yields each request as an `Ask`, and a `Pause` before it tries again; whoever drives it sends
the `Answer`, or throws the ServerError of a request that got none. A phone drives one (`transport.py`), a test of a
server thousands. Record, policy and task handlers are what it is made with: no rule of a device is anywhere else.

It trusts nobody. Who operates the server is a key that its owner pinned; what a plan promises is computed anew; how
often it takes part, and at what cost, stands in a record of its own. Private randomness is the operating system's.

What it asks for follows from the task and its record of participations. It asks for plan, log, matrix and model each
time, whatever it has seen: a request that is left out, or a refusal of what others take, would tell its history.

Text decides what a report says, and nothing else. Plan, policy, record and clock decide whether the device takes part;
what the round begins with is fetched and checked; the participation and its price go to disk; only then is text read.
From then on one message leaves, of a length that the task fixes.
"""

import hashlib
import os
import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tacit.device.eligibility import Probe, first_obstacle
from tacit.device.policy import FILE as POLICY_FILE
from tacit.device.policy import Policy
from tacit.device.record import DeviceRecord
from tacit.device.report_body import body_of, report_or_nothing, sealed_round
from tacit.device.separation import SealedAttempt, Seen, SeparationRule, refuse_early
from tacit.device.task_handler import PreparedTask, TaskHandler
from tacit.device.tokens import checked_in
from tacit.device.turn import LATER, LONGEST, MOST_AWAY, SOON, Pause, SessionOutcome, What, later
from tacit.device.weekly_budget import check_week
from tacit.errors import InputError, NotTheOperator, ServerError, TaskRefused
from tacit.federation.cost import ROUNDING, Cost
from tacit.federation.kinds import FEDERATED
from tacit.protocol import requests
from tacit.protocol.attestation import NOTHING, Attestation
from tacit.protocol.bodies import ReportBody
from tacit.protocol.log_check import AnotherLog, followed, logged, read_or_refuse
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import (
    VERSION,
    Assignment,
    CheckIn,
    ComeBack,
    MatrixFile,
    Plan,
    Receipt,
    RoundTask,
    Signed,
)
from tacit.protocol.requests import Ask, NamedFile
from tacit.protocol.signing import digest, is_signed

TWO_LOGS = (
    "the operator signed two logs that do not begin alike; this device keeps both and asks it for nothing more. Tell "
    "whoever runs it."
)
T = TypeVar("T")
Steps: TypeAlias = Generator[Ask | Pause, Any, T]  # an Ask is sent its Answer, a Pause nothing


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What of its machine a device uses; tests have their own."""

    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic  # seconds, by the clock that nobody sets
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[int], bytes] = os.urandom


THIS_MACHINE = Machine()


class AcceptedPlan(NamedTuple):
    """A plan that the policy accepts, and what it costs."""

    plan: Plan
    cost: Cost


class Session:
    """What one device is made of, and its turns."""

    def __init__(
        self,
        *,
        record: DeviceRecord,
        policy: Policy,
        handlers: Mapping[str, TaskHandler],
        population: str,
        probes: Sequence[Probe] = (),
        machine: Machine = THIS_MACHINE,
        code: str | None = None,
        own: Attestation = NOTHING,
        servers: Attestation = NOTHING,
    ) -> None:
        """handlers: by the kind of tasks. code: of its enrolment. own, servers: what attests this device, and the
        server.
        """
        self.record, self._policy, self._handlers = record, policy, handlers
        self._population, self._probes, self.machine = population, probes, machine
        self._code, self._own, self._servers = code, own, servers
        self._told = 0.0  # seconds in which the server asked for it last
        self._fruitless = 0  # turns since the last report, those not counted when there was nothing to do

    def turn(self) -> Steps[SessionOutcome]:
        """Look once whether there is something to do, and do it. Raises: DeviceError, CacheError: nothing is lost."""
        obstacle = first_obstacle(self._probes)
        if obstacle is not None:
            return self._turned("not eligible", obstacle)
        if self.record.disbelieves:
            return self._turned("refused", TWO_LOGS)
        try:
            said = self._check_in()
            answer = yield from checked_in(said, self.record, self._code, draw=self.machine.draw, attestation=self._own)
        except ServerError as error:
            return self._turned("unanswered", str(error))
        except TaskRefused as refusal:
            return self._turned("refused", (yield from self._said(refusal)))
        if answer is None:
            says = "it asked for the tokens of this epoch; it shows the first at another time, on another connection."
            return self._turned("idle", says, wait=(0.0, self._policy.show_after_s))
        if isinstance(answer, ComeBack):
            return self._idle(answer)
        return (yield from self.assigned(answer))

    def _check_in(self) -> CheckIn:
        return CheckIn(
            version=VERSION,
            population=self._population,
            versions={kind: FEDERATED[kind].version for kind in self._handlers if kind in self._policy.kinds},
            token=None,
        )

    def _idle(self, answer: ComeBack) -> SessionOutcome:
        after = min(answer.after_s, MOST_AWAY)
        window = after, min(max(after, answer.before_s), MOST_AWAY)
        self._told = window[1]
        says = f"there is nothing to do; the server asks to come back in {window[0]:.0f} to {window[1]:.0f} s."
        return self._turned("idle", says, wait=window)

    # -- a task --------------------------------------------------------------------------------------------------------

    def assigned(self, assignment: Assignment) -> Steps[SessionOutcome]:
        """Take part in a round, or give the place back and say why."""
        task = None
        try:
            task = self._task(assignment.signed_task)
            accepted = yield from self._accepted_plan(task)
            self._allowed(accepted, task)
            prepared = yield from self._prepared(accepted.plan, task)
            with self.record.deciding():  # time went by, clocks are set, and another operator may have asked
                zcdp, now, attempt = self._allowed(accepted, task)
                self.record.take_part(task, assignment=assignment.assignment, at=now, zcdp=zcdp, attempt=attempt)
        except (TaskRefused, ServerError) as error:
            yield from _given_back(assignment)
            what: What = "refused" if isinstance(error, TaskRefused) else "unanswered"
            return self._turned(what, (yield from self._said(error)), task)
        # No text was read so far; from here on none decides whether, when, how often or how long something is sent.
        # By the steady clock: who sets the other while text is read would see when reading ended.
        held_back = self._policy.report_after_s(task, now, self._handler(accepted.plan).reading_s(task))
        leaves = self.machine.steady() + held_back
        report, why = report_or_nothing(prepared, task, draw=self.machine.draw)
        rest = leaves - self.machine.steady()
        if rest > 0:
            yield Pause(rest)
        # Sealing takes as long for every report, so its time is added to one at which every text was read.
        body = self.body(accepted.plan, task, report, assignment.assignment)
        says = f" Its report says nothing, as if nothing had been typed ({why})." if why else ""
        return (yield from self._sent(task, assignment, body, says, zcdp))

    def _task(self, signed_task: Signed) -> RoundTask:
        """The task, once it is the pinned operator's. Raises: TaskRefused, also where it cannot be followed here."""
        operator = self.record.operator
        if operator is None or not is_signed(RoundTask, signed_task, operator):
            raise NotTheOperator("a task is not signed by the operator whose key is pinned.")
        return read_or_refuse(RoundTask, signed_task.document, "a task of the operator")

    def _accepted_plan(self, task: RoundTask) -> Steps[AcceptedPlan]:
        """The plan of the task, signed by the pinned operator, which the policy accepts.

        Raises: TaskRefused; ServerError where it is not to be had.
        """
        operator = self.record.operator
        assert operator is not None  # who signed the task
        signed = yield from requests.plan(task.plan)
        if not is_signed(Plan, signed, operator):
            raise TaskRefused(f"the plan of run {task.run!r} is not signed by the operator whose key is pinned.")
        name = digest(signed.document)
        if name != task.plan:
            raise TaskRefused(f"a task for run {task.run!r} belongs to another plan than the one that came for it.")
        self.record.keep_log((yield from logged(plan_entry(name), operator=operator, kept=self.record.log)))
        plan = read_or_refuse(Plan, signed.document, f"the plan of run {task.run!r}")
        if plan.population != self._population:
            raise TaskRefused(
                f"run {task.run!r} is for the population {plan.population!r}, and this device is of "
                f"{self._population!r}."
            )
        self._attested(plan, signed.evidence, name)
        self.record.keep_plan(name, signed)
        self._seen(plan, task, self._attempt(plan, task), self.machine.clock())  # before megabytes of a matrix come
        cost = yield from self._cost(plan)
        self._policy.check_plan(plan, cost)
        return AcceptedPlan(plan, cost)

    def _cost(self, plan: Plan) -> Steps[Cost]:
        """By the plan's own numbers, those in a file as well. Raises: TaskRefused; ServerError."""
        handler = self._handler(plan)
        said = handler.matrix(plan)
        return handler.cost(plan, None if said is None else (yield from self._matrix(said)))

    def _attested(self, plan: Plan, evidence: str | None, name: str) -> None:
        """Raises: TaskRefused where what attests the server, or has to attest this device, is not what it has here."""
        said, what = plan.attestation, f"the plan of run {plan.run!r}"
        for whose, named, here in (("server", said.server, self._servers), ("devices", said.devices, self._own)):
            if named != here.name:
                raise TaskRefused(
                    f"{what} says that {named!r} attests the {whose}, and here {here.name!r} would have to."
                )
        try:
            self._servers.check(None if evidence is None else bytes.fromhex(evidence), bytes.fromhex(name))
        except InputError as error:
            raise TaskRefused(f"{what} is of a server that is not attested: {error}") from error

    def _handler(self, plan: Plan) -> TaskHandler:
        """Raises: TaskRefused for a kind that it does not know."""
        found = self._handlers.get(plan.kind)
        if found is None:
            raise TaskRefused(f"run {plan.run!r} is to {plan.kind}, which this device does not know.")
        return found

    def _said(self, error: Exception) -> Steps[str]:
        """Why it did nothing; where somebody else signed, to whom the operator handed its key over, if it did. Where
        the operator signed two logs it is remembered.
        """
        says, pinned = str(error), self.record.operator
        if isinstance(error, AnotherLog):
            self.record.disbelieve(error.shown)
        if not isinstance(error, NotTheOperator) or pinned is None:
            return says
        try:
            key, shown = yield from followed(pinned, kept=self.record.log)
            self.record.key_rotation(key, shown)
        except ServerError:
            return says
        except TaskRefused as refusal:
            return f"{says} And {refusal}"
        return (
            f"the operator changed its key from {pinned[:16]}... to {key[:16]}..., as the old one signed and the log "
            "shows; this device believes the new one from now on."
        )

    def _matrix(self, said: MatrixFile) -> Steps[bytes]:
        """The file of a strategy matrix. Raises: TaskRefused; ServerError."""
        self._policy.check_matrix(said)
        file = NamedFile(what="matrix", sha256=said.sha256, size=said.bytes)
        return (yield from requests.named_file(said.path, file))

    def _allowed(self, accepted: AcceptedPlan, task: RoundTask) -> tuple[float, float, SealedAttempt | None]:
        """(rho that the run will have cost with this round, the time, which attempt it is at a sealed round), where
        everything allows it.

        Raises: TaskRefused.
        """
        (plan, cost), policy, now = accepted, self._policy, self.machine.clock()
        handler = self._handler(plan)
        handler.check(plan)
        policy.check_task(plan, task, now, partial(handler.check_task, plan, cost, task))
        # What a device randomises itself is promised whatever decryptors do, and costs as often as it is sent.
        attempt = self._attempt(plan, task) if cost.local_epsilon is None else None
        seen, what = self._seen(plan, task, attempt, now), _named(task)
        zcdp = cost.spent(sorted({*seen.possible_rounds, task.round}))
        if not zcdp <= cost.zcdp * (1 + ROUNDING):
            raise TaskRefused(
                f"{what} would make the run cost zCDP {zcdp:.4g}, more than the {cost.zcdp:.4g} of its plan; "
                "this device takes part in it no more."
            )
        elsewhere = self.record.spent(but=task.plan)
        if not elsewhere + zcdp <= policy.budget_zcdp * (1 + ROUNDING):
            raise TaskRefused(
                f"{what} would bring everything to zCDP {elsewhere + zcdp:.4g}, and budget_zcdp={policy.budget_zcdp:g}"
                f"; raise it in {POLICY_FILE}, or leave it."
            )
        check_week(self.record.costs(), task.plan, zcdp, allowed=policy.budget_zcdp_week, now=now, what=what)
        return zcdp, now, attempt

    def _seen(self, plan: Plan, task: RoundTask, attempt: SealedAttempt | None, now: float) -> Seen:
        """What it did before, which lets it take part in this round by now: seconds of its clock.

        Raises: TaskRefused.
        """
        policy, seen = self._policy, self.record.observe(task, attempt)
        apart = SeparationRule.from_plan(plan, rounds_apart=policy.rounds_apart, hours_apart=policy.hours_apart)
        refuse_early(plan, task, seen, apart, now=now, longest_round=policy.longest_round_hours * 3600)
        return seen

    def _attempt(self, plan: Plan, task: RoundTask) -> SealedAttempt | None:
        """Which attempt it is at a sealed round, of which only the sum that is opened costs something.

        Raises: TaskRefused.
        """
        if task.sealed is None:
            return None
        joined, most = self.record.joined(task), self._policy.most_attempts
        settings = sealed_round(plan, task, joined=joined)
        if len(joined) >= most:
            raise TaskRefused(
                f"{_named(task)}: this device took part in {len(joined)} attempts at it, and most_attempts={most}."
            )
        return SealedAttempt(settings.attempts.name.hex(), settings.name.hex())

    def _prepared(self, plan: Plan, task: RoundTask) -> Steps[PreparedTask]:
        """The task with what it begins with, all that can be refused checked. Raises: TaskRefused, ServerError."""
        said = task.content
        file = NamedFile(what="model", sha256=said.sha256, size=said.bytes)
        content = yield from requests.named_file(said.path, file)
        return self._handler(plan).prepare(plan, task, content)

    def body(self, plan: Plan, task: RoundTask, report: ReportBody, assignment: str) -> bytes:
        """The report as it leaves: see `body_of`."""
        return body_of(plan, task, report, assignment, draw=self.machine.draw)

    def _sent(
        self, task: RoundTask, assignment: Assignment, body: bytes, adds: str, zcdp: float
    ) -> Steps[SessionOutcome]:
        """Send the report until a receipt comes or a final refusal, the same bytes each time. It is recorded, and so
        spent, already. It is spent no more where no attempt had a connection: what never left cost nothing. That is
        for the network to say, so a report that was not even tried stays spent: text may have taken all the time.

        adds: to what the owner is told.
        """
        sha256, wait, said = hashlib.sha256(body).hexdigest(), LATER[0], "the round ended before it was sent."
        tried = left = False  # left: it may have
        while self.machine.clock() < task.deadline:
            tried = True
            try:
                receipt = yield from requests.report(assignment.assignment, assignment.secret, body, sha256)
                left = True
                said = self._wrong(receipt, assignment, sha256)
                if not said:
                    self.record.received(task)
                    says = f"took part in round {task.round} of run {task.run!r}, and the operator signed for it.{adds}"
                    self._fruitless = 0
                    return self._turned("reported", says, task, zcdp=zcdp, wait=SOON)
            except ServerError as error:
                said, left = str(error), left or not error.unsent
                if error.final:
                    break
            yield Pause(min(random.SystemRandom().uniform(wait / 2, wait), LONGEST))
            wait *= 2
        if tried and not left:
            self.record.never_left(task)
            says = f"{_named(task)} ended before anybody could be reached: {said} No report left, so nothing is spent."
            return self._turned("unanswered", says, task)
        says = f"took part in round {task.round} of run {task.run!r}, and no receipt came: {said} It stays spent.{adds}"
        return self._turned("lost", says, task, zcdp=zcdp)

    def _wrong(self, signed: Signed, assignment: Assignment, sha256: str) -> str:
        """What is wrong with a receipt; nothing where it is ours."""
        operator = self.record.operator
        if operator is None or not is_signed(Receipt, signed, operator):
            return "a receipt came that is not signed by the operator whose key is pinned."
        try:
            receipt = signed.read(Receipt)
        except InputError as error:
            return f"a receipt came that cannot be followed: {error}"
        if receipt.assignment != assignment.assignment or receipt.sha256 != sha256:
            return "a receipt came that is for another report."
        return ""

    def _turned(
        self,
        what: What,
        says: str,
        task: RoundTask | None = None,
        *,
        zcdp: float | None = None,
        wait: tuple[float, float] | None = None,
    ) -> SessionOutcome:
        if wait is None:
            wait = later(self._fruitless, self._told)
            self._fruitless = min(self._fruitless + 1, 30)
        return SessionOutcome(
            what=what,
            says=says,
            at=self.machine.clock(),
            wait=wait,
            run=None if task is None else task.run,
            round=None if task is None else task.round,
            zcdp=zcdp,
            spent=self.record.spent(),
            budget=self._policy.budget_zcdp,
        )


def _named(task: RoundTask) -> str:
    return f"round {task.round} of run {task.run!r}"


def _given_back(assignment: Assignment) -> Steps[None]:
    """Another device gets the place; where no answer comes, it is kept for nothing."""
    with suppress(ServerError):
        yield from requests.give_back(assignment.assignment, assignment.secret)
