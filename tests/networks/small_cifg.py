"""CIFG networks of a few units, and batches of sentences for them."""

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from tacit.networks.cifg import loss as cifg_loss
from tacit.networks.cifg.network import Cifg, CifgParameters
from tacit.text.vocabulary import BOS, EOS, OOV, PAD

Sentences = npt.NDArray[np.int32]
SMALL = {tied: Cifg(vocabulary=11, embedding=3, units=5, tied=tied) for tied in (False, True)}
BATCH = np.array(
    [
        [BOS, 4, 9, OOV, 10, EOS],
        [BOS, 5, 5, EOS, PAD, PAD],
        [BOS, EOS, PAD, PAD, PAD, PAD],
        [PAD, PAD, PAD, PAD, PAD, PAD],
    ],
    np.int32,
)

both = pytest.mark.parametrize("tied", [False, True], ids=["separate", "tied"])

value_and_gradient = jax.jit(jax.value_and_grad(cifg_loss.loss))  # of batches of one shape: compiled twice


def lively(settings: Cifg, seed: int = 0) -> CifgParameters:
    """Parameters large enough that gates saturate now and then, biases that are not zero."""
    shapes = jax.eval_shape(settings.init, jax.random.key(0))
    random = np.random.default_rng(seed)
    return CifgParameters(*(jnp.asarray(random.normal(0, 0.8, leaf.shape), jnp.float32) for leaf in shapes))


def filled(*sentences: list[int]) -> Sentences:
    """Of the shape of BATCH, the rest padding."""
    rows = [*sentences, *[[]] * (len(BATCH) - len(sentences))]
    return np.array([ids + [PAD] * (BATCH.shape[1] - len(ids)) for ids in rows], np.int32)


@st.composite
def batches(draw: st.DrawFn) -> Sentences:
    """Three sentences of up to four words and the padding that brings them to one shape."""
    words = st.lists(st.sampled_from([OOV, *range(4, 11)]), max_size=4)
    return filled(*([BOS, *draw(words), EOS] if draw(st.booleans()) else [] for _ in range(3)))
