"""The characters that words are spelt in, one layer of the trie each, and the symbol that ends a word."""

import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tacit.errors import InputError

END = "\n"  # a character that no word contains; printable, so that 99 others and the end are Python's 100 printables
PRINTABLE = string.printable.replace(END, "")


@dataclass(frozen=True)
class Alphabet:
    """Any set of characters without the end symbol, which is added. The default has 100 symbols, as in paper 2.

    Every character is one layer; text is composed (NFC), so `é` is one character. A narrow alphabet has fewer
    candidates that are noise; a word with another character is never reported.
    Raises: InputError for no character, one given twice, the line break, or one that composition takes apart.
    """

    characters: str = PRINTABLE

    def __post_init__(self) -> None:
        if not self.characters:
            raise InputError("an alphabet of no characters spells no word; give at least one character.")
        if END in self.characters:
            raise InputError("the line break ends every word, so it cannot be in the alphabet; leave it out.")
        character, times = Counter(self.characters).most_common(1)[0]
        if times > 1:
            raise InputError(f"the alphabet has {character!r} {times} times; give each character once.")
        for character in self.characters:
            if unicodedata.normalize("NFC", character) != character:
                raise InputError(f"no composed text (NFC) has the character {character!r}; give its composed form.")

    def with_characters(self, more: str) -> "Alphabet":
        """A wider alphabet: those of `more` that are not in it yet, at the end."""
        return Alphabet(self.characters + "".join(dict.fromkeys(c for c in more if c not in self.characters)))

    @property
    def size(self) -> int:
        """How many symbols may follow a prefix: the characters and the end."""
        return len(self.characters) + 1

    @property
    def symbols(self) -> str:
        """The characters and then the end symbol: symbol number s is `symbols[s]`."""
        return self.characters + END

    @cached_property
    def _number(self) -> dict[str, int]:
        return {symbol: number for number, symbol in enumerate(self.symbols)}

    @cached_property
    def _letters(self) -> frozenset[str]:
        return frozenset(self.characters)

    def number(self, symbol: str) -> int:
        """The number of a character of the alphabet or of END; KeyError for another."""
        return self._number[symbol]

    def spells(self, word: str) -> bool:
        """Whether every character of the word is in the alphabet; the empty word is no word."""
        return bool(word) and self._letters.issuperset(word)

    def lacked_by(self, words: Sequence[str]) -> str:
        """The characters of the words that the alphabet has not, in both cases, those of most words first.

        Of a word in several characters each counts once. A character whose other case is more than one character, or
        is there already, stands alone.
        """
        times = Counter(character for word in words for character in set(word) - self._letters)
        ranked = sorted(times, key=lambda character: (-times[character], character))
        both = [case for character in ranked for case in (character, character.upper(), character.lower())]
        return "".join(case for case in dict.fromkeys(both) if len(case) == 1 and case not in self._letters)
