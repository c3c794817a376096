"""What one user has typed, as a model of the next word: a cache, mixed into a network without any training.

    P(w | v) = (1 - a - b) P_network + a P_unigram(w) + b P_bigram(w | v)

    P_unigram(w)    = c(w) / N
    P_bigram(w | v) = (c(v w) + T(v) P_unigram(w)) / (c(v) + T(v)),   which is P_unigram where v was never typed

v is the token before w; of the N tokens of the user's own text, c(w) are w, c(v w) are w after v, c(v) come after v,
and T(v) is how many different tokens come after v.
Words, unknown words and ends are counted, all that the network is trained on; the first word of a sentence comes after
its beginning. Cost on a device: one pass over its text, and as many numbers as it has different pairs of words.

Sources: a cache of the user's recent words mixed linearly into a model, Kuhn & De Mori, "A Cache-Based Natural Language
Model for Speech Recognition", IEEE TPAMI 12(6), 1990; with bigrams, Jelinek, Merialdo, Roukos & Strauss, "A Dynamic
Language Model for Speech Recognition", HLT 1991; into a neural network, where it is mixed by the same rule, Grave,
Joulin & Usunier, arXiv:1612.04426, section 3 (their cache weighs by hidden states, this one by the word before). What a
bigram leaves to the unigram: Witten & Bell, IEEE Trans. Inf. Theory 37(4), 1991, method C.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.text.vocabulary import PAD

Ids = NDArray[np.int32]


class Mix(NamedTuple):
    """The weights of a cache; the network has the rest."""

    unigram: float = 0.0  # a
    bigram: float = 0.0  # b


ALONE = Mix()  # the network, as it is


class UserCache(NamedTuple):
    """Both caches of one text. V words in the vocabulary; n different pairs, sorted by the word before."""

    unigram: NDArray[np.float32]  # (V,) P_unigram, nothing but zeros of no text
    left: NDArray[np.float32]  # (V,) T(v) / (c(v) + T(v)): what the bigrams after v leave to the unigram
    starts: NDArray[np.int64]  # (V + 1,): the pairs of v are those from starts[v] to starts[v + 1]
    words: Ids  # (n,) the second word of each pair
    shares: NDArray[np.float32]  # (n,) c(v w) / (c(v) + T(v))

    @classmethod
    def from_sentences(cls, sentences: Ids, vocabulary: int) -> "UserCache":
        """Of padded sentences (S, L+1), each BOS, words, EOS, then PAD."""
        there = sentences[:, 1:] != PAD
        before, words = sentences[:, :-1][there].astype(np.int64), sentences[:, 1:][there]
        pairs, counts = np.unique(before * vocabulary + words, return_counts=True)
        first = pairs // vocabulary
        typed = np.bincount(before, minlength=vocabulary)  # c(v)
        kinds = np.bincount(first, minlength=vocabulary)  # T(v)
        whole = np.maximum(typed + kinds, 1)
        return cls(
            unigram=(np.bincount(words, minlength=vocabulary) / max(len(words), 1)).astype(np.float32),
            left=np.where(kinds > 0, kinds / whole, 1.0).astype(np.float32),
            starts=np.concatenate([[0], np.cumsum(kinds)]),
            words=(pairs % vocabulary).astype(np.int32),
            shares=(counts / whole[first]).astype(np.float32),
        )
