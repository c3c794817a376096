"""What leaves a device once it takes part: a report, whatever its text says, and bytes of one length.

A report is in the clear, or one that a quorum of decryptors opens only in a sum.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from tacit.device.task_handler import SEED_BYTES, Draw, PreparedTask
from tacit.errors import InputError, ProtocolError, TaskRefused
from tacit.federation.report_shape import LOSS, SHORT
from tacit.protocol.bodies import DTYPES, ReportBody, report_body
from tacit.protocol.messages import Plan, RoundTask

if TYPE_CHECKING:
    from tacit.secure_aggregation.one_message.messages import OneMessageRound

MOST_SAID = 300  # characters of what went wrong


def report_or_nothing(
    prepared: PreparedTask, task: RoundTask, nothing: ReportBody, *, draw: Draw
) -> tuple[ReportBody, str]:
    """(the report, why it says nothing: for the device's owner alone, and empty where it says something).

    nothing: the report of a device that has nothing to say, made before text is read. A report that is not finite, or
    none that the task asks for, or none at all, whatever the reason, is the report of a device that has nothing to say:
    were it refused, who asks would learn that it failed on this text.
    """
    try:
        report = prepared.read(draw)
        if report.usable:
            _check(report, task)
            return report, ""
        why = "what it computed is not finite"
    except Exception as error:  # whatever it is, it says something of the text
        why = f"{type(error).__name__}: {error}"[:MOST_SAID]
    return nothing, why


def _check(report: ReportBody, task: RoundTask) -> None:
    """As the server checks it. Raises: InputError."""
    shape, values = task.asks.shape(), report.values
    if values.shape != (shape.length,) or values.dtype != DTYPES[shape.tensor]:
        raise InputError(f"the report has {values.shape} numbers in {values.dtype}, and {shape.length} were asked for.")
    beside = {name for name, value in ((SHORT, report.short), (LOSS, report.bounded_loss)) if value is not None}
    if beside != shape.beside or not abs(report.bounded_loss or 0.0) <= (shape.loss_bound or 0.0) / 2:
        raise InputError(f"beside its numbers the report says {sorted(beside)}, not {sorted(shape.beside)} in bounds.")
    shape.check(values)


def body_of(plan: Plan, task: RoundTask, report: ReportBody, assignment: str, *, draw: Draw) -> bytes:
    """The bytes that leave the device: as many for every report of this task."""
    if task.sealed is None:
        return report_body(report, assignment)
    from tacit.secure_aggregation.one_message.client import one_message_report
    from tacit.secure_aggregation.secrets import Identity

    settings = sealed_round(plan, task)
    # by a key of this round, that no other round knows
    return one_message_report(settings, Identity(draw(SEED_BYTES)), report.values, draw=draw).to_bytes()  # type: ignore[arg-type]


def sealed_round(plan: Plan, task: RoundTask, *, joined: Collection[bytes] = ()) -> "OneMessageRound":
    """The settings of a sealed round. joined: names of those that the device has reported in.

    Raises: TaskRefused where they are not its plan's, or of one of these.
    """
    from tacit.protocol.one_message_shape import seed_of, settings_of

    assert task.sealed is not None  # the caller's to know
    what, said = f"the sealed round {task.round} of run {task.run!r}", plan.aggregation
    try:
        settings = settings_of(task.sealed)
        settings.check(
            least_reports=said.threshold,
            decryptors={bytes.fromhex(key) for key in said.keepers},
            always=[bytes.fromhex(key) for key in said.contributors],
            corrupt=said.corrupt,
            joined=joined,
        )
    except (InputError, ProtocolError) as error:
        raise TaskRefused(f"{what} is not as its plan says: {error}") from error
    listed = dict(zip(said.keepers, said.boxes, strict=False))
    strange = [
        key for key, box in zip(settings.decryptors, settings.boxes, strict=True) if listed.get(key.hex()) != box.hex()
    ]
    if strange:
        raise TaskRefused(f"{what} has another box of the decryptor {strange[0].hex()[:16]} than its plan.")
    if len(settings.decryptors) != len(said.keepers):  # else two attempts at it could be opened by different ones
        raise TaskRefused(f"{what} has {len(settings.decryptors)} decryptors, and its plan {len(said.keepers)}.")
    if (settings.plan.hex(), settings.round_index) != (task.plan, task.round):
        raise TaskRefused(f"{what} has the settings of another round, or of another plan's.")
    if said.contributors and settings.seed != seed_of(task):
        raise TaskRefused(f"{what} has not the seed of its own task, so that noise may be added to another question.")
    expected = task.asks.shape()
    if (settings.dimension, settings.largest) != (expected.length, expected.largest):
        raise TaskRefused(f"{what} sums other vectors than its reports are.")
    return settings
