"""What an operator can ask a device: for each way in which reports are made, a plan, and tasks of it.

Plans are honest in what they cost, so that a device follows them: an adversary gains nothing by one that is refused
whatever was typed.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.audit.device.texts import KNOWN, SPELLED
from tacit.evaluation.counts.device_part import question_in
from tacit.evaluation.in_plan import QuestionOfPlan
from tacit.networks.cifg.network import Cifg
from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_within
from tacit.privacy.gaussian import epsilon
from tacit.protocol.count import CountDocument, EvaluateDocument, PersonalizeDocument
from tacit.protocol.discover import DiscoverDocument, LocalReportsDocument, PrefixesDocument
from tacit.protocol.messages import (
    UNATTESTED,
    AggregationSettings,
    Content,
    HistogramPrivacy,
    LocalPrivacy,
    Plan,
    RoundTask,
    Separation,
    SumPrivacy,
    TrainingPrivacy,
)
from tacit.protocol.served_bodies import model_body
from tacit.protocol.signing import digest
from tacit.protocol.train import EncodedSum, TrainDocument, Training
from tacit.recipe import Recipe
from tacit.secure_aggregation.one_message.messages import OneMessageRound
from tacit.secure_aggregation.one_message.simulation import OneMessageParties

Model = NDArray[np.float32]
POPULATION = "audited"
HOUR = 3600.0
DELTA = 1e-6
NETWORK = Cifg(vocabulary=SPELLED.size, embedding=8, units=16)
PARAMETERS = sum(int(np.prod(shape)) for shape in NETWORK.shapes().values())
CLIP_NORM, REPORT_GOAL, APART = 0.2, 6, 5
CLIENT = Training(epochs=1, batch_size=4, learning_rate=0.5, sentences=64, words=6, proximal=0.0, precision="float32")
TRAINED = """
name = "audited"
data = {cache = "cache"}
model = {embedding = 8, units = 16}
client = {batch_size = 4, sentences = 64, words = 6}
rounds = {rounds = 40, report_goal = 6, min_separation = 5}
privacy = {clip_norm = 0.2, noise_multiplier = 6.0, mechanism = {name = "blt-b400"}}
"""
SECURE = 'aggregation = {kind = "secure"}\n'
ASKS_MORE = """clipping = {initial = 0.2, bit_stddev = 20.0}
training_loss = {bound = 4.0, stddev = 40.0}
"""
MODELS = 'models = [{network = {kind = "cifg", embedding = 8, units = 16}}]\n'
JUDGED = {
    "evaluate": f"{MODELS}settings = {{sentences = 4, words = 6}}\n",
    "personalize": f"{MODELS}[settings.strategies]\na = {{learning_rate = 1.0}}\nb = {{learning_rate = 3e38}}\n"
    "[settings.split]\nrule = 'time'\nvalue = 0.5\n",
}
COUNTED = "".join(
    f"[[settings.statistics]]\nstatistic = {name!r}\ncuts = [1.0, 9.0]\n"
    for name in ("words", "sentence_words", "unknown_share")
)
SUMMED = "[[settings.sums]]\nstatistic = 'word_pairs'\nwords = 30\nnorm = 3.0\n"
HIDDEN: dict[str, Any] = {
    "local_epsilon": 1.0,
    "contributions": 2,
    "sampler": "random",
    "randomizer": "subset-selection",
}
ONE_ROUND: dict[str, Any] = {"report_goal": 8, "rounds": 1, "max_participations": 1}


@dataclass(frozen=True)
class Asked:
    """What a device is asked in all of its turns."""

    plan: Plan
    content: bytes  # what a round begins with
    question: Any  # the document of its kind
    trains: bool = False  # on text that judges no model
    sealed: OneMessageRound | None = None

    def task(self, round: int, *, opens: float, lasts: float = HOUR) -> RoundTask:
        """The task of a round. opens: Unix seconds; lasts: seconds."""
        name, settings = hashlib.sha256(self.content).hexdigest(), self.sealed
        sealed = None if settings is None else replace(settings, round_index=round).to_bytes().hex()
        return RoundTask(
            run=self.plan.run,
            plan=digest(self.plan.to_json()),
            round=round,
            attempt=0,
            task=f"{round + 1:032x}",
            content=Content(sha256=name, bytes=len(self.content), path=f"/v1/models/{name}"),
            asks=self.question,
            sealed=sealed,
            opens=opens,
            deadline=opens + lasts,
        )

    @property
    def next_round(self) -> int:
        """Of a second task: one that may be answered, where the plan allows any."""
        return min(APART, self.plan.privacy.rounds - 1)


Question = Callable[[Model, Path], Asked]  # of a model, and a folder for the keys of decryptors


def a_model(seed: int = 1) -> Model:
    """An ordinary one."""
    return np.random.default_rng(seed).normal(0, 0.1, PARAMETERS).astype(np.float32)


# -- to train ----------------------------------------------------------------------------------------------------------


@cache
def _trained(recipe: str) -> TrainingPrivacy:
    """What the recipe promises."""
    said = Recipe.from_toml(recipe)
    found = said.guarantee()
    return TrainingPrivacy(
        kind="training",
        zcdp=found.zcdp,
        epsilon=epsilon(found.zcdp, DELTA),
        delta=DELTA,
        clip_norm=said.privacy.clip_norm,
        noise_multiplier=found.noise_multiplier,
        mechanism=said.privacy.mechanism_name,
        matrix=None,
        report_goal=said.rounds.report_goal,
        rounds=said.rounds.rounds,
        max_participations=found.participation.max_participations,
    )


def _encoding() -> EncodedSum:
    found = encoding_within(PARAMETERS, CLIP_NORM, REPORT_GOAL)
    named = {name: getattr(found, name) for name in Encoding.__dataclass_fields__}
    return EncodedSum(**named, signs="ef" * 32, length=found.dimension + 1, threshold=3)


def _train(model: Model, *, recipe: str, aggregation: AggregationSettings, **asks: Any) -> Asked:
    plan = _plan("train", recipe, _trained(recipe), aggregation, Separation(rounds=APART, **NO_TIMER))
    question: dict[str, Any] = {
        "kind": "train",
        "parameters": len(model),
        "client": CLIENT,
        "clip_norm": CLIP_NORM,
        "clip_estimate": None,
        "loss_bound": None,
        "encoded": None,
    }
    return Asked(plan, model_body(model), TrainDocument(**question | asks), trains=True)


def train_plain(model: Model, keys: Path) -> Asked:
    """Updates in the clear, with the bit about their length and the loss: all that a header can say."""
    return _train(
        model, recipe=TRAINED_MORE, aggregation=summed("plain", REPORT_GOAL), clip_estimate=0.1, loss_bound=4.0
    )


def train_encoded(model: Model, keys: Path) -> Asked:
    """Updates as integers."""
    return _train(model, recipe=TRAINED + SECURE, aggregation=summed("encoded", 3), encoded=_encoding())


def train_sealed(model: Model, keys: Path) -> Asked:
    """Updates that a quorum of decryptors opens in a sum alone."""
    said = _encoding()
    parties = _parties(keys, said.length, 2 * said.encoding().largest)
    settings = parties.settings
    aggregation = summed(
        "sealed",
        3,
        keepers=tuple(each.hex() for each in settings.decryptors),
        boxes=tuple(each.hex() for each in settings.boxes),
        corrupt=settings.corrupt,
    )
    found = _train(model, recipe=TRAINED + SECURE, aggregation=aggregation, encoded=said)
    return replace(found, sealed=replace(settings, plan=bytes.fromhex(digest(found.plan.to_json()))))


@cache
def _parties(keys: Path, dimension: int, largest: int) -> OneMessageParties:
    return OneMessageParties.from_settings(3, keys, dimension=dimension, largest=largest, seed=3, report_goal=3)


# -- to find words -----------------------------------------------------------------------------------------------------


def discover(model: Model, keys: Path) -> Asked:
    """The first letters of words that are not known, randomised."""
    letters = PrefixesDocument(about="prefixes", prefixes=("wa", "wb"), alphabet="abcdefgh", depth=4, found=())
    question = DiscoverDocument(kind="discover", question=letters, reports=LocalReportsDocument(**HIDDEN))
    privacy = LocalPrivacy(kind="local", zcdp=2.0, local_epsilon=2.0, **ONE_ROUND)
    recipe = "[reports]\n" + "".join(f"{name} = {value!r}\n" for name, value in HIDDEN.items())
    plan = _plan("discover", recipe, privacy, summed("plain", 8), Separation(rounds=1, **NO_TIMER), KNOWN.sha256)
    return Asked(plan, KNOWN.to_json().encode(), question, trains=True)


# -- to count ----------------------------------------------------------------------------------------------------------


def evaluate(model: Model, keys: Path) -> Asked:
    """How well the model predicts, in a histogram."""
    return _judged("evaluate", model, EvaluateDocument)


def evaluate_locally(model: Model, keys: Path) -> Asked:
    """The same, randomised on the device."""
    return _judged("evaluate", model, EvaluateDocument, local_epsilon=1.0)


def personalize(model: Model, keys: Path) -> Asked:
    """What fine-tuning gains, by strategies of which one overflows."""
    return _judged("personalize", model, PersonalizeDocument, policies=None)


def count(model: Model, keys: Path) -> Asked:
    """Statistics of the text, in histograms."""
    asked = question_in(COUNTED)
    assert asked.sums is None  # they are histograms
    cells = tuple(each.size for each in asked.histograms.values())
    question = CountDocument(kind="count", cells=cells, local_epsilon=None, norms=None)
    return _counted("count", COUNTED, _histograms(len(cells)), question, b"nothing")


def sums(model: Model, keys: Path) -> Asked:
    """How often words and pairs of words were typed, bounded by one norm."""
    said = question_in(SUMMED).sums
    assert said is not None
    question = CountDocument(kind="count", cells=said.sizes, local_epsilon=None, norms=said.norms)
    return _counted("count", SUMMED, SumPrivacy(kind="sums", clip_norm=3.0, **_noised()), question, b"nothing")


def _judged(kind: str, model: Model, document: Any, local_epsilon: float | None = None, **more: Any) -> Asked:
    cells = _cells(kind)
    question = document(kind=kind, cells=cells, local_epsilon=local_epsilon, parameters=(len(model),), **more)
    local = LocalPrivacy(kind="local", zcdp=0.5, local_epsilon=1.0, **ONE_ROUND)
    privacy = _histograms(len(cells)) if local_epsilon is None else local
    return _counted(kind, JUDGED[kind], privacy, question, model_body(model))


@cache
def _cells(kind: str) -> tuple[int, ...]:
    """Of each histogram, whatever the model is."""
    said = QuestionOfPlan(kind=kind, recipe=JUDGED[kind], words=SPELLED.size)
    return tuple(each.size for each in said.computation([np.zeros(PARAMETERS, np.float32)]).histograms.values())


def _noised() -> dict[str, Any]:
    return {"zcdp": 0.5, "epsilon": epsilon(0.5, DELTA), "delta": DELTA, "noise_multiplier": 1.0, **ONE_ROUND}


def _histograms(many: int) -> HistogramPrivacy:
    return HistogramPrivacy(kind="histograms", histograms=(many,), **_noised())


def _counted(kind: str, recipe: str, privacy: Any, question: Any, content: bytes) -> Asked:
    plan = _plan(kind, recipe, privacy, summed("plain", 8), Separation(rounds=1, **NO_TIMER))
    return Asked(plan, content, question)


# -- plans -------------------------------------------------------------------------------------------------------------

TRAINED_MORE = TRAINED.replace('"blt-b400"', '"tree", restarts = [20]').replace("6.0", "9.0") + ASKS_MORE
NO_TIMER: dict[str, Any] = {"timer_seconds": None, "clock": "start"}


def summed(kind: Literal["plain", "encoded", "sealed"], threshold: int, **changed: Any) -> AggregationSettings:
    """How reports are summed."""
    nobody: dict[str, Any] = {"keepers": (), "boxes": (), "corrupt": 0, "contributors": (), "honest": 1}
    return AggregationSettings(kind=kind, threshold=threshold, **nobody | changed)


def _plan(
    kind: str,
    recipe: str,
    privacy: Any,
    aggregation: AggregationSettings,
    separation: Separation,
    vocabulary: str = SPELLED.sha256,
) -> Plan:
    return Plan(
        version=2,
        kind=kind,
        population=POPULATION,
        run="audit",
        recipe=recipe,
        code="ab" * 32,
        privacy=privacy,
        separation=separation,
        aggregation=aggregation,
        vocabulary=vocabulary,
        attestation=UNATTESTED,
        enrolment="none",
    )


QUESTIONS: Mapping[str, Question] = {
    "updates": train_plain,
    "encoded updates": train_encoded,
    "sealed updates": train_sealed,
    "new words": discover,
    "evaluation": evaluate,
    "evaluation, locally": evaluate_locally,
    "personalization": personalize,
    "statistics": count,
    "sums": sums,
}
