"""What a device does when it is asked for new words: from what was typed on it to K answers that anybody may see.

This is the whole of the device's part (paper 2, Algorithm 2, lines 9 to 18) and it is pure: words typed and the
server's question in, reports out. A real device runs `reports`; `simulated_devices.py` computes the same for a
whole population at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.discovery.alphabet import END, Alphabet
from tacit.errors import InputError
from tacit.randomizers.device_randomness import random_words
from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
from tacit.randomizers.randomizers import KaryRandomizedResponse, Randomizer, SubsetSelection

Sampler = Literal["random", "greedy"]
RandomizerName = Literal["subset-selection", "projective-geometry", "k-ary"]

NOTHING = -1  # what a word that is no answer to a question counts as


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How much a device says, and how it is hidden; the device checks these against its own policy.

    Every device that is asked sends exactly `contributions` reports, each through a `local_epsilon` randomizer.
    `greedy` reports what it holds most of, `random` a uniform choice among the different things it holds.
    """

    local_epsilon: float
    contributions: int = 1
    sampler: Sampler = "random"
    randomizer: RandomizerName = "subset-selection"

    def __post_init__(self) -> None:
        if self.contributions < 1:
            raise InputError(f"{self.contributions} contributions a user are none; ask for 1 or more.")
        for given, known in ((self.sampler, Sampler), (self.randomizer, RandomizerName)):
            if given not in get_args(known):
                raise InputError(f"{given!r} is unknown; it must be one of {', '.join(get_args(known))}.")
        self.randomizer_for(2)  # refuses an epsilon that cannot be

    def randomizer_for(self, domain: int) -> Randomizer:
        """The local randomizer over so many possible answers."""
        match self.randomizer:
            case "subset-selection":
                return SubsetSelection(domain=domain, epsilon=self.local_epsilon)
            case "projective-geometry":
                return ProjectiveGeometryResponse(domain=domain, epsilon=self.local_epsilon)
            case "k-ary":
                return KaryRandomizedResponse(domain=domain, epsilon=self.local_epsilon)


class Question(Protocol):
    """What a server broadcasts: possible answers 0..domain-1, the last of which is `null`, nothing to say."""

    @property
    def domain(self) -> int:
        """How many answers there are, null included."""
        ...

    @property
    def merges(self) -> bool:
        """Whether several words with one answer are one thing held (a prefix), or as many as there are words."""
        ...

    def answer_of(self, word: str) -> int:
        """The answer that an unknown word stands for, NOTHING if it stands for none."""
        ...


@dataclass(frozen=True, kw_only=True)
class PrefixQuestion:
    """Which prefix, one character longer than those kept so far, do your unknown words have?

    Answer `i * alphabet.size + s` is prefix i followed by symbol s (the last symbol ends the word). Words already
    `found`, words that the alphabet does not spell, and words too long to end within `depth` layers, stand for none.
    """

    prefixes: tuple[str, ...]
    alphabet: Alphabet
    depth: int
    found: frozenset[str] = field(default_factory=frozenset)
    merges = True

    @property
    def domain(self) -> int:
        """Every symbol after every prefix, and null."""
        return len(self.prefixes) * self.alphabet.size + 1

    @cached_property
    def layer(self) -> int:
        """How many symbols the answers have; 1 for the first layer, whose only prefix is empty."""
        return len(self.prefixes[0]) + 1

    @cached_property
    def _position(self) -> dict[str, int]:
        return {prefix: position for position, prefix in enumerate(self.prefixes)}

    def answer_of(self, word: str) -> int:
        """See `Question`."""
        kept = self.layer - 1
        position = self._position.get(word[:kept])
        if position is None or not self.may_be_found(word):
            return NOTHING
        return position * self.alphabet.size + self.alphabet.number(word[kept] if len(word) > kept else END)

    def may_be_found(self, word: str) -> bool:
        """Whether the trie can end in this word and has not yet."""
        return len(word) < self.depth and self.alphabet.spells(word) and word not in self.found

    def text_of(self, answer: int) -> str:
        """The prefix, with END behind it where it is a whole word."""
        position, symbol = divmod(answer, self.alphabet.size)
        return self.prefixes[position] + self.alphabet.symbols[symbol]


@dataclass(frozen=True, kw_only=True)
class WordQuestion:
    """Which of these words are among your unknown ones? Answer i is word i; then "another word"; then null."""

    words: tuple[str, ...]
    merges = False

    @property
    def domain(self) -> int:
        """The words, another word, and null."""
        return len(self.words) + 2

    @property
    def another(self) -> int:
        """The answer of every unknown word that is not listed."""
        return len(self.words)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {word: position for position, word in enumerate(self.words)}

    def answer_of(self, word: str) -> int:
        """See `Question`."""
        return self._position.get(word, self.another)


def choose(counts: NDArray[np.int64], terms: Terms, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which of the things held are reported: at most K different indices into `counts` (held,).

    greedy: the K largest counts, ties to the earlier; random: K of them uniformly, by the first K steps of a
    Fisher-Yates shuffle with `uniforms` (K,) in [0, 1). Everything where no more than K are held. In both cases
    changing one word typed changes at most one thing reported, which item-level privacy rests on.
    """
    held, wanted = len(counts), terms.contributions
    if held <= wanted:
        return np.arange(held)
    if terms.sampler == "greedy":
        return np.argsort(-counts, kind="stable")[:wanted]
    order = np.arange(held)
    for step in range(wanted):
        other = step + int(uniforms[step] * (held - step))
        order[step], order[other] = order[other], order[step]
    return order[:wanted]


def answers(
    typed: Mapping[str, int], question: Question, terms: Terms, uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The K answers of one device before they are hidden, padded with null: (contributions,).

    `typed` has the words that the phone's vocabulary lacks, and their counts; ties go by code point.
    """
    held: list[tuple[int, int]] = []
    place: dict[int, int] = {}
    for word in sorted(typed):
        answer = question.answer_of(word)
        if answer == NOTHING:
            continue
        if question.merges and answer in place:
            held[place[answer]] = (answer, held[place[answer]][1] + typed[word])
        else:
            place[answer] = len(held)
            held.append((answer, typed[word]))
    counts = np.array([count for _, count in held], np.int64)
    given = np.full(terms.contributions, question.domain - 1, np.int64)
    for position, index in enumerate(choose(counts, terms, uniforms)):
        given[position] = held[index][0]
    return given


def reports(
    typed: Mapping[str, int], question: Question, terms: Terms, generator: np.random.Generator
) -> NDArray[np.generic]:
    """What one device sends: K randomized reports, in an order that tells nothing.

    Each report is `local_epsilon`-LDP; swapping one word typed changes one of them (Theorem 1 of paper 2). The order
    is random because K answers in a fixed order could all move when one of them changes.
    """
    own = answers(typed, question, terms, uniforms_from(generator, terms.contributions))
    order = np.argsort(random_words(generator, terms.contributions), kind="stable")
    return terms.randomizer_for(question.domain).encode(own[order], generator)


def uniforms_from(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Numbers in [0, 1), (count,), as NumPy makes them of 64 random bits; quick from the operating system too."""
    return np.asarray((random_words(generator, count) >> np.uint64(11)) * 2.0**-53, np.float64)
