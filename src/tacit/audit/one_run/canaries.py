"""What canaries send: random directions by fair coins, all of which follow from a seed and the number of a group.

A canary's text is one sentence that no tokeniser writes (a second BOS, then its group's number in two words), by which
`CanaryUpdates` knows it wherever the run trains it: in another process or on another machine, too.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.text.vocabulary import BOS, EOS
from tacit.training import generator_for, key_from_seed
from tacit.training.client import ClientTraining, Loss, Model, Step, local_update

LENGTH = 1e4  # of a canary's update before it is clipped: a clip that fails is seen in the scores
LEAST_WORDS = 4  # of a sentence in training: those that say which canary it is


@dataclass(frozen=True)
class CanaryUpdates:
    """A ClientAlgorithm: local SGD for people, and for canaries their group's direction, or nothing."""

    seed: int
    vocabulary: int

    def __call__(
        self, loss: Loss, model: Model, sentences: Array, batches: Array, settings: ClientTraining, *, step: Step
    ) -> tuple[Model, Array]:
        """See ClientAlgorithm."""
        flat, unravel = ravel_pytree(model)
        group = sentences[0, 2] * self.vocabulary + sentences[0, 3]

        def of_canary() -> tuple[Model, Array]:
            sent = jnp.where(_coin(self.seed, group), LENGTH, 0.0) * _direction(self.seed, group, len(flat))
            return unravel(sent), jnp.float32(0.0)

        def of_person() -> tuple[Model, Array]:
            return local_update(loss, model, sentences, batches, settings, step=step)

        return lax.cond(sentences[0, 1] == BOS, of_canary, of_person)  # type: ignore[no-any-return]


def canary_sentence(group: int, vocabulary: int) -> list[int]:
    """The ids of the one sentence of a group's canaries."""
    high, low = divmod(group, vocabulary)
    return [BOS, BOS, high, low, EOS]


def jax_seed(seed: int) -> int:
    """What directions and coins follow from, of the auditor's seed."""
    return int(generator_for(key_from_seed(seed), "canaries").integers(2**31))


def coins(seed: int, groups: int) -> NDArray[np.bool_]:
    """Whether each group is in, (groups,). seed: `jax_seed`."""
    return np.asarray(jax.vmap(partial(_coin, seed))(jnp.arange(groups)))


def projections(seed: int, vectors: NDArray[np.float32], which: NDArray[np.int64]) -> NDArray[np.float64]:
    """The product of each group's direction with its vector, (groups,). vectors: (n, d); which: the row of each."""
    product = _product(seed, vectors.shape[1])
    placed = [jnp.asarray(vector) for vector in vectors]
    return np.array([float(product(group, placed[row])) for group, row in enumerate(which)])


@lru_cache(maxsize=4)
def _product(seed: int, dimension: int) -> Any:
    return jax.jit(lambda group, vector: jnp.vdot(_direction(seed, group, dimension), vector))


def check_words(settings: ClientTraining) -> None:
    """Raises: InputError where training cuts sentences so short that canaries are not known by theirs."""
    if settings.words < LEAST_WORDS:
        raise InputError(
            f"client.words={settings.words} cuts the sentence by which a canary is known; give {LEAST_WORDS} or more."
        )


def _key(seed: int, what: int, group: Array | int) -> Array:
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), what), group)


def _coin(seed: int, group: Array | int) -> Array:
    return jax.random.bernoulli(_key(seed, 0, group))


def _direction(seed: int, group: Array | int, dimension: int) -> Array:
    """Uniform on the unit sphere, (d,): normal numbers over their norm."""
    normal = jax.random.normal(_key(seed, 1, group), (dimension,))
    direction: Array = normal / jnp.linalg.norm(normal)
    return direction
