"""A device answers a question about words: it draws K randomised reports, and counts how many support each answer.

What it typed is read here and nowhere else; what leaves is what anybody may see (`discovery.device_part.reports`).
"""

import numpy as np

from tacit.device.local_cost import local_cost
from tacit.device.own_text import OwnText
from tacit.device.task_handler import Draw
from tacit.discovery.device_part import WordQuestion, question_from, reports
from tacit.errors import InputError, TaskRefused
from tacit.federation.cost import ASK
from tacit.protocol.bodies import ReportBody
from tacit.protocol.discover import DiscoverDocument
from tacit.protocol.messages import Plan, RoundTask
from tacit.randomizers import device_generator
from tacit.text.vocabulary import Vocabulary


def votes_of(plan: Plan, task: RoundTask, content: bytes, text: OwnText, *, draw: Draw) -> ReportBody:
    """Votes (domain,) of K reports. content: the vocabulary, whose words nobody reports. Raises: TaskRefused."""
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
    drawn = reports(text.unknown_words(frozenset(known.words)), question, settings, device_generator(draw))
    votes = settings.randomizer_for(question.domain).votes(drawn)
    return ReportBody(votes.astype(np.uint32), True, None, None)
