"""Accuracy over devices: every held-out client counts its own words, and the counts are added up."""

from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

import jax
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError
from tacit.networks.language_model import LanguageModel, Parameters, count
from tacit.networks.metrics import METRICS, TOP1, Counts

PUBLIC_ORDER = 20_191_022  # of clients: the date of paper 5
GROUP = 8  # clients counted in one compiled call


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Counts of each client and over all of them; which targets count is said in `keyboard.metrics`."""

    total: Counts
    clients: tuple[Counts, ...]

    def metrics(self) -> dict[str, float]:
        """What a run folder records: averages over words (micro) and the quartiles of accuracy over clients.

        Raises: InputError when no word could have been predicted.
        """
        if not self.total.predicted:
            raise InputError(
                f"none of the {self.total.words} words of the held-out clients is in the vocabulary, so there is no "
                "accuracy; import their text with a vocabulary that knows their language."
            )
        accuracies = [c.value(TOP1) for c in self.clients if c.predicted]
        low, middle, high = np.quantile(accuracies, [0.25, 0.5, 0.75])
        return {
            **{name: self.total.value(name) for name in METRICS},
            "words": float(self.total.words),
            "clients": float(len(self.clients)),
            "client_accuracy_q25": float(low),
            "client_accuracy_q50": float(middle),
            "client_accuracy_q75": float(high),
        }


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The padded sentences of held-out clients, read once: (clients, S, L+1) int32."""

    sentences: NDArray[np.int32]

    @classmethod
    def read(cls, cache: Cache, clients: NDArray[np.int64], *, sentences: int, words: int) -> "HeldOut":
        """At most `sentences` of each client, evenly spread over its text, of at most `words` predicted words.

        Raises: InputError when there is no client.
        """
        if not len(clients):
            raise InputError("there is no held-out client to evaluate on; import more clients.")
        padded = np.zeros((len(clients), sentences, words + 1), np.int32)
        for i, client in enumerate(clients):
            there = cache.sentence_count(int(client))
            chosen = np.unique(np.linspace(0, there - 1, min(sentences, there)).astype(np.int64))
            padded[i, : len(chosen)] = cache.padded(int(client), chosen, words + 1)
        return cls(sentences=padded)


def first_asked(clients: NDArray[np.int64], many: int) -> NDArray[np.int64]:
    """The first `many` of `clients` in a public random order; all of them for 0.

    Anybody can draw the order again, so that the choice of who is asked says nothing about anyone.
    """
    order: NDArray[np.int64] = np.random.default_rng(PUBLIC_ORDER).permutation(clients)
    return order[: many or len(order)]


def evaluate(
    network: LanguageModel, parameters: Parameters, held_out: HeldOut, *, cores: Cores, at_once: int = GROUP
) -> Evaluation:
    """Count how well a network with these parameters predicts the held-out clients, so many in one compiled call."""
    clients = len(held_out.sentences)
    missing = -clients % at_once
    sentences = np.concatenate([held_out.sentences, np.zeros((missing, *held_out.sentences.shape[1:]), np.int32)])
    there = {device: jax.device_put(parameters, device) for device in cores.devices}

    counted = _count_group(network, tuple(METRICS))

    def one_group(device: Any, start: int) -> Counts:
        return counted(there[device], jax.device_put(sentences[start : start + at_once], device))  # type: ignore[no-any-return]

    groups = cores.map(one_group, list(range(0, len(sentences), at_once)))
    host = [jax.tree.map(np.asarray, group) for group in groups]
    each = [jax.tree.map(itemgetter(i), group).host() for group in host for i in range(at_once)][:clients]
    return Evaluation(total=sum(each, Counts()), clients=tuple(each))


@lru_cache(maxsize=8)
def _count_group(network: LanguageModel, metrics: tuple[str, ...]) -> Any:
    """Compiled: (parameters, sentences (n, S, L+1)) -> Counts with a leading axis, of these METRICS."""

    def count_group(parameters: Parameters, sentences: Array) -> Counts:
        return lax.map(lambda client: count(network, parameters, client), sentences)  # type: ignore[no-any-return]

    return jax.jit(count_group)
