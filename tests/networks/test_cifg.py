"""The keyboard's network against its slow NumPy twin, and the twin against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks.small_cifg import BATCH, SMALL, Sentences, batches, both, filled, lively, value_and_gradient
from tests.support.networks import numpy_model as twin

from tacit.errors import InputError
from tacit.networks.cifg import loss as cifg_loss
from tacit.networks.cifg.network import Cifg
from tacit.networks.language_model import parameter_count
from tacit.text.vocabulary import BOS, EOS, OOV, PAD


@both
@given(sentences=batches(), seed=st.integers(0, 1000))
def test_loss_and_gradient_are_the_twins(tied: bool, sentences: Sentences, seed: int) -> None:
    model = lively(SMALL[tied], seed)
    value, gradient = value_and_gradient(model, sentences)
    assert float(value) == pytest.approx(twin.loss(twin.of(model), sentences), rel=2e-5, abs=1e-6)
    for name, slow in twin.gradient(twin.of(model), sentences)._asdict().items():
        np.testing.assert_allclose(getattr(gradient, name), slow, rtol=2e-4, atol=2e-6, err_msg=name)


def time_major(scores: jax.Array) -> jax.Array:
    """The twin's order: row t*B + s is word t of sentence s."""
    return scores.transpose(1, 0, 2).reshape(-1, scores.shape[-1])


@both
def test_logits_are_the_twins(tied: bool) -> None:
    model = lively(SMALL[tied])
    fast = jax.jit(SMALL[tied].logits)(model, BATCH[:, :-1])
    assert fast.shape == (4, 5, 11)
    assert fast.dtype == jnp.float32
    np.testing.assert_allclose(time_major(fast), twin.logits(twin.of(model), BATCH), rtol=1e-5, atol=1e-5)


@both
def test_the_twins_gradient_is_the_slope_of_its_loss(tied: bool) -> None:
    """Central differences in float64 for every parameter: error of order step**2."""
    model, step = twin.of(lively(SMALL[tied])), 1e-5
    for leaf, slope in zip(model, twin.gradient(model, BATCH), strict=True):
        for at in np.ndindex(leaf.shape):
            kept = leaf[at]
            leaf[at] = kept + step
            above = twin.loss(model, BATCH)
            leaf[at] = kept - step
            below = twin.loss(model, BATCH)
            leaf[at] = kept
            assert slope[at] == pytest.approx((above - below) / (2 * step), abs=1e-8)


@both
def test_a_batch_of_nothing_but_padding_teaches_nothing(tied: bool) -> None:
    value, gradient = value_and_gradient(lively(SMALL[tied]), filled())
    assert float(value) == 0.0
    assert all((np.asarray(leaf) == 0.0).all() for leaf in gradient)


@both
def test_padding_changes_neither_loss_nor_gradient(tied: bool) -> None:
    """Longer padding, and sentences of padding alone, are as if they were not there."""
    model = lively(SMALL[tied])
    padded = np.pad(BATCH, ((0, 3), (0, 4)), constant_values=PAD)
    value, gradient = value_and_gradient(model, BATCH)
    value_padded, gradient_padded = value_and_gradient(model, padded)
    assert float(value) == pytest.approx(float(value_padded), rel=1e-6)
    for leaf, leaf_padded in zip(gradient, gradient_padded, strict=True):
        np.testing.assert_allclose(leaf, leaf_padded, rtol=1e-5, atol=1e-7)


@both
def test_ends_and_unknown_words_are_learnt_from(tied: bool) -> None:
    """EOS and OOV count as targets, so one step down the gradient makes each more likely where it stood."""
    model = lively(SMALL[tied])
    for target in (EOS, OOV):
        sentence = filled([BOS, target])
        value, gradient = value_and_gradient(model, sentence)
        stepped = jax.tree.map(lambda leaf, slope: np.asarray(leaf) - 0.01 * np.asarray(slope), model, gradient)
        assert float(value_and_gradient(stepped, sentence)[0]) < float(value)


def test_extreme_scores_stay_finite() -> None:
    model = lively(SMALL[False])
    shouting = model._replace(output_bias=model.output_bias.at[7].set(1e4))
    value, gradient = value_and_gradient(shouting, BATCH)
    assert float(value) == pytest.approx(1e4, rel=1e-2)  # nobody typed word 7: each surprise is about 1e4 nats
    assert all(np.isfinite(leaf).all() for leaf in gradient)


# Ours exactly, by 2EV + V + (2E+1)*3H + HE with E=96, H=670. Papers 1 and 5 print 2.4, 4.4 and 6.4 M for
# vocabularies of about 10k, 20k and 30k words and 1.4 M for tied embeddings. Exactly 20,000 and 30,000 ids
# give 4.31 and 6.24, which do not round to the printed 4.4 and 6.4: those take about 20,500 and 30,800 ids.
@pytest.mark.parametrize(
    ("vocabulary", "tied", "parameters"),
    [
        (10_000, False, 2_382_250),
        (10_000, True, 1_422_250),
        (20_000, False, 4_312_250),
        (30_000, False, 6_242_250),
    ],
)
def test_parameter_counts(vocabulary: int, tied: bool, parameters: int) -> None:
    settings = Cifg(vocabulary=vocabulary, tied=tied)
    assert parameter_count(settings) == parameters


@both
def test_fresh_parameters(tied: bool) -> None:
    settings = Cifg(vocabulary=500, tied=tied)
    model = settings.init(jax.random.key(3))
    assert all(leaf.dtype == jnp.float32 for leaf in model)
    assert model.output.shape == ((96, 0) if tied else (96, 500))
    kernel, projection = (6 / (2 * 96 + 670)) ** 0.5, (6 / (670 + 96)) ** 0.5
    limits = {"embedding": 0.1 if tied else 1.0, "kernel": kernel, "projection": projection}
    for name, limit in (limits if tied else limits | {"output": 0.1}).items():
        leaf = np.asarray(getattr(model, name))
        assert np.abs(leaf).max() == pytest.approx(limit, rel=1e-3)  # uniform: the extremes are reached
        assert np.abs(leaf).max() <= limit
        assert leaf.std() == pytest.approx(limit / 3**0.5, rel=0.02)
        assert abs(leaf.mean()) < 5 * leaf.std() / leaf.size**0.5
    assert (np.asarray(model.bias[: settings.units]) == -1).all()  # the input gate: the cell keeps what it knew
    assert not np.asarray(model.bias[settings.units :]).any()
    assert not np.asarray(model.output_bias).any()


def test_a_fresh_model_is_undecided_and_its_key_decides_it() -> None:
    settings = Cifg(vocabulary=1000)
    model, same, other = (settings.init(jax.random.key(seed)) for seed in (3, 3, 4))
    sentences = np.random.default_rng(0).integers(4, 1000, (8, 11)).astype(np.int32)
    assert float(jax.jit(cifg_loss.loss)(model, sentences)) == pytest.approx(np.log(1000), abs=0.02)
    assert all((np.asarray(mine) == np.asarray(theirs)).all() for mine, theirs in zip(model, same, strict=True))
    assert not (np.asarray(model.kernel) == np.asarray(other.kernel)).any()


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"vocabulary": 4}, r"model.vocabulary=4 must be at least 5"),
        ({"embedding": 0}, r"model.embedding=0 must be 1 to 65,536"),
        ({"units": -1}, r"model.units=-1 must be 1 to 65,536"),
    ],
)
def test_impossible_sizes_are_refused(values: dict[str, int], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Cifg(**values)  # type: ignore[arg-type]
