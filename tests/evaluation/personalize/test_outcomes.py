"""One device against its slow reference, and a population of devices: what is counted, what diverges, who is left
out.
"""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.keyboard.counting import nats, whole
from tests.support.networks import numpy_model as twin

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache, ClientText, VocabularyRecord, build_cache
from tacit.data.manifest import NO_TIME
from tacit.data.splits import Parts, Unsplit
from tacit.errors import InputError
from tacit.evaluation.personalize.fine_tuning import Grid, fine_tune, steps_of
from tacit.evaluation.personalize.outcome_rows import outcome_of, row_of, skipped_of
from tacit.evaluation.personalize.outcomes import (
    NOTHING_KNOWN,
    ClientOutcome,
    FineTuning,
    Paired,
    SkippedClient,
    TemporalSplit,
)
from tacit.evaluation.personalize.population import personalize_clients
from tacit.keyboard.ranking import rank
from tacit.keyboard.user_cache import ALONE, Mix, UserCache
from tacit.networks.cifg import loss as cifg_loss
from tacit.networks.cifg import on_device_loops as compiled
from tacit.networks.cifg.network import Cifg, CifgParameters
from tacit.networks.cifg.on_device import CifgOnDevice, batches_of
from tacit.networks.cifg.on_device_loops import BLOCK, WIDE, Weights
from tacit.networks.language_model import count
from tacit.networks.metrics import TOP1, Counts, counts_of
from tacit.text.vocabulary import BOS, EOS, OOV, PAD

Sentences = NDArray[np.int32]
WORDS = 6
VOCABULARY = 11
both = pytest.mark.parametrize("tied", [False, True], ids=["separate", "tied"])


def lively(settings: Cifg, seed: int = 0) -> CifgParameters:
    """Parameters large enough that gates saturate now and then, biases that are not zero."""
    random = np.random.default_rng(seed)
    v, e, h = settings.vocabulary, settings.embedding, settings.units
    shapes = ((v, e), (2 * e, 3 * h), (3 * h,), (h, e), (e, 0 if settings.tied else v), (v,))
    return CifgParameters(*(jnp.asarray(random.normal(0, 0.6, shape), jnp.float32) for shape in shapes))


SMALL = Cifg(vocabulary=VOCABULARY, embedding=3, units=5, tied=True)


def small(tied: bool, seed: int = 0, vocabulary: int = VOCABULARY) -> CifgParameters:
    return lively(Cifg(vocabulary=vocabulary, embedding=3, units=5, tied=tied), seed)


@st.composite
def texts(draw: st.DrawFn) -> Sentences:
    """One to eight sentences, padded; some of one word, some cut before their end."""
    words = st.lists(st.sampled_from([OOV, *range(4, VOCABULARY)]), max_size=WORDS + 2)
    sentences = [[BOS, *draw(words), EOS][: WORDS + 1] for _ in range(draw(st.integers(1, 8)))]
    return np.array([ids + [PAD] * (WORDS + 1 - len(ids)) for ids in sentences], np.int32)


# -- one device ------------------------------------------------------------------------------------------------------


def twin_fine_tune(model: CifgParameters, sentences: Sentences, strategy: FineTuning) -> tuple[twin.Model, int, float]:
    """SGD as the paper says it: (the parameters, tokens seen, nats per token), float64, sentence by sentence."""
    trained = {
        "all": twin.Model._fields,
        "output": ("output", "output_bias") if model.output.size else ("embedding", "output_bias"),
        "biases": ("bias", "output_bias"),
        "recurrent": ("kernel", "bias", "projection"),
        "embeddings": ("embedding", "output") if model.output.size else ("embedding",),
    }[strategy.layers]
    start = theta = twin.of(model)
    seen, nats = 0, 0.0
    for _ in range(strategy.epochs):
        for first in range(0, len(sentences), strategy.batch_size):
            if seen >= strategy.max_tokens:
                break
            batch = sentences[first : first + strategy.batch_size]
            tokens = int((batch[:, 1:] != PAD).sum())
            nats += tokens * twin.loss(theta, batch)
            seen += tokens
            slope = twin.gradient(theta, batch)
            moved = {
                name: old - strategy.learning_rate * (gradient + strategy.proximal * (old - origin))
                for name, old, gradient, origin in zip(theta._fields, theta, slope, start, strict=True)
                if name in trained
            }
            theta = theta._replace(**moved)
    return theta, seen, nats / seen


