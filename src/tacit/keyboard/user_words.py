"""The words of the user's own dictionary, which no model knows: they stay on the phone."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, of_type
from tacit.text.vocabulary import OOV, Vocabulary


@dataclass(frozen=True)
class UserWords:
    """How the model's probability of an unknown word divides among the words that the user has typed, by counts.

    Of C typed words of T different ones, one that was typed c times has the share c / (C + T), and words that are new
    to the user, too, have T / (C + T): the estimate of Witten & Bell, "The Zero-Frequency Problem", IEEE Transactions
    on Information Theory 37(4), 1991 (their method C). Without any, they have all of it.
    """

    words: tuple[str, ...]  # that the vocabulary lacks, the most frequent first
    log_shares: NDArray[np.float64]  # (words,) natural logarithm of the share of each
    others: float  # the share of all other unknown words

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], vocabulary: Vocabulary) -> Self:
        """Of how often each word was typed; those that the vocabulary has keep the model's probability.

        Raises: InputError for what is no single word, and for a count that is not positive.
        """
        of_type("user_words", counts, Mapping)
        typed: Counter[str] = Counter()
        for word, count in counts.items():
            of_type(f"the count of {word!r}", count, int)
            spelled = _spelled(word, vocabulary)
            if count < 1:
                raise InputError(f"the user's word {word!r} was typed {count} times; leave it out, or give 1 or more.")
            typed[spelled] += count
        unknown = [(word, count) for word, count in typed.most_common() if vocabulary.id_of(word) == OOV]
        total = sum(count for _, count in unknown) + len(unknown)
        return cls(
            words=tuple(word for word, _ in unknown),
            log_shares=np.log([count / total for _, count in unknown]) if unknown else np.zeros(0),
            others=len(unknown) / total if unknown else 1.0,
        )

    @classmethod
    def by_share(cls, shares: Mapping[str, float], vocabulary: Vocabulary) -> Self:
        """Of the share of all unknown words that each is: of discovered words, say, their counts by reports.

        What they leave of the whole is for other unknown words. Raises: InputError for what is no single word, and for
        shares that are not positive or more than the whole.
        """
        of_type("shares", shares, Mapping)
        found: dict[str, float] = {}
        for word, share in shares.items():
            of_type(f"the share of {word!r}", share, float, int)
            spelled = _spelled(word, vocabulary)
            if not 0 < share <= 1:
                raise InputError(
                    f"the share {share:g} of {word!r} is none; leave it out, or give more than 0, up to 1."
                )
            if vocabulary.id_of(spelled) == OOV:
                found[spelled] = found.get(spelled, 0.0) + share
        others = 1.0 - sum(found.values())
        if others < -1e-9:
            raise InputError(f"the shares sum to {1 - others:g}; they are of one whole, so give at most 1 in all.")
        ranked = sorted(found.items(), key=lambda each: -each[1])
        return cls(
            words=tuple(word for word, _ in ranked),
            log_shares=np.log([share for _, share in ranked]) if ranked else np.zeros(0),
            others=max(others, 0.0),
        )


def _spelled(word: str, vocabulary: Vocabulary) -> str:
    """As the vocabulary would write it. Raises: InputError where it is no single word."""
    of_type("a user's word", word, str)
    spelled = vocabulary.spelled(word)
    if not vocabulary.cuts(spelled):
        raise InputError(f"the user's word {word!r} is not one word; give words without blanks and signs.")
    return spelled


NO_WORDS = UserWords(words=(), log_shares=np.zeros(0), others=1.0)
