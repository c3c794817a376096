"""One contract for whoever asks devices, whatever they are asked, simulated or served: a question in, a sum out.

What a kind's own sums must be besides, `test_collectors.py` and its neighbours say.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tests.support.server.documents import a_plan
from tests.support.server.fleet import TIMES, Fleet, a_training_task, update_of
from tests.support.server.stores import KEY, quick_folder
from tests.support.training.tiny import cohorts_of, cores, tiny_cache, tiny_learner, tiny_recipe

from tacit.aggregation import Counted
from tacit.data.unknown_words import TypedWords
from tacit.discovery.collect import AtOnce, DiscoverQuestion, SecurelySummed, UsersOneByOne
from tacit.discovery.question import PrefixQuestion
from tacit.errors import InputError, TrainingError
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.collect import SimulatedCollector as SimulatedCounts
from tacit.evaluation.counts.histograms import Buckets, HistogramCells, HistogramQuery
from tacit.federation.collector import Answered, Collector, Question, released
from tacit.federation.kinds import KINDS
from tacit.federation.report_shape import SHORT
from tacit.protocol.bodies import ReportBody
from tacit.protocol.count import EvaluateDocument, HistogramsDocument
from tacit.protocol.fields import QuestionDocument
from tacit.protocol.messages import RoundTask
from tacit.randomizers.local_reports import LocalReportSettings
from tacit.server.discover import ServedWords
from tacit.server.rounds.rounds import ServedRounds
from tacit.server.store import round_states
from tacit.server.train import document as training_document
from tacit.text.alphabet import Alphabet
from tacit.training import SimulatedCollector, TrainQuestion
from tacit.training.one_by_one import DevicesOneByOne as TrainedOneByOne

GOAL, SEED = 4, bytes(32)
PREFIXES = PrefixQuestion(prefixes=("",), alphabet=Alphabet("abc"), depth=5)
TYPED = TypedWords(
    words=("a", "b", "c"),
    offsets=np.arange(GOAL + 1, dtype=np.int64),
    word_of=np.array([0, 0, 1, 2], np.int32),
    counts=np.ones(GOAL, np.int32),
    typed=np.full(GOAL, 2, np.int64),
)
WORDS = DiscoverQuestion(
    round=0, question=PREFIXES, settings=LocalReportSettings(local_epsilon=5.0), first_user=0, users=GOAL
)
HISTOGRAMS = {
    "one": HistogramCells(slices=Buckets(()), bins=Buckets((1.0,))),
    "other": HistogramCells(slices=Buckets((5.0,)), bins=Buckets((1.0, 2.0))),
}
COUNTS = CountQuestion(step=0, steps=1, devices=GOAL, histograms=HISTOGRAMS, computation=None)


@dataclass
class Case:
    """A collector, and what it is asked."""

    collector: Collector
    question: Any


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    cache = tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")
    return tiny_learner(cache), tiny_recipe(cache.path).plan()


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as found:
        yield found


def training(collector: Callable[[Any, Any], Collector], trained: Any) -> Case:
    learner, plan = trained
    question = TrainQuestion(
        round=0,
        model=jnp.asarray(learner.start),
        client=plan.client,
        clip_norm=0.2,
        clip_estimate=0.25,
        report_goal=plan.report_goal,
        loss_bound=4.0,
    )
    return Case(collector(learner, plan), question)


def counting(epsilon: float | None) -> Case:
    chosen = {name: np.arange(GOAL, dtype=np.int64) % cells.size for name, cells in HISTOGRAMS.items()}
    queries = [HistogramQuery(name=name, cells=HISTOGRAMS[name], chosen=own) for name, own in chosen.items()]
    collector = SimulatedCounts(
        answers=lambda question: queries,
        clients=lambda question: np.arange(GOAL, dtype=np.int64),
        randomness=lambda *about: np.random.default_rng(3),
    )
    return Case(collector, replace(COUNTS, local_epsilon=epsilon))


def one_report(device: int, task: RoundTask) -> ReportBody:
    """What a device that keeps to the shape of any question may send."""
    shape = task.asks.shape()
    if shape.tensor == "update":
        return ReportBody(update_of(device), True, device % 2 == 0, 0.5)
    values = np.zeros(shape.length, np.uint32)
    if isinstance(task.asks, HistogramsDocument):
        values[[0, task.asks.cells[0]]] = 1
    else:
        values[device % shape.length] = 1
    return ReportBody(values, True, None, None)


def counts_document(question: CountQuestion) -> tuple[QuestionDocument, bytes]:
    sizes = tuple(each.size for each in question.histograms.values())
    return EvaluateDocument(kind="evaluate", cells=sizes, local_epsilon=None, parameters=(1,)), b"models"


def words_document(question: DiscoverQuestion) -> tuple[QuestionDocument, bytes]:
    known: Any = type("Served", (), {"_known": b"known words"})()
    return ServedWords.document(known, question)


SERVED: dict[str, tuple[Any, Callable[[Any], tuple[QuestionDocument, bytes]]]] = {
    "train": (a_training_task(), training_document),
    "discover": (WORDS, words_document),
    "evaluate": (COUNTS, counts_document),
}


def served(kind: str, folder: Path) -> Case:
    question, document = SERVED[kind]
    fleet = Fleet(folder, reports=one_report)
    fleet.clock.now += 100.0
    lease = round_states.take_lease(fleet.store, a_plan().run, seconds=600)
    assert lease is not None
    collector = ServedRounds(fleet.store, fleet.blobs, KEY, document=document, times=TIMES, wait=fleet.wait)
    collector.serve(KEY.plan(a_plan().to_json()), lease)
    return Case(collector, question)


CASES: dict[str, Callable[[Any, Path], Case]] = {
    "simulated training": lambda trained, folder: training(
        lambda learner, plan: SimulatedCollector(learner, cohorts_of(learner, plan, bytes(16)), cores()), trained
    ),
    "training one by one": lambda trained, folder: training(
        lambda learner, plan: TrainedOneByOne(learner, cohorts_of(learner, plan, bytes(16))), trained
    ),
    "words at once": lambda trained, folder: Case(AtOnce(typed=TYPED, assignment=1, seed=2), WORDS),
    "words one by one": lambda trained, folder: Case(UsersOneByOne(typed=TYPED, assignment=1, seed=2), WORDS),
    "words securely summed": lambda trained, folder: Case(SecurelySummed(typed=TYPED, assignment=1, seed=2), WORDS),
    "simulated counts": lambda trained, folder: counting(None),
    "simulated counts of local reports": lambda trained, folder: counting(2.0),
    "served training": lambda trained, folder: served("train", folder),
    "served words": lambda trained, folder: served("discover", folder),
    "served counts": lambda trained, folder: served("evaluate", folder),
}


@pytest.mark.parametrize("made", CASES.values(), ids=CASES)
class TestEveryCollector:
    def test_an_answer_has_the_questions_shape_and_passes_its_check(
        self, made: Any, trained: Any, folder: Path
    ) -> None:
        case = made(trained, folder)
        question: Question = case.question
        answered, _ = case.collector.collect(case.collector.init(), question, seed=SEED)
        assert answered.values.shape == (question.shape().length,)
        assert answered.beside.keys() == question.shape().beside
        assert question.min_reports <= answered.reports <= answered.participants
        assert answered.reports == question.goal and answered.dropped == answered.participants - answered.reports
        question.check(answered)
        assert question.kind in KINDS

    def test_what_is_asked_again_is_answered_again_and_the_state_stays(
        self, made: Any, trained: Any, folder: Path
    ) -> None:
        case = made(trained, folder)
        state = case.collector.init()
        before = repr(state)
        one, two = (case.collector.collect(state, case.question, seed=SEED)[0] for _ in range(2))
        np.testing.assert_array_equal(one.values, two.values)
        assert repr(state) == before and one.reports == two.reports
        released(case.collector, case.question.round)  # whoever has no use for it has no method

    def test_a_sum_of_no_honest_reports_fails_the_check(self, made: Any, trained: Any, folder: Path) -> None:
        case = made(trained, folder)
        answered, _ = case.collector.collect(case.collector.init(), case.question, seed=SEED)
        for wrong in wrong_answers(answered):
            with pytest.raises((InputError, TrainingError)):
                case.question.check(wrong)


def wrong_answers(answered: Answered) -> Iterator[Answered]:
    """More than so many reports hold, or what is no number."""
    values = np.asarray(answered.values)
    yield answered._replace(values=values * np.float32(np.nan) if values.dtype == np.float32 else values + 10**6)
    if answered.beside:
        yield answered._replace(beside={**answered.beside, SHORT: answered.reports + 1})
        yield answered._replace(reports=0)


@pytest.mark.parametrize(("question", "document"), SERVED.values(), ids=SERVED)
def test_a_question_and_its_document_say_one_shape(question: Any, document: Any) -> None:
    own, asked = question.shape(), document(question)[0].shape()
    for name in ("tensor", "length", "largest", "beside", "loss_bound", "bytes"):
        assert getattr(own, name) == getattr(asked, name), name


@pytest.mark.parametrize(("question", "document"), SERVED.values(), ids=SERVED)
def test_a_sum_of_one_report_opens_as_an_answer(question: Any, document: Any) -> None:
    asked = document(question)[0]
    task: Any = type("Task", (), {"asks": asked})
    report = one_report(0, task)
    question.shape().check(report.values)
    asked.shape().check(report.values)
    total = Counted.one(report.values, report.short, report.bounded_loss)
    found = question.answered(total, 3)
    assert (found.reports, found.participants, found.dropped) == (1, 3, 2)
    np.testing.assert_array_equal(found.values, report.values)
