"""What a device does when it is asked to count: itself in one cell of each histogram, or randomised; or many cells.

What the plan promises is computed anew: one unit in each of H cells has norm sqrt(H), the noise of every cell is the
noise multiplier times that, and a device is in one step; or every report is randomised here, and nobody need be
trusted. Whole numbers of a sum are scaled down here to the norm that the plan's noise is made for. Text that judges
models is text that no training read.
"""

from abc import ABC, abstractmethod
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.device.own_text import OwnText
from tacit.device.task_handler import Draw, PreparedTask, Refuse
from tacit.errors import InputError, TaskRefused
from tacit.federation.cost import ASK, ROUNDING, Cost, checked_claims
from tacit.federation.report_layout import ReportLayout, Words
from tacit.protocol.bodies import ReportBody, read_model
from tacit.protocol.count import CountDocument, HistogramsDocument, ModelHistogramsDocument
from tacit.protocol.messages import HistogramPrivacy, LocalPrivacy, MatrixFile, Plan, RoundTask, SumPrivacy

MODELS_S = 240.0  # in which a slow device has judged the models of a task


def count_cost(plan: Plan) -> Cost:
    """Of a plan to count: a device is in one step, and pays it all. Raises: TaskRefused where the plan's own
    numbers give less than it claims, or a device may come twice.
    """
    privacy, run = plan.privacy, f"the plan of run {plan.run!r}"
    if privacy.max_participations != 1 or plan.separation.rounds != privacy.rounds:
        raise TaskRefused(f"{run} asks a device more than once, and what it counts is the same each time; {ASK}.")
    if privacy.zcdp is None:
        raise TaskRefused(f"{run} promises nothing; {ASK}.")
    if isinstance(privacy, LocalPrivacy):
        found = _randomised(privacy, run)
        checked_claims(run, found, zcdp=privacy.zcdp, local_epsilon=privacy.local_epsilon)
        return found
    if not isinstance(privacy, HistogramPrivacy | SumPrivacy):
        raise TaskRefused(f"{run} is to {plan.kind}, and what it promises is of another kind; {ASK}.")
    found = _noised(privacy, run)
    checked_claims(run, found, zcdp=privacy.zcdp, epsilon=privacy.epsilon)
    return found


def _randomised(privacy: LocalPrivacy, run: str) -> Cost:
    """Of one answer that the device randomises: rho = epsilon^2 / 2 (arXiv:1605.02065, Proposition 1.4)."""
    from tacit.privacy.local_subset_selection import check_local  # what it needs is loaded for the first task

    try:
        check_local(2, privacy.local_epsilon)
    except InputError as error:
        raise TaskRefused(f"no guarantee follows from the numbers of {run}: {error}") from error
    return Cost(zcdp=privacy.local_epsilon**2 / 2, local_epsilon=privacy.local_epsilon)


def _noised(privacy: HistogramPrivacy | SumPrivacy, run: str) -> Cost:
    """Of a vector of norm C and noise of z C in every cell: one unit in each of H cells has C = sqrt(H)."""
    from tacit.privacy import gaussian  # the same

    if isinstance(privacy, HistogramPrivacy) and len(privacy.histograms) != privacy.rounds:
        raise TaskRefused(
            f"{run} has {privacy.rounds} steps, and says of {len(privacy.histograms)} what is asked; {ASK}."
        )
    zcdp = gaussian.zcdp(1.0, privacy.noise_multiplier)
    return Cost(
        zcdp=zcdp,
        epsilon=gaussian.epsilon(zcdp, privacy.delta),
        delta=privacy.delta,
        noise_multiplier=privacy.noise_multiplier,
    )


