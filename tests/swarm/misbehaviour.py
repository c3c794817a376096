"""What byzantine devices send, kind by kind; a server refuses all of it, and no sum has it."""

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tests.swarm.connection import SwarmConnection, headers_of
from tests.swarm.faults import Fault

from tacit.protocol.bodies import ReportBody, report_body
from tacit.protocol.messages import Assignment, RoundTask
from tacit.protocol.requests import Answer
from tacit.protocol.train import TrainDocument
from tacit.secure_aggregation.one_message.messages import (
    OneMessageReport,
    OneMessageRound,
    box_context,
    report_digests,
    signed_report,
)
from tacit.secure_aggregation.secrets import KEY_BYTES, Identity, agreed, public_key, sealed, tag
from tacit.secure_aggregation.shares import PRIME

if TYPE_CHECKING:
    from tests.swarm.simulated_device import SimulatedDevice
    from tests.swarm.swarm import Swarm

TOO_OFTEN = 10  # times the size
STALLS_S = 120.0  # a slow loris goes when it was not thrown out after so long


def wrong_sealed(fault: Fault, settings: OneMessageRound, report: OneMessageReport, me: Identity) -> bytes:
    """A report that is whole, signed and of the right lengths, so that no server can tell it from an honest one.

    report: the honest one of this identity.
    """
    boxes, ephemeral, tagged, body = report.boxes, report.ephemeral, report.tag, report.body
    if fault is Fault.RANDOM_SHARES:
        shares = np.random.default_rng().integers(0, PRIME, (len(boxes), settings.columns), np.uint32)
        context = [box_context(settings.name, report.client, at) for at in range(len(boxes))]
        each = zip(settings.boxes, shares, context, strict=True)
        boxes = tuple(sealed(key, share.astype("<u4").tobytes(), of, os.urandom) for key, share, of in each)
    elif fault is Fault.WRONG_BOXES:
        boxes = tuple(os.urandom(len(box)) for box in boxes)
    else:
        private, body = os.urandom(KEY_BYTES), os.urandom(len(body))
        ephemeral = public_key(private)
        tagged = tag(agreed(private, settings.server, "report tag", settings.name, report.client), body)
    signed = signed_report(settings.name, report.client, report_digests(boxes, ephemeral, tagged))
    forged = {"boxes": boxes, "ephemeral": ephemeral, "tag": tagged, "body": body}
    return replace(report, signature=me.sign("report", signed), **forged).to_bytes()


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
            before, swarm.old_report = swarm.old_report, body
            if before is None:
                return None
            sent = before
        case Fault.ANOTHERS:
            other, swarm.old_assignment = swarm.old_assignment, assignment
            if other is None:
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
