"""A decryptor's noise for the rounds of its operator's runs: one report a round, and the same when asked again.

A request carries the signed plan, the signed task of the attempt and the file of the plan's matrix. What is computed
from them is up to the kind of run (`FederatedKind.contributes`); here is whom it is for, and that it is given once.
"""

import hashlib
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.device.report_body import sealed_round
from tacit.errors import InputError, ProtocolError
from tacit.federation.kinds import FEDERATED, loaded
from tacit.files import write_whole
from tacit.privacy.shared_noise import check_honest
from tacit.protocol.messages import Plan, RoundTask, Signed, SignedPlan
from tacit.protocol.signing import digest, is_signed
from tacit.secure_aggregation.one_message.client import one_message_report
from tacit.secure_aggregation.one_message.decryptor import IDENTITY
from tacit.secure_aggregation.one_message.decryptor_messages import NoiseRequest
from tacit.secure_aggregation.secrets import Identity
from tacit.secure_aggregation.wire import ROUND_BYTES

NOISE, REPORT = "noise", "report"  # in a decryptor's folder: a folder for each plan, and in it what was given last


class RunNoise(Protocol):
    """What one kind of run has its contributors add in one round, computed from its plan and the round's task."""

    @property
    def margin(self) -> int:
        """The largest magnitude of one contributor's noise that the round has to have room for."""
        ...

    def check(self, name: bytes) -> None:
        """That the noise of this round may be drawn under the name. Raises: ProtocolError, RunError where not."""
        ...

    def draw(self, name: bytes) -> NDArray[np.uint32]:
        """Noise + margin (length,). Raises: as `check`; InputError for noise beyond the margin."""
        ...


class NoiseContributor:
    """One decryptor's noise, for the operator whose public key (64 hexadecimal digits) it was given."""

    def __init__(self, folder: Path, operator: str) -> None:
        """folder: the decryptor's, whose identity signs its reports."""
        self._folder, self._operator = folder, operator

    def answer(self, request: NoiseRequest) -> bytes | None:
        """The report of the round, its bytes; the same whenever it is asked for again. None: only asked whether it
        would be given.

        Raises: ProtocolError, InputError, TaskRefused, RunError for a round that gets no noise of this decryptor.
        """
        plan, task = self._signed(request)
        settings = sealed_round(plan, task)
        if settings.name != request.round:
            raise ProtocolError("the task is of another round than the request.")
        identity = Identity((self._folder / IDENTITY).read_bytes())
        if identity.public.hex() not in plan.aggregation.contributors:
            raise InputError(f"the plan of run {plan.run!r} names others who add noise, and not this decryptor.")
        folder = self._folder / NOISE / task.plan
        kept = _given(folder, settings.name)
        if kept is not None:
            return kept if request.give else None
        noise = self._noise(plan, task, request.matrix, folder)
        if settings.margin != noise.margin:
            raise InputError(
                f"this round's margin={settings.margin:,}, and by its plan the noise of one takes {noise.margin:,}; it "
                "would be sent only where it is small, or hidden worse."
            )
        if not request.give:
            noise.check(settings.name)
            return None
        report = one_message_report(settings, identity, noise.draw(settings.name)).to_bytes()
        write_whole(folder / REPORT, settings.name + report)
        return report

    def _signed(self, request: NoiseRequest) -> tuple[Plan, RoundTask]:
        """Raises: ProtocolError, InputError for what the operator has not signed, or what does not go together."""
        try:
            signed_plan, signed_task = SignedPlan.from_json(request.plan), Signed.from_json(request.task)
        except InputError as error:
            raise ProtocolError(f"this is no signed plan with a signed task: {error}") from None
        if not (is_signed(Plan, signed_plan, self._operator) and is_signed(RoundTask, signed_task, self._operator)):
            raise ProtocolError("plan and task are not signed by the operator whom this decryptor answers.")
        plan, task = signed_plan.read(Plan), signed_task.read(RoundTask)
        if task.plan != digest(signed_plan.document) or task.run != plan.run or task.kind != plan.kind:
            raise ProtocolError(f"round {task.round} of run {task.run!r} is of another plan.")
        if task.sealed is None or not plan.aggregation.contributors:
            raise ProtocolError(f"the plan of run {plan.run!r} has nobody but the server add noise.")
        check_honest(len(plan.aggregation.contributors), plan.aggregation.honest, corrupt=plan.aggregation.corrupt)
        if task.round >= plan.privacy.rounds:
            raise ProtocolError(f"round {task.round} is beyond the {plan.privacy.rounds} rounds of its plan.")
        return plan, task

    def _noise(self, plan: Plan, task: RoundTask, matrix: bytes, folder: Path) -> RunNoise:
        part = FEDERATED[plan.kind].contributes
        if part is None:
            raise InputError(f"devices that {plan.kind} randomise by themselves, and their sums get no noise.")
        found: RunNoise = loaded(part)(plan, task, matrix, folder)
        return found


def _given(folder: Path, name: bytes) -> bytes | None:
    """The report of the round of this name, if it was given."""
    file = folder / REPORT
    if not file.exists():
        return None
    content = file.read_bytes()
    return content[ROUND_BYTES:] if content[:ROUND_BYTES] == name else None


def checked_file(matrix: bytes, sha256: str) -> bytes:
    """The file, if it is that of the digest. Raises: ProtocolError."""
    if hashlib.sha256(matrix).hexdigest() != sha256:
        raise ProtocolError("the matrix that came with the plan is not the plan's: its SHA-256 is another.")
    return matrix
