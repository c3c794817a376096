"""What a device computes in a round: its own text, the round's model, a clipped report.

`ByJax` is the simulation's own function (`training.one_by_one.report_of`) on the device's own text; JAX is loaded when
the first task came. `ByOnnx` (`onnx_training.py`) computes the same of reports in the clear by ONNX Runtime alone.
"""

import math
import tomllib
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.deployment.bodies import Report, report_body
from tacit.deployment.client.own_text import OwnText
from tacit.deployment.messages import Plan, RoundTask
from tacit.errors import DeviceError, InputError, ProtocolError, TaskRefused

Reals = NDArray[np.float32]
Draw: TypeAlias = Callable[[int], bytes]  # so many random bytes
SEED_BYTES = 32
ROUNDING = 1e-5  # relative: by which an update clipped in float32 may be longer than the clip norm
SHIPPED = ("cifg",)  # kinds of networks whose code is tacit's own; a plan may name a class of anybody's otherwise


class Trainer(Protocol):
    """What computes a device's report."""

    def check(self, plan: Plan) -> None:
        """Raises: TaskRefused where it cannot do what the plan asks."""
        ...

    def report(self, plan: Plan, task: RoundTask, model: Reals, *, draw: Draw) -> Report:
        """What the device reports: its update of the model (d,), clipped, and encoded where the task says how.

        draw: where random bytes come from; the operating system's, but in tests that say so. Raises: TaskRefused for a
        model of another size than the plan's network has.
        """
        ...


class ByJax:
    """Any network of tacit's, as the simulation trains it."""

    def __init__(self, text: OwnText) -> None:
        self._text = text

    def check(self, plan: Plan) -> None:
        """See Trainer."""
        network_said(plan)

    def report(self, plan: Plan, task: RoundTask, model: Reals, *, draw: Draw) -> Report:
        """See Trainer."""
        import jax
        import jax.numpy as jnp
        from jax.flatten_util import ravel_pytree

        from tacit.keyboard.language_model import model_of, next_word_loss, parameter_count
        from tacit.training.client import ClientTraining, ClientWork
        from tacit.training.collect import TrainingTask
        from tacit.training.one_by_one import report_of

        kind, settings = network_said(plan)
        try:
            network = model_of(kind, {**settings, "vocabulary": self._text.words})
        except InputError as error:
            raise TaskRefused(f"the plan of run {plan.run!r} names no network: {error}") from error
        check_size(plan, parameter_count(network), task)
        client = ClientTraining(**task.client.model_dump())
        shape = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), jax.eval_shape(network.init, jax.random.key(0)))
        text: Any = self._text  # a cache of one client
        work = ClientWork(loss=next_word_loss(network), unravel=ravel_pytree(shape)[1], cache=text, settings=client)
        asked = TrainingTask(
            round=task.round,
            model=jnp.asarray(model),
            client=client,
            clip_norm=task.clip_norm,
            clip_estimate=task.clip_estimate,
            report_goal=plan.privacy.report_goal,
            loss_bound=task.loss_bound,
            secure=encoding_of(task),
        )
        found = report_of(work, asked, self._text.client, seed=draw(SEED_BYTES))
        return Report(found.update, found.usable, found.short, found.bounded_loss)


def network_said(plan: Plan) -> tuple[str, dict[str, Any]]:
    """(kind, settings) of the network that a plan's recipe names. Raises: TaskRefused for one whose code is not ours:
    what a plan names is imported, and a device runs nobody's code.
    """
    try:
        section = tomllib.loads(plan.recipe).get("model", {})
    except tomllib.TOMLDecodeError as error:
        raise TaskRefused(f"the recipe of run {plan.run!r} is no TOML: {error}") from None
    settings = dict(section) if isinstance(section, dict) else {}
    kind = settings.pop("kind", SHIPPED[0])
    settings.pop("init", None)  # where the operator's first model came from
    if kind not in SHIPPED:
        raise TaskRefused(
            f"the network of run {plan.run!r} is {kind!r}, and this device has the code of {', '.join(SHIPPED)} alone."
        )
    return kind, settings


