"""The header of Android's binary dictionaries, and how they write characters; all formats share them.

    header   magic 9B C1 3A FE, version (2 bytes), flags (2), size of the header (4), then keys and values in turn
    text     characters, then 1F
    a character   20 to FF: one byte; any other: three bytes, of which the first is below 1F

All numbers are big-endian. The rules are those of `FormatSpec.java` of LatinIME.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tacit.errors import InputError

MAGIC = 0x9BC13AFE
FIXED = 12  # bytes before the attributes
END = 0x1F  # of text
SENTENCE = 0x110000  # behind the last character of Unicode: the word that stands for a sentence's beginning
CODE_POINT_TABLE = "codePointTable"  # an attribute: the characters that 20, 21, ... stand for in the trie


class Header(NamedTuple):
    """What stands before the words."""

    version: int
    attributes: dict[str, str]
    size: int  # bytes


def characters(codes: Iterable[int]) -> bytes:
    """The bytes of characters, given as code points."""
    return b"".join(bytes([code]) if 0x20 <= code <= 0xFF else code.to_bytes(3, "big") for code in codes)


def text(word: str) -> bytes:
    """The bytes of text with its end."""
    return characters(map(ord, word)) + bytes([END])


def header(version: int, attributes: Mapping[str, str]) -> bytes:
    """The bytes of a header. Raises: InputError where an attribute is empty or would not be read back."""
    for key, value in attributes.items():
        if not key or not value or "\0" in key + value:
            raise InputError(f"the attribute {key!r} of a header has the value {value!r}; leave it out.")
    pairs = b"".join(text(key) + text(value) for key, value in attributes.items())
    fixed = MAGIC.to_bytes(4, "big") + version.to_bytes(2, "big") + bytes(2)
    return fixed + (FIXED + len(pairs)).to_bytes(4, "big") + pairs


class Bytes:
    """Reads numbers and characters, one after the other. `place` says which file complains."""

    def __init__(self, content: bytes, at: int, place: str, table: str = "") -> None:
        self.content, self.at, self.place = content, at, place
        self._table = table  # of code points

    def number(self, size: int) -> int:
        """Big-endian, without a sign."""
        if not 0 <= self.at <= len(self.content) - size:
            raise self.damaged("it ends too early")
        value = int.from_bytes(self.content[self.at : self.at + size], "big")
        self.at += size
        return value

    def signed(self) -> int:
        """Three bytes; the first bit is the sign."""
        value = self.number(3)
        return -(value & 0x7FFFFF) if value & 0x800000 else value

    def character(self) -> int | None:
        """A code point; None at the end of text."""
        first = self.number(1)
        if first == END:
            return None
        if first < 0x20:
            return first << 16 | self.number(2)
        return ord(self._table[first - 0x20]) if first - 0x20 < len(self._table) else first

    def codes(self) -> tuple[int, ...]:
        """Code points up to the end of text."""
        return tuple(iter(self.character, None))

    def text(self) -> str:
        """Characters up to the end of text."""
        return self.word(self.codes())

    def word(self, codes: Iterable[int]) -> str:
        """The text of code points."""
        try:
            return "".join(map(chr, codes))
        except ValueError as error:
            raise self.damaged("a character is outside of Unicode") from error

    def damaged(self, why: str) -> InputError:
        """The complaint about this file."""
        return InputError(
            f"'{self.place}' is damaged at byte {self.at:,} ({why}); write or fetch the dictionary again."
        )


def read_header(content: bytes, place: str) -> Header:
    """The header that a file begins with. Raises: InputError where there is none."""
    if len(content) < FIXED or int.from_bytes(content[:4], "big") != MAGIC:
        raise InputError(f"'{place}' is no binary dictionary of Android: it does not begin with {MAGIC:X}.")
    version, size = int.from_bytes(content[4:6], "big"), int.from_bytes(content[8:FIXED], "big")
    reading = Bytes(content[:size], FIXED, place)
    if not FIXED <= size <= len(content):
        raise reading.damaged(f"its header has {size:,} bytes and the file {len(content):,}")
    attributes: dict[str, str] = {}
    while reading.at < size:
        key = reading.text()
        attributes[key] = reading.text()
    return Header(version, attributes, size)
