"""Sets of characters by their Unicode properties, as regular expressions and as sets."""

import re
from collections.abc import Iterable
from functools import cache

LAST = 0x10FFFF  # code point of Unicode
_PLANE = 0xFFFF  # the last code point that `re` finds in a set by one look; it tries the ranges beyond one by one
Ranges = tuple[tuple[int, int], ...]  # the first and last code points of each


@cache
def ranges_of(table: str) -> dict[str, Ranges]:
    """For each letter of a table of runs, the first and last code points that have it."""
    found: dict[str, list[tuple[int, int]]] = {}
    at = 0
    for letter, length in re.findall(r"([A-Za-z])(\d*)", table):
        found.setdefault(letter, []).append((at, at + int(length or 1) - 1))
        at += int(length or 1)
    return {letter: tuple(runs) for letter, runs in found.items()}


@cache
def members(table: str, letters: str) -> frozenset[str]:
    """The characters that have one of the letters in a table."""
    ranges = [each for letter in letters for each in ranges_of(table)[letter]]
    return frozenset(chr(point) for first, end in ranges for point in range(first, end + 1))


def singles(text: str) -> Ranges:
    """Each character of a text as a range."""
    return tuple((ord(character), ord(character)) for character in text)


def characters(table: str, letters: str, last: int = LAST, *, but: str = "", more: str = "") -> str:
    """A regular expression for one character up to `last` with one of the letters in the table."""
    ranges = [each for letter in letters for each in ranges_of(table).get(letter, ())]
    return one_of([*ranges, *singles(more)], last, singles(but))


def run(table: str, letters: str, last: int = LAST) -> str:
    """The same for all such characters from a place on, none too."""
    near, far = _halves([each for letter in letters for each in ranges_of(table).get(letter, ())], last, ())
    return f"(?:{near}++|{far}++)*+" if far else f"{near}*+"


def one_of(ranges: Iterable[tuple[int, int]], last: int = LAST, but: Iterable[tuple[int, int]] = ()) -> str:
    """A regular expression for one character of the ranges up to `last`, and of none of `but`."""
    near, far = _halves(ranges, last, but)
    return f"(?:{near}|{far})" if far else near


def _halves(ranges: Iterable[tuple[int, int]], last: int, but: Iterable[tuple[int, int]]) -> tuple[str, str]:
    """The set up to _PLANE and, behind a look at one range, the rest; so no letter nearby tries the ranges far away."""
    left = [(first, min(end, last)) for first, end in ranges if first <= last]
    for first, end in but:
        parts = [part for begin, stop in left for part in ((begin, min(stop, first - 1)), (max(begin, end + 1), stop))]
        left = [part for part in parts if part[0] <= part[1]]
    near = [(begin, min(stop, _PLANE)) for begin, stop in left if begin <= _PLANE]
    far = [(max(begin, _PLANE + 1), stop) for begin, stop in left if stop > _PLANE]
    return _set(near), rf"(?![\0-\uffff]){_set(far)}" if far else ""


def _set(ranges: Iterable[tuple[int, int]]) -> str:
    inside = "".join(f"\\U{first:08x}-\\U{end:08x}" for first, end in sorted(ranges))
    return f"[{inside}]" if inside else r"[^\s\S]"
