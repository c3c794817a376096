"""Text decides what a report says, and nothing else: with any model, two texts make the same requests and records.

Were there a difference, who operates a server would choose the model so that it tells what was typed, again and again,
at no cost. A trace is all that a server, a network, or whoever looks at the record of a device can see of a turn.
"""

import contextlib
import hashlib
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.device import trapped
from tests.support.device.operator import (
    CLIENT,
    DELTA,
    ENCODED,
    HOUR,
    NOON,
    PARAMETERS,
    SECURE,
    Clock,
    Operator,
    a_plan,
    encoded_sum,
    once,
    recipe_text,
    sealed_plan,
)
from tests.support.training.tiny import SETTINGS, WORDS, Encoded

import tacit
from tacit.data import ClientText, VocabularyRecord, build_cache
from tacit.data.mapped_sentences import MappedSentences
from tacit.device.isolated import Children
from tacit.device.own_handlers import own_handlers
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.device.train import ByJax
from tacit.device.train_onnx import ByOnnx
from tacit.errors import CacheError
from tacit.evaluation.counts.device_part import question_in
from tacit.evaluation.in_plan import QuestionOfPlan
from tacit.keyboard.model_folder import write_model
from tacit.privacy.gaussian import epsilon
from tacit.protocol.bodies import ReportBody
from tacit.protocol.count import CountDocument, EvaluateDocument, PersonalizeDocument
from tacit.protocol.discover import DiscoverDocument, LocalReportsDocument, PrefixesDocument
from tacit.protocol.messages import (
    AggregationSettings,
    Content,
    HistogramPrivacy,
    LocalPrivacy,
    Plan,
    RoundTask,
    Separation,
    SumPrivacy,
)
from tacit.protocol.served_bodies import model_body, read_report
from tacit.protocol.signing import digest
from tacit.secure_aggregation.one_message.simulation import OneMessageParties
from tacit.text.vocabulary import BOS, EOS, OOV, SPECIALS, Provenance, Vocabulary

Model = NDArray[np.float32]
MEMORY = Path("/dev/shm")  # where nothing waits for a disk, on machines that have it
SPELLED = Vocabulary(words=WORDS, provenance=Provenance(kind="word list", description="tiny"), lowercase=False)
KNOWN = Vocabulary(words=WORDS[16:], provenance=Provenance(kind="public", description="40 of the words"))
MEASURED = encoded_sum()
SECRET = 7  # the place of the word that only one of two devices typed
CHATTY = [f"{WORDS[SECRET]} {WORDS[9]} {WORDS[SECRET]}", *(" ".join(WORDS[at : at + 6]) for at in range(40))]
TERSE = [WORDS[20]]
TYPED: dict[str, tuple[Sequence[str], bool]] = {  # (sentences, whether they have a time)
    "the word": (CHATTY, True),
    "another word": ([each.replace(WORDS[SECRET], WORDS[8]) for each in CHATTY], True),
    "hardly anything": (TERSE, True),
    "at no known time": (CHATTY, False),
    "no known word": (["unheard unseen", "unsaid"] * 9, True),
}
WILLING = Policy(
    largest_zcdp=1e4, largest_epsilon=1e5, budget_zcdp=1e4, smallest_noise_multiplier=0.001, largest_local_epsilon=9.0
)


@dataclass
class Typist:
    """One client with these sentences, an hour apart."""

    texts: Sequence[str]
    split: str
    dated: bool
    description: str = "a typist of a test"
    left_out: dict[str, int] = field(default_factory=dict)
    expected_clients: int = 1

    def clients(self) -> Iterator[ClientText]:
        times = 1_000_000 + 3600 * np.arange(len(self.texts), dtype=np.int64) if self.dated else None
        yield ClientText(client_id="typist", texts=tuple(self.texts), timestamps=times, split=self.split)


def cache_of(path: Path, texts: Sequence[str], split: str, dated: bool = True) -> Path:
    def encode(texts: Sequence[str]) -> Encoded:
        rows = [[BOS, *(SPELLED.id_of(word) for word in text.split()), EOS] for text in texts]
        flat = np.array([id for row in rows for id in row], np.int32)
        return Encoded(flat, np.array([len(row) for row in rows], np.int32), np.arange(len(rows), dtype=np.int32))

    said = {"size": SPELLED.size, "sha256": SPELLED.sha256, "lowercase": False, "oov_id": OOV}
    record = VocabularyRecord(**said, kind="word list", description="tiny")
    whole = {"vocabulary": record, "vocabulary_json": SPELLED.to_json(), "tokenizer": "words"}
    return build_cache(Typist(texts, split, dated), encode, path, **whole).path