class HistogramHandler(ABC):
    """Tasks to count oneself in histograms; see TaskHandler. Kinds differ in what is asked, and of which text."""

    def __init__(self, text: OwnText, trainer: object = None) -> None:
        """trainer: of no use here."""
        self._text = text

    def matrix(self, plan: Plan) -> MatrixFile | None:
        """See TaskHandler; everything is in the plan."""
        return None

    def cost(self, plan: Plan, matrix: bytes | None) -> Cost:
        """See TaskHandler."""
        self._text.check_vocabulary(plan)
        return count_cost(plan)

    def check(self, plan: Plan) -> None:
        """See TaskHandler."""
        try:
            self._check(plan)
        except InputError as error:
            raise TaskRefused(f"run {plan.run!r} asks what this device cannot do: {error}") from error

    def check_task(self, plan: Plan, cost: Cost, task: RoundTask, refuse: Refuse) -> None:  # noqa: B027  (no kind's)
        """See TaskHandler; what is asked is checked where the answer is made."""

    def prepare(self, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        """See TaskHandler."""
        document, what = task.question(HistogramsDocument), f"round {task.round} of run {task.run!r}"
        _check_task(plan, task, document, what)
        try:
            return self._prepared(plan, task, content, what)
        except InputError as error:
            raise TaskRefused(f"{what} asks what this device cannot do: {error}") from error

    def _prepared(self, plan: Plan, task: RoundTask, content: bytes, what: str) -> PreparedTask:
        """what: the task, in an error. Raises: TaskRefused, InputError."""
        document, computation = task.question(HistogramsDocument), self._computation(plan, task, content)
        if tuple(each.size for each in computation.histograms.values()) != document.cells:
            raise TaskRefused(f"{what} asks for other histograms than its plan; {ASK}.")
        return PreparedTask(
            read=lambda draw: _counted(document, self._cells(plan, computation), draw),
            nothing=partial(self.nothing, task),
        )

    def nothing(self, task: RoundTask, draw: Draw) -> ReportBody:
        """See TaskHandler: the last cell of each histogram, "no report", randomised where that is asked."""
        document = task.question(HistogramsDocument)
        return _counted(document, np.array(document.cells) - 1, draw)

    def reading_s(self, task: RoundTask) -> float:
        """See TaskHandler: text alone is counted in no time."""
        return 0.0

    @abstractmethod
    def _check(self, plan: Plan) -> None:
        """Raises: TaskRefused; InputError for what no device can do."""

    @abstractmethod
    def _computation(self, plan: Plan, task: RoundTask, content: bytes) -> Any:
        """What a device computes: it has `histograms`, and `cells_of` a text. Raises: InputError."""

    @abstractmethod
    def _cells(self, plan: Plan, computation: Any) -> Any:
        """The cell (H,) of each histogram. Raises: anything."""


class ModelHandler(HistogramHandler):
    """Tasks to evaluate and to personalize."""

    def reading_s(self, task: RoundTask) -> float:
        """See TaskHandler: models are compiled for it, and strategies trained, which no document counts."""
        return MODELS_S

    def _check(self, plan: Plan) -> None:
        self._text.check_judges()

    def _computation(self, plan: Plan, task: RoundTask, content: bytes) -> Any:
        question, document = self._question(plan), task.question(ModelHistogramsDocument)
        models = np.split(read_model(content, sum(document.parameters)), np.cumsum(document.parameters)[:-1])
        return question.computation(models, document.policies_to_judge)

    def _question(self, plan: Plan) -> Any:
        """Raises: TaskRefused for a split that judges by text of which training may have read; InputError."""
        question = _said(plan.kind, plan.recipe, self._text.words)
        if plan.kind == "personalize":
            self._text.check_split(question.settings.split)
        return question

    def _cells(self, plan: Plan, computation: Any) -> Any:
        """ "No report" where a split judges by text that training may have read."""
        from tacit.evaluation.device_part import no_report

        if plan.kind != "personalize":
            return computation.cells_of(self._text.judging, self._text.client)
        if not self._text.keeps(computation.settings.split):
            return no_report(computation.histograms)
        return computation.cells_of(self._text.whole, self._text.client)


class StatisticHandler(HistogramHandler):
    """Tasks to count statistics of the device's text, all of it: no model is judged by what another was trained on."""

    def _check(self, plan: Plan) -> None:
        question, privacy, run = self._question(plan), plan.privacy, f"the plan of run {plan.run!r}"
        norm = None if question.sums is None else question.sums.clip_norm
        if (norm is None) == isinstance(privacy, SumPrivacy):
            raise TaskRefused(f"{run} counts {plan.kind} by another privacy than its recipe; {ASK}.")
        if norm is not None and isinstance(privacy, SumPrivacy) and norm > privacy.clip_norm * (1 + ROUNDING):
            raise TaskRefused(
                f"{run} asks for whole numbers of the norm {norm:g}, and its noise is made for {privacy.clip_norm:g}; "
                f"{ASK}."
            )

    def _prepared(self, plan: Plan, task: RoundTask, content: bytes, what: str) -> PreparedTask:
        """Of sums whole numbers, scaled down to the norms that the plan names; they are the task's, too."""
        question, document = self._question(plan), task.question(CountDocument)
        if question.sums != document.sums:
            raise TaskRefused(f"{what} asks for other sums than its plan; {ASK}.")
        if question.sums is None:
            return super()._prepared(plan, task, content, what)
        if question.cells is not None:
            question = question.counting_from(bytes(content), self._text.vocabulary_json)
        return PreparedTask(
            read=lambda draw: ReportBody(question.report_of(self._text.whole, self._text.client), True, None, None),
            nothing=partial(self.nothing, task),
        )

    def nothing(self, task: RoundTask, draw: Draw) -> ReportBody:
        """See TaskHandler: of sums, zeros."""
        sums = task.question(CountDocument).sums
        if sums is None:
            return super().nothing(task, draw)
        return ReportBody(np.zeros(sums.length, np.uint32), True, None, None)

    def _computation(self, plan: Plan, task: RoundTask, content: bytes) -> Any:
        return self._question(plan)

    def _cells(self, plan: Plan, computation: Any) -> Any:
        return computation.cells_of(self._text.whole, self._text.client)

    def _question(self, plan: Plan) -> Any:
        from tacit.evaluation.counts.device_part import question_in  # SciPy, which other tasks need not load

        return question_in(plan.recipe)


def _counted(document: HistogramsDocument, chosen: ArrayLike, draw: Draw) -> ReportBody:
    """The report of a device in these cells (H,), randomised where that is asked."""
    layout = ReportLayout(sizes=document.cells, local_epsilon=document.local_epsilon)
    if layout.local_epsilon is None:
        return ReportBody(layout.counted(chosen), True, None, None)
    from tacit.randomizers import device_generator

    return ReportBody(randomized(layout, chosen, device_generator(draw)), True, None, None)


def randomized(layout: ReportLayout, chosen: ArrayLike, generator: np.random.Generator) -> Words:
    """The report (length,) of a device in these cells (H,): its answer to one histogram, randomised.

    generator: of the device; the operating system's but in tests. `local_epsilon`-locally private, whatever the other
    H - 1 cells are: they are not looked at. Raises: InputError for a cell that its histogram does not have.
    """
    from tacit.randomizers import SubsetSelection

    assert layout.local_epsilon is not None  # the caller's to know
    own = layout.checked(chosen)
    number = int(generator.integers(len(layout.sizes)))
    randomizer = SubsetSelection(domain=layout.sizes[number], epsilon=layout.local_epsilon)
    vector = np.zeros(layout.length, np.uint32)
    votes = randomizer.votes(randomizer.encode(own[number : number + 1], generator))
    vector[layout.starts[number] : layout.starts[number + 1]] = votes
    vector[layout.cells + number] = 1
    return vector


def _check_task(plan: Plan, task: RoundTask, document: HistogramsDocument, what: str) -> None:
    """That a step asks what its plan reckons with. Raises: TaskRefused."""
    privacy = plan.privacy
    local = privacy.local_epsilon if isinstance(privacy, LocalPrivacy) else None
    if document.local_epsilon != local:
        raise TaskRefused(f"{what} wants local_epsilon={document.local_epsilon}, and its plan {local}; {ASK}.")
    if isinstance(privacy, HistogramPrivacy) and len(document.cells) != privacy.histograms[task.round]:
        raise TaskRefused(
            f"{what} asks for {len(document.cells)} histograms, and its plan for {privacy.histograms[task.round]}, for "
            f"which the noise is made; {ASK}."
        )


@lru_cache(maxsize=8)
def _said(kind: str, recipe: str, words: int) -> Any:
    from tacit.evaluation.in_plan import QuestionOfPlan  # JAX, which other tasks need not load

    return QuestionOfPlan(kind=kind, recipe=recipe, words=words)
