"""The words of held-out clients, and how many of them a network predicts: each client's counts by itself."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.networks.language_model import LanguageModel, Parameters, count
from tacit.networks.metrics import METRICS, Counts

if TYPE_CHECKING:
    from tacit.data import Cache


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The padded sentences of held-out clients, read once: (clients, S, L+1) int32."""

    sentences: NDArray[np.int32]

    @classmethod
    def read(cls, cache: "Cache", clients: NDArray[np.int64], *, sentences: int, words: int) -> "HeldOut":
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


@lru_cache(maxsize=8)
def count_group(network: LanguageModel, metrics: tuple[str, ...]) -> Any:
    """Compiled: (parameters, sentences (n, S, L+1)) -> Counts with a leading axis, of these METRICS."""

    def count_group(parameters: Parameters, sentences: Array) -> Counts:
        return lax.map(lambda client: count(network, parameters, client), sentences)  # type: ignore[no-any-return]

    return jax.jit(count_group)


def counts_of_client(network: LanguageModel, parameters: Parameters, held_out: HeldOut) -> Counts:
    """How well a network predicts the one client that was read."""
    counted = count_group(network, tuple(METRICS))(parameters, held_out.sentences)
    return jax.tree.map(lambda each: np.asarray(each)[0], counted).host()  # type: ignore[no-any-return]
