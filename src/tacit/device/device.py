"""A device: it looks whether it may work, asks whether there is something to do, decides, and takes part.

It trusts nobody. Who operates the server is a key that its owner pinned; what a plan promises is computed anew; how
often it takes part, and at what price, stands in a record of its own, on disk before anything leaves. Private
randomness is the operating system's.
"""

import hashlib
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from types import NoneType
from typing import Any

from tacit.device.eligibility import Probe, first_obstacle
from tacit.device.own_text import OwnText
from tacit.device.owner_inputs import by_onnx, enrolment_code_in, operator_key_of, unpinned
from tacit.device.policy import FILE as POLICY_FILE
from tacit.device.policy import Policy
from tacit.device.record import FILE as RECORD
from tacit.device.record import DeviceRecord, opened
from tacit.device.report_body import body_of
from tacit.device.separation import Apart, refuse_early
from tacit.device.task_handler import Doing, Price
from tacit.device.task_handlers import doings_of
from tacit.device.tokens import checked_in
from tacit.device.train import ByJax
from tacit.device.transport import Connection, Server, connected
from tacit.device.turn import LATER, LONGEST, SOON, Turn, What, later
from tacit.errors import DeviceError, InputError, NotTheOperator, ServerError, TaskRefused, of_type
from tacit.federation.kinds import FEDERATED
from tacit.files import PathLike, as_path
from tacit.protocol.attestation import NOTHING, Attestation
from tacit.protocol.key_rotation import followed
from tacit.protocol.log_check import logged
from tacit.protocol.log_entries import plan_entry
from tacit.protocol.messages import (
    VERSION,
    Assignment,
    CheckIn,
    ComeBack,
    MatrixFile,
    Plan,
    RoundTask,
    SignedPlan,
    SignedReceipt,
)
from tacit.protocol.signing import digest, is_signed

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # `messages.Name`
MODELS, MATRICES = "models", "matrices"  # in the state folder: the last one of each
PRICED = 4  # plans whose price is in memory


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What of its machine a device uses; tests have their own."""

    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[int], bytes] = os.urandom


class Device:
    """One device, with everything that it is made of; `device` makes it of paths."""

    def __init__(
        self,
        *,
        connection: Connection,
        record: DeviceRecord,
        policy: Policy,
        doings: Mapping[str, Doing],
        population: str,
        probes: Sequence[Probe] = (),
        machine: Machine = Machine(),
        code: str | None = None,
        own: Attestation = NOTHING,
        servers: Attestation = NOTHING,
    ) -> None:
        """doings: by the kind of tasks. own, servers: what attests this device, and the server."""
        self._connection, self._record, self._policy, self._doings = connection, record, policy, doings
        self._population, self._probes, self._machine = population, probes, machine
        self._code, self._own, self._servers = code, own, servers  # code: of its enrolment
        self._priced: dict[str, Price] = {}
        self._told = 0.0  # seconds in which the server asked for it last
        self._fruitless = 0  # turns since the last report, those not counted when there was nothing to do

    def turns(self) -> Iterator[Turn]:
        """Turn after turn, for ever, with the time between them."""
        while True:
            turn = self.turn()
            yield turn
            self._machine.sleep(random.SystemRandom().uniform(*turn.wait))

    def turn(self) -> Turn:
        """Look once whether there is something to do, and do it. Raises: DeviceError, CacheError: nothing is lost."""
        obstacle = first_obstacle(self._probes)
        if obstacle is not None:
            return self._turned("not eligible", obstacle)
        try:
            return self._checked_in()
        finally:
            self._connection.hang_up()

    def _checked_in(self) -> Turn:
        try:
            draw = self._machine.draw
            said, own = self._check_in(), self._own
            answer = checked_in(self._connection, said, self._record, self._code, draw=draw, attestation=own)
        except ServerError as error:
            return self._turned("unanswered", str(error))
        except TaskRefused as refusal:
            return self._turned("refused", self._said(refusal))
        if isinstance(answer, ComeBack):
            return self._idle(answer)
        return self._assigned(answer)

    def _check_in(self) -> CheckIn:
        return CheckIn(
            version=VERSION,
            population=self._population,
            versions={kind: FEDERATED[kind].version for kind in self._doings if kind in self._policy.kinds},
            token=None,
        )

    def _idle(self, answer: ComeBack) -> Turn:
        window = answer.after_s, max(answer.after_s, answer.before_s)
        self._told = window[1]
        says = f"there is nothing to do; the server asks to come back in {window[0]:.0f} to {window[1]:.0f} s."
        return self._turned("idle", says, wait=window)

    # -- a task --------------------------------------------------------------------------------------------------------

    def _assigned(self, assignment: Assignment) -> Turn:
        task = assignment.signed_task.task
        try:
            plan = self._accepted_plan(assignment)
            self._allowed(plan, task)
            body = self._report(plan.plan, task, assignment.assignment)
            zcdp, now = self._allowed(plan, task)  # time went by, and clocks are set
            sent = hashlib.sha256(body).hexdigest()
            self._record.take_part(task, assignment=assignment.assignment, at=now, zcdp=zcdp, body=sent)
        except (TaskRefused, ServerError) as error:
            with suppress(ServerError):  # it keeps the place for nothing then
                self._connection.give_back(assignment.assignment, assignment.secret)
            return self._turned("refused" if isinstance(error, TaskRefused) else "unanswered", self._said(error), task)
        return self._sent(task, assignment, body, zcdp)

    def _accepted_plan(self, assignment: Assignment) -> Price:
        """The plan of the task, both signed by the pinned operator, which the policy accepts.

        Raises: TaskRefused; ServerError where a plan that it does not know yet is not to be had.
        """
        signed_task = assignment.signed_task
        task, operator = signed_task.task, self._record.operator
        if operator is None or not is_signed(signed_task, operator):
            raise NotTheOperator(f"a task for run {task.run!r} is not signed by the operator whose key is pinned.")
        signed = self._record.plan(task.plan) or self._connection.plan(task.plan)
        if not is_signed(signed, operator):
            raise TaskRefused(f"the plan of run {task.run!r} is not signed by the operator whose key is pinned.")
        name = digest(signed.plan)
        if name != task.plan:
            raise TaskRefused(f"a task for run {task.run!r} belongs to another plan than the one that came for it.")
        if signed.plan.population != self._population:
            raise TaskRefused(
                f"run {task.run!r} is for the population {signed.plan.population!r}, and this device is of "
                f"{self._population!r}."
            )
        if name not in self._priced:
            self._attested(signed, name)
            found = self._doing(signed.plan).price(signed.plan, self._matrix)
            self._policy.check_plan(found)
            if len(self._priced) >= PRICED:  # matrices may be large
                self._priced.clear()
            self._priced[name] = found
        if self._record.plan(name) is None:  # one that it knows was seen in the log
            seen = logged(plan_entry(name), self._connection, operator=operator, seen=self._record.log_head)
            self._record.keep_log_head(seen)
        self._record.keep_plan(name, signed)
        return self._priced[name]

    def _attested(self, signed: SignedPlan, name: str) -> None:
        """Raises: TaskRefused where what attests the server, or has to attest this device, is not what it has here."""
        said, what = signed.plan.attestation, f"the plan of run {signed.plan.run!r}"
        for whose, asked, here in (("server", said.server, self._servers), ("devices", said.devices, self._own)):
            if asked != here.name:
                raise TaskRefused(
                    f"{what} says that {asked!r} attests the {whose}, and here {here.name!r} would have to."
                )
        try:
            evidence = None if signed.evidence is None else bytes.fromhex(signed.evidence)
            self._servers.check(evidence, bytes.fromhex(name))
        except InputError as error:
            raise TaskRefused(f"{what} is of a server that is not attested: {error}") from error

    def _doing(self, plan: Plan) -> Doing:
        """Raises: TaskRefused for a kind that it does not know."""
        found = self._doings.get(plan.kind)
        if found is None:
            raise TaskRefused(f"run {plan.run!r} is to {plan.kind}, which this device does not know.")
        return found

    def _said(self, error: Exception) -> str:
        """Why it did nothing; where somebody else signed, to whom the operator handed its key over, if it did."""
        says, pinned = str(error), self._record.operator
        if not isinstance(error, NotTheOperator) or pinned is None:
            return says
        try:
            key, head = followed(pinned, self._connection, seen=self._record.log_head)
            self._record.hand_over(key, head)
        except ServerError:
            return says
        except TaskRefused as refusal:
            return f"{says} And {refusal}"
        return (
            f"the operator changed its key from {pinned[:16]}... to {key[:16]}..., as the old one signed and the log "
            "shows; this device believes the new one from now on."
        )

    def _matrix(self, said: MatrixFile) -> bytes:
        """The file of a strategy matrix. Raises: TaskRefused; ServerError."""
        self._policy.check_matrix(said)
        return self._kept(MATRICES, "matrix", said.path, said.sha256, said.bytes)

    def _kept(self, folder: str, what: str, path: str, sha256: str, size: int) -> bytes:
        """A file by its SHA-256, from the state folder or else from the server. Raises: ServerError."""
        place = self._record.folder / folder
        try:
            return self._connection.model(path, sha256, size, place, what=what)
        except OSError as error:
            raise DeviceError(f"the {what} cannot be kept in '{place}' ({error.strerror}); make room there.") from error

    def _allowed(self, plan: Price, task: RoundTask) -> tuple[float, float]:
        """(rho that the run will have cost with this round, the time), where everything allows it.

        Raises: TaskRefused.
        """
        policy, now = self._policy, self._machine.clock()
        self._doing(plan.plan).check(plan.plan)
        policy.check_task(plan, task, now)
        apart = Apart.of(plan.plan, rounds_apart=policy.rounds_apart, hours_apart=policy.hours_apart)
        longest = policy.longest_round_hours * 3600
        refuse_early(plan.plan, task, self._record.asked(task), apart, now=now, longest_round=longest)
        zcdp = plan.spent([*self._record.rounds(task.plan), task.round])
        what = f"round {task.round} of run {task.run!r}"
        if not zcdp <= plan.zcdp * (1 + 1e-9):
            raise TaskRefused(
                f"{what} would make the run cost zCDP {zcdp:.4g}, more than the {plan.zcdp:.4g} of its plan; "
                "this device takes part in it no more."
            )
        elsewhere = self._record.spent(but=task.plan)
        if not elsewhere + zcdp <= policy.budget_zcdp * (1 + 1e-9):
            raise TaskRefused(
                f"{what} would bring everything to zCDP {elsewhere + zcdp:.4g}, and budget_zcdp={policy.budget_zcdp:g}"
                f"; raise it in {POLICY_FILE}, or leave it."
            )
        return zcdp, now

    def _report(self, plan: Plan, task: RoundTask, assignment: str) -> bytes:
        """The bytes that will leave. Raises: TaskRefused, ServerError."""
        content = self._kept(MODELS, "model", task.content.path, task.content.sha256, task.content.bytes)
        report = self._doing(plan).report(plan, task, content, draw=self._machine.draw)
        return body_of(plan, task, report, assignment, draw=self._machine.draw)

    def _sent(self, task: RoundTask, assignment: Assignment, body: bytes, zcdp: float) -> Turn:
        """Send the report until a receipt comes, the same bytes each time. It is recorded, and so spent, already."""
        wait, said = LATER[0], "the round ended before it was sent."
        while self._machine.clock() < task.deadline:
            try:
                receipt = self._connection.report(assignment.assignment, assignment.secret, body)
                said = self._wrong(receipt, assignment, body)
                if not said:
                    self._record.received(task)
                    says = f"took part in round {task.round} of run {task.run!r}, and the operator signed for it."
                    self._fruitless = 0
                    return self._turned("reported", says, task, zcdp=zcdp, wait=SOON)
            except ServerError as error:
                said = str(error)
                if error.final:
                    break
            self._machine.sleep(min(random.SystemRandom().uniform(wait / 2, wait), LONGEST))
            wait *= 2
        says = f"took part in round {task.round} of run {task.run!r}, and no receipt came: {said} It stays spent."
        return self._turned("lost", says, task, zcdp=zcdp)

    def _wrong(self, signed: SignedReceipt, assignment: Assignment, body: bytes) -> str:
        """What is wrong with a receipt; nothing where it is ours."""
        receipt, operator = signed.receipt, self._record.operator
        if operator is None or not is_signed(signed, operator):
            return "a receipt came that is not signed by the operator whose key is pinned."
        if receipt.assignment != assignment.assignment or receipt.sha256 != hashlib.sha256(body).hexdigest():
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
    ) -> Turn:
        if wait is None:
            wait = later(self._fruitless, self._told)
            self._fruitless = min(self._fruitless + 1, 30)
        return Turn(
            what=what,
            says=says,
            at=self._machine.clock(),
            wait=wait,
            run=None if task is None else task.run,
            round=None if task is None else task.round,
            zcdp=zcdp,
            spent=self._record.spent(),
            budget=self._policy.budget_zcdp,
        )


def device(
    server: str,
    data: PathLike,
    state: PathLike,
    *,
    population: str = "default",
    client: int | None = None,
    operator_key: str | None = None,
    enrolment_code: PathLike | None = None,
    first_time: bool = False,
    once: bool = False,
    policy: Policy | None = None,
    onnx: PathLike | None = None,
    certificates: PathLike | None = None,
    probes: Sequence[Probe] | None = None,
    machine: Machine = Machine(),
    through: Any = None,
    told: Callable[[Turn], None] = lambda turn: None,
) -> Turn:
    """Be one device of a population: look for something to do and do it, for ever or once; the last turn.

    server: its address; http:// on this machine alone. data: a cache; client: whose text in it this device has, left
    out where there is one. state: its folder, with its record, its policy and the model of the last round; made if
    missing. operator_key: the public key, 64 hexadecimal digits, that is pinned by it, once. enrolment_code: a file
    with the secret for which an operator that enrols gives it tokens. first_time: it has taken part nowhere before, so
    that a new record need not wait. policy: in place of the file in `state`. onnx: an exported model, by whose
    `train.onnx` it trains without JAX. certificates: PEM, in place of the system's. probes: in place of those that the
    policy asks of this machine. told: gets every turn. machine, through: a clock, a way to sleep, random bytes and an
    httpx transport in place of the machine's, for tests.
    Raises: InputError, CacheError for what cannot be; DeviceError where the state is another process's or damaged.
    """
    of_type("server", server, str)
    of_type("population", population, str)
    if not NAME.fullmatch(population):
        raise InputError(f"--population {population[:60]!r} is no name; give letters, digits, points and hyphens.")
    of_type("client", client, Integral, NoneType)
    of_type("operator_key", operator_key, str, NoneType)
    place, address = as_path("state", state), Server.at(server)
    key = None if operator_key is None else operator_key_of(operator_key)
    code = None if enrolment_code is None else enrolment_code_in(as_path("enrolment_code", enrolment_code))
    pem = None if certificates is None else as_path("certificates", certificates)
    if key is None and not (place / RECORD).exists():
        raise InputError(unpinned(place))
    rules = Policy.load(place / POLICY_FILE) if policy is None else policy
    text = OwnText(data, client, rules.temporal_split)
    trainer = ByJax(text) if onnx is None else by_onnx(text, onnx)
    asked = rules.eligibility.probes(network=not address.on_loopback) if probes is None else probes
    with (
        connected(address, certificates=pem, through=through) as connection,
        opened(place, now=machine.clock(), first_time=first_time) as record,
    ):
        if key is not None:
            record.pin(key)
        if record.operator is None:
            raise InputError(unpinned(place))
        made = Device(
            connection=connection,
            record=record,
            policy=rules,
            doings=doings_of(text, trainer),
            population=population,
            probes=asked,
            machine=machine,
            code=code,
        )
        for turn in made.turns():
            told(turn)
            if once:
                break
    return turn