def as_twin(weights: Weights, like: CifgParameters) -> twin.Model:
    output = weights.table.T if like.output.size else np.zeros_like(like.output)
    return twin.Model(weights.embedding, weights.kernel, weights.bias, weights.projection, output, weights.output_bias)


def network_of(model: CifgParameters) -> Cifg:
    vocabulary, width = model.embedding.shape
    return Cifg(vocabulary=vocabulary, embedding=width, units=len(model.projection), tied=not model.output.size)


def tune(model: CifgParameters, sentences: Sentences, strategy: FineTuning) -> Any:
    start = CifgOnDevice.from_parameters(model)
    batches = start.batches(sentences, strategy.batch_size)
    stops = [steps_of(strategy, batches)]
    (made,) = fine_tune(start, batches, stops, strategy.step(network_of(model)), start.memory(batches))
    return made


def counts_by(held: CifgOnDevice, sentences: Sentences, size: int) -> Counts:
    nothing = UserCache.from_sentences(sentences[:0], held.vocabulary)
    return counts_of(rank(held, held.batches(sentences, size), nothing, [ALONE])[0], np).host()


def assert_same(found: Counts, slow: tuple[float, ...], rel: float) -> None:
    """The twin's numbers: (words, oov, ends, predicted, top1, top3, first, nats)."""
    assert whole(found) == slow[:-1]
    assert nats(found) == pytest.approx(slow[-1], rel=rel, abs=1e-5)


ways = st.builds(
    FineTuning,
    batch_size=st.integers(1, 5),
    learning_rate=st.sampled_from([0.05, 0.3]),
    max_tokens=st.sampled_from([1, 9, 10_000]),
    epochs=st.integers(1, 3),
    layers=st.sampled_from(["all", "output", "biases", "recurrent", "embeddings"]),
    proximal=st.sampled_from([0.0, 0.5]),
)


@both
@given(sentences=texts(), strategy=ways, seed=st.integers(0, 99))
def test_fine_tuning_is_the_twins(tied: bool, sentences: Sentences, strategy: FineTuning, seed: int) -> None:
    model = small(tied, seed)
    made = tune(model, sentences, strategy)
    theta, seen, loss = twin_fine_tune(model, sentences, strategy)
    assert made.tokens == seen
    assert made.loss == pytest.approx(loss, rel=1e-4)
    assert not made.diverged
    for name, slow in theta._asdict().items():
        np.testing.assert_allclose(
            getattr(as_twin(made.model.weights, model), name), slow, rtol=2e-4, atol=2e-5, err_msg=name
        )


@both
@given(sentences=texts(), seed=st.integers(0, 99))
def test_ranks_and_counts_are_the_twins(tied: bool, sentences: Sentences, seed: int) -> None:
    model = small(tied, seed)
    slow = twin.counts(twin.of(model), sentences, ends=False)
    assert_same(counts_by(CifgOnDevice.from_parameters(model), sentences, 4), slow, rel=1e-4)


@both
def test_a_vocabulary_of_several_blocks_and_a_wide_batch_are_the_twins(tied: bool) -> None:
    vocabulary = 2 * BLOCK + 57
    model = lively(Cifg(vocabulary=vocabulary, embedding=9, units=14, tied=tied))
    random = np.random.default_rng(1)
    sentences = np.zeros((WIDE + 30, 9), np.int32)  # wide, then narrow as sentences end
    for sentence in sentences:
        length = int(random.integers(2, 10))
        sentence[:length] = [BOS, *random.integers(OOV, vocabulary, length - 2), EOS]
    slow = twin.counts(twin.of(model), sentences, ends=False)
    assert_same(counts_by(CifgOnDevice.from_parameters(model), sentences, len(sentences)), slow, rel=1e-5)
    strategy = FineTuning(batch_size=len(sentences), learning_rate=0.5)
    made = tune(model, sentences, strategy)
    theta, _, loss = twin_fine_tune(model, sentences, strategy)
    assert made.loss == pytest.approx(loss, rel=1e-5)
    for name, leaf in theta._asdict().items():
        fast_leaf = getattr(as_twin(made.model.weights, model), name)
        np.testing.assert_allclose(fast_leaf, leaf, rtol=1e-4, atol=2e-6, err_msg=name)


