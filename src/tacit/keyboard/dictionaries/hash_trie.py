"""Numbers by keys, perhaps with more of the same below a key: how format 403 keeps n-grams (`TrieMap` in LatinIME).

A hash array mapped trie (Bagwell, "Ideal Hash Trees", 2001). The bytes: 32 links of free tables (here all 0; four bytes
each are reserved), then entries of seven bytes, four (field 0) and three (field 1); the first is the root.

    level     field 0: which of 32 labels are there; field 1: where their table begins
    key       field 0: the key; field 1: 400000 plus its number, or 800000 plus the place of two entries:
              its number, then the level below it
    label     five bits of the key with its bits shuffled, from the lowest up, one label for each step down
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from tacit.errors import InputError

RESERVED, ENTRY = 32 * 4, 7  # bytes
NUMBER, LINK = 0x400000, 0x800000  # flags of field 1
NONE = NUMBER - 1  # a number that means: removed
BITS, LABELS = 5, 32
DEEPEST = 7  # tables below each other: 32 bits


class Level(NamedTuple):
    """What is below one key, or all of it."""

    numbers: "Numbers"


Numbers: TypeAlias = Mapping[int, tuple[int, "Level | None"]]  # by keys; numbers below NONE


def hash_trie(numbers: Numbers) -> bytes:
    """The bytes of a trie. Raises: InputError where it has more entries than three bytes number."""
    entries: list[tuple[int, int]] = [(0, 0)]
    waiting: list[tuple[int, Numbers]] = [(0, numbers)]
    while waiting:
        at, level = waiting.pop()
        hashed = [(shuffled(key), key, *value) for key, value in sorted(level.items())]
        entries[at] = _table(hashed, 0, entries, waiting)
    if len(entries) > NUMBER:
        raise InputError(f"the n-grams need {len(entries):,} entries, and the format has {NUMBER:,}; list fewer.")
    content = b"".join(first.to_bytes(4, "big") + second.to_bytes(3, "big") for first, second in entries)
    return bytes(RESERVED) + content


def read_hash_trie(content: bytes) -> Numbers:
    """What is in it, three levels deep at most. Raises: ValueError where the bytes are no such trie."""
    return _Read(content).level(0, 3)


def shuffled(key: int) -> int:
    """The key with its bits spread, so that neighbours have different labels."""
    mixed = 0
    for place in range(4):
        piece = key >> 8 * place & 0xFF
        mixed ^= ((piece ^ piece << 7 ^ piece << 14 ^ piece << 21) & 0x11111111) << place
    return mixed


def _table(
    hashed: list[tuple[int, int, int, Level | None]],
    step: int,
    entries: list[tuple[int, int]],
    waiting: list[tuple[int, Numbers]],
) -> tuple[int, int]:
    """Appends a table of these keys; the entry that points to it."""
    groups: dict[int, list[tuple[int, int, int, Level | None]]] = {}
    for each in hashed:
        groups.setdefault(each[0] >> BITS * step & LABELS - 1, []).append(each)
    begins = len(entries)
    entries += [(0, 0)] * len(groups)
    for at, label in enumerate(sorted(groups), begins):
        same = groups[label]
        if len(same) > 1:
            entries[at] = _table(same, step + 1, entries, waiting)
            continue
        _, key, number, below = same[0]
        if below is None:
            entries[at] = (key, NUMBER | number)
        else:
            entries[at] = (key, LINK | len(entries))
            waiting.append((len(entries) + 1, below.numbers))
            entries += [(0, number), (0, 0)]
    return sum(1 << label for label in groups), begins if groups else 0


class _Read:
    """Each table is read once, so that no file is endless."""

    def __init__(self, content: bytes) -> None:
        self.content, self.seen = content, set[int]()

    def entry(self, place: int) -> tuple[int, int]:
        at = RESERVED + place * ENTRY
        if at + ENTRY > len(self.content):
            raise ValueError(f"there is no entry {place:,}")
        return int.from_bytes(self.content[at : at + 4], "big"), int.from_bytes(self.content[at + 4 : at + 7], "big")

    def level(self, place: int, deepest: int) -> Numbers:
        if not deepest:
            raise ValueError("n-grams have more than three words")
        found: dict[int, tuple[int, Level | None]] = {}
        for key, second in self.keys(self.entry(place), 0):
            if second & LINK:
                value = second & LINK - 1
                upper, lower = self.entry(value)
                numbers = self.level(value + 1, deepest - 1)
                found[key] = (upper << 24 | lower, Level(numbers) if numbers else None)
            elif second & NONE != NONE:
                found[key] = (second & NONE, None)
        return found

    def keys(self, level: tuple[int, int], step: int) -> Iterator[tuple[int, int]]:
        labels, begins = level
        if step > DEEPEST:
            raise ValueError("tables are deeper than keys are long")
        for place in range(begins, begins + labels.bit_count()):
            if place in self.seen:
                raise ValueError(f"two tables have the entry {place:,}")
            self.seen.add(place)
            first, second = self.entry(place)
            if second & (NUMBER | LINK):
                yield first, second
            else:
                yield from self.keys((first, second), step + 1)
