"""What a recipe trains: its network with the words of a cache, and the model that it begins from."""

from pathlib import Path

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from tacit.data import Cache
from tacit.errors import RunError
from tacit.keyboard.model_folder import TrainedModel, load_first_model
from tacit.networks.language_model import LanguageModel, next_word_loss
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.statements.accounts import trained
from tacit.text.vocabulary import Vocabulary
from tacit.training import Learner, generator_for
from tacit.training.hooks import Hooks


def first_model(recipe: Recipe, vocabulary: Vocabulary) -> TrainedModel | None:
    """The model of public text that the recipe begins from, if it names one."""
    if recipe.model.init is None:
        return None
    return load_first_model(recipe.model.init, recipe.model.settings(vocabulary.size), vocabulary)


def network_of(recipe: Recipe, cache: Cache) -> LanguageModel:
    """The recipe's network with the words of the cache."""
    return recipe.model.settings(cache.manifest.vocabulary.size)


def learner_of(run: Run, recipe: Recipe, cache: Cache, hooks: Hooks, *, key: bytes | None = None) -> Learner:
    """The network at its start with the clients' text.

    key: from which a random start follows, where it is not the run's own. Raises: RunError where the model that the run
    began from is another now.
    """
    network, begun = network_of(recipe, cache), trained(run).first_model
    if begun is None:
        seed = int(generator_for(run.noise_key if key is None else key, "initial model").integers(2**31))
        first = network.init(jax.random.key(seed))
    else:
        found = load_first_model(Path(begun.path), network, Vocabulary.from_json(cache.vocabulary_json))
        if found.digest != begun.digest:
            raise RunError(
                f"the model in '{begun.path}' is not the one that '{run.path}' began from (its files differ); "
                "put the old one back, or start a new run."
            )
        first = found.parameters
    start, unravel = ravel_pytree(first)
    return Learner(
        start=np.asarray(start),
        unravel=unravel,
        loss=next_word_loss(network),
        cache=cache,
        clients=cache.clients("train"),
        algorithm=hooks.algorithm,
    )
