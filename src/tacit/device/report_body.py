"""The bytes that leave a device: a report in the clear, or one that a quorum of decryptors opens only in a sum."""

from tacit.device.task_handler import SEED_BYTES, Draw
from tacit.errors import DeviceError, InputError, ProtocolError, TaskRefused
from tacit.protocol.bodies import ReportBody, report_body
from tacit.protocol.messages import Plan, RoundTask


def body_of(plan: Plan, task: RoundTask, report: ReportBody, assignment: str, *, draw: Draw) -> bytes:
    """The bytes that leave the device, of a report that was checked once more, as the server checks it.

    Raises: TaskRefused for a sealed round whose settings are not its plan's; DeviceError for a report that no server
    takes.
    """
    if report.usable:
        try:
            task.asks.shape().check(report.values)
        except InputError as error:
            raise DeviceError(
                f"{error} That is an error of this program; nothing was sent. Please report it."
            ) from error
    if task.sealed is None:
        return report_body(report, assignment)
    return _one_message_body(plan, task, report, draw)


def _one_message_body(plan: Plan, task: RoundTask, report: ReportBody, draw: Draw) -> bytes:
    """One message that a quorum of decryptors opens in a sum alone; by a key of this round, that no other round
    knows.
    """
    from tacit.secure_aggregation.one_message.client import one_message_report
    from tacit.secure_aggregation.one_message.messages import OneMessageRound
    from tacit.secure_aggregation.secrets import Identity

    assert task.sealed is not None  # the caller's to know
    what, said = f"the sealed round {task.round} of run {task.run!r}", plan.aggregation
    if not report.usable:
        raise TaskRefused(f"{what}: this device's update is not finite, and in a sealed sum nobody could leave it out.")
    try:
        settings = OneMessageRound.from_bytes(bytes.fromhex(task.sealed))
        settings.check(
            least_reports=said.threshold,
            decryptors={bytes.fromhex(key) for key in said.keepers},
            always=[bytes.fromhex(key) for key in said.contributors],
            corrupt=said.corrupt,
        )
    except (InputError, ProtocolError) as error:
        raise TaskRefused(f"{what} is not as its plan says: {error}") from error
    listed = dict(zip(said.keepers, said.boxes, strict=False))
    strange = [
        key for key, box in zip(settings.decryptors, settings.boxes, strict=True) if listed.get(key.hex()) != box.hex()
    ]
    if strange:
        raise TaskRefused(f"{what} has another box of the decryptor {strange[0].hex()[:16]} than its plan.")
    expected = task.asks.shape()
    if (settings.dimension, settings.largest) != (expected.length, expected.largest):
        raise TaskRefused(f"{what} sums other vectors than its reports are.")
    return one_message_report(settings, Identity(draw(SEED_BYTES)), report.values, draw=draw).to_bytes()  # type: ignore[arg-type]