def test_one_step_is_that_of_the_network_that_is_trained_federated() -> None:
    model = small(tied=True)
    sentences = np.array([[BOS, 5, OOV, 7, EOS], [BOS, 8, EOS, PAD, PAD]], np.int32)
    made = tune(model, sentences, FineTuning(batch_size=2, learning_rate=0.5))
    slope = jax.jit(jax.grad(cifg_loss.loss))(model, jnp.asarray(sentences))
    moved_model = jax.tree.map(lambda p, g: p - 0.5 * g, model, slope)
    moved = Weights.from_parameters(moved_model)
    for name, leaf in moved._asdict().items():
        np.testing.assert_allclose(getattr(made.model.weights, name), leaf, rtol=1e-4, atol=2e-6, err_msg=name)
    padded = jax.jit(partial(count, SMALL))(moved_model, jnp.asarray(sentences)).host()
    assert whole(counts_by(made.model, sentences, 2)) == whole(padded)


def test_the_global_model_stays_as_it_is() -> None:
    start, how = CifgOnDevice.from_parameters(small(tied=True)), FineTuning(proximal=0.1)
    kept = start.copy()
    batches = start.batches(np.array([[BOS, 5, 6, EOS]], np.int32), 5)
    made = next(fine_tune(start, batches, [1], how.step(SMALL), start.memory(batches))).model
    assert isinstance(made, CifgOnDevice)
    assert all(np.array_equal(one, other) for one, other in zip(start.weights, kept.weights, strict=True))
    assert made.weights.tied and not np.array_equal(made.weights.table, start.weights.table)


@given(x=st.floats(-32.0, 40.0, width=32))
def test_exp_is_numpys(x: float) -> None:
    assert float(compiled.exp(np.float32(x))) == pytest.approx(math.exp(np.float32(x)), rel=3e-7)


def test_exp_keeps_what_is_not_a_number_and_leaves_out_the_slow_ones() -> None:
    assert math.isnan(compiled.exp(np.float32("nan")))
    assert compiled.exp(np.float32("-inf")) == compiled.exp(np.float32(-33.0)) == 0.0
    assert compiled.exp(np.float32("inf")) == pytest.approx(math.exp(40.0), rel=3e-7)
    tiny = np.array([1e-31, -1e-31, 1e-29, np.nan], np.float32)
    np.testing.assert_array_equal([compiled.settled(x) for x in tiny], [0.0, 0.0, tiny[2], np.nan])


def test_batches_hold_every_word_once_and_no_padding() -> None:
    sentences = np.array([[BOS, 5, EOS, 0], [BOS, 6, 7, EOS], [BOS, EOS, 0, 0]], np.int32)
    first, second = batches_of(sentences, 2)
    assert first.ids.tolist() == [BOS, BOS, 6, 5, 7]
    assert first.targets.tolist() == [6, 5, 7, EOS, EOS]
    assert first.active.tolist() == [2, 2, 1]
    assert (second.ids.tolist(), second.targets.tolist(), second.active.tolist()) == ([BOS], [EOS], [1])


def test_a_rate_beyond_all_bounds_is_a_loss_and_no_crash() -> None:
    sentences = np.array([[BOS, 5, 6, 7, EOS], [BOS, 8, 9, 4, EOS]] * 3, np.int32)
    made = tune(small(tied=True), sentences, FineTuning(batch_size=1, learning_rate=1e30))
    assert made.diverged and made.loss == math.inf
    assert made.tokens < 24, "it stops where it has diverged"


# -- a population ----------------------------------------------------------------------------------------------------

GRID = (
    FineTuning(batch_size=2, learning_rate=0.2),
    FineTuning(batch_size=3, learning_rate=0.05, epochs=2),
    FineTuning(batch_size=2, learning_rate=1e30),
)
SPLIT = TemporalSplit(gate=0.25)


