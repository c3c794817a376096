"""Dictionaries of format 202: one file, which users import into a keyboard; words with what follows one of them.

Behind the header stands a trie (`patricia_trie`), array after array, the first at its beginning:

    array     how many nodes (one byte below 128, else two with the first bit set), then the nodes
    node      flags, characters (with an end where they are several), f of a word, address of the array below it,
              shortcuts, followers
    flags     size of that address (2 bits), several characters, word, shortcuts, followers, not a word, offensive
    shortcuts     size in bytes (2, these included), then for each: 80 unless it is the last, plus its strength; text
    follower      80 unless it is the last, 40 for an address before this one, its size in bytes times 10, plus a
                  step of 0 to 15; then the address of the follower's node

Addresses are one to three bytes and count from where they stand. A follower's f is one of sixteen steps between its own
f as a word and 255: 17 would be 255, and 0 its own f. So a follower is never read as rarer than it is elsewhere.

What the format has no room for is left out: followers of two words, and marks of discovered words. The rules are those
of `FormatSpec.java` and of the native reader in LatinIME.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tacit.errors import InputError
from tacit.keyboard.dictionaries.bigram_steps import follower_f, steps_of
from tacit.keyboard.dictionaries.binary_header import (
    CODE_POINT_TABLE,
    SENTENCE,
    Bytes,
    Header,
    characters,
    header,
    read_header,
    text,
)
from tacit.keyboard.dictionaries.entries import (
    BEGINNING,
    CERTAIN,
    Context,
    Dictionary,
    Entry,
    Followers,
    Shortcut,
    by_f,
    whole,
)
from tacit.keyboard.dictionaries.patricia_trie import Node, arrays, trie

VERSION = 202
MOST_FOLLOWERS = 10_000  # of one word, that a reader takes
SEVERAL, WORD, SHORTCUTS, FOLLOWERS, NOT_A_WORD, OFFENSIVE = 0x20, 0x10, 0x08, 0x04, 0x02, 0x01  # of a node's flags
MORE, BEFORE = 0x80, 0x40  # of an attribute's flags


class _Listed(NamedTuple):
    """A word as a node has it."""

    flags: int
    f: int
    shortcuts: bytes
    followers: tuple[tuple[int, int], ...]  # places of words, with their steps


def static_dictionary(dictionary: Dictionary) -> bytes:
    """The bytes of the file. Raises: InputError where it would be larger than its addresses reach."""
    codes, listed = _listed(dictionary)
    root = trie(codes)
    layout = _Layout(arrays(root), listed)
    layout.settle()
    return header(VERSION, dictionary.attributes) + layout.written()


def read_static_dictionary(content: bytes, place: str = "dictionary") -> Dictionary:
    """What a file of format 202 says. Raises: InputError where it is none, or damaged. place: names it."""
    head = read_header(content, place)
    if head.version != VERSION:
        raise InputError(f"'{place}' has the format {head.version}, and here {VERSION} is read.")
    return _Reading(content[head.size :], head, place).dictionary()


# -- writing -------------------------------------------------------------------------------------------------------


def _listed(dictionary: Dictionary) -> tuple[list[tuple[int, ...]], list[_Listed]]:
    """Every word as code points and as its node has it; the beginning of a sentence is the last one, if it is there."""
    places = {entry.word: place for place, entry in enumerate(dictionary.entries)}
    fs = [whole(entry.f) for entry in dictionary.entries]

    def followers(context: Context) -> tuple[tuple[int, int], ...]:
        found = by_f(dictionary.followers.get(context, ()))
        if len(found) > MOST_FOLLOWERS:
            raise InputError(f"{len(found):,} words follow {context[0]!r}, and readers take {MOST_FOLLOWERS:,}.")
        ids = [places[word] for word, _ in found]
        steps = steps_of([f for _, f in found], [fs[id] for id in ids])
        return tuple(zip(ids, steps, strict=True))

    codes = [tuple(map(ord, entry.word)) for entry in dictionary.entries]
    listed = []
    for entry, f in zip(dictionary.entries, fs, strict=True):
        flags = NOT_A_WORD * entry.not_a_word | OFFENSIVE * entry.offensive
        listed.append(_Listed(flags, f, _shortcuts(entry), followers((entry.word,))))
    if dictionary.followers.get((BEGINNING,)):
        codes.append((SENTENCE,))
        listed.append(_Listed(NOT_A_WORD, CERTAIN, b"", followers((BEGINNING,))))
    return codes, listed


def _shortcuts(entry: Entry) -> bytes:
    last = len(entry.shortcuts) - 1
    items = b"".join(
        bytes([MORE * (place < last) | strength]) + text(target)
        for place, (target, strength) in enumerate(entry.shortcuts)
    )
    if len(items) + 2 > 0xFFFF:
        raise InputError(f"the shortcuts of {entry.word!r} have {len(items):,} bytes, and 65,533 have room.")
    return (len(items) + 2).to_bytes(2, "big") + items if items else b""


class _Placed:
    """A node with the sizes of its addresses."""

    __slots__ = ("address", "fixed", "followers", "listed", "node", "place", "sizes", "tail")

    def __init__(self, node: Node, listed: _Listed | None) -> None:
        self.node, self.listed = node, listed
        several = len(node.codes) > 1
        self.fixed = 1 + len(characters(node.codes)) + several + (listed is not None)
        self.tail = listed.shortcuts if listed else b""
        self.followers = listed.followers if listed else ()
        self.address = 1 if node.children else 0  # its size
        self.sizes = [1] * len(self.followers)
        self.place = 0

    @property
    def size(self) -> int:
        return self.fixed + self.address + len(self.tail) + len(self.sizes) + sum(self.sizes)


class _Layout:
    """Where everything stands: addresses begin with one byte each and grow while they do not reach."""

    def __init__(self, found: Sequence[list[Node]], listed: Sequence[_Listed]) -> None:
        self.arrays = [
            [_Placed(node, None if node.word is None else listed[node.word]) for node in nodes] for nodes in found
        ]
        self.begins = {id(nodes): number for number, nodes in enumerate(found)}
        self.words = {placed.node.word: placed for placed in self._all() if placed.node.word is not None}
        self.at = [0] * len(found)  # of each array

    def _all(self) -> list[_Placed]:
        return [placed for nodes in self.arrays for placed in nodes]

    def settle(self) -> None:
        """Sizes only grow, so this ends: with the smallest ones for which every address reaches."""
        changed = True
        while changed:
            self._place()
            changed = any([self._grown(placed) for placed in self._all()])

    def _place(self) -> None:
        at = 0
        for number, nodes in enumerate(self.arrays):
            self.at[number] = at
            at += 1 + (len(nodes) > 0x7F)
            for placed in nodes:
                placed.place = at
                at += placed.size

    def _grown(self, placed: _Placed) -> bool:
        grown = False
        if placed.address:
            needed = _bytes_of(self._below(placed))
            grown, placed.address = needed > placed.address, max(needed, placed.address)
        for number, offset in enumerate(self._offsets(placed)):
            needed = _bytes_of(abs(offset))
            if needed > placed.sizes[number]:
                grown, placed.sizes[number] = True, needed
        return grown

    def _below(self, placed: _Placed) -> int:
        return self.at[self.begins[id(placed.node.children)]] - placed.place - placed.fixed

    def _offsets(self, placed: _Placed) -> list[int]:
        """From where each follower's address stands to the follower."""
        at, offsets = placed.place + placed.fixed + placed.address + len(placed.tail), []
        for (word, _), size in zip(placed.followers, placed.sizes, strict=True):
            offsets.append(self.words[word].place - at - 1)
            at += 1 + size
        return offsets

    def written(self) -> bytes:
        parts = []
        for nodes in self.arrays:
            many = len(nodes)
            parts.append(bytes([many]) if many <= 0x7F else (0x8000 | many).to_bytes(2, "big"))
            parts += map(self._node, nodes)
        return b"".join(parts)

    def _node(self, placed: _Placed) -> bytes:
        node, listed = placed.node, placed.listed
        several = len(node.codes) > 1
        flags = placed.address << 6 | SEVERAL * several
        content = characters(node.codes) + bytes([0x1F]) * several
        if listed:
            flags |= WORD | listed.flags | SHORTCUTS * bool(placed.tail) | FOLLOWERS * bool(placed.followers)
            content += bytes([listed.f])
        if placed.address:
            content += self._below(placed).to_bytes(placed.address, "big")
        content += placed.tail
        last = len(placed.followers) - 1
        for number, ((_, step), offset) in enumerate(zip(placed.followers, self._offsets(placed), strict=True)):
            size = placed.sizes[number]
            content += bytes([MORE * (number < last) | BEFORE * (offset < 0) | size << 4 | step])
            content += abs(offset).to_bytes(size, "big")
        return bytes([flags]) + content


