"""A vocabulary counted in text: how often each word occurs, and the most frequent of them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tacit.errors import InputError
from tacit.text.vocabulary import SPECIALS, Provenance, Vocabulary
from tacit.text.words import AS_TYPED, LINE_END, Writing, is_placeholder, pieces


def count_words(texts: Iterable[str], writing: Writing = AS_TYPED) -> Counter[str]:
    """How often each word occurs, by the rules of `words.py`; placeholders and addresses are left out."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(pieces(text, writing))
    for word in [word for word in counts if word == LINE_END or is_placeholder(word)]:
        del counts[word]
    return counts


def balanced(counted: Sequence[Mapping[str, int]]) -> Mapping[str, float]:
    """The counts of several texts as one, each text weighing the same: a word has the sum of its shares in them.

    So no language, and no kind of text, is left out because less of it was at hand. One text keeps its counts.
    """
    if len(counted) == 1:
        return counted[0]
    shares: dict[str, float] = {}
    for counts in counted:
        total = sum(counts.values())
        for word, count in counts.items():
            shares[word] = shares.get(word, 0.0) + count / total
    return shares


def most_frequent(
    counts: Mapping[str, float], *, size: int, provenance: Provenance, writing: Writing = AS_TYPED
) -> Vocabulary:
    """The vocabulary of `size` ids: four specials and the most frequent words, ties in alphabetical order.

    InputError when there are fewer than size - 4 different words.
    """
    if size <= SPECIALS:
        raise InputError(f"a vocabulary of {size} ids has no words (four are special); ask for {SPECIALS + 1} or more.")
    if len(counts) < size - SPECIALS:
        raise InputError(
            f"the text has {len(counts)} different words, a vocabulary of {size} needs {size - SPECIALS}; "
            f"give more text, or ask for a vocabulary of at most {len(counts) + SPECIALS}."
        )
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary(words=tuple(ranked[: size - SPECIALS]), provenance=provenance, **vars(writing))
