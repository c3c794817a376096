"""A model's words as a dictionary: how likely each is, and what follows it, or it and the word before.

Probabilities are asked of the model, and no text is counted: `asked_of` reads what the model itself writes.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError
from tacit.keyboard.dictionaries.entries import (
    BEGINNING,
    LEAST,
    Context,
    Dictionary,
    Entry,
    Followers,
    Shortcut,
    frequency,
    has_room,
    header_attributes,
    whole,
)
from tacit.keyboard.exported import Promise
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.suggest import Reader, Scores
from tacit.text.vocabulary import BOS, EOS, PAD, SPECIALS, Vocabulary

LOCALE = "en"
SECRET = "operating system"  # what a statement says of the noise's key where nobody can know it

# How much of its own text the model writes, and for what: 8,000 places give a word's share to about one step of f.
PLACES = 8_000  # words, unknown ones and ends of sentences among them
LONGEST_SENTENCE = 30  # words
CONTEXTS, DRAWN = 4, 200  # places that every word is asked in, and at most as many more where the model wrote it
FOLLOWERS = 16  # of a word
PAIRS, AFTER_PAIRS, PAIR_CONTEXTS = 20_000, 6, 4  # pairs of words, what follows each, places that each is asked in

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a model does not know of words."""

    offensive: Collection[str] = ()
    shortcuts: Mapping[str, tuple[Shortcut, ...]] = field(default_factory=dict)  # of words, known or not

    def added_to(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """The entries with flags and shortcuts; a word that is not among them comes behind, as one that is no word."""
        known = {entry.word for entry in entries}
        marked = (
            entry._replace(offensive=entry.word in self.offensive, shortcuts=self.shortcuts.get(entry.word, ()))
            for entry in entries
        )
        others = (
            Entry(word, LEAST, not_a_word=True, shortcuts=shortcuts)
            for word, shortcuts in self.shortcuts.items()
            if word not in known
        )
        return (*marked, *others)


NOTHING_GIVEN = Given()


def dictionary_of(
    model: PhoneModel,
    privacy: Promise,
    *,
    locale: str = LOCALE,
    date: int,
    pairs: bool = False,
    given: Given = NOTHING_GIVEN,
) -> Dictionary:
    """A model's words; the description names the guarantee, and without one nothing follows anything.

    The same model gives the same dictionary: what is drawn follows from a fixed seed. pairs: also what follows two
    words. Raises: InputError where no word fits, or the model's scores are no numbers.
    """
    promise, followers = promised(privacy)
    description = f"Probabilities asked of a tacit model; {promise}"
    attributes = header_attributes(locale=locale, description=description, date=date)
    found = asked_of(model.reader, model.vocabulary, followers=followers, pairs=followers and pairs)
    room = replace(found, attributes=attributes, entries=given.added_to(found.entries))
    return without(room, len(model.vocabulary.words) - len(found.entries))


def without(dictionary: Dictionary, missing: int) -> Dictionary:
    """The same, whose description says how many words are missing."""
    attributes = dict(dictionary.attributes)
    if missing:
        attributes["description"] += f"; without {missing} that cannot be written so"
    return replace(dictionary, attributes=attributes)


def only(dictionary: Dictionary, keep: Callable[[str], bool]) -> Dictionary:
    """The words that may be kept, which the description says. Raises: InputError where there are none."""
    entries = tuple(entry for entry in dictionary.entries if keep(entry.word))
    if not entries:
        raise InputError("no word of the model can be written in this format; choose another, or other words.")
    kept = {entry.word for entry in entries} | {BEGINNING}
    followers = {
        context: tuple((word, f) for word, f in found if word in kept)
        for context, found in dictionary.followers.items()
        if kept.issuperset(context)
    }
    fewer = replace(dictionary, entries=entries, followers=followers)
    return without(fewer, len(dictionary.entries) - len(entries))


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


# -- what a model knows --------------------------------------------------------------------------------------------


def asked_of(reader: Reader, vocabulary: Vocabulary, *, followers: bool, pairs: bool = False) -> Dictionary:
    """The words with the probabilities that the model gives them in text of its own, of those that have room.

    A word's probability is its expected share of the words at PLACES places of sentences that the model writes: its
    probabilities are added up there, not the words that were drawn, so that rare words have theirs too. What follows it
    is asked in CONTEXTS of those places, drawn with the probability that the word comes there, and where the model did
    write it: the mean of p(next | context, word) is p(next | word). The likeliest FOLLOWERS are taken. The beginning of
    a sentence is asked once. pairs: for the PAIRS likeliest of a word and a follower also what follows both. Raises:
    InputError where no word has room, or scores are no numbers.
    """
    ids = SPECIALS + np.flatnonzero([has_room(word) for word in vocabulary.words])
    if not len(ids):
        raise InputError("no word of the model fits a dictionary, which holds words of 1 to 48 characters.")
    places = _Places.written_by(reader)
    log_shares = _log_shares(places.expected)
    discovered = set(vocabulary.discovered)
    entries = tuple(
        Entry(word, frequency(float(log_shares[id])), word in discovered)
        for id in ids.tolist()
        for word in [vocabulary.word_of(id)]
    )
    found: dict[Context, Followers] = {}
    asking = _Asking(places, vocabulary, ids)
    if followers:
        found = {(BEGINNING,): asking.likeliest(places.beginning, FOLLOWERS)}
        found |= {(entry.word,): asking.likeliest(places.after(id), FOLLOWERS) for entry, id in _with(entries, ids)}
    if pairs:
        own = {entry.word: entry.f for entry in entries}
        found |= asking.after_pairs(found, own)
    return Dictionary(attributes={}, entries=entries, followers=found)


def _with(entries: tuple[Entry, ...], ids: NDArray[np.int64]) -> Iterator[tuple[Entry, int]]:
    return zip(entries, ids.tolist(), strict=True)


class _Asking:
    """Turns what is known of ids into words with their f."""

    def __init__(self, places: "_Places", vocabulary: Vocabulary, ids: NDArray[np.int64]) -> None:
        self._places, self._vocabulary, self._ids = places, vocabulary, ids

    def likeliest(self, weights: FloatArray, most: int) -> Followers:
        """The likeliest words of those with room; of equally likely ones first the more frequent."""
        return tuple((self._vocabulary.word_of(id), f) for id, f in self._likeliest(self._f(weights), most))

    def after_pairs(self, followers: Mapping[Context, Followers], own: Mapping[str, float]) -> dict[Context, Followers]:
        """What follows the likeliest pairs of words: the likeliest, and what would else come before them there, since
        a reader takes f of what follows one word where a pair has none.
        """
        likely = [(own.get(head, 255.0) + f, head, word) for (head,), words in followers.items() for word, f in words]
        found: dict[Context, Followers] = {}
        for _, head, word in sorted(likely, key=lambda each: (-each[0], each[1:]))[:PAIRS]:
            f = self._f(
                self._places.after_pair(*(self._vocabulary.id_of(each) if each else BOS for each in (head, word)))
            )
            chosen = self._likeliest(f, AFTER_PAIRS)
            usual = {self._vocabulary.id_of(each): often for each, often in followers.get((word,), ())}
            least = chosen[-1][1] if chosen else 0.0
            chosen += [(id, float(f[id])) for id, often in usual.items() if often > least > f[id]]
            listed = [(id, f) for id, f in chosen if id not in usual or whole(usual[id]) != whole(f)]
            if listed:
                found[(head, word)] = tuple((self._vocabulary.word_of(id), f) for id, f in listed)
        return found

    def _f(self, weights: FloatArray) -> FloatArray:
        """(V,)"""
        with np.errstate(invalid="ignore"):
            return np.maximum(LEAST, 255 + _log_shares(weights) / math.log(1.15))

    def _likeliest(self, f: FloatArray, most: int) -> list[tuple[int, float]]:
        of = f[self._ids]
        most = min(most, len(of))
        among = np.flatnonzero(of >= np.partition(of, -most)[-most])
        best = among[np.argsort(-of[among], kind="stable")][:most]
        return [(int(self._ids[at]), float(of[at])) for at in best if of[at] > LEAST]


class _Places:
    """Places of text that a model wrote: what came next there, and for each word some places where it comes."""

    def __init__(self, reader: Reader, states: list[Any], expected: FloatArray, drawn: NDArray[np.int32]) -> None:
        self._reader, self._states = reader, states
        self.expected = expected  # (V,) the sum over the places of the probability that the id comes next
        self._drawn = drawn  # (CONTEXTS, V) places, each drawn in proportion to the probability of the id there
        self._written: dict[int, list[int]] = {}  # places where the model wrote the id itself, at most DRAWN
        self._begun = reader.step(reader.begin(), BOS)

    @classmethod
    def written_by(cls, reader: Reader) -> "_Places":
        """PLACES places of sentences; one pass, in which each word keeps or exchanges its places (A-Chao sampling:
        Chao, "A general purpose unequal probability sampling plan", Biometrika 69(3), 1982, with one place a sample).
        """
        random = np.random.Generator(np.random.Philox(0))
        state, scores = reader.step(reader.begin(), BOS)
        width = len(scores)
        places = cls(reader, [], np.zeros(width), np.zeros((CONTEXTS, width), np.int32))
        written = 0
        for place in range(PLACES):
            chances = _chances(scores)
            places.expected += chances
            places._drawn[random.random(places._drawn.shape) * places.expected < chances] = place
            places._states.append(state)
            token = int(np.searchsorted(np.cumsum(chances), random.random() * chances.sum(), side="right"))
            here = places._written.setdefault(token, [])
            here += [place] * (len(here) < DRAWN)
            ended = token == EOS or written == LONGEST_SENTENCE
            (state, scores), written = (places._begun, 0) if ended else (reader.step(state, token), written + 1)
        return places

    @property
    def beginning(self) -> FloatArray:
        """(V,) how often each id begins a sentence."""
        return _chances(self._begun[1])

    def after(self, head: int) -> FloatArray:
        """(V,) how often each id comes after this word, but for a factor."""
        return self._sum(self._reader.step(self._states[place], head) for place in self._of(head))

    def after_pair(self, head: int, word: int) -> FloatArray:
        """(V,) how often each id comes after these two; the first may be the beginning of a sentence.

        Each place counts with the probability that the second comes after the first there.
        """
        if head == BOS:
            return self._sum([self._reader.step(self._begun[0], word)])
        total: FloatArray = np.zeros(len(self.expected))
        for place in self._of(head)[:PAIR_CONTEXTS]:
            state, scores = self._reader.step(self._states[place], head)
            total += _chances(scores)[word] * _chances(self._reader.step(state, word)[1])
        return total

    def _of(self, id: int) -> list[int]:
        return [*self._drawn[:, id].tolist(), *self._written.get(id, ())]

    def _sum(self, steps: Iterable[tuple[Any, Scores]]) -> FloatArray:
        total: FloatArray = np.sum([_chances(scores) for _, scores in steps], axis=0)
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
