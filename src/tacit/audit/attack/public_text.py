"""What everybody knows: how frequent words of public text are, and what the network that devices get makes of it."""

from dataclasses import dataclass
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tacit.data import Cache
from tacit.networks.cifg.loss import predictions
from tacit.networks.cifg.parameters import CifgParameters
from tacit.text.vocabulary import PAD, SPECIALS

Numbers: TypeAlias = NDArray[np.float64]

PASSAGES, SENTENCES = 50, 8  # that the network is asked about: some thousand words
FREQUENT = 0.25  # share of the vocabulary's words that are not rare: a thousand of 4,000
FLOOR = 1e-4  # of the largest variance of features: directions that hardly vary say nothing


@dataclass(frozen=True)
class PublicText:
    """V ids, E features, which are what a network's output layer is multiplied with."""

    frequency: Numbers  # (V,) shares of the words of public text, 0 of specials alone
    predicted: Numbers  # (V,) how probable the network finds each id, on average
    expected: Numbers  # (V, E) the average of that probability times the features
    centre: Numbers  # (E,) the average features
    whitening: Numbers  # (E, E) (features - centre) @ whitening has the identity as its covariance

    def most_frequent(self, words: int, among: NDArray[np.bool_]) -> NDArray[np.int64]:
        """So many words `among` (V,), the most frequent first: what somebody guesses who saw nothing else."""
        order = np.argsort(-self.frequency, kind="stable")
        return order[among[order]][:words]

    @property
    def words(self) -> NDArray[np.bool_]:
        """(V,) which ids are words."""
        return np.arange(len(self.frequency)) >= SPECIALS

    @property
    def rare(self) -> NDArray[np.bool_]:
        """(V,) which words are not among the FREQUENT ones of public text."""
        rare = self.words.copy()
        rare[self.most_frequent(round(FREQUENT * rare.sum()), rare)] = False
        return rare


def public_text(cache: Cache, model: CifgParameters, words: int) -> PublicText:
    """From a cache of public text and the network. words: predicted of a sentence."""
    clients = cache.clients("train")
    size = model.output_bias.shape[0]
    counts = np.bincount(np.concatenate([cache.sentences(int(client))[0] for client in clients]), minlength=size) + 1.0
    counts[:SPECIALS] = 0
    some = [
        cache.padded(int(client), np.arange(min(SENTENCES, cache.sentence_count(int(client)))), words + 1)
        for client in clients[:PASSAGES]
    ]
    read = np.concatenate(some)
    features = np.asarray(predictions(model, jnp.asarray(read[:, :-1])), np.float64)[read[:, 1:].T.reshape(-1) != PAD]
    table = np.asarray(model.output if model.output.shape[1] else model.embedding.T, np.float64)
    scores = features @ table + np.asarray(model.output_bias, np.float64)
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    likely /= likely.sum(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.cov(features.T))
    return PublicText(
        frequency=counts / counts.sum(),
        predicted=likely.mean(axis=0),
        expected=likely.T @ features / len(features),
        centre=features.mean(axis=0),
        whitening=vectors / np.sqrt(values + FLOOR * values.max()),
    )
