"""What byzantine devices send, kind by kind; a server refuses all of it, and no sum has it."""

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tests.support.secure_aggregation.lying_clients import a_broken_box, random_ciphertexts, random_shares, report_of
from tests.swarm.connection import SwarmConnection, headers_of
from tests.swarm.faults import Fault

from tacit.protocol.bodies import ReportBody, report_body
from tacit.protocol.messages import Assignment, RoundTask
from tacit.protocol.requests import Answer
from tacit.protocol.train import TrainDocument
from tacit.secure_aggregation.one_message.messages import OneMessageRound
from tacit.secure_aggregation.secrets import Identity

if TYPE_CHECKING:
    from tests.swarm.simulated_device import SimulatedDevice
    from tests.swarm.swarm import Swarm

TOO_OFTEN = 10  # times the size
STALLS_S = 120.0  # a slow loris goes when it was not thrown out after so long


SEALED_LIES = {
    Fault.RANDOM_SHARES: random_shares,
    Fault.RANDOM_CIPHERTEXTS: random_ciphertexts,
    Fault.WRONG_BOXES: a_broken_box,
}


def wrong_sealed(fault: Fault, settings: OneMessageRound, me: Identity) -> bytes:
    """A report that is whole, signed and fits what a server sees: decryptors alone tell it from an honest one."""
    lie = SEALED_LIES[fault](settings, np.zeros(settings.dimension, np.uint32))
    return report_of(settings, me, lie, passes_server=True).to_bytes()


async def wrong_check_in(device: "SimulatedDevice", connection: SwarmConnection) -> None:
    """Of a device that cannot even check in. Raises: ServerError."""
    path = "/v1/check-in"
    if device.fault is Fault.GARBAGE:
        content = device.draw.randbytes(200)
        await device.ask(connection, device.fault.value, "POST", path, content)
        return
    head = connection.head("POST", path, 200)
    for at in range(len(head) // 2):
        await connection.send(head[at : at + 1])
        if connection.closed:
            return
        await asyncio.sleep(STALLS_S / (len(head) // 2))


async def wrong_report(
    device: "SimulatedDevice",
    connection: SwarmConnection,
    given: Assignment,
    report: ReportBody,
    body: bytes,
    swarm: "Swarm",
) -> Answer | None:
    """The server's answer to what this device sends; None where it goes on to send its report, as it should.

    Raises: ServerError.
    """
    assignment, secret, sent = given.assignment, given.secret, body
    match device.fault:
        case Fault.NAN | Fault.TOO_LONG | Fault.WRONG_SHAPE:
            sent = report_body(_damaged(device.fault, report, given.signed_task.read(RoundTask)), assignment)
        case Fault.OVERSIZE:
            sent = body * TOO_OFTEN
        case Fault.CUT:
            sent = body[: len(body) // 2]
        case Fault.OLD_REPORT:
            before, swarm.old_report = swarm.old_report, (assignment, body)
            if before is None or before[0] == assignment:  # its own, whose answer the network lost
                return None
            sent = before[1]
        case Fault.ANOTHERS:
            other, swarm.old_assignment = swarm.old_assignment, assignment
            if other is None or other == assignment:
                return None
            assignment, sent = other, report_body(report, other)
        case Fault.FORGED_SECRET:
            secret = device.draw.randbytes(32).hex()
        case Fault.REPLAY:
            return await _replayed(device, connection, given, report, body)
        case _:
            return None
    return await _sent(device, connection, assignment, secret, sent)


async def _replayed(
    device: "SimulatedDevice", connection: SwarmConnection, given: Assignment, report: ReportBody, body: bytes
) -> Answer:
    """Its report, the same again, and another, over one connection; the answer to the first."""
    first = await _sent(device, connection, given.assignment, given.secret, body)
    if first.status == 200:
        again = await _sent(device, connection, given.assignment, given.secret, body)
        assert again.status in (200, 401)  # 401: the round was released in between
        other = report._replace(values=np.roll(report.values, 1))
        await _sent(device, connection, given.assignment, given.secret, report_body(other, given.assignment))
    return first


async def _sent(
    device: "SimulatedDevice", connection: SwarmConnection, assignment: str, secret: str, body: bytes
) -> Answer:
    assert device.fault is not None  # the caller's to know
    path, headers = f"/v1/reports/{assignment}", headers_of(secret, body)
    return await device.ask(connection, device.fault.value, "POST", path, body, headers)


def _damaged(fault: Fault, report: ReportBody, task: RoundTask) -> ReportBody:
    """What no honest device reports. An encoded one has no value that is no number: there it is the largest word."""
    values: NDArray[Any] = report.values.copy()
    match fault:
        case Fault.NAN:
            values[0] = np.uint32(2**32 - 1) if values.dtype == np.uint32 else np.nan
        case Fault.TOO_LONG if (encoded := task.question(TrainDocument).encoded) is not None:
            values[: encoded.dimension] = 2 * encoded.encoding().largest
        case Fault.TOO_LONG:
            values *= 1000
        case _:
            values = np.append(values, values[:1])
    return report._replace(values=values)