# -- devices -----------------------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What a device is asked: a kind of its own for each way in which reports are made."""

    plan: Plan
    task: Callable[[Operator], RoundTask]
    content: bytes


@dataclass
class World:
    """Devices with different texts, and what they may be asked."""

    folder: Path
    parties: OneMessageParties
    exported: Path

    def text(self, name: str, *, trains: bool, policy: Policy = WILLING) -> OwnText:
        texts, dated = TYPED[name]
        path = self.folder / f"{name}-{trains}"
        if not path.exists():
            cache_of(path, texts, "train" if trains else "test", dated)
        return OwnText(path, None, policy.temporal_split)

    def trace(
        self, asked: Asked, text: OwnText, *, onnx: bool = False, clock: Clock | None = None, **more: Any
    ) -> "Trace":
        operator, clock, requests = Operator(), clock or Clock(), []
        operator.files[hashlib.sha256(asked.content).hexdigest()] = asked.content
        operator.assign(asked.plan, asked.task(operator))
        operator.before = lambda: requests.append(clock() - NOON)
        trainer = ByOnnx(text, self.exported) if onnx else ByJax(text)
        with in_memory() as state:
            turn = once(operator, state, state, now=clock, text=text, trainer=trainer, **{"policy": WILLING, **more})
            rows = recorded(state)
        sent = [(each.method, str(each.url), len(each.content)) for each in operator.asked]
        return Trace(turn.what, turn.wait, turn.spent, list(zip(requests, sent, strict=True)), rows, turn.says)


class Running(Clock):
    """A clock that runs by itself."""

    def __init__(self) -> None:
        super().__init__(NOON - time.monotonic())

    def __call__(self) -> float:
        return self.now + time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Trace(NamedTuple):
    """What can be seen of a turn; `says` is for the owner, and is left out."""

    what: str
    wait: tuple[float, float]
    spent: float
    requests: list[tuple[float, tuple[str, str, int]]]  # when, and what
    rows: list[tuple[Any, ...]]  # of the record
    says: str

    @property
    def seen(self) -> tuple[Any, ...]:
        return self[:-1]


def recorded(state: Path) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(state / "device.db")) as database:
        names = "plan, epoch, round, task, assignment, at, opens, deadline, zcdp, received"
        return database.execute(f"SELECT {names} FROM participations").fetchall()


@contextlib.contextmanager
def in_memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    largest = 2 * MEASURED.encoding().largest
    parties = OneMessageParties.from_settings(
        3, folder / "decryptors", dimension=MEASURED.length, largest=largest, seed=3, report_goal=3
    )
    write_model(folder / "model", SETTINGS, SETTINGS.init(jax.random.key(1)), SPELLED.to_json().encode())
    tacit.export(folder / "model", folder / "phone")
    return World(folder, parties, folder / "phone")


# -- what they are asked -----------------------------------------------------------------------------------------------


def training(how: str, world: World, model: Model, **asks: Any) -> Asked:
    words = SPELLED.sha256
    if how in ("plain", "onnx"):
        plan, encoded = a_plan(words), None
    elif how == "asked everything":
        sections = {
            "clipping": {"initial": 0.2, "bit_stddev": 20.0},
            "training_loss": {"bound": 4.0, "stddev": 40.0},
            "privacy": {"mechanism": {"name": "tree", "restarts": [20]}, "noise_multiplier": 9.0},
        }
        plan, encoded, asks = a_plan(words, text=recipe_text(**sections)), None, {**asks, **BESIDE}
    elif how == "encoded":
        plan, encoded = a_plan(words, text=recipe_text(**SECURE), aggregation=ENCODED), MEASURED
    else:
        plan, encoded = sealed_plan(words, world.parties.settings), MEASURED
    settings = replace(world.parties.settings, plan=bytes.fromhex(digest(plan.to_json())))
    sealed = settings.to_bytes().hex() if how == "sealed" else None
    content = model_body(model)

    def task(operator: Operator) -> RoundTask:
        operator.model = model
        return operator.task(plan, 0, encoded=encoded, sealed=sealed, **asks)

    return Asked(plan, task, content)


