"""The packed step against the gradient of the padded loss and against the NumPy twin of both."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.networks.small_cifg import SMALL, Sentences, both, lively
from tests.support.networks import numpy_model as twin

from tacit.compute.precision import has_bfloat16_units
from tacit.networks.cifg import packed
from tacit.networks.cifg.loss import loss
from tacit.networks.cifg.network import Cifg, CifgParameters
from tacit.text.vocabulary import BOS, EOS, OOV, PAD

RATE = 0.5
WORDS, COUNT = 10, 7  # 70 rows: three compiled sizes
descend = jax.jit(lambda model, sentences: packed.descend(model, sentences, RATE))


@jax.jit
def padded_step(model: CifgParameters, sentences: jax.Array) -> tuple[CifgParameters, jax.Array]:
    value, gradient = jax.value_and_grad(loss)(model, sentences)
    return jax.tree.map(lambda p, g: p - RATE * g, model, gradient), value


gradient = jax.jit(packed.gradient)
padded_gradient = jax.jit(jax.value_and_grad(loss))


def batch_of(lengths: list[int], seed: int = 0, vocabulary: int = 11) -> Sentences:
    """Sentences with so many words to predict; none at all for 0."""
    random = np.random.default_rng(seed)
    rows = np.zeros((len(lengths), WORDS + 1), np.int32)
    for row, length in zip(rows, lengths, strict=True):
        if length:
            row[: length + 1] = [BOS, *random.integers(OOV, vocabulary, length - 1), EOS]
    return rows


@both
@settings(max_examples=40)
@given(lengths=st.lists(st.integers(0, WORDS), min_size=COUNT, max_size=COUNT), seed=st.integers(0, 1000))
def test_a_packed_step_is_the_padded_one_and_the_twins(tied: bool, lengths: list[int], seed: int) -> None:
    model, sentences = lively(SMALL[tied], seed), batch_of(lengths, seed)
    stepped, value = descend(model, sentences)
    padded, padded_value = padded_step(model, sentences)
    assert float(value) == pytest.approx(float(padded_value), rel=2e-5, abs=1e-6)
    slopes = twin.gradient(twin.of(model), sentences)
    for name, start in twin.of(model)._asdict().items():
        np.testing.assert_allclose(getattr(stepped, name), getattr(padded, name), atol=5e-6, err_msg=name)
        np.testing.assert_allclose(getattr(stepped, name), start - RATE * getattr(slopes, name), atol=5e-6)


@both
@settings(max_examples=40)
@given(lengths=st.lists(st.integers(0, WORDS), min_size=COUNT, max_size=COUNT), seed=st.integers(0, 1000))
def test_a_packed_gradient_is_the_padded_one_and_the_twins(tied: bool, lengths: list[int], seed: int) -> None:
    model, sentences = lively(SMALL[tied], seed), batch_of(lengths, seed)
    value, slopes = gradient(model, sentences)
    padded_value, padded = padded_gradient(model, sentences)
    assert float(value) == pytest.approx(float(padded_value), rel=2e-5, abs=1e-6)
    for name, slow in twin.gradient(twin.of(model), sentences)._asdict().items():
        np.testing.assert_allclose(getattr(slopes, name), getattr(padded, name), atol=5e-6, err_msg=name)
        np.testing.assert_allclose(getattr(slopes, name), slow, atol=5e-6, err_msg=name)


@pytest.mark.parametrize("lengths", [[1, 0, 0, 0, 0, 0, 0], [10] * 7, [5] * 7, [10, 0, 10, 0, 10, 2, 0], [9] * 7])
def test_every_compiled_size_gives_the_same_step(lengths: list[int]) -> None:
    """Up to 32 rows, up to 64, all 70; full and empty sentences; a length that ends on a size."""
    model, sentences = lively(SMALL[False]), batch_of(lengths)
    for fast, slow in zip(descend(model, sentences)[0], padded_step(model, sentences)[0], strict=True):
        np.testing.assert_allclose(fast, slow, atol=5e-6)


def test_a_step_over_nothing_moves_nothing() -> None:
    model = lively(SMALL[False])
    stepped, value = descend(model, batch_of([0] * 7))
    assert float(value) == 0.0
    assert all(np.array_equal(a, b) for a, b in zip(stepped, model, strict=True))


def test_embeddings_that_no_word_touches_keep_their_bits() -> None:
    model = lively(Cifg(vocabulary=200, embedding=3, units=5))
    sentences = batch_of([6, 3, 1, 0, 9, 2, 2], vocabulary=30)
    stepped, _ = descend(model, sentences)
    touched = np.zeros(200, bool)
    touched[sentences[:, :-1][sentences[:, 1:] != PAD]] = True
    changed = (np.asarray(stepped.embedding) != np.asarray(model.embedding)).any(axis=1)
    assert (changed == touched).all() and 5 < touched.sum() < 30


def test_extreme_scores_stay_finite_and_a_broken_model_is_seen() -> None:
    model = lively(SMALL[False])
    shouting = model._replace(output_bias=model.output_bias.at[7].set(1e4))
    stepped, value = descend(shouting, batch_of([3, 2, 0, 0, 1, 1, 1]))
    assert np.isfinite(float(value)) and all(np.isfinite(leaf).all() for leaf in stepped)
    broken = model._replace(projection=model.projection.at[0, 0].set(jnp.nan))
    assert np.isnan(descend(broken, batch_of([3, 2, 0, 0, 1, 1, 1]))[1])


@pytest.mark.skipif(not has_bfloat16_units(), reason="this processor has no bfloat16 units")
def test_bfloat16_moves_the_step_by_its_rounding_and_float32_by_far_less() -> None:
    """bfloat16 keeps 8 bits: relative rounding errors of up to 2^-9 each, of which a step averages many."""
    model = Cifg(vocabulary=300, embedding=16, units=32).init(jax.random.key(1))
    sentences = batch_of([10, 8, 8, 5, 3, 1, 10], vocabulary=300)
    exact, _ = padded_step(model, sentences)

    def off(precision: str) -> float:
        stepped, _ = jax.jit(lambda m, s: packed.descend(m, s, RATE, precision=precision))(model, sentences)
        wrong = sum(float(jnp.sum((a - b) ** 2)) for a, b in zip(stepped, exact, strict=True))
        return (wrong / sum(float(jnp.sum((a - b) ** 2)) for a, b in zip(exact, model, strict=True))) ** 0.5

    assert off("float32") < 2e-5 < 3e-4 < off("bfloat16") < 1e-2


def test_sizes_are_few_and_end_with_all_rows() -> None:
    assert packed._sizes(320)[-1] == 320 and len(packed._sizes(320)) <= packed.SIZES
    assert packed._sizes(24) == [24]
    assert packed._sizes(70) == [32, 64, 70]
