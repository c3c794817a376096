"""What the space bar writes: the likeliest word for the taps, or the letters themselves where no word is likely enough;
and which words are worth showing while they are typed.

The letters take part as one more candidate, an unknown word that is spelled letter by letter, each of the K keys and
the word's end alike:

    score = spatial(letters) + language_weight * (ln p(unknown word | context) - (letters + 1) * ln(K + 1))

so that a new word stands as it is typed unless a known one is near it, and no threshold has to be chosen. Several
unknown words in one model share one probability, hence the share of one spelling.
"""

import math
from itertools import islice
from typing import NamedTuple

import numpy as np

from tacit.keyboard.decoder import Context, Decoder, Taps, WordCandidate
from tacit.keyboard.suggest import Scores, TypingSession
from tacit.keyboard.touch import Points
from tacit.text.vocabulary import OOV

CANDIDATES = 3
SEARCHED = 4  # times as many as are shown: of equally likely ones those that begin as typed are not the first


class Correction(NamedTuple):
    """What was written for some taps, and what else could have been."""

    text: str  # what stands in the text now
    letters: str  # what the taps hit
    kept: bool  # whether the letters were left as they are, as a word that the lexicon lacks
    candidates: tuple[WordCandidate, ...]  # words of the lexicon, best first


def at_space(
    decoder: Decoder,
    points: Points | Taps,
    language: Scores | Context,
    *,
    rescorer: TypingSession | None = None,
    k: int = CANDIDATES,
) -> Correction:
    """What is written when the space bar follows these taps (m, 2), m >= 1, or the `Decoder.taps` made of them.

    language: ln p of each id as the next word by the model that searches, (V,), or with words of the user's own behind
    (`TypingSession.with_own_words`), or the `context` of either. rescorer: another model, which ranks the k candidates
    anew. Raises: InputError as `Decoder.decode` does.
    """
    context = language if isinstance(language, Context) else decoder.context(language)
    taps = points if isinstance(points, Taps) else decoder.taps(points)
    candidates = decoder.decode(taps, context, k)
    unknown = float(context.log_probabilities[OOV])
    if rescorer is not None:
        candidates = decoder.rescored(candidates, rescorer.rescore([each.word for each in candidates]))
        unknown = float(rescorer.with_own_words[OOV])
    kept = not candidates or candidates[0].score < _as_new_word(decoder, taps, unknown)
    return Correction(taps.letters if kept else candidates[0].word, taps.letters, kept, candidates)


def _as_new_word(decoder: Decoder, taps: Taps, unknown: float) -> float:
    """The score of the letters as an unknown word; see the head of this file."""
    touch = decoder.touch
    keys = touch.layout.key_ids(taps.letters)
    spatial = float(taps.densities[np.arange(len(keys)), keys].sum()) + len(keys) * touch.moves.tapped
    spelling = (len(keys) + 1) * math.log(len(touch.layout.keys) + 1)
    return spatial + decoder.language_weight * (unknown - spelling)


def worth_showing(
    decoder: Decoder, points: Points, language: Scores | Context, k: int = CANDIDATES
) -> tuple[WordCandidate, ...]:
    """The words of a strip above these taps (m, 2), m >= 1: at most k, best first, perhaps none.

    Shown are words that begin with the very letters that were hit, and others only where they are likelier than the
    letters as a new word, the same against which the space bar weighs a correction: so letters that begin no word have
    an empty strip. Otherwise as `at_space`.
    """
    context = language if isinstance(language, Context) else decoder.context(language)
    taps = decoder.taps(points)
    floor = _as_new_word(decoder, taps, float(context.log_probabilities[OOV]))
    found = decoder.completions(taps, context, SEARCHED * k)
    form = decoder.lexicon.layout.typed_form
    fit = (each for each in found if each.score >= floor or (form(each.word) or "").startswith(taps.letters))
    return tuple(islice(fit, k))