BESIDE = {"clip_estimate": 0.1, "loss_bound": 4.0}
TRAINING = ("plain", "asked everything", "encoded", "sealed", "onnx")


COUNTED = {"zcdp": 0.5, "epsilon": epsilon(0.5, DELTA), "delta": DELTA, "noise_multiplier": 1.0}
NETWORK = 'models = [{network = {kind = "cifg", embedding = 8, units = 16}}]\n'
RECIPES = {
    "evaluate": f"{NETWORK}[settings]\nsentences = 4\nwords = 6\n",
    "personalize": f"{NETWORK}[settings]\n[settings.strategies.a]\nlearning_rate = 1.0\n"
    "[settings.strategies.b]\nlearning_rate = 3e38\n[settings.split]\nrule = 'time'\nvalue = 0.5\n",
    "count": "".join(
        f"[[settings.statistics]]\nstatistic = {name!r}\ncuts = [1.0, 9.0]\n"
        for name in ("words", "sentence_words", "unknown_share")
    ),
    "sums": "[[settings.sums]]\nstatistic = 'word_pairs'\nwords = 30\nnorm = 3.0\n",
}
SENT = {"local_epsilon": 1.0, "contributions": 2, "sampler": "random", "randomizer": "subset-selection"}
COUNTING = ("evaluate", "evaluate locally", "personalize", "personalize locally", "count", "count locally", "sums")


def counting(how: str, model: Model) -> Asked:
    """how: a recipe of RECIPES, and whether the answer is randomised on the device."""
    name, _, locally = how.partition(" ")
    kind, recipe = "count" if name == "sums" else name, RECIPES[name]
    content = model_body(model) if kind != "count" else b"nothing"
    once_only: dict[str, Any] = {"report_goal": 8, "rounds": 1, "max_participations": 1}
    local = 1.0 if locally else None
    if name == "sums":
        said = question_in(recipe).sums
        assert said is not None
        cells, norms = said.sizes, said.norms
        privacy: Any = SumPrivacy(kind="sums", clip_norm=3.0, **COUNTED, **once_only)
    else:
        asked: Any = question_in(recipe) if kind == "count" else computation(kind)
        cells, norms = tuple(each.size for each in asked.histograms.values()), None
        privacy = HistogramPrivacy(kind="histograms", histograms=(len(cells),), **COUNTED, **once_only)
    if locally:
        privacy = LocalPrivacy(kind="local", zcdp=0.5, local_epsilon=1.0, **once_only)
    said_of_models = {"cells": cells, "local_epsilon": local, "parameters": (len(model),)}
    asks: Any = {
        "evaluate": lambda: EvaluateDocument(kind="evaluate", **said_of_models),
        "personalize": lambda: PersonalizeDocument(kind="personalize", policies=None, **said_of_models),
        "count": lambda: CountDocument(kind="count", cells=cells, local_epsilon=local, norms=norms),
    }[kind]()
    return once_of(kind, recipe, privacy, asks, content, SPELLED.sha256)


@cache
def computation(kind: str) -> Any:
    """What devices compute, for its histograms: of any model."""
    said = QuestionOfPlan(kind=kind, recipe=RECIPES[kind], words=SPELLED.size)
    return said.computation([np.zeros(PARAMETERS, np.float32)])


def discovering() -> Asked:
    prefixes = PrefixesDocument(about="prefixes", prefixes=("",), alphabet="abcdefghw", depth=4, found=())
    asks = DiscoverDocument(kind="discover", question=prefixes, reports=LocalReportsDocument(**SENT))
    privacy = LocalPrivacy(kind="local", zcdp=2.0, local_epsilon=2.0, report_goal=8, rounds=1, max_participations=1)
    content = KNOWN.to_json().encode()
    return once_of("discover", tomli_w.dumps({"reports": SENT}), privacy, asks, content, KNOWN.sha256)


def asking(how: str, world: World, model: Model) -> Asked:
    """Whatever can be asked by its name."""
    if how == "discover":
        return discovering()
    return training(how, world, model) if how in TRAINING else counting(how, model)


