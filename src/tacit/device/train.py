"""What a device computes in a round of training: its own text, the round's model, a clipped report.

`ByJax` is the simulation's own function (`training.device_part.report_of`) on the device's own text; JAX is loaded when
the first task came. `ByOnnx` (`train_onnx.py`) computes the same of reports in the clear by ONNX Runtime alone.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.device.own_text import OwnText
from tacit.device.task_handler import SEED_BYTES, Draw, PreparedTask, Refuse
from tacit.errors import InputError, TaskRefused
from tacit.federation.cost import Cost
from tacit.networks.models import DEFAULT, MODELS
from tacit.networks.training_cost import TrainingCost
from tacit.parsing import parsed_toml
from tacit.protocol.bodies import ReportBody, read_model
from tacit.protocol.messages import MatrixFile, Plan, RoundTask
from tacit.protocol.train import TrainDocument

if TYPE_CHECKING:
    from tacit.training.report_encoding import ReportEncoding

FloatArray = NDArray[np.float32]
OPERATIONS_PER_S = 2e9  # of a slow and busy device: a fiftieth of what a core does


class Trainer(Protocol):
    """What computes a device's report."""

    def check(self, plan: Plan) -> None:
        """Raises: TaskRefused where it cannot do what the plan asks."""
        ...

    def prepare(self, plan: Plan, task: RoundTask, model: FloatArray) -> "Training":
        """What reads the text. Raises: TaskRefused for what it cannot compute, a model of another size say."""
        ...


class Training(Protocol):
    """Of one task, all of it checked but for the text."""

    def __call__(self, draw: Draw) -> ReportBody:
        """What the device reports: its update of the model (d,), clipped, and encoded where the task says how.

        Not usable where that is not finite. Raises: anything.
        """
        ...


class TrainHandler:
    """Tasks to train; see TaskHandler."""

    def __init__(self, text: OwnText, trainer: Trainer) -> None:
        self._text, self._trainer = text, trainer

    def matrix(self, plan: Plan) -> MatrixFile | None:
        """See TaskHandler."""
        self._text.check_vocabulary(plan)
        from tacit.device.train_cost import train_matrix  # what it needs is loaded for the first task

        return train_matrix(plan)

    def cost(self, plan: Plan, matrix: bytes | None) -> Cost:
        """See TaskHandler."""
        from tacit.device.train_cost import train_cost

        return train_cost(plan, matrix)

    def check(self, plan: Plan) -> None:
        """See TaskHandler."""
        self._trainer.check(plan)
        self._text.check()

    def check_task(self, plan: Plan, cost: Cost, task: RoundTask, refuse: Refuse) -> TrainingCost:
        """See TaskHandler."""
        from tacit.device.train_cost import TrainCost, check_train_task, training_cost

        assert isinstance(cost, TrainCost)  # its own
        check_train_task(cost, task, refuse)
        return training_cost(task, self._text.words)

    def prepare(self, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        """See TaskHandler."""
        try:
            model = read_model(content, task.question(TrainDocument).parameters)
        except InputError as error:
            raise TaskRefused(f"the model of round {task.round} of run {task.run!r}: {error}") from error
        encoding_of(task)  # refuses here
        return PreparedTask(read=self._trainer.prepare(plan, task, model), nothing=partial(self.nothing, task))

    def nothing(self, task: RoundTask, draw: Draw) -> ReportBody:
        """See TaskHandler."""
        return no_update(task, encoding_of(task), draw)

    def reading_s(self, task: RoundTask) -> float:
        """See TaskHandler."""
        from tacit.device.train_cost import training_cost

        return training_cost(task, self._text.words).operations / OPERATIONS_PER_S


class ByJax:
    """Any network of tacit's, as the simulation trains it."""

    def __init__(self, text: OwnText) -> None:
        self._text = text

    def check(self, plan: Plan) -> None:
        """See Trainer."""
        network_said(plan)

    def prepare(self, plan: Plan, task: RoundTask, model: FloatArray) -> Training:
        """See Trainer."""
        import jax
        import jax.numpy as jnp
        from jax.flatten_util import ravel_pytree

        from tacit.networks.language_model import model_of, next_word_loss, parameter_count
        from tacit.training.device_part import ClientTraining, ClientWork, RoundModel, compile_report, report_of

        kind, settings = network_said(plan)
        question = task.question(TrainDocument)
        try:
            network = model_of(kind, {**settings, "vocabulary": self._text.words})
        except InputError as error:
            raise TaskRefused(f"the plan of run {plan.run!r} names no network: {error}") from error
        try:
            client = ClientTraining(**question.client.model_dump())
        except InputError as error:
            raise TaskRefused(f"round {task.round} of run {task.run!r} cannot be trained: {error}") from error
        check_size(plan, parameter_count(network), task)
        shape = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), jax.eval_shape(network.init, jax.random.key(0)))
        text: Any = self._text  # a cache of one client
        work = ClientWork(loss=next_word_loss(network), unravel=ravel_pytree(shape)[1], cache=text, settings=client)
        round_model = RoundModel(
            model=jnp.asarray(model),
            client=client,
            clip_norm=question.clip_norm,
            clip_estimate=question.clip_estimate,
            loss_bound=question.loss_bound,
            secure=encoding_of(task),
        )
        compile_report(work, round_model)  # before text is read: the program is the same for every text

        def trained(draw: Draw) -> ReportBody:
            found = report_of(work, round_model, self._text.client, seed=draw(SEED_BYTES))
            return ReportBody(found.update, found.usable, found.short, found.bounded_loss)

        return trained