def check_size(plan: Plan, parameters: int, task: RoundTask) -> None:
    """Raises: TaskRefused where the model has not as many numbers as the network."""
    if parameters != task.model.parameters:
        raise TaskRefused(
            f"the model of round {task.round} has {task.model.parameters:,} numbers, and the network of run "
            f"{plan.run!r} has {parameters:,} with this device's vocabulary."
        )


def body_of(plan: Plan, task: RoundTask, report: Report, assignment: str, *, draw: Draw) -> bytes:
    """The bytes that leave the device, of a report that was checked once more.

    Raises: TaskRefused for a sealed round whose settings are not its plan's; DeviceError where a report in the clear is
    longer than the clip norm.
    """
    if task.encoded is None:
        norm = math.sqrt(float(np.square(report.values, dtype=np.float64).sum()))
        if not norm <= task.clip_norm * (1 + ROUNDING):
            raise DeviceError(
                f"an update of norm {norm:g} came out of clipping at {task.clip_norm:g}, which is an error of this "
                "program; nothing was sent. Please report it."
            )
    if task.sealed is None:
        return report_body(report, assignment)
    return _sealed(plan, task, report, draw)


def _sealed(plan: Plan, task: RoundTask, report: Report, draw: Draw) -> bytes:
    """One message that a quorum of keepers opens in a sum alone; by a key of this round, that no other round knows."""
    from tacit.secure_aggregation.sealed_client import sealed_report
    from tacit.secure_aggregation.sealed_messages import SealedRound
    from tacit.secure_aggregation.secrets import Identity

    assert task.sealed is not None and task.encoded is not None  # the caller's to know
    what, said = f"the sealed round {task.round} of run {task.run!r}", plan.aggregation
    if not report.usable:
        raise TaskRefused(f"{what}: this device's update is not finite, and in a sealed sum nobody could leave it out.")
    try:
        settings = SealedRound.from_bytes(bytes.fromhex(task.sealed))
        settings.check(
            least_reports=said.threshold,
            keepers={bytes.fromhex(key) for key in said.keepers},
            always=[bytes.fromhex(key) for key in said.contributors],
            corrupt=said.corrupt,
        )
    except (InputError, ProtocolError) as error:
        raise TaskRefused(f"{what} is not as its plan says: {error}") from error
    listed = dict(zip(said.keepers, said.boxes, strict=False))
    strange = [
        key for key, box in zip(settings.keepers, settings.boxes, strict=True) if listed.get(key.hex()) != box.hex()
    ]
    if strange:
        raise TaskRefused(f"{what} has another box of the keeper {strange[0].hex()[:16]} than its plan.")
    largest = 2 * task.encoded.encoding().largest
    if (settings.dimension, settings.largest) != (task.encoded.length, largest):
        raise TaskRefused(f"{what} sums other vectors than its encoding makes.")
    return sealed_report(settings, Identity(draw(SEED_BYTES)), report.values, draw=draw).to_bytes()  # type: ignore[arg-type]


def encoding_of(task: RoundTask) -> Any:
    """How the report is encoded; None: in the clear. Raises: TaskRefused for numbers that contradict each other."""
    if task.encoded is None:
        return None
    from tacit.training.secure_updates import RoundEncoding

    try:
        found = RoundEncoding(
            encoding=task.encoded.encoding().checked(),
            signs=bytes.fromhex(task.encoded.signs),
            clip_estimate=task.clip_estimate,
            loss_bound=task.loss_bound,
            threshold=task.encoded.threshold,
        )
    except InputError as error:
        raise TaskRefused(f"round {task.round} of run {task.run!r} has no encoding: {error}") from error
    if found.length != task.encoded.length:
        raise TaskRefused(
            f"round {task.round} of run {task.run!r} wants reports of {task.encoded.length:,} words, and its encoding "
            f"makes {found.length:,}."
        )
    return found