def once_of(kind: str, recipe: str, privacy: Any, asks: Any, content: bytes, vocabulary: str) -> Asked:
    """A plan of one round, and its task."""
    plain = AggregationSettings(kind="plain", threshold=8, keepers=(), boxes=(), corrupt=0, contributors=(), honest=1)
    said = {"kind": kind, "recipe": recipe, "privacy": privacy, "aggregation": plain}
    apart = Separation(rounds=1, timer_seconds=None, clock="start")
    plan = a_plan(vocabulary).model_copy(update={**said, "separation": apart})
    name = hashlib.sha256(content).hexdigest()

    def task(operator: Operator) -> RoundTask:
        shown = Content(sha256=name, bytes=len(content), path=f"/v1/models/{name}")
        whole = {"run": plan.run, "plan": digest(plan.to_json()), "round": 0, "attempt": 0, "task": "cd" * 16}
        return RoundTask(**whole, content=shown, asks=asks, sealed=None, opens=NOON, deadline=NOON + HOUR)

    return Asked(plan, task, content)


# -- the attack: which word was typed? ---------------------------------------------------------------------------------


def telling(word: int) -> Model:
    """A finite model whose update is finite unless this word was typed.

    The word's embedding is huge in one coordinate, which no other has and the kernel does not read. So all is as small
    as ever, but for the slope of what the kernel makes of it: that is huge where the word comes, its square beyond
    float32.
    """
    draw = np.random.default_rng(1)
    parts = {name: draw.normal(0, 0.1, shape).astype(np.float32) for name, shape in SETTINGS.shapes().items()}
    parts["embedding"][:] = 0.0
    parts["embedding"][word + SPECIALS, 0] = 1e24
    parts["kernel"][0] = 0.0
    return np.concatenate([part.ravel() for part in parts.values()])


@pytest.mark.parametrize("how", TRAINING)
def test_no_model_tells_which_word_was_typed(how: str, world: World) -> None:
    """In a sealed round a device refused where its update was not finite, gave its place back, and spent nothing."""
    text, everything = world.text("the word", trains=True), CLIENT.model_copy(update={"sentences": 64})
    found = {
        word: world.trace(training(how, world, telling(word), client=everything), text, onnx=how == "onnx")
        for word in (SECRET, 9, 50, 51)  # the first two were typed
    }
    assert len({each.spent for each in found.values()}) == 1 and found[SECRET].spent > 0
    sizes = [[(method, length) for _, (method, _, length) in each.requests] for each in found.values()]
    assert all(each == sizes[0] for each in sizes), "what was typed is seen"
    assert {each.what for each in found.values()} == {"reported"}
    assert ["says nothing" in found[word].says for word in found] == [True, True, False, False], "there is no attack"


# -- any model, any text -----------------------------------------------------------------------------------------------

