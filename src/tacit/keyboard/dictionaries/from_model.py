"""A model's words as a dictionary: how likely each is, and what follows it, or it and the word before.

Probabilities are asked of the model, and no text is counted: `asked_of` reads what a network itself writes. A counted
model has them in its tables (`from_counts`); of a mixture each part says its share.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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
from tacit.keyboard.dictionaries.from_counts import Counts, FloatArray, counts_of
from tacit.keyboard.exported import Promise
from tacit.keyboard.mixture import MixtureReader
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.suggest import Reader, Scores
from tacit.text.vocabulary import BOS, EOS, PAD, SPECIALS, Vocabulary
from tacit.text.words import lowered

if TYPE_CHECKING:  # it asks this module
    from tacit.keyboard.dictionaries.more_words import MoreWords

LOCALE = "en"
MIXTURE = "tacit.mixture.promise"  # the schema of `statements.composed`, which nothing here imports
SECRET = "operating system"  # what a statement says of the noise's key where nobody can know it

# How much of its own text the model writes, and for what: 8,000 places give a word's share to about one step of f.
PLACES = 8_000  # words, unknown ones and ends of sentences among them
LONGEST_SENTENCE = 30  # words
CONTEXTS, DRAWN = 4, 200  # places that every word is asked in, and at most as many more where the model wrote it
FOLLOWERS = 16  # of a word
PAIRS, AFTER_PAIRS, PAIR_CONTEXTS = 20_000, 6, 4  # pairs of words, what follows each, places that each is asked in

HEADER_SIGNS = str.maketrans(",=:", ";  ")  # what no description may have


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a model does not know of words."""

    offensive: Collection[str] = ()
    shortcuts: Mapping[str, tuple[Shortcut, ...]] = field(default_factory=dict)  # of words, known or not
    more: "MoreWords | None" = None  # of public text, beyond the vocabulary

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
    more = f" and more words of {given.more.source}" if given.more else ""
    description = f"Probabilities asked of a tacit model{more.translate(HEADER_SIGNS)}; {promise}"
    attributes = header_attributes(locale=locale, description=description, date=date)
    found = asked_of(model.reader, model.vocabulary, followers=followers, pairs=followers and pairs, more=given.more)
    room = replace(found, attributes=attributes, entries=given.added_to(found.entries))
    return without(room, sum(not has_room(word) for word in model.vocabulary.words))


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
    if record.get("schema") == MIXTURE:
        stated, figures, delta = list(record["statements"].values()), record, record["delta"]
    else:
        stated, figures, delta = [record], record.get("in_all", record).get("realised", {}), record.get("delta")
    if privacy.kind == "unknown" or not all(each.get("private", each.get("zcdp")) for each in stated):
        return "released with no guarantee and so without bigrams", False
    labels = " and ".join(dict.fromkeys(label["name"] for each in stated for label in each["labels"]))
    labelled = f"; labelled {labels}" if labels else ""
    if any(each.get("key_source") != SECRET for each in stated):
        return f"released with noise of a known seed and so without bigrams{labelled}", False
    zcdp, epsilon = (math.ceil(1000 * figures[name]) / 1000 for name in ("zcdp", "epsilon"))
    said = f"released with zCDP {zcdp:g} and epsilon {epsilon:g} at delta {delta:g} for each client"
    return said + labelled, True


# -- what a model knows --------------------------------------------------------------------------------------------


