"""Tasks to discover words: what their plan costs, and the answer to a question, K randomised reports that are counted.

It trusts nobody. A report's epsilon is that of the randomizer which the device itself runs, by the settings in the
plan's recipe; what it sends in a run costs their sum, and in the one budget of all runs rho = epsilon^2 / 2 (Bun &
Steinke 2016, arXiv:1605.02065, Proposition 1.4). What was typed is read here and nowhere else; what leaves is what
anybody may see (`discovery.device_part.reports`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tacit.device.own_text import OwnText
from tacit.device.task_handler import Draw, PreparedTask, Refuse
from tacit.discovery.device_part import WordQuestion, question_from, reports
from tacit.errors import InputError, TaskRefused
from tacit.federation.cost import ASK, Cost, checked_claims
from tacit.parsing import parsed_toml
from tacit.protocol.bodies import ReportBody
from tacit.protocol.discover import DiscoverDocument
from tacit.protocol.messages import LocalPrivacy, MatrixFile, Plan, RoundTask
from tacit.randomizers import device_generator
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.records import from_plain
from tacit.text.vocabulary import Vocabulary

Votes: TypeAlias = Callable[[Mapping[str, int], Draw], ReportBody]  # of how often each unknown word was typed


class DiscoverHandler:
    """See TaskHandler."""

    def __init__(self, text: OwnText, trainer: object = None) -> None:
        """trainer: of no use here."""
        self._text = text

    def matrix(self, plan: Plan) -> MatrixFile | None:
        """See TaskHandler; everything is in the plan."""
        return None

    def cost(self, plan: Plan, matrix: bytes | None) -> Cost:
        """See TaskHandler."""
        return local_cost(plan)

    def check(self, plan: Plan) -> None:
        """See TaskHandler."""
        self._text.check()

    def check_task(self, plan: Plan, cost: Cost, task: RoundTask, refuse: Refuse) -> None:
        """See TaskHandler; what is asked is checked where the answer is made."""

    def prepare(self, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        """See TaskHandler."""
        self._text.check_spelling()
        votes, known = prepared_votes(plan, task, content)
        return PreparedTask(
            read=lambda draw: votes(self._text.unknown_words(known), draw), nothing=partial(self.nothing, task)
        )

    def nothing(self, task: RoundTask, draw: Draw) -> ReportBody:
        """See TaskHandler: of no words at all, randomised."""
        return votes_of(task)({}, draw)

    def reading_s(self, task: RoundTask) -> float:
        """See TaskHandler: the question's effort is bounded (`LocalReportSettings.check_effort`)."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class LocalCost(Cost):
    """Of a plan to discover: the device answers once, and its local epsilon is of all that it sends then."""

    reports: LocalReportSettings  # how it hides its answers


def local_cost(plan: Plan) -> LocalCost:
    """Of a plan to discover. Raises: TaskRefused where it claims less than its numbers cost, or asks more than once."""
    privacy, what = plan.privacy, f"the plan of run {plan.run!r}"
    if not isinstance(privacy, LocalPrivacy):
        raise TaskRefused(f"{what} is to {plan.kind}, and what it promises is of another kind; {ASK}.")
    try:
        said = from_plain(LocalReportSettings, _reports(plan), where=what)
    except InputError as error:
        raise TaskRefused(f"no guarantee follows from the numbers of {what}: {error}") from error
    epsilon = said.user_epsilon
    found = LocalCost(zcdp=epsilon**2 / 2, local_epsilon=epsilon, reports=said)
    checked_claims(what, found, zcdp=privacy.zcdp, local_epsilon=privacy.local_epsilon)
    if privacy.max_participations != 1 or plan.separation.rounds != privacy.rounds:
        raise TaskRefused(f"{what} lets a device answer more than once, and each answer costs as much again; {ASK}.")
    return replace(found, local_epsilon=privacy.local_epsilon)  # what an owner accepts, a plan may come to in full


def _reports(plan: Plan) -> Mapping[str, Any]:
    """How reports are randomised, as the plan's recipe has it. Raises: InputError."""
    try:
        found = parsed_toml(plan.recipe).get("reports")
    except ValueError as error:
        raise InputError(f"its recipe is no TOML ({error})") from None
    if not isinstance(found, dict):
        raise InputError("its recipe has no section [reports], so nothing says how a device hides its answers")
    return found


def prepared_votes(plan: Plan, task: RoundTask, content: bytes) -> tuple[Votes, frozenset[str]]:
    """(what makes the votes, the words that are known). content: the vocabulary, whose words nobody reports.

    Raises: TaskRefused.
    """
    what = f"round {task.round} of run {task.run!r}"
    try:
        document = task.question(DiscoverDocument)
        settings = document.settings
        settings.check_effort(document.question.domain)  # which refuses a question that contradicts itself
        question = question_from(document.question.model_dump())
        known = Vocabulary.from_json(bytes(content).decode())
    except (InputError, UnicodeDecodeError) as error:
        raise TaskRefused(f"{what} asks nothing that can be answered: {error}") from error
    planned = local_cost(plan).reports
    hidden = (settings.randomizer, settings.local_epsilon, settings.contributions)
    if hidden != (planned.randomizer, planned.local_epsilon, planned.contributions):
        raise TaskRefused(f"{what} hides answers by {settings}, and its plan by {planned}; {ASK}.")
    if settings.sampler != planned.sampler and not isinstance(question, WordQuestion):
        raise TaskRefused(f"{what} chooses by the sampler {settings.sampler}, not {planned.sampler}; {ASK}.")
    if known.sha256 != plan.vocabulary:
        raise TaskRefused(f"{what} comes with other known words than its plan; {ASK}.")
    return votes_of(task), frozenset(known.words)


def votes_of(task: RoundTask) -> Votes:
    """What makes the votes (domain,) of K reports. Raises: InputError for a question that contradicts itself."""
    document = task.question(DiscoverDocument)
    settings, question = document.settings, question_from(document.question.model_dump())
    randomizer = settings.randomizer_for(question.domain)

    def votes(typed: Mapping[str, int], draw: Draw) -> ReportBody:
        drawn = reports(typed, question, settings, device_generator(draw))
        return ReportBody(randomizer.votes(drawn).astype(np.uint32), True, None, None)

    return votes