NUMBERS = [1e24, -1e24, 1e19, 3e38, -3e38, 1e30, 1e-45, -1e-45, 1e-38, 1e-20, 0.0, 1.0, -1e4]
numbers = st.sampled_from(NUMBERS)
edits = st.lists(
    st.tuples(
        st.sampled_from(["one word", "a part", "a number", "all times"]), st.integers(0, PARAMETERS - 1), numbers
    ),
    max_size=4,
)
rates = st.sampled_from([0.5, 1e-30, 1e30])  # each is a program of its own
norms = st.sampled_from([0.2, 1e-25])


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Any finite model: small numbers, with others here and there."""
    flat = np.random.default_rng(draw(st.integers(0, 9))).normal(0, 0.1, PARAMETERS).astype(np.float32)
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in SETTINGS.shapes().values())])
    for how, at, number in draw(edits):
        match how:
            case "one word":
                row = at % SPELLED.size * SETTINGS.embedding
                flat[row : row + SETTINGS.embedding] = number
            case "a part":
                part = int(np.searchsorted(ends, at, side="right")) - 1
                flat[ends[part] : ends[part + 1]] = number
            case "a number":
                flat[at] = number
            case _:
                with np.errstate(all="ignore"):
                    flat *= np.float32(number)
    return np.nan_to_num(flat)


def looks(examples: int) -> Any:
    return settings(max_examples=examples, deadline=None)


pairs = st.lists(st.sampled_from(list(TYPED)), min_size=2, max_size=2, unique=True)
few, many = looks(4), looks(850)  # of each of twelve ways


def the_same(world: World, asked: Asked, texts: Sequence[str], **more: Any) -> None:
    trains = asked.plan.kind in ("train", "discover")
    first, second = (world.trace(asked, world.text(name, trains=trains), **more) for name in texts)
    assert first.what == "reported" and first.seen == second.seen, (first.says, second.says)


@pytest.mark.parametrize("how", TRAINING)
@given(model=models(), texts=pairs, rate=rates, norm=norms)
@few
def test_two_texts_train_alike(
    how: str, world: World, model: Model, texts: list[str], rate: float, norm: float
) -> None:
    trained_alike(how, world, model, texts, rate, norm)


@pytest.mark.nightly
@pytest.mark.parametrize("how", TRAINING)
@given(model=models(), texts=pairs, rate=rates, norm=norms)
@many
def test_two_texts_train_alike_at_length(
    how: str, world: World, model: Model, texts: list[str], rate: float, norm: float
) -> None:
    trained_alike(how, world, model, texts, rate, norm)


def trained_alike(how: str, world: World, model: Model, texts: list[str], rate: float, norm: float) -> None:
    client = CLIENT.model_copy(update={"learning_rate": rate, "epochs": 2})
    asks: dict[str, Any] = {"client": client}
    if how in ("plain", "onnx"):  # an encoding is for the plan's norm
        asks["clip_norm"] = norm
    the_same(world, training(how, world, model, **asks), texts, onnx=how == "onnx")


@pytest.mark.parametrize("how", COUNTING)
@given(model=models(), texts=pairs)
@few
def test_two_texts_count_alike(how: str, world: World, model: Model, texts: list[str]) -> None:
    the_same(world, counting(how, model), texts)


@pytest.mark.nightly
@pytest.mark.parametrize("how", COUNTING)
@given(model=models(), texts=pairs)
@many
def test_two_texts_count_alike_at_length(how: str, world: World, model: Model, texts: list[str]) -> None:
    the_same(world, counting(how, model), texts)


@pytest.mark.parametrize("texts", [("the word", "hardly anything"), ("another word", "no known word")])
def test_two_texts_answer_alike_which_words_they_have(texts: tuple[str, str], world: World) -> None:
    the_same(world, discovering(), texts)


@pytest.mark.parametrize("how", ["plain", "sealed", "evaluate", "personalize"])
def test_what_a_policy_keeps_is_no_more_seen(how: str, world: World) -> None:
    """A split by time leaves nothing to train on, or to judge by, where little was typed, or at no known time."""
    model = np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32)
    asked = training(how, world, model) if how in TRAINING else counting(how, model)
    keeps = replace(WILLING, split="time:0.5")
    texts = [world.text(name, trains=True, policy=keeps) for name in TYPED]
    assert {len(each.judging.timestamps(0)) > 0 for each in texts} == {True, False}
    seen = [world.trace(asked, each) for each in texts]
    assert all(each.what == "reported" and each.seen == seen[0].seen for each in seen), [each.says for each in seen]


# -- whatever goes wrong where text is read ----------------------------------------------------------------------------

ERRORS = (ValueError("of the text"), MemoryError(), RecursionError(), CacheError("cut short."), KeyError("a word"))
READERS = ("sentences", "padded", "timestamps", "sentence_count")


@pytest.mark.parametrize("how", [*TRAINING, *COUNTING, "discover"])
def test_whatever_reading_raises_is_not_seen(how: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    model = np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32)
    trains = how in TRAINING or how == "discover"
    asked = asking(how, world, model)
    text = world.text("the word", trains=trains)
    assert text.sentence_count(0) == len(CHATTY)
    honest = world.trace(asked, text, onnx=how == "onnx")
    assert honest.what == "reported" and "says nothing" not in honest.says
    for error in ERRORS:
        raised: list[str] = []

        def fails(self: Any, *given: Any, error: BaseException = error, raised: list[str] = raised) -> Any:
            raised.append(type(error).__name__)
            raise error

        with monkeypatch.context() as patch:
            for reader in READERS:
                patch.setattr(MappedSentences, reader, fails)
            found = world.trace(asked, text, onnx=how == "onnx")
        assert raised and found.seen == honest.seen
        assert "says nothing, as if nothing had been typed" in found.says and raised[0] in found.says


@pytest.mark.parametrize("how", [*TRAINING, *COUNTING, "discover"])
def test_text_is_read_when_its_price_is_on_disk(how: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    model = np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32)
    trains = how in TRAINING or how == "discover"
    asked = asking(how, world, model)
    text, before = world.text("the word", trains=trains), []
    with in_memory() as state:
        for reader in READERS:
            real = getattr(MappedSentences, reader)

            def reads(self: Any, *given: Any, real: Any = real) -> Any:
                before.append(len(recorded(state)))
                return real(self, *given)

            monkeypatch.setattr(MappedSentences, reader, reads)
        operator = Operator()
        operator.files[hashlib.sha256(asked.content).hexdigest()] = asked.content
        operator.assign(asked.plan, asked.task(operator))
        trainer = ByOnnx(text, world.exported) if how == "onnx" else ByJax(text)
        turn = once(operator, state, state, text=text, trainer=trainer, policy=WILLING)
    assert turn.what == "reported" and before and set(before) == {1}


# -- whatever becomes of the process that reads it ---------------------------------------------------------------------

Trap: TypeAlias = Callable[[ReportBody], ReportBody]
SMALL = replace(WILLING, largest_memory_mb=150.0)  # of which a limit is made
TRAPS = (
    trapped.killed,
    trapped.aborts,
    trapped.crashes,
    trapped.ends,
    trapped.takes_memory,
    trapped.takes_memory_for_ever,
    trapped.says_garbage,
    trapped.says_too_much,
    trapped.says_too_little,
    trapped.says_no_number,
    trapped.raises,
    trapped.prints,
)


def by_a_child(
    world: World, asked: Asked, name: str, trap: Trap, policy: Policy = SMALL, clock: Clock | None = None
) -> Trace:
    """What is seen of a device whose reader goes into a trap where the word was typed."""
    trains = asked.plan.kind in ("train", "discover")
    text, learns = world.text(name, trains=trains), asked.plan.aggregation.kind != "plain"
    made = partial(trapped.trapped, world.folder / f"{name}-{trains}", SECRET + SPECIALS, trap, learns)
    children = Children(made, policy, clock or Clock())
    return world.trace(asked, text, children=children, policy=policy, clock=clock)


@pytest.fixture(scope="module")
def free(world: World) -> Trace:
    """Who typed another word goes into none of the traps."""
    asked = training("plain", world, np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32))
    return by_a_child(world, asked, "another word", trapped.killed)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_what_becomes_of_the_reader_is_not_seen(trap: Trap, world: World, free: Trace) -> None:
    """In the device's own process most of these ended the device: text decided whether it reported."""
    asked = training("plain", world, np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32))
    caught = by_a_child(world, asked, "the word", trap)
    assert caught.what == free.what == "reported" and caught.seen == free.seen
    assert "says nothing" in caught.says and "says nothing" not in free.says
    assert caught.says.isprintable() and len(caught.says) < 1000


