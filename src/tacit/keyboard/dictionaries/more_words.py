"""Words beyond a model's vocabulary, counted in public text, and which of the model's words follow each there.

An engine shows nothing behind a word that its dictionary lacks. Such a word has a share of what the model gives unknown
words, as large as its share of them in the public text. What follows it is its own counts, smoothed by what follows
unknown words in the model (Witten and Bell 1991): P(w | u) = (n(u, w) + T(u) P(w | unknown)) / (n(u) + T(u)), where
n(u) words of the vocabulary follow u, T(u) different ones.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tacit.keyboard.dictionaries.entries import Context, Dictionary, Entry, Followers, frequency, has_room
from tacit.keyboard.dictionaries.from_counts import FloatArray
from tacit.keyboard.dictionaries.from_model import Asking, Knowledge, log_shares_of
from tacit.networks.metrics import SHOWN
from tacit.text.vocabulary import EOS, OOV, SPECIALS, Vocabulary
from tacit.text.words import LINE_END, is_placeholder

MOST = 60_000  # words, of which each takes about fifteen bytes of a file of format 202


class Found(NamedTuple):
    """One word of the text: how often it stands there, and before which ids of the vocabulary."""

    times: int
    followers: dict[int, int]


@dataclass(frozen=True)
class MoreWords:
    """Unknown words of a text. source: what the text says of itself."""

    source: str
    words: dict[str, Found] = field(repr=False)
    unknown: int  # all unknown words of the text together, placeholders and those without room among them

    @classmethod
    def counted(cls, texts: Iterable[str], vocabulary: Vocabulary, *, source: str, most: int = MOST) -> "MoreWords":
        """The most frequent unknown words; of equally frequent ones those that come first in the text."""
        counts, followers, unknown = Counter[str](), Counter[tuple[str, int]](), 0
        for text in texts:
            pieces = vocabulary.pieces(text)
            ids = [EOS if piece == LINE_END else vocabulary.id_of(piece) for piece in pieces]
            for piece, id, after in zip(pieces, ids, [*ids, EOS][1:], strict=True):
                if id == OOV:
                    unknown += 1
                    if has_room(piece) and not is_placeholder(piece):
                        counts[piece] += 1
                        if after >= SPECIALS:
                            followers[piece, after] += 1
        chosen = {word: Found(count, {}) for word, count in counts.most_common(most)}
        for (word, id), count in followers.items():
            if word in chosen:
                chosen[word].followers[id] = count
        return cls(source, chosen, unknown)

    def added_to(self, dictionary: Dictionary, known: Knowledge, asking: Asking, *, followers: bool) -> Dictionary:
        """The dictionary with these words behind its own; followers: whether anything may follow them."""
        there = {entry.word for entry in dictionary.entries}
        share = float(log_shares_of(known.shares)[OOV]) - math.log(max(1, self.unknown))
        words = {word: found for word, found in self.words.items() if word not in there}
        entries = [Entry(word, frequency(min(0.0, share + math.log(found.times)))) for word, found in words.items()]
        listed: dict[Context, Followers] = dict(dictionary.followers)
        if followers:
            usual = _shares(known.after(OOV))
            listed |= {(word,): asking.likeliest(_smoothed(each, usual), SHOWN) for word, each in words.items()}
        return replace(dictionary, entries=(*dictionary.entries, *entries), followers=listed)


def _shares(weights: FloatArray) -> FloatArray:
    known = weights.copy()
    known[:SPECIALS] = 0.0
    found: FloatArray = known / (known.sum() or 1.0)
    return found


def _smoothed(found: Found, usual: FloatArray) -> FloatArray:
    """(V,)"""
    ids, counts = list(found.followers), list(found.followers.values())
    weights = max(1, len(ids)) * usual
    weights[ids] += counts
    return weights
