"""The words a keyboard knows, and where they came from.

A vocabulary is a release: its words are shipped to every device. So it carries its provenance, and one
counted on private text says so wherever it goes: nothing here promises anything for it.
"""

import hashlib
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.files import read_bounded
from tacit.parsing import parsed_json
from tacit.records import from_plain
from tacit.text.words import LINE_END, RULES, Writing, canonical, is_placeholder, lowered, pieces

PAD, BOS, EOS, OOV = 0, 1, 2, 3
SPECIALS = 4
SPECIAL_NAMES = ("<pad>", "<bos>", "<eos>", "<oov>")

_HALF = re.compile("[\ud800-\udfff]")
LAST_CHARACTER = chr(0x10FFFF)  # of Unicode, which is in no word

ProvenanceKind = Literal["public", "word list", "discovered", "private"]


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a vocabulary's words come from; `private` means that it is released without a guarantee.

    `discovered`: some of them by a discovery run, under the guarantee that the description names. discovered: so many,
    the last of the vocabulary, were found by such runs; extended vocabularies of before this was recorded have 0.
    """

    kind: ProvenanceKind
    description: str
    discovered: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(ProvenanceKind):
            kinds = ", ".join(get_args(ProvenanceKind))
            raise InputError(f"vocabulary provenance {self.kind!r} is unknown; it must be one of {kinds}.")


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The known words, most frequent first; ids 0..3 are padding, beginning, end and out-of-vocabulary.

    lowercase, language, emoji: as `Writing` has them.
    """

    words: tuple[str, ...]
    provenance: Provenance
    lowercase: bool = False
    language: str = ""
    emoji: bool = False

    def __post_init__(self) -> None:
        if not self.words:
            raise InputError("a vocabulary of no words predicts nothing; give at least one word.")
        if not 0 <= self.provenance.discovered <= len(self.words):
            raise InputError(
                f"discovered={self.provenance.discovered} of {len(self.words)} words cannot be the last ones; say how "
                "many of them were found."
            )
        if len(self._ids) != len(self.words):
            twice = next(word for word, times in Counter(self.words).items() if times > 1)
            raise InputError(f"the word {twice!r} is in the vocabulary twice; keep one of the two.")
        half = next((word for word in (*self.words, self.provenance.description) if _HALF.search(word)), None)
        if half is not None:
            raise InputError(f"{half[:60]!r} has half a character, a surrogate, which no file can say; write it whole.")
        word = next((word for word in self.words if not self.cuts(word)), None)
        if word is not None:
            case = "a lower-case" if self.lowercase else "a"
            raise InputError(
                f"{word!r} cannot be in {case} vocabulary: no text is ever cut into it; "
                "write one word each, without blanks and punctuation around it."
            )

    def __repr__(self) -> str:
        return f"Vocabulary({self.size:,} ids, {self.provenance.kind}: {self.provenance.description})"

    @cached_property
    def writing(self) -> Writing:
        """How its words are written."""
        return Writing(lowercase=self.lowercase, language=self.language, emoji=self.emoji)

    def pieces(self, text: str) -> list[str]:
        """The words of a text, known or not, as they would be spelled here, and LINE_ENDs between its sentences."""
        return pieces(text, self.writing)

    def cuts(self, word: str) -> bool:
        """Whether any text is ever cut into this one word, and it is none that no keyboard suggests."""
        return self.pieces(word) == [word] and word != LINE_END and not is_placeholder(word)

    def spelled(self, word: str) -> str:
        """A word as it would be written here."""
        word = canonical(word, self.writing)
        return lowered(word, self.language) if self.lowercase else word

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: SPECIALS + position for position, word in enumerate(self.words)}

    @property
    def size(self) -> int:
        """How many ids there are: the words and the four specials."""
        return SPECIALS + len(self.words)

    @property
    def discovered(self) -> tuple[str, ...]:
        """The words that discovery runs found; see Provenance."""
        return self.words[len(self.words) - self.provenance.discovered :]

    @cached_property
    def ranked(self) -> bool:
        """Whether its order can be that of frequency: an alphabetical list does not say which are frequent."""
        return list(self.words) != sorted(self.words, key=str.casefold)

    def id_of(self, word: str) -> int:
        """The id of a word, OOV when it is unknown."""
        return self._ids.get(lowered(word, self.language) if self.lowercase else word, OOV)

    def ids_beginning(self, prefix: str) -> NDArray[np.int64]:
        """The ids of the words that begin so, letter by letter, in alphabetical order; every word begins with ""."""
        words, ids = self._in_order
        return ids[bisect_left(words, prefix) : bisect_left(words, prefix + LAST_CHARACTER)]

    @cached_property
    def _in_order(self) -> tuple[list[str], NDArray[np.int64]]:
        """The words in the order of their code points, and the id of each."""
        order = sorted(range(len(self.words)), key=self.words.__getitem__)
        return [self.words[at] for at in order], np.array(order, np.int64) + SPECIALS

    def word_of(self, id: int) -> str:
        """The word of an id; specials are written `<pad>`, `<bos>`, `<eos>`, `<oov>`."""
        if not 0 <= id < self.size:
            raise InputError(f"word id {id} is outside this vocabulary; ids go from 0 to {self.size - 1}.")
        return SPECIAL_NAMES[id] if id < SPECIALS else self.words[id - SPECIALS]

    @cached_property
    def sha256(self) -> str:
        """A digest of all of it: the words in order, how text is cut into them, and where the words come from.

        Wherever it is compared, words of private text cannot have become public ones.
        """
        content = json.dumps(self._said(), ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def _said(self) -> dict[str, Any]:
        """Everything but the digest, as plain values; without discovered words as it was before there were any."""
        provenance = {name: value for name, value in vars(self.provenance).items() if name != "discovered" or value}
        return {"rules": RULES, **vars(self.writing), "provenance": provenance, "words": self.words}

    def to_json(self) -> str:
        """One JSON object; `from_json` is its inverse."""
        return json.dumps({"format": _FORMAT, "sha256": self.sha256, **self._said()}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        """The vocabulary that `to_json` wrote; InputError on anything else, or on changed words."""
        return _read(text)

    def save(self, path: Path) -> None:
        """Write `to_json` to a file."""
        path.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read what `save` wrote; InputError when the file is missing or not a vocabulary."""
        try:
            content = read_bounded(path)
        except FileNotFoundError as error:
            raise InputError(f"there is no vocabulary at {path}; check the path.") from error
        try:
            return cls.from_json(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8, so it is no vocabulary; {_WAY_OUT}.") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


_FORMAT = "tacit-vocabulary-3"
_OLD = {"tacit-vocabulary-1": "tacit-words-1", "tacit-vocabulary-2": "tacit-words-1"}  # the rules of each
_WAY_OUT = "`tacit data import` writes one"


@lru_cache(maxsize=4)  # one command reads the same words dozens of times, and tests each of them against the rules
def _read(text: str) -> Vocabulary:
    try:
        record = parsed_json(text)
    except ValueError as error:
        raise InputError(f"this is not a vocabulary: {error}; {_WAY_OUT}.") from error
    if not isinstance(record, Mapping) or record.get("format") not in (_FORMAT, *_OLD):
        raise InputError(f"this JSON is not a vocabulary of format {_FORMAT!r}; {_WAY_OUT}.")
    rules = _OLD.get(record["format"], record.get("rules"))
    if rules != RULES:
        raise InputError(
            f"the words of this vocabulary were cut by the rules {rules!s:.40}, and this tacit cuts by {RULES}, so "
            "some of its words would never be found; import again, or give its words as a list (--word-list)."
        )
    said = {name: value for name, value in record.items() if name not in ("format", "sha256", "rules")}
    vocabulary = from_plain(Vocabulary, said, where="this vocabulary")
    if vocabulary.sha256 != record.get("sha256"):
        raise InputError(
            f"its words and their origin hash to {vocabulary.sha256[:12]} but the file says "
            f"{record.get('sha256')!s:.12}: somebody changed it; import the list as a word list (--word-list) "
            "instead."
        )
    return vocabulary