def _bytes_of(offset: int) -> int:
    if offset >= 1 << 24:
        raise InputError("the dictionary has more than 16 MB, which addresses of three bytes do not reach; list less.")
    return max(1, (offset.bit_length() + 7) // 8)


# -- reading -------------------------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """A word as it stands there."""

    codes: tuple[int, ...]
    flags: int
    f: int
    shortcuts: tuple[Shortcut, ...]
    followers: tuple[tuple[int, int], ...]  # places of nodes, with their steps


class _Reading:
    """Walks over all nodes; each array is read once, so that no file is endless."""

    def __init__(self, body: bytes, head: Header, place: str) -> None:
        self.bytes = Bytes(body, 0, place, head.attributes.get(CODE_POINT_TABLE, ""))
        self.attributes = head.attributes
        self.words: dict[int, _Read] = {}  # by the places of their nodes

    def dictionary(self) -> Dictionary:
        waiting: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        seen: set[int] = set()
        while waiting:
            at, before = waiting.pop()
            if at in seen:
                raise self.bytes.damaged("two nodes have the same children")
            seen.add(at)
            waiting += reversed(self._array(at, before))
        entries, followers = list[Entry](), dict[Context, Followers]()
        for read in self.words.values():
            name = self._name(read)
            if name != BEGINNING:
                flags = {"offensive": bool(read.flags & OFFENSIVE), "not_a_word": bool(read.flags & NOT_A_WORD)}
                entries.append(Entry(name, float(read.f), shortcuts=read.shortcuts, **flags))
            if read.followers:
                followers[(name,)] = self._followers(read)
        return Dictionary(attributes=self.attributes, entries=tuple(entries), followers=followers)

    def _name(self, read: _Read) -> str:
        return BEGINNING if read.codes == (SENTENCE,) else self.bytes.word(read.codes)

    def _followers(self, read: _Read) -> Followers:
        found: dict[str, float] = {}
        for place, step in read.followers:
            if place not in self.words:
                raise self.bytes.damaged(f"what follows {self._name(read)!r} is no word")
            follower = self.words[place]
            found.setdefault(self._name(follower), float(follower_f(follower.f, step)))
        return tuple(found.items())

    def _array(self, at: int, before: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """Reads the nodes there; the arrays below them, with what stands before those."""
        reading, below = self.bytes, []
        reading.at = at
        many = reading.number(1)
        if many & 0x80:
            many = (many & 0x7F) << 8 | reading.number(1)
        for _ in range(many):
            place, flags = reading.at, reading.number(1)
            codes = before + (reading.codes() if flags & SEVERAL else (self._one(),))
            f = reading.number(1) if flags & WORD else 0
            if size := flags >> 6:
                origin = reading.at
                below.append((origin + reading.number(size), codes))
            shortcuts = tuple(self._shortcuts()) if flags & SHORTCUTS else ()
            followers = tuple(self._targets()) if flags & FOLLOWERS else ()
            if flags & WORD:
                self.words[place] = _Read(codes, flags, f, shortcuts, followers)
        return below

    def _one(self) -> int:
        code = self.bytes.character()
        if code is None:
            raise self.bytes.damaged("a node has no character")
        return code

    def _shortcuts(self) -> list[Shortcut]:
        reading, found, more = self.bytes, [], True
        end = reading.at + reading.number(2)
        while more:
            flags = reading.number(1)
            found.append(Shortcut(reading.text(), flags & 0x0F))
            more = bool(flags & MORE)
        if reading.at != end:
            raise reading.damaged("shortcuts have another size than they say")
        return found

    def _targets(self) -> list[tuple[int, int]]:
        reading, found, more = self.bytes, [], True
        while more:
            flags = reading.number(1)
            origin, size = reading.at, flags >> 4 & 3
            offset = reading.number(size) if size else 0
            found.append((origin - offset if flags & BEFORE else origin + offset, flags & 0x0F))
            more = bool(flags & MORE)
        return found
