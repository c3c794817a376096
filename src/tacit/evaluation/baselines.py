"""What a model is compared with on the same held-out clients: its start, a trigram of public text, the first words.

Whoever shows the three first words of the vocabulary, whatever was typed, is right more often than one thinks.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from tacit.evaluation.accuracy import Evaluation
from tacit.evaluation.comparison_models import DIGITS, FIRST_WORDS, ComparisonModels
from tacit.evaluation.held_out import HeldOut
from tacit.networks.language_model import kinds_of
from tacit.networks.metrics import KNOWN, SHOWN, TOP1
from tacit.text.vocabulary import SPECIALS

TOP3 = "top3_accuracy"
KEPT = (TOP1, TOP3, "cross_entropy")


def comparison_models_of(
    held_out: HeldOut, evaluations: Mapping[str, Evaluation], *, first_words: bool
) -> ComparisonModels:
    """What is kept of evaluations on these clients; where `first_words`, with FIRST_WORDS beside them.

    Those are the first of the vocabulary in its order, shown always; no probability belongs to them. They are worth
    showing where that order is of frequency (`Vocabulary.ranked`).
    """
    targets = held_out.sentences[:, :, 1:]
    known = kinds_of(targets, np) == KNOWN
    hits = {TOP1: targets == SPECIALS, TOP3: targets < SPECIALS + SHOWN}
    sums = {
        name: {metric: _floats([client.sums.get(metric, 0) for client in each.clients]) for metric in KEPT}
        for name, each in evaluations.items()
    }
    if first_words:
        sums[FIRST_WORDS] = {name: _floats((known & each).sum(axis=(1, 2))) for name, each in hits.items()}
    return ComparisonModels(predicted=_floats(known.sum(axis=(1, 2))), sums=sums)


def _floats(values: ArrayLike) -> tuple[float, ...]:
    """Plain numbers, whole ones exact."""
    return tuple(round(float(each), DIGITS) for each in np.asarray(values, np.float64))