def asked_of(
    reader: Reader,
    vocabulary: Vocabulary,
    *,
    followers: bool,
    pairs: bool = False,
    more: "MoreWords | None" = None,
) -> Dictionary:
    """The words with the probabilities that the model gives them in text of its own, of those that have room.

    A word's probability is its expected share of the words at PLACES places of sentences that the model writes: its
    probabilities are added up there, not the words that were drawn, so that rare words have theirs too. What follows it
    is asked in CONTEXTS of those places, drawn with the probability that the word comes there, and where the model did
    write it: the mean of p(next | context, word) is p(next | word). The likeliest FOLLOWERS are taken. The beginning of
    a sentence is asked once. A counted model is asked for its tables instead. pairs: for the PAIRS likeliest of a word
    and a follower also what follows both. more: words that stand behind those of the model. Raises: InputError where no
    word has room, or scores are no numbers.
    """
    ids = SPECIALS + np.flatnonzero([has_room(word) for word in vocabulary.words])
    if not len(ids):
        raise InputError("no word of the model fits a dictionary, which holds words of 1 to 48 characters.")
    known = known_by(reader)
    log_shares = log_shares_of(known.shares)
    discovered = set(vocabulary.discovered)
    entries = tuple(
        Entry(word, frequency(float(log_shares[id])), word in discovered)
        for id in ids.tolist()
        for word in [vocabulary.word_of(id)]
    )
    found: dict[Context, Followers] = {}
    asking = Asking(known, vocabulary, ids)
    if followers:
        found = {(BEGINNING,): asking.likeliest(_beginning(reader), FOLLOWERS)}
        found |= {(entry.word,): asking.likeliest(known.after(id), FOLLOWERS) for entry, id in _with(entries, ids)}
    if pairs:
        own = {entry.word: entry.f for entry in entries}
        found |= asking.after_pairs(found, own)
    made = Dictionary(attributes={}, entries=entries, followers=found)
    return made if more is None else more.added_to(made, known, asking, followers=followers)


def _with(entries: tuple[Entry, ...], ids: NDArray[np.int64]) -> Iterator[tuple[Entry, int]]:
    return zip(entries, ids.tolist(), strict=True)


class Knowledge(Protocol):
    """What a model says of words, each sum but for a factor."""

    @property
    def shares(self) -> FloatArray:
        """(V,) how often each id comes."""

    def after(self, head: int) -> FloatArray:
        """(V,) how often each id comes after this one."""

    def after_pair(self, head: int, word: int) -> FloatArray:
        """(V,) how often each id comes after these two; the first may be the beginning of a sentence."""


def known_by(reader: Reader) -> Knowledge:
    """What a reader says: by its tables, by text that it writes, or by both."""
    counts = counts_of(reader)
    if counts is None:
        return _Places.written_by(reader)
    if not counts.network_weight:
        return counts
    assert isinstance(reader, MixtureReader)  # no other has a weight
    return _Both(counts, replace(_Places.written_by(reader), ask=reader.of_network))


class _Both(NamedTuple):
    """A mixture: its counts say their share exactly, and its network the rest in places that the mixture writes."""

    counts: Counts
    places: "_Places"

    @property
    def shares(self) -> FloatArray:
        """See Knowledge."""
        return self._mixed(self.counts.shares, self.places.shares)

    def after(self, head: int) -> FloatArray:
        """See Knowledge."""
        return self._mixed(self.counts.after(head), self.places.after(head))

    def after_pair(self, head: int, word: int) -> FloatArray:
        """See Knowledge."""
        return self._mixed(self.counts.after_pair(head, word), self.places.after_pair(head, word))

    def _mixed(self, counted: FloatArray, written: FloatArray) -> FloatArray:
        weight = self.counts.network_weight if written.sum() else 0.0
        found: FloatArray = (1 - weight) * counted / counted.sum() + weight * written / (written.sum() or 1.0)
        return found


class Asking:
    """Turns what is known of ids into words with their f.

    Of words that differ in capitals alone the likelier stands for all of them: two would take two places of three.
    """

    def __init__(self, known: Knowledge, vocabulary: Vocabulary, ids: NDArray[np.int64]) -> None:
        self._known, self._vocabulary, self._ids = known, vocabulary, ids
        numbers: dict[str, int] = {}
        forms = [lowered(vocabulary.word_of(id), vocabulary.language) for id in ids.tolist()]
        form = np.array([numbers.setdefault(each, len(numbers)) for each in forms])
        self._order = np.argsort(form, kind="stable")  # ids of one form together, the more frequent first
        self._starts = np.flatnonzero(np.diff(form[self._order], prepend=-1))

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
                self._known.after_pair(*(self._vocabulary.id_of(each) if each else BOS for each in (head, word)))
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
        return np.maximum(LEAST, 255 + log_shares_of(self._of_forms(weights)) / math.log(1.15))

    def _of_forms(self, weights: FloatArray) -> FloatArray:
        """(V,) the same, where the likeliest of each form has what all of it have, and the others nothing."""
        of = weights[self._ids[self._order]]
        sums, best = np.add.reduceat(of, self._starts), np.maximum.reduceat(of, self._starts)
        sizes = np.diff(self._starts, append=len(of))
        at = np.flatnonzero(of == np.repeat(best, sizes))
        first = at[np.diff(np.repeat(np.arange(len(sizes)), sizes)[at], prepend=-1) > 0]
        found = weights.copy()
        found[self._ids] = 0.0
        found[self._ids[self._order[first]]] = sums
        return found

    def _likeliest(self, f: FloatArray, most: int) -> list[tuple[int, float]]:
        of = f[self._ids]
        most = min(most, len(of))
        among = np.flatnonzero(of >= np.partition(of, -most)[-most])
        best = among[np.argsort(-of[among], kind="stable")][:most]
        return [(int(self._ids[at]), float(of[at])) for at in best if of[at] > LEAST]