class Diaries:
    """Clients whose text has times: shuffled, tied, unknown, or too little of it."""

    description, expected_clients = "diaries of a test", 7

    def __init__(self) -> None:
        self.left_out: dict[str, int] = {}

    def clients(self) -> Any:
        random = np.random.default_rng(4)
        for number, sentences in enumerate((30, 25, 12)):
            times = np.sort(random.integers(0, sentences // 2, sentences))
            times[:number] = NO_TIME  # 0, 1, 2 sentences that nobody knows the time of
            yield self._client(f"full-{number}", self._texts(random, sentences), times)
        yield self._client("undated", self._texts(random, 9), np.full(9, NO_TIME))
        yield self._client("one-day", self._texts(random, 9), np.full(9, 7))
        yield self._client("short", self._texts(random, 2), np.arange(2))
        yield self._client("foreign", [*self._texts(random, 7), "unheard", "unheard unheard"], np.arange(9))

    def _client(self, name: str, texts: list[str], times: NDArray[np.int64]) -> ClientText:
        return ClientText(client_id=name, texts=texts, timestamps=times.astype(np.int64), split="test")

    def _texts(self, random: np.random.Generator, sentences: int) -> list[str]:
        return [
            " ".join(f"w{w}" for w in random.integers(4, VOCABULARY + 1, random.integers(1, 9)))
            for _ in range(sentences)
        ]


class Encoded:
    def __init__(self, rows: list[list[int]]) -> None:
        self.ids = np.array([id for row in rows for id in row], np.int32)
        self.lengths = np.array([len(row) for row in rows], np.int32)
        self.text_of = np.arange(len(rows), dtype=np.int32)


def encode(texts: Any) -> Encoded:
    known = {f"w{id}": id for id in range(4, VOCABULARY)}
    return Encoded([[BOS, *(known.get(word, OOV) for word in text.split()), EOS] for text in texts])


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    record = VocabularyRecord(
        size=VOCABULARY, sha256="0" * 64, lowercase=False, kind="word list", description="tiny", oov_id=OOV
    )
    path = tmp_path_factory.mktemp("diaries") / "cache"
    return build_cache(Diaries(), encode, path, vocabulary=record, vocabulary_json="{}", tokenizer="words")


def run(cache: Cache, *, workers: int = 1, model: CifgParameters | None = None, **changes: Any) -> Any:
    values: dict[str, Any] = {"strategies": GRID, "split": SPLIT, "words": WORDS, **changes}
    model = small(tied=True) if model is None else model
    cores = Cores(Hardware(workers=workers))
    return personalize_clients(network_of(model), model, cache, cache.clients("test"), **values, cores=cores)


def test_a_device_counts_the_global_and_its_own_model_as_the_twin_does(cache: Cache) -> None:
    """One client, each sound strategy, from the cache to the counts, with nothing shared but the split."""
    model = small(tied=True)
    outcome = run(cache).outcomes[2]
    parts = SPLIT.parts(cache.timestamps(outcome.client))
    assert isinstance(parts, Parts) and outcome.undated == parts.undated == 2
    order = np.random.default_rng(outcome.client).permutation(parts.train)
    train = cache.padded(outcome.client, order, WORDS + 1)
    assert outcome.train_tokens == (train[:, 1:] != PAD).sum()
    for rows, comparison in ((parts.gate, outcome.gate), (parts.test, outcome.test)):
        text = cache.padded(outcome.client, rows, WORDS + 1)
        assert_same(comparison.baseline, twin.counts(twin.of(model), text, ends=False), rel=1e-4)
        for number, strategy in enumerate(GRID[:2]):
            theta, seen, loss = twin_fine_tune(model, train, strategy)
            assert_same(comparison.personalised[number], twin.counts(theta, text, ends=False), rel=1e-3)
            assert outcome.tokens_seen[number] == seen
            assert outcome.training_loss[number] == pytest.approx(loss, rel=1e-4)


def test_pairs_are_of_the_same_words(cache: Cache) -> None:
    for outcome in run(cache).outcomes:
        for comparison in (outcome.test, outcome.gate):
            for own, paired in zip(comparison.personalised, comparison.paired, strict=True):
                assert sum(paired) == comparison.baseline.predicted == own.predicted
                assert paired.both + paired.only_baseline == comparison.baseline.sums[TOP1]
                assert paired.both + paired.only_personalised == own.sums[TOP1]


def test_who_diverges_has_nothing_right_and_is_flagged(cache: Cache) -> None:
    for outcome in run(cache).outcomes:
        assert outcome.diverged == (False, False, True)
        lost = outcome.test.personalised[2]
        assert whole(lost)[4:] == (0, 0, 0) and nats(lost) == math.inf
        assert lost.predicted == outcome.test.baseline.predicted
        assert outcome.test.paired[2] == Paired(
            only_baseline=outcome.test.baseline.sums[TOP1],
            neither=outcome.test.baseline.predicted - outcome.test.baseline.sums[TOP1],
        )


def test_everybody_is_evaluated_or_left_out_for_a_reason(cache: Cache) -> None:
    outcome = run(cache)
    assert [each.client for each in outcome.outcomes] == [0, 1, 2]
    assert {each.client: each.reason for each in outcome.skipped} == {
        3: Unsplit.NO_TIME,
        4: Unsplit.ONE_TIME,
        5: Unsplit.NO_GATE,
        6: NOTHING_KNOWN,
    }
    assert sum(outcome.skipped_by_reason().values()) == 4


def test_without_a_gate_there_is_none(cache: Cache) -> None:
    outcome = run(cache, split=TemporalSplit())
    assert [each.client for each in outcome.outcomes] == [0, 1, 2, 5]
    assert all(each.gate is None for each in outcome.outcomes)


def test_workers_groups_and_company_change_nothing(cache: Cache) -> None:
    seen: list[ClientOutcome | SkippedClient] = []
    one, two = run(cache), run(cache, workers=2, progress=seen.append)
    assert one == two
    assert sorted(each.client for each in seen) == list(range(7))
    alone = run(cache, strategies=GRID[1:2])
    assert [each.test.personalised[0] for each in alone.outcomes] == [
        each.test.personalised[1] for each in one.outcomes
    ]


def test_rows_survive_json(cache: Cache) -> None:
    found = run(cache)
    for outcome in found.outcomes:
        text = json.dumps(row_of(outcome), allow_nan=False)
        assert outcome_of(json.loads(text)) == outcome
    for skipped in found.skipped:
        assert skipped_of(json.loads(json.dumps(row_of(skipped)))) == skipped


def test_learning_its_owners_text_helps(cache: Cache) -> None:
    """Trained on a long epoch of the very text, the loss falls; trained uphill, it would rise."""
    client = cache.padded(0, np.arange(30), WORDS + 1)
    model = small(tied=False)
    before = tune(model, client, FineTuning(batch_size=5, learning_rate=1e-6))
    after = tune(model, client, FineTuning(batch_size=5, learning_rate=0.3, epochs=20, max_tokens=10**6))
    assert after.loss < 0.9 * before.loss


def test_bad_input_names_the_way_out(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"knows 12 words and the cache {VOCABULARY}"):
        run(cache, model=small(tied=True, vocabulary=12))
    with pytest.raises(InputError, match="not finite"):
        run(cache, model=small(tied=True)._replace(bias=jnp.full(15, jnp.nan)))
    with pytest.raises(InputError, match="0 strategies"):
        run(cache, strategies=())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"batch_size": 0}, "batch_size=0 must be at least 1"),
        ({"learning_rate": float("nan")}, "learning_rate=nan"),
        ({"proximal": -1.0}, "proximal=-1.0"),
        ({"epochs": 0}, "epochs=0 must be at least 1; 0, which is no SGD, only with a cache"),
        ({"epochs": -1, "bigram": 0.1}, "epochs=-1 must be at least 1"),
        ({"unigram": -0.1}, "the weights of caches are 0 or more"),
        ({"unigram": 0.5, "bigram": 0.5}, "together less than 1"),
        ({"bigram": float("nan")}, "bigram=nan"),
    ],
)
def test_a_wrong_strategy_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        FineTuning(**wrong)


