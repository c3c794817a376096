"""The slow, obvious twin of a federated round: float64, one client after another, one sentence after another."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.support.networks import numpy_model
from tests.support.networks.numpy_model import Model

from tacit.data import Cache
from tacit.training import ClientTraining, RoundPlan
from tacit.training.client import own_generator

Vector = NDArray[np.float64]


def flatten(model: Model) -> Vector:
    """In the order of `jax.flatten_util.ravel_pytree`: the fields one after another, each row by row."""
    return np.concatenate([leaf.reshape(-1) for leaf in model])


def unflatten(flat: Vector, like: Model) -> Model:
    ends = np.cumsum([leaf.size for leaf in like])
    return Model(*(part.reshape(leaf.shape) for part, leaf in zip(np.split(flat, ends[:-1]), like, strict=True)))


def sentences_of(cache: Cache, client: int, settings: ClientTraining, seed: bytes) -> list[list[int]]:
    """The sentences a client trains on, cut to so many predicted words: a random subset in random order."""
    ids, lengths = cache.sentences(client)
    words = [int(id) for id in ids]
    text = []
    for length in lengths:
        text.append(words[:length][: settings.words + 1])
        words = words[length:]
    return [text[i] for i in own_generator(seed, client).permutation(len(text))[: settings.sentences]]


def local_update(model: Model, text: list[list[int]], settings: ClientTraining) -> Vector:
    """What the client sends before clipping: paper 1, Algorithm 1, ClientUpdate."""
    theta = flatten(model)
    for _ in range(settings.epochs):
        for first in range(0, len(text), settings.batch_size):
            batch = text[first : first + settings.batch_size]
            padded = np.array([row + [0] * (settings.words + 1 - len(row)) for row in batch])
            theta = theta - settings.learning_rate * flatten(numpy_model.gradient(unflatten(theta, model), padded))
    return theta - flatten(model)


def clipped(update: Vector, clip_norm: float) -> Vector:
    return update * min(1.0, clip_norm / float(np.linalg.norm(update)))


def cohort_sum(model: Model, cache: Cache, clients: Any, plan: RoundPlan, seed: bytes) -> tuple[Vector, list[float]]:
    """The sum of the clipped updates and the norms before clipping."""
    total, norms = np.zeros(flatten(model).size), []
    for client in clients:
        update = local_update(model, sentences_of(cache, int(client), plan.client, seed), plan.client)
        norms.append(float(np.linalg.norm(update)))
        total += clipped(update, plan.guarantee.clip_norm)
    return total, norms
