"""What a server broadcasts to a group of devices: which prefixes do your unknown words have, or which are they?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from tacit.text.alphabet import END, Alphabet

NOTHING = -1  # what a word that is no answer to a question counts as


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

    def to_plain(self) -> dict[str, Any]:
        """Plain values that say all of it, with what it is `about`; `question_from` reads them."""
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

    def to_plain(self) -> dict[str, Any]:
        """See `Question`."""
        return {
            "about": "prefixes",
            "prefixes": self.prefixes,
            "alphabet": self.alphabet.characters,
            "depth": self.depth,
            "found": tuple(sorted(self.found)),
        }

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

    def to_plain(self) -> dict[str, Any]:
        """See `Question`."""
        return {"about": "words", "words": self.words}


def question_from(said: Mapping[str, Any]) -> PrefixQuestion | WordQuestion:
    """The question that `to_plain` wrote. Raises: InputError for an alphabet that is none."""
    if said["about"] == "words":
        return WordQuestion(words=said["words"])
    return PrefixQuestion(
        prefixes=said["prefixes"],
        alphabet=Alphabet(said["alphabet"]),
        depth=said["depth"],
        found=frozenset(said["found"]),
    )