@dataclass(frozen=True)
class _Places:
    """Places of text that a model wrote: what came next there, and for each word some places where it comes."""

    reader: Reader
    expected: FloatArray  # (V,) the sum over the places of the probability that the id comes next
    drawn: NDArray[np.int32]  # (CONTEXTS, V) places, each drawn in proportion to the probability of the id there
    states: list[Any]
    written: dict[int, list[int]]  # places where the model wrote the id itself, at most DRAWN
    ask: Callable[[Any, int], NDArray[np.floating]]  # the probabilities (V,) after a state and a token

    @classmethod
    def written_by(cls, reader: Reader) -> "_Places":
        """PLACES places of sentences; one pass, in which each word keeps or exchanges its places (A-Chao sampling:
        Chao, "A general purpose unequal probability sampling plan", Biometrika 69(3), 1982, with one place a sample).
        """
        random = np.random.Generator(np.random.Philox(0))
        state, scores = reader.step(reader.begin(), BOS)
        width = len(scores)
        expected, drawn = np.zeros(width), np.zeros((CONTEXTS, width), np.int32)
        states, written, begun, length = list[Any](), dict[int, list[int]](), (state, scores), 0
        for place in range(PLACES):
            chances = _chances(scores)
            expected += chances
            drawn[random.random(drawn.shape) * expected < chances] = place
            states.append(state)
            token = int(np.searchsorted(np.cumsum(chances), random.random() * chances.sum(), side="right"))
            here = written.setdefault(token, [])
            here += [place] * (len(here) < DRAWN)
            ended = token == EOS or length == LONGEST_SENTENCE
            (state, scores), length = (begun, 0) if ended else (reader.step(state, token), length + 1)
        return cls(
            reader, expected, drawn, states, written, lambda state, token: _chances(reader.step(state, token)[1])
        )

    @property
    def shares(self) -> FloatArray:
        """See Knowledge."""
        return self.expected

    def after(self, head: int) -> FloatArray:
        """See Knowledge."""
        total: FloatArray = np.sum(
            [self.ask(self.states[place], head) for place in self._of(head)], axis=0, dtype=float
        )
        return total

    def after_pair(self, head: int, word: int) -> FloatArray:
        """See Knowledge; each place counts with the probability that the second comes after the first there."""
        if head == BOS:
            return np.asarray(self.ask(self.reader.step(self.reader.begin(), BOS)[0], word), np.float64)
        total: FloatArray = np.zeros(len(self.expected))
        for place in self._of(head)[:PAIR_CONTEXTS]:
            state, scores = self.reader.step(self.states[place], head)
            total += _chances(scores)[word] * self.ask(state, word)
        return total

    def _of(self, id: int) -> list[int]:
        return [*self.drawn[:, id].tolist(), *self.written.get(id, ())]


def _beginning(reader: Reader) -> FloatArray:
    """(V,) how often each id begins a sentence."""
    return _chances(reader.step(reader.begin(), BOS)[1])


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


def log_shares_of(weights: ArrayLike) -> FloatArray:
    """(V,) ln of each id's share of the words, known or not: the end of a sentence is none, and may be all there is."""
    powers = np.array(weights, np.float64)
    powers[EOS] = 0.0
    with np.errstate(divide="ignore"):
        shares: FloatArray = np.log(powers / (powers.sum() or 1.0))
    return shares