def no_update(task: RoundTask, encoding: "ReportEncoding | None", draw: Draw) -> ReportBody:
    """The zero update, encoded where the task says how: it moves no sum, and a loss of half the bound moves none."""
    question = task.question(TrainDocument)
    update, middle = np.zeros(question.parameters, np.float32), np.float32((question.loss_bound or 0.0) / 2)
    if encoding is not None:
        words = encoding.encoded(update, norm=np.float32(0), loss=middle, seed=draw(SEED_BYTES), client=0)
        return ReportBody(words, True, None, None)
    short = None if question.clip_estimate is None else True
    return ReportBody(update, True, short, None if question.loss_bound is None else 0.0)


def network_said(plan: Plan) -> tuple[str, dict[str, Any]]:
    """(kind, settings) of the network that a plan's recipe names. Raises: TaskRefused for one whose code is not ours:
    what a plan names is imported, and a device runs nobody's code.
    """
    try:
        section = parsed_toml(plan.recipe).get("model", {})
    except ValueError as error:
        raise TaskRefused(f"the recipe of run {plan.run!r} is no TOML: {error}") from None
    settings = dict(section) if isinstance(section, dict) else {}
    kind = settings.pop("kind", DEFAULT)
    settings.pop("init", None)  # where the operator's first model came from
    if kind not in MODELS:
        raise TaskRefused(
            f"the network of run {plan.run!r} is {kind!r}, and this device has the code of {', '.join(MODELS)} alone."
        )
    return kind, settings


def check_size(plan: Plan, parameters: int, task: RoundTask) -> None:
    """Raises: TaskRefused where the model has not as many numbers as the network."""
    there = task.question(TrainDocument).parameters
    if parameters != there:
        raise TaskRefused(
            f"the model of round {task.round} has {there:,} numbers, and the network of run "
            f"{plan.run!r} has {parameters:,} with this device's vocabulary."
        )


def encoding_of(task: RoundTask) -> "ReportEncoding | None":
    """How the report is encoded; None: in the clear. Raises: TaskRefused for numbers that contradict each other."""
    question = task.question(TrainDocument)
    if question.encoded is None:
        return None
    from tacit.training.report_encoding import ReportEncoding  # with numba and SciPy, which most tasks need not load

    try:
        found = ReportEncoding(
            encoding=question.encoded.encoding().checked(),
            signs=bytes.fromhex(question.encoded.signs),
            clip_estimate=question.clip_estimate,
            loss_bound=question.loss_bound,
        )
    except InputError as error:
        raise TaskRefused(f"round {task.round} of run {task.run!r} has no encoding: {error}") from error
    if found.length != question.encoded.length:
        raise TaskRefused(
            f"round {task.round} of run {task.run!r} wants reports of {question.encoded.length:,} words, and its "
            f"encoding makes {found.length:,}."
        )
    return found
