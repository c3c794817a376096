"""A model's words as a dictionary for open keyboards: the `.combined` list of the Android Open Source Project.

The format is that of `dictionaries/sample.combined` in its LatinIME, as its makedict reads it
(`CombinedInputOutput.java` and `FusionDictionary.java`): a header line, then ` word=the,f=222` for each word and below
it `  bigram=same,f=240` for words that follow it more often than they come elsewhere. f is 255 for probability 1, and
each step down divides it by 1.15; f=0 would mean that a word must never be suggested. Fields end at commas, and nothing
escapes one; attributes that a reader does not know are passed over, so `discovered=true` stands behind f.

Probabilities are asked of the model, and no text is counted: `word_entries` reads what the model itself writes.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError, of_type
from tacit.keyboard.exported import Promise
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.suggest import Reader, Scores
from tacit.text.vocabulary import BOS, EOS, PAD, SPECIALS, Vocabulary

DICTIONARY = "words.combined"
STEP, CERTAIN, LEAST = math.log(1.15), 255, 1  # of f; 0 is kept for words that are never suggested
LONGEST = 47  # characters: makedict drops a word of 48, and then stops at its bigrams
LOCALE = "en"
SECRET = "operating system"  # what a statement says of the noise's key where nobody can know it

# How much of its own text the model writes, and for what: 4,000 places give a word's share to about one step of f.
PLACES = 4_000  # words, unknown ones and ends of sentences among them
LONGEST_SENTENCE = 30  # words
HEADS, CONTEXTS, FOLLOWERS = 3_000, 4, 8  # words with bigrams, each asked in so many contexts for so many followers

_HEADER = re.compile(r"dictionary=[^:]+(:[^=]+=[^:]+)*")  # what makedict knows the format by
_LOCALE = re.compile(r"[a-z]{2,3}(_[A-Za-z0-9]{2,8})*")

FloatArray = NDArray[np.float64]


class Entry(NamedTuple):
    """A word of the list."""

    word: str
    log_probability: float  # natural logarithm
    followers: tuple[tuple[str, float], ...] = ()  # words of the list with ln p(follower | word)
    discovered: bool = False  # by a discovery run


def combined(entries: Sequence[Entry], *, locale: str, description: str, date: int) -> str:
    """The text of the list, its words by falling probability; `date` in seconds since 1970.

    Raises: InputError where there are no words, or makedict would not read back what is given here.
    """
    locale = checked_locale(locale)
    if not entries:
        raise InputError("a dictionary of no words suggests nothing; give at least one word.")
    header = f"dictionary=main:{locale.lower()},locale={locale},description={description},date={date},version=1"
    if not description.strip() or re.search(r"[,=:\r\n]", description) or not _HEADER.fullmatch(header):
        raise InputError(f"the description {description!r} cannot stand in a header; leave out commas, = and colons.")
    known = {entry.word for entry in entries}
    if len(known) != len(entries):
        raise InputError("a word is in the dictionary twice; give each once.")
    lines = [header]
    for entry in sorted(entries, key=lambda entry: (-frequency(entry.log_probability), entry.word)):
        if not can_be_written(entry.word):
            raise InputError(f"{entry.word!r} cannot be in the list, which has no commas in words; leave it out.")
        lines.append(f" word={entry.word},f={frequency(entry.log_probability)}" + ",discovered=true" * entry.discovered)
        for follower, log_probability in entry.followers:
            if follower not in known:  # makedict would add it as a word that is never suggested
                raise InputError(f"{follower!r} follows {entry.word!r} and is no word of the dictionary; add it.")
            lines.append(f"  bigram={follower},f={frequency(log_probability)}")
    return "\n".join(lines) + "\n"


def frequency(log_probability: float) -> int:
    """f of a probability, whose natural logarithm is given: LEAST to CERTAIN. Raises: InputError where it is none."""
    if not log_probability <= 0:
        raise InputError(f"{log_probability} is no logarithm of a probability; give 0 or less.")
    return max(LEAST, CERTAIN + round(max(log_probability, -CERTAIN * STEP) / STEP))


def can_be_written(word: str) -> bool:
    """Whether makedict reads the word back: no comma or line end in it, no blank around it, LONGEST characters."""
    return 0 < len(word) <= LONGEST and word == word.strip() and not re.search(r"[,\r\n]", word)


def checked_locale(locale: str) -> str:
    """As Android writes it (`en`, `pt_BR`). Raises: InputError where it is none."""
    of_type("locale", locale, str)
    if not _LOCALE.fullmatch(written := locale.replace("-", "_")):
        raise InputError(f"the locale {locale!r} is none; give a language, and a country if need be: en, pt_BR.")
    return written


# -- what a model knows --------------------------------------------------------------------------------------------


def dictionary_of(model: PhoneModel, privacy: Promise, *, locale: str = LOCALE, date: int) -> str:
    """The list of a model's words; its description names the guarantee, and without one there are no bigrams.

    The same model gives the same list: what is drawn follows from a fixed seed. Words that the format cannot write are
    left out, and the description says how many. Raises: InputError where none can be written, or the model's scores are
    no numbers.
    """
    promise, bigrams = promised(privacy)
    entries = word_entries(model.reader, model.vocabulary, bigrams=bigrams)
    left_out = len(model.vocabulary.words) - len(entries)
    if not entries:
        raise InputError("no word of the model can be written in a .combined list, which has no commas in words.")
    said = ["Probabilities asked of a tacit model", promise]
    said += [f"without {left_out} that cannot be written so"] * bool(left_out)
    return combined(entries, locale=locale, description="; ".join(said), date=date)


def promised(privacy: Promise) -> tuple[str, bool]:
    """What is known of the model's privacy, in a few words; and whether its bigrams may be shown.

    They may where the model is of public text alone, or its run's statement has a guarantee that nobody can undo: the
    statement of a fixed seed names the seed, from which the noise follows.
    """
    if privacy.kind == "public text":
        return "made from public text alone", True
    record: Any = privacy.statement or {}
    if privacy.kind == "unknown" or not record.get("private"):
        return "released with no guarantee and so without bigrams", False
    labels = " and ".join(label["name"] for label in record["labels"])
    labelled = f"; labelled {labels}" if labels else ""
    if record.get("key_source") != SECRET:
        return f"released with noise of a known seed and so without bigrams{labelled}", False
    figures = record.get("in_all", record)["realised"]
    zcdp, epsilon = (math.ceil(1000 * figures[name]) / 1000 for name in ("zcdp", "epsilon"))
    said = f"released with zCDP {zcdp:g} and epsilon {epsilon:g} at delta {record['delta']:g} for each client"
    return said + labelled, True


def word_entries(reader: Reader, vocabulary: Vocabulary, *, bigrams: bool) -> tuple[Entry, ...]:
    """The words with the probabilities that the model gives them in text of its own, of those that can be written.

    A word's probability is its expected share of the words at PLACES places of sentences that the model writes: its
    probabilities are added up there, not the words that were drawn, so that rare words have theirs too. Its followers
    are asked in CONTEXTS of those places, drawn with the probability that the word comes there, and so from the places
    where it does come: the mean of p(next | context, word) is p(next | word). Those are taken that are at least a step
    of f likelier than elsewhere, which is what a bigram is for. Raises: InputError where scores are no numbers.
    """
    places = _Places.written_by(reader)
    log_shares = _log_shares(places.expected)
    discovered = set(vocabulary.discovered)
    writable = np.array([can_be_written(word) for word in vocabulary.words])
    ids = SPECIALS + np.flatnonzero(writable)
    heads = set(ids[np.argsort(-log_shares[ids], kind="stable")][:HEADS].tolist()) if bigrams else set()
    usual = np.array([frequency(each) for each in log_shares[ids].tolist()])

    def followers(head: int) -> tuple[tuple[str, float], ...]:
        after = _log_shares(places.after(head))[ids]
        most = min(FOLLOWERS, len(ids))
        among = np.flatnonzero(after >= np.partition(after, -most)[-most])
        likeliest = among[np.argsort(-after[among], kind="stable")][:most].tolist()
        above = [at for at in likeliest if frequency(after[at]) > usual[at]]
        return tuple((vocabulary.word_of(int(ids[at])), float(after[at])) for at in above)

    return tuple(
        Entry(word, float(log_shares[id]), followers(id) if id in heads else (), word in discovered)
        for id in ids.tolist()
        for word in [vocabulary.word_of(id)]
    )


class _Places:
    """Places of text that a model wrote: what came next there, and for each word some places where it comes."""

    def __init__(self, reader: Reader, states: list[Any], expected: FloatArray, drawn: NDArray[np.int32]) -> None:
        self._reader, self._states = reader, states
        self.expected = expected  # (V,) the sum over the places of the probability that the id comes next
        self._drawn = drawn  # (CONTEXTS, V) places, each drawn in proportion to the probability of the id there

    @classmethod
    def written_by(cls, reader: Reader) -> "_Places":
        """PLACES places of sentences; one pass, in which each word keeps or exchanges its places (A-Chao sampling:
        Chao, "A general purpose unequal probability sampling plan", Biometrika 69(3), 1982, with one place a sample).
        """
        random = np.random.Generator(np.random.Philox(0))
        states: list[Any] = []
        expected, drawn = np.zeros(0), np.zeros((0, 0), np.int32)
        begun, written = reader.step(reader.begin(), BOS), 0
        state, scores = begun
        for place in range(PLACES):
            chances = _chances(scores)
            if not place:
                expected, drawn = np.zeros(len(chances)), np.zeros((CONTEXTS, len(chances)), np.int32)
            expected += chances
            drawn[random.random(drawn.shape) * expected < chances] = place
            states.append(state)
            token = int(np.searchsorted(np.cumsum(chances), random.random() * chances.sum(), side="right"))
            ended = token == EOS or written == LONGEST_SENTENCE
            (state, scores), written = (begun, 0) if ended else (reader.step(state, token), written + 1)
        return cls(reader, states, expected, drawn)

    def after(self, head: int) -> FloatArray:
        """(V,) how often each id comes after this word, but for a factor."""
        places, often = np.unique(self._drawn[:, head], return_counts=True)
        sums = [
            count * _chances(self._reader.step(self._states[place], head)[1])
            for place, count in zip(places.tolist(), often.tolist(), strict=True)
        ]
        total: FloatArray = np.sum(sums, axis=0)
        return total


def _chances(scores: Scores) -> FloatArray:
    """(V,) the probability of each id to come next; padding and beginnings never do."""
    powers = np.array(scores, np.float64)
    powers[[PAD, BOS]] = -np.inf
    highest = powers.max()
    if not np.isfinite(highest):
        raise InputError("the model's scores are no finite numbers, so it has no dictionary; train it again.")
    powers = np.exp(powers - highest)
    chances: FloatArray = powers / powers.sum()
    return chances


def _log_shares(weights: ArrayLike) -> FloatArray:
    """(V,) ln of each id's share of the words, known or not: the end of a sentence is none, and may be all there is."""
    powers = np.array(weights, np.float64)
    powers[EOS] = 0.0
    with np.errstate(divide="ignore"):
        shares: FloatArray = np.log(powers / (powers.sum() or 1.0))
    return shares
