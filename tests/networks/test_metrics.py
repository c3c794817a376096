"""Accuracy and cross-entropy against the slow reference that sorts all suggestions of every word."""

import json
import math
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks.small_cifg import BATCH, SMALL, Sentences, batches, filled, lively, value_and_gradient
from tests.support.keyboard.counting import counted, nats, whole
from tests.support.networks import numpy_model as twin

from tacit.networks.cifg.network import CifgParameters
from tacit.networks.language_model import count
from tacit.networks.metrics import ALL_TOKENS, METRICS, Counts, Metric
from tacit.text.vocabulary import BOS, EOS, OOV

counting = {
    (tied, ends): jax.jit(partial(count, SMALL[tied], ends=ends)) for tied in (False, True) for ends in (False, True)
}
choices = pytest.mark.parametrize("ends", [False, True], ids=["words", "words and ends"])


def with_bias(model: CifgParameters, bias: list[float]) -> CifgParameters:
    """A model whose logits are `bias`, whatever was typed."""
    silent = model._replace(projection=jnp.zeros_like(model.projection))
    return silent._replace(output_bias=jnp.array(bias, jnp.float32))


@choices
@given(sentences=batches(), tied=st.booleans(), seed=st.integers(0, 1000))
def test_counts_are_the_twins(ends: bool, sentences: Sentences, tied: bool, seed: int) -> None:
    model = lively(SMALL[tied], seed)
    fast = counting[tied, ends](model, sentences).host()
    *slow, slow_nats = twin.counts(twin.of(model), sentences, ends=ends)
    assert whole(fast) == tuple(slow)
    assert nats(fast) == pytest.approx(slow_nats, rel=2e-5, abs=1e-6)


@choices
@given(
    bias=st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=11, max_size=11),
    sentences=batches(),
)
def test_ties_go_to_the_smaller_id(ends: bool, bias: list[float], sentences: Sentences) -> None:
    model = with_bias(lively(SMALL[False]), bias)
    fast = counting[False, ends](model, sentences).host()
    assert whole(fast) == twin.counts(twin.of(model), sentences, ends=ends)[:-1]


def test_what_never_counts() -> None:
    """Padding, beginnings and unknown words are no targets; ends only if asked for."""
    sentences = filled([BOS, OOV, OOV, EOS], [BOS, BOS, EOS])
    counts = counting[False, False](lively(SMALL[False]), sentences).host()
    assert counts == counted(words=2, oov=2, ends=2)
    assert counts.value("oov_rate") == 1.0
    assert math.isnan(counts.value("top1_accuracy")) and counts.value(ALL_TOKENS) == 0.0
    assert counting[False, True](lively(SMALL[False]), sentences).predicted == 2
    assert counting[False, False](lively(SMALL[False]), filled()).host() == counted()


def test_special_tokens_are_never_suggested() -> None:
    """However likely the model thinks them, a phone cannot show them; the end competes only if asked to."""
    specials_first = with_bias(lively(SMALL[False]), [9, 9, 9, 9, 1, 2, 3, 0, 0, 0, 0])
    sentence = filled([BOS, 6, 5, 4, 7, EOS])
    words = counting[False, False](specials_first, sentence).host()
    assert whole(words)[3:] == (4, 1, 3, 1), "of all tokens the end is first, and right once"
    ends = counting[False, True](specials_first, sentence).host()
    assert whole(ends)[3:] == (5, 1, 3, 1)  # EOS first, then 6 and 5
    # From the full softmax: what the special tokens took is lost.
    normalizer = math.log(sum(math.exp(score) for score in [9, 9, 9, 9, 1, 2, 3, 0, 0, 0, 0]))
    assert nats(words) == pytest.approx(4 * normalizer - 6, rel=1e-5)
    assert words.value("cross_entropy") == pytest.approx(nats(words) / 4)


def test_all_tokens_are_words_unknown_ones_and_ends() -> None:
    """As paper 5 counts; padding is never right, however likely."""
    end_first = with_bias(lively(SMALL[False]), [9, 9, 5, 4, 1, 2, 3, 0, 0, 0, 0])
    counts = counting[False, False](end_first, filled([BOS, 6, OOV, EOS], [BOS, EOS], [BOS, 5, 4, 7])).host()
    assert (counts.words, counts.ends, counts.sums[ALL_TOKENS]) == (5, 2, 2)
    assert counts.value(ALL_TOKENS) == 2 / 7
    unknown_first = with_bias(lively(SMALL[False]), [9, 9, 4, 4.5, 1, 2, 3, 0, 0, 0, 0])
    assert counting[False, False](unknown_first, filled([BOS, 6, OOV, EOS])).host().sums[ALL_TOKENS] == 1


def test_counts_add_up() -> None:
    model = lively(SMALL[False])
    apart = sum((counting[False, False](model, filled(row.tolist())).host() for row in BATCH), start=Counts())
    together = counting[False, False](model, BATCH).host()
    assert whole(apart) == whole(together)
    assert nats(apart) == pytest.approx(nats(together), rel=1e-6)
    assert together.words == 6
    assert together.value("oov_rate") == pytest.approx(1 / 6)
    top3 = together.value("top3_accuracy")
    assert top3 == together.sums["top3_accuracy"] / together.predicted >= together.value("top1_accuracy")


def test_sums_of_many_batches_do_not_overflow() -> None:
    most = jnp.int32(2**31 - 1)
    many = Counts(most, most, most, {"top1_accuracy": most, "cross_entropy": jnp.float32(2**24)}).host()
    twice = many + many + counted(nats=1.0)
    assert twice.words == twice.sums["top1_accuracy"] == 2**32 - 2
    assert nats(twice) == 2**25 + 1


def test_a_row_of_json_says_it_all() -> None:
    counts = counted(words=9, oov=1, ends=2, predicted=8, top1=3, top3=5, nats=math.inf)
    assert Counts.from_row(json.loads(json.dumps(counts.to_row(), allow_nan=False))) == counts


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.title)
def test_a_metric_says_which_way_is_better_and_where_its_changes_are_cut(metric: Metric) -> None:
    assert metric.better in (1, -1, 0) and metric.gain(2.0, 3.0) == metric.better
    assert metric.gain(1.0, metric.worst) < 0 or not metric.better
    first, last, per_unit = metric.changes
    assert first < 0 < last and per_unit > 0


def test_cross_entropy_of_known_words_is_the_training_loss() -> None:
    """Where nothing is excluded, metric and loss are one number."""
    model, sentence = lively(SMALL[True]), filled([BOS, 4, 8, 10, EOS])
    counts = counting[True, True](model, sentence).host()
    assert counts.value("cross_entropy") == pytest.approx(float(value_and_gradient(model, sentence)[0]), rel=1e-6)