def test_layers_are_the_networks(cache: Cache) -> None:
    with pytest.raises(InputError, match="layers='some' is unknown; it is one of all, output, biases"):
        run(cache, strategies=(FineTuning(layers="some"),))


def test_a_strategy_is_named_as_the_paper_names_it() -> None:
    assert str(FineTuning()) == "B=5, L=0.1"
    assert str(FineTuning(layers="biases", proximal=0.01)) == "B=5, L=0.1, biases only, mu=0.01"
    assert str(FineTuning(epochs=4, max_tokens=10_000)) == "B=5, L=0.1, E=4, T=10000"
    assert str(FineTuning(epochs=0, unigram=0.05, bigram=0.1)) == "unigram cache 0.05, bigram cache 0.1"
    assert str(FineTuning(bigram=0.1)) == "B=5, L=0.1, bigram cache 0.1"


def test_a_grid_is_sgd_then_caches_then_both() -> None:
    found = Grid(
        batch_size=(5,),
        learning_rate=(0.1, 1.0),
        epochs=(1, 2),
        unigram=(0.1,),
        bigram=(0.1, 0.2),
        cache_with_sgd=True,
        proximal=0.5,
    ).strategies()
    assert len(found) == len(set(found)) == len(set(map(str, found))) == 4 + 3 + 4 * 3
    assert [str(each) for each in found[4:7]] == ["unigram cache 0.1", "bigram cache 0.1", "bigram cache 0.2"]
    assert all(each.proximal == 0.5 for each in (*found[:4], *found[7:]))
    assert Grid(batch_size=(5, 10), learning_rate=(0.1,)).strategies() == (FineTuning(), FineTuning(batch_size=10))


