"""Random sentences that users typed: how a model ranks them among others of the same law that nobody typed.

Exposure is log2 R - log2 of the rank among R sentences (Carlini et al., arXiv:1802.08232, section 4.2). A sentence that
a model does not know has a uniform rank, hence an exposure that exceeds x bits with probability 2^-x.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from tacit.audit.one_run.joined import Sentence, other_sentences
from tacit.keyboard.model_folder import TrainedModel
from tacit.networks.language_model import next_word_loss

REFERENCES = 4095  # sentences that nobody typed; with the one that is ranked, a whole number of bits
AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """Of the random sentences that `users` users had `repeats` times each: bits, and how probable so many are.

    chance: that sentences which the model never saw have a mean exposure of at least this; exact but for ties.
    """

    repeats: int
    users: int
    sentences: int
    mean: float
    largest: float
    chance: float

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def exposures(model: TrainedModel, typed: Sequence[Sentence], seed: int) -> tuple[Exposure, ...]:
    """Of each number of repeats and of users."""
    if not typed:
        return ()
    others = other_sentences(seed, REFERENCES, model.vocabulary.size)
    surprise = nats(model, np.concatenate([np.array([each.ids for each in typed], np.int32), others]))
    own, theirs = surprise[: len(typed)], np.sort(surprise[len(typed) :])
    bits = np.log2(len(theirs) + 1) - np.log2(1 + np.searchsorted(theirs, own))
    cells: dict[tuple[int, int], list[float]] = {}
    for sentence, found in zip(typed, bits, strict=True):
        cells.setdefault((sentence.repeats, sentence.users), []).append(float(found))
    return tuple(
        Exposure(
            repeats=repeats,
            users=users,
            sentences=len(found),
            mean=float(np.mean(found)),
            largest=max(found),
            chance=chance_of(sum(found), len(found)),
        )
        for (repeats, users), found in cells.items()
    )


def chance_of(bits: float, sentences: int) -> float:
    """That exposures of so many unseen sentences add up to at least so much.

    Each is exponential, of mean 1 / ln 2 bits, so that their sum has the gamma law; ranks are discrete, which makes
    them smaller.
    """
    return float(gammaincc(sentences, bits * np.log(2)))


def nats(model: TrainedModel, sentences: NDArray[np.int32]) -> NDArray[np.float64]:
    """The surprise of each sentence (n,) in nats a word. sentences: (n, words + 2), none padded."""
    loss = next_word_loss(model.network)
    each = jax.jit(jax.vmap(lambda sentence: loss(model.parameters, sentence[None])))
    filled = np.pad(sentences, ((0, -len(sentences) % AT_ONCE), (0, 0)), mode="edge")
    found = [np.asarray(each(filled[at : at + AT_ONCE])) for at in range(0, len(filled), AT_ONCE)]
    return np.concatenate(found)[: len(sentences)].astype(np.float64)