@pytest.mark.parametrize("how", ["encoded", "sealed", "evaluate locally", "count", "sums", "discover"])
def test_a_reader_that_dies_is_not_seen_in_any_kind(how: str, world: World) -> None:
    model = np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32)
    asked = asking(how, world, model)
    caught = by_a_child(world, asked, "the word", trapped.killed, WILLING)
    free = world.trace(asked, world.text("another word", trains=asked.plan.kind in ("train", "discover")))
    assert caught.what == free.what == "reported" and caught.seen == free.seen
    assert "SIGKILL" in caught.says and "says nothing" not in free.says


def untimed(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without the time at which the device took part, by a clock that runs."""
    return [(*row[:5], *row[6:]) for row in rows]


@pytest.mark.parametrize("trap", [trapped.hangs, trapped.computes_for_ever], ids=lambda trap: trap.__name__)
def test_a_reader_that_never_ends_is_not_seen(trap: Trap, world: World) -> None:
    """By clocks that run: the report leaves when another would."""
    asked = training("plain", world, np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32))
    quick = replace(SMALL, send_after_s=4.0)
    caught, free = (by_a_child(world, asked, name, trap, quick, Running()) for name in ("the word", "another word"))
    assert caught.what == free.what == "reported" and untimed(caught.rows) == untimed(free.rows)
    assert [each for _, each in caught.requests] == [each for _, each in free.requests]
    assert "took longer than 3.2 s" in caught.says and "says nothing" not in free.says
    waited = [each.requests[-1][0] - each.requests[-2][0] for each in (caught, free)]
    assert all(each >= 4.0 for each in waited)


@pytest.mark.parametrize("trap", [trapped.killed, trapped.raises], ids=lambda trap: trap.__name__)
def test_what_cannot_be_prepared_is_refused_before_it_costs_anything(trap: Trap, world: World) -> None:
    asked = training("plain", world, np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32))
    seen = []
    for name in ("the word", "another word"):
        text = world.text(name, trains=True)
        children = Children(partial(trapped.unprepared, world.folder / f"{name}-True", trap), SMALL, Clock())
        seen.append(world.trace(asked, text, children=children, policy=SMALL))
    assert seen[0].seen == seen[1].seen
    assert (seen[0].what, seen[0].spent, seen[0].rows) == ("refused", 0.0, []) and "cannot be prepared" in seen[0].says


@pytest.mark.parametrize("how", ["plain", "count"])
def test_a_child_reports_what_the_device_would(how: str, world: World) -> None:
    """One batch of all sentences: in which order they are drawn changes the rounding alone."""
    model, everything = np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32), {"batch_size": 64, "sentences": 64}
    client = CLIENT.model_copy(update=everything)
    asked = training(how, world, model, client=client) if how == "plain" else counting(how, model)
    trains, found = how == "plain", []
    text = world.text("the word", trains=trains)
    made = partial(own_handlers, world.folder / f"the word-{trains}", None, None, None)
    for children in (None, Children(made, WILLING, Clock())):
        operator = Operator()
        operator.files[hashlib.sha256(asked.content).hexdigest()] = asked.content
        task = asked.task(operator)
        operator.assign(asked.plan, task)
        with in_memory() as state:
            turn = once(operator, state, state, text=text, trainer=ByJax(text), policy=WILLING, children=children)
        ((assignment, body),) = operator.received
        assert turn.what == "reported" and "says nothing" not in turn.says
        found.append(read_report(body, task.asks.shape(), assignment).values)
    assert found[0].any()
    np.testing.assert_allclose(found[0].astype(float), found[1].astype(float), rtol=1e-4, atol=1e-6)


HEAVY = "{'jax', 'onnxruntime', 'onnx'}"
DECIDES = ("plain", "encoded", "evaluate locally", "personalize", "count", "sums", "discover")


def test_a_device_needs_no_model_to_decide_or_to_say_nothing(world: World, tmp_path: Path) -> None:
    """What computes with models is loaded by the child alone, and so it can end the child alone."""
    model, said = np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32), []
    for how in DECIDES:
        asked, trains = asking(how, world, model), how in (*TRAINING, "discover")
        world.text("the word", trains=trains)
        plan, task = asked.plan.model_dump_json(), asked.task(Operator()).model_dump_json()
        said.append([how, asked.plan.kind, str(world.folder / f"the word-{trains}"), plan, task])
    (tmp_path / "said").write_text(json.dumps(said))
    code = f"""
import json, os, sys
from pathlib import Path
import tacit.device.device
from tacit.device.own_handlers import own_handlers
from tacit.protocol.messages import Plan, RoundTask
for how, kind, cache, plan, task in json.loads(Path({str(tmp_path / "said")!r}).read_text()):
    plan, task = Plan.model_validate_json(plan), RoundTask.model_validate_json(task)
    handler = own_handlers(Path(cache), None, None, None)[kind]
    cost = handler.cost(plan, handler.matrix(plan))
    handler.check(plan)
    handler.check_task(plan, cost, task, None)
    assert handler.reading_s(task) >= 0
    assert handler.nothing(task, os.urandom).values.size == task.asks.shape().length
    assert not {HEAVY} & sys.modules.keys(), (how, {HEAVY} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("takes", [0.0, 3.0, 9.9])
def test_how_long_reading_takes_is_not_seen(takes: float, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the time that the owner's policy waits."""
    asked = training("plain", world, np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32))
    text, clocks, real = world.text("the word", trains=True), [], MappedSentences.padded
    init = Clock.__init__

    def kept(self: Clock, *given: Any, **named: Any) -> None:
        init(self, *given, **named)
        clocks.append(self)

    def slow(self: Any, *given: Any) -> Any:
        clocks[-1].now += takes
        return real(self, *given)

    monkeypatch.setattr(Clock, "__init__", kept)
    monkeypatch.setattr(MappedSentences, "padded", slow)
    assert world.trace(asked, text).requests[-1][0] == pytest.approx(10.0)