@given(a=st.floats(1e-9, 1e9), b=st.floats(1e-9, 1e9))
def test_strategies_that_differ_have_different_names(a: float, b: float) -> None:
    for name in ("learning_rate", "proximal"):
        here, there = (str(FineTuning(**{name: number})) for number in (a, b))  # type: ignore[arg-type]
        assert (here == there) == (a == b)
    near = str(FineTuning(learning_rate=0.1000001))
    assert near == "B=5, L=0.1000001" and str(FineTuning(learning_rate=1.0)) == "B=5, L=1"


def test_epochs_without_end_stop_at_the_tokens() -> None:
    sentences = np.array([[BOS, 5, 6, 7, EOS]], np.int32)
    made = tune(small(tied=False), sentences, FineTuning(epochs=10**12, max_tokens=10))
    assert made.tokens == 12 and not made.diverged


def test_what_stops_later_is_one_training_that_goes_on(cache: Cache) -> None:
    """Epochs, tokens and caches together, each alone: the same outcome to the bit."""
    tried = Grid(
        batch_size=(2,),
        learning_rate=(0.2,),
        epochs=(1, 2, 3),
        max_tokens=(20, 10_000),
        unigram=(0.1,),
        bigram=(0.3,),
        cache_with_sgd=True,
    ).strategies()
    together = run(cache, strategies=tried)
    for at in (3, 7, 13):
        alone = run(cache, strategies=tried[at : at + 1])
        for one, other in zip(alone.outcomes, together.outcomes, strict=True):
            assert one.test.personalised[0] == other.test.personalised[at]
            assert one.gate.paired[0] == other.gate.paired[at]
            assert (one.tokens_seen[0], one.training_loss[0]) == (other.tokens_seen[at], other.training_loss[at])
    for outcome in together.outcomes:
        assert len({counts.sums["cross_entropy"] for counts in outcome.test.personalised}) > len(tried) / 2


def test_a_cache_alone_is_the_global_model_mixed(cache: Cache) -> None:
    """From the cache of clients to the counts; whoever repeats sentences is predicted better by far."""
    model, how = small(tied=True), FineTuning(epochs=0, unigram=0.1, bigram=0.2)
    for outcome in run(cache, strategies=(how,)).outcomes:
        parts = SPLIT.parts(cache.timestamps(outcome.client))
        assert isinstance(parts, Parts)
        order = np.random.default_rng(outcome.client).permutation(parts.train)
        start, test = CifgOnDevice.from_parameters(model), cache.padded(outcome.client, parts.test, WORDS + 1)
        own = UserCache.from_sentences(cache.padded(outcome.client, order, WORDS + 1), VOCABULARY)
        (words,) = rank(start, start.batches(test, 3), own, [Mix(0.1, 0.2)])
        found, expected = outcome.test.personalised[0], counts_of(words, np).host()
        assert whole(found) == whole(expected) and nats(found) == pytest.approx(nats(expected), rel=1e-5)
        assert (outcome.tokens_seen, outcome.training_loss, outcome.diverged) == ((0,), (0.0,), (False,))
