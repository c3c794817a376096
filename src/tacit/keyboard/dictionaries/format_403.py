"""Dictionaries of format 403: a folder of two files, with what follows one word or two.

NAME.header is as in every format. NAME.body has seven parts, each behind its size in four bytes:

    trie        arrays of nodes: how many (two bytes, the first bit set), the nodes, and the address of the array that
                goes on with this one (0: none)
      node      flags, address of the node above (0: none), characters, id of a word (4 bytes), address of the array
                below (0: none); addresses are three bytes with a sign and count from the node, or from their own place
    places      where the node of each word is (3 bytes), by its id
    n-grams     a `hash_trie`: id of the word -> flags and f; for what follows others, the word before first, then the
                word before that, then the follower
    counters    two numbers (4 bytes each) of dictionaries that learn
    shortcuts   three tables: the block of 64 ids (4 bytes each), in it the place of each word's list (4 bytes), the
                lists as in format 202, but for their size

f is kept as it is. Two words that begin an n-gram must be there one after the other; where the second never follows the
first here, their entry is marked as not valid and has the second word's own f, since a reader does not look at the mark
when it weighs a word that is typed.

The rules are those of the native code of LatinIME (`structure/v4`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tacit.errors import InputError
from tacit.files import read_bounded
from tacit.keyboard.dictionaries.binary_header import SENTENCE, Bytes, characters, header, read_header, text
from tacit.keyboard.dictionaries.entries import (
    BEGINNING,
    CERTAIN,
    Context,
    Dictionary,
    Entry,
    Followers,
    Shortcut,
    whole,
)
from tacit.keyboard.dictionaries.hash_trie import Level, Numbers, hash_trie, read_hash_trie
from tacit.keyboard.dictionaries.patricia_trie import Node, arrays, trie

VERSION = 403
HEADER, BODY = ".header", ".body"
SEVERAL, WORD, STAYS = 0x20, 0x10, 0xC0  # of a node's flags; of the last two bits others are for changed dictionaries
MOVED, REMOVED = 0x40, 0x80
SENTENCE_START, NOT_VALID, NOT_A_WORD, NEVER, OFFENSIVE = 0x01, 0x02, 0x04, 0x08, 0x10  # of an n-gram
MORE, BLOCK, NOWHERE = 0x80, 64, 0xFFFFFFFF
PARTS = 7
LARGEST = 8 << 20  # bytes of the trie, which addresses of three bytes with a sign reach


class DynamicFiles(NamedTuple):
    """The two files of a folder."""

    header: bytes
    body: bytes

    def named(self, name: str) -> dict[str, bytes]:
        """By the names that they have in a folder called `name`."""
        return {f"{name}{HEADER}": self.header, f"{name}{BODY}": self.body}


def dynamic_dictionary(dictionary: Dictionary) -> DynamicFiles:
    """The content of both files. Raises: InputError where the dictionary is larger than the format allows."""
    codes = [tuple(map(ord, entry.word)) for entry in dictionary.entries]
    ids = {entry.word: id for id, entry in enumerate(dictionary.entries)}
    if any(BEGINNING in context for context in dictionary.followers):
        ids[BEGINNING] = len(codes)
        codes.append((SENTENCE,))
    nodes, places = _trie(trie(codes), len(codes))
    parts = [nodes, b"".join(place.to_bytes(3, "big") for place in places), hash_trie(_numbers(dictionary, ids))]
    body = b"".join(_sized(part) for part in [*parts, bytes(8), *_shortcuts(dictionary.entries)])
    counts = [len(dictionary.entries), 0, 0]
    for context, followers in dictionary.followers.items():
        counts[len(context)] += len(followers)
    names = ("UNIGRAM_COUNT", "BIGRAM_COUNT", "TRIGRAM_COUNT")
    attributes = {**dictionary.attributes, **{name: str(count) for name, count in zip(names, counts, strict=True)}}
    return DynamicFiles(header(VERSION, attributes), body)


def read_dynamic_dictionary(folder: Path) -> Dictionary:
    """What a folder of format 403 says. Raises: InputError where it is none, or damaged."""
    files = DynamicFiles(*(_file(folder, ending) for ending in (HEADER, BODY)))
    return dictionary_of_files(files, str(folder))


def dictionary_of_files(files: DynamicFiles, place: str = "dictionary") -> Dictionary:
    """As `read_dynamic_dictionary`, of what was read already. place: names it."""
    head = read_header(files.header, place)
    if head.version != VERSION:
        raise InputError(f"'{place}' has the format {head.version}, and here {VERSION} is read.")
    if head.attributes.get("HAS_HISTORICAL_INFO") == "1":
        raise InputError(f"'{place}' has counts of what one user typed in place of f; give a dictionary for everybody.")
    return _Reading(files.body, place).dictionary(head.attributes)


# -- writing -------------------------------------------------------------------------------------------------------


def _sized(part: bytes) -> bytes:
    return len(part).to_bytes(4, "big") + part


def _trie(root: list[Node], words: int) -> tuple[bytes, list[int]]:
    """The bytes of all nodes, and where the node of each word is, by its place in the list."""
    found = arrays(root)
    begins, at, sizes = dict[int, int](), 0, list[int]()
    above, places = dict[int, int](), [0] * words
    for nodes in found:
        begins[id(nodes)], at = at, at + 2
        for node in nodes:
            if node.word is not None:
                places[node.word] = at
            above[id(node.children)] = at
            sizes.append(_size(node))
            at += sizes[-1]
        at += 3
    if at > LARGEST:
        raise InputError(f"the trie has {at:,} bytes, and format {VERSION} has room for {LARGEST:,}; list fewer words.")
    content = bytearray()
    for nodes in found:
        content += (0x8000 | len(nodes)).to_bytes(2, "big")
        for node in nodes:
            place, several = len(content), len(node.codes) > 1
            content.append(STAYS | SEVERAL * several | WORD * (node.word is not None))
            content += _signed(above[id(nodes)] - place) if nodes is not root else bytes(3)
            content += characters(node.codes) + bytes([0x1F]) * several
            content += b"" if node.word is None else node.word.to_bytes(4, "big")
            content += _signed(begins[id(node.children)] - len(content)) if node.children else bytes(3)
        content += bytes(3)
    return bytes(content), places


def _size(node: Node) -> int:
    return 7 + len(characters(node.codes)) + (len(node.codes) > 1) + 4 * (node.word is not None)


def _signed(offset: int) -> bytes:
    return (abs(offset) | 0x800000 * (offset < 0)).to_bytes(3, "big")


def _numbers(dictionary: Dictionary, ids: Mapping[str, int]) -> Numbers:
    """Of every word, of what follows it, and of what follows two."""
    own = {ids[entry.word]: _number(_flags(entry), entry.f) for entry in dictionary.entries}
    if BEGINNING in ids:
        own[ids[BEGINNING]] = _number(SENTENCE_START | NOT_A_WORD, CERTAIN)
    after: dict[int, dict[int, tuple[int, Level | None]]] = {}
    for context, followers in dictionary.followers.items():
        if len(context) == 1 and followers:
            after[ids[context[0]]] = {ids[word]: (_number(0, f), None) for word, f in followers}
    for context, followers in dictionary.followers.items():
        if len(context) == 2 and followers:
            before, last = (ids[word] for word in context)
            level = after.setdefault(last, {})
            number = level[before][0] if before in level else NOT_VALID << 8 | own[before] & 0xFF
            level[before] = (number, Level({ids[word]: (_number(0, f), None) for word, f in followers}))
    return {id: (number, Level(after[id]) if id in after else None) for id, number in own.items()}


def _flags(entry: Entry) -> int:
    return NOT_A_WORD * entry.not_a_word | OFFENSIVE * entry.offensive


def _number(flags: int, f: float) -> int:
    return flags << 8 | whole(f)


def _shortcuts(entries: Sequence[Entry]) -> list[bytes]:
    blocks: dict[int, list[int]] = {}
    lists = bytearray()
    for id, entry in enumerate(entries):
        if not entry.shortcuts:
            continue
        blocks.setdefault(id // BLOCK, [NOWHERE] * BLOCK)[id % BLOCK] = len(lists)
        last = len(entry.shortcuts) - 1
        for place, (target, strength) in enumerate(entry.shortcuts):
            lists += bytes([MORE * (place < last) | strength]) + text(target)
    numbers = {block: number for number, block in enumerate(sorted(blocks))}
    many = max(blocks, default=-1) + 1
    index = b"".join(numbers.get(block, NOWHERE).to_bytes(4, "big") for block in range(many))
    table = b"".join(place.to_bytes(4, "big") for block in sorted(blocks) for place in blocks[block])
    return [index, table, bytes(lists)]


# -- reading -------------------------------------------------------------------------------------------------------


def _file(folder: Path, ending: str) -> bytes:
    path = folder / f"{folder.name}{ending}"
    try:
        return read_bounded(path)
    except OSError as error:
        raise InputError(
            f"'{folder}' is no dictionary of format {VERSION}: it needs {path.name} ({error.strerror}); a folder must "
            "be called as its files are."
        ) from error


class _Reading:
    """Walks over all nodes; each array is read once, so that no file is endless."""

    def __init__(self, body: bytes, place: str) -> None:
        reading = Bytes(body, 0, place)
        self.parts: list[Bytes] = []
        while reading.at < len(body):
            size = reading.number(4)
            if reading.at + size > len(body):
                raise reading.damaged(f"a part has {size:,} bytes, and fewer follow")
            self.parts.append(Bytes(body[reading.at : reading.at + size], 0, place))
            reading.at += size
        if len(self.parts) != PARTS:
            raise reading.damaged(f"it has {len(self.parts)} parts, and {PARTS} belong there")
        self.nodes = self.parts[0]

    def dictionary(self, attributes: dict[str, str]) -> Dictionary:
        names = self._names()
        try:
            numbers = read_hash_trie(self.parts[2].content)
        except ValueError as error:
            raise self.parts[2].damaged(f"in its n-grams {error}") from error
        entries, followers = [], dict[Context, Followers]()
        for id, name in names.items():
            number, below = numbers.get(id, (NOT_VALID << 8, None))
            flags, f = number >> 8, float(number & 0xFF)
            if name != BEGINNING:
                also = {"offensive": bool(flags & OFFENSIVE), "not_a_word": bool(flags & NOT_A_WORD)}
                f = 0.0 if flags & (NEVER | NOT_VALID) else f
                entries.append(Entry(name, f, shortcuts=self._shortcuts(id), **also))
            self._follow((id,), below, names, followers)
        return Dictionary(attributes=attributes, entries=tuple(entries), followers=followers)

    def _follow(
        self, newest_first: tuple[int, ...], below: Level | None, names: dict[int, str], found: dict[Context, Followers]
    ) -> None:
        """Adds what follows these words, and these with one more before them."""
        if below is None:
            return
        if strange := [id for id in below.numbers if id not in names]:
            raise self.parts[2].damaged(f"an n-gram has the id {strange[0]}, which no word has")
        valid = [
            (names[id], float(number & 0xFF))
            for id, (number, _) in below.numbers.items()
            if not number >> 8 & NOT_VALID
        ]
        if valid:
            found[tuple(names[id] for id in reversed(newest_first))] = tuple(valid)
        for id, (_, further) in below.numbers.items():
            self._follow((*newest_first, id), further, names, found)

    def _names(self) -> dict[int, str]:
        """Words by their ids."""
        found: dict[int, str] = {}
        waiting: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        seen: set[int] = set()
        while waiting:
            at, before = waiting.pop()
            if at in seen:
                raise self.nodes.damaged("two nodes have the same children")
            seen.add(at)
            self.nodes.at = at
            many = self.nodes.number(1)
            many = (many & 0x7F) << 8 | self.nodes.number(1) if many & 0x80 else many
            for _ in range(many):
                waiting += self._node(before, found)
            link, at = self.nodes.at, self.nodes.signed()
            waiting += [(link + at, before)] if at else []
        return dict(sorted(found.items()))

    def _node(self, before: tuple[int, ...], found: dict[int, str]) -> list[tuple[int, tuple[int, ...]]]:
        """Reads a node and stops behind it; the array below, with what stands before that."""
        reading, place = self.nodes, self.nodes.at
        flags, above = reading.number(1), reading.signed()
        codes = before + (reading.codes() if flags & SEVERAL else self._one())
        id = reading.number(4) if flags & WORD else None
        origin = reading.at
        offset = reading.signed()
        if flags & STAYS == MOVED:
            end, reading.at = reading.at, place + above
            if self._flags_at(reading.at) & STAYS == MOVED:
                raise reading.damaged("a node was moved twice")
            below = self._node(before, found)
            reading.at = end
            return below
        if id is not None and flags & STAYS == STAYS:
            if id in found:
                raise reading.damaged(f"two words have the id {id}")
            found[id] = BEGINNING if codes == (SENTENCE,) else reading.word(codes)
        return [(origin + offset, codes)] if offset else []

    def _flags_at(self, place: int) -> int:
        return Bytes(self.nodes.content, place, self.nodes.place).number(1)

    def _one(self) -> tuple[int]:
        code = self.nodes.character()
        if code is None:
            raise self.nodes.damaged("a node has no character")
        return (code,)

    def _shortcuts(self, id: int) -> tuple[Shortcut, ...]:
        index, table, lists = self.parts[4:]
        index.at = id // BLOCK * 4
        block = index.number(4) if index.at < len(index.content) else NOWHERE
        if block == NOWHERE:
            return ()
        table.at = (block * BLOCK + id % BLOCK) * 4
        lists.at = table.number(4)
        if lists.at == NOWHERE:
            return ()
        found, more = [], True
        while more:
            flags = lists.number(1)
            found.append(Shortcut(lists.text(), flags & 0x0F))
            more = bool(flags & MORE)
        return tuple(found)
