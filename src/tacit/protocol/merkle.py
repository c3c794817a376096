"""Merkle trees of RFC 9162, section 2.1: their roots, and the two proofs that let anybody check a log that only grows.

A leaf is SHA-256(0x00, entry), a node SHA-256(0x01, left, right); a tree of n leaves has the largest power of two below
n of them on its left. A proof of inclusion shows that a leaf is in a tree with a root, one of consistency that a tree
begins with the leaves of a smaller one; each is about log2(n) hashes.
"""

import hashlib
from collections.abc import Iterable, Sequence

from tacit.errors import InputError


def leaf_hash(entry: bytes) -> bytes:
    """32 bytes."""
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """32 bytes."""
    return hashlib.sha256(b"\1" + left + right).digest()


class MerkleTree:
    """A tree that grows leaf by leaf; every complete subtree's hash is kept, so that roots and proofs are quick."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._levels: list[list[bytes]] = [[]]  # [k][i]: of the leaves from i 2^k to (i + 1) 2^k
        for leaf in leaves:
            self.append(leaf)

    def __len__(self) -> int:
        return len(self._levels[0])

    def append(self, leaf: bytes) -> None:
        """leaf: the hash of an entry."""
        level, found = 0, leaf
        self._levels[0].append(found)
        while len(self._levels[level]) % 2 == 0:
            found = node_hash(*self._levels[level][-2:])
            level += 1
            if level == len(self._levels):
                self._levels.append([])
            self._levels[level].append(found)

    def root(self, size: int | None = None) -> bytes:
        """Of the first `size` leaves, all by default (section 2.1.1). Raises: InputError for more than there are."""
        size = len(self) if size is None else size
        if not 0 <= size <= len(self):
            raise InputError(f"the log has {len(self)} entries, not {size}; ask for fewer.")
        return self._range(0, size) if size else hashlib.sha256().digest()

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """That the leaf with this index is in the tree of the first `size` (section 2.1.3.1). Raises: InputError."""
        if not 0 <= index < size <= len(self):
            raise InputError(f"the log has {len(self)} entries, and no entry {index} among the first {size}.")
        low, high, path = 0, size, list[bytes]()
        while high - low > 1:
            middle = low + _left(high - low)
            if index < middle:
                path.append(self._range(middle, high))
                high = middle
            else:
                path.append(self._range(low, middle))
                low = middle
        return path[::-1]

    def consistency(self, first: int, second: int) -> list[bytes]:
        """That the first `second` leaves begin with the first `first` (section 2.1.4.1). Raises: InputError."""
        if not 0 < first <= second <= len(self):
            raise InputError(f"the log has {len(self)} entries: {first} and {second} are not two of its sizes.")
        low, high, path, begins = 0, second, list[bytes](), True  # begins: whether the part is a tree of `first` itself
        while first != high:
            middle = low + _left(high - low)
            if first <= middle:
                path.append(self._range(middle, high))
                high = middle
            else:
                path.append(self._range(low, middle))
                low, begins = middle, False
        if not begins:
            path.append(self._range(low, high))
        return path[::-1]

    def _range(self, low: int, high: int) -> bytes:
        """The root of these leaves, from a multiple of a power of two that is no less than their number."""
        size = high - low
        if size & (size - 1) == 0:
            level = size.bit_length() - 1
            return self._levels[level][low >> level]
        middle = low + _left(size)
        return node_hash(self._range(low, middle), self._range(middle, high))


def is_included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether the path proves that the leaf is in the tree with this root (section 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    at, last, found = index, size - 1, leaf
    for each in path:
        if last == 0:
            return False
        if at % 2 or at == last:
            found = node_hash(each, found)
            while at % 2 == 0 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, each)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root


def is_consistent(first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes) -> bool:
    """Whether the path proves that the tree with the second root begins with that of the first (section 2.1.4.2)."""
    if not 0 < first <= second:
        return False
    if first == second:
        return not path and first_root == second_root
    steps = list(path) if first & (first - 1) else [first_root, *path]
    if not steps:
        return False
    at, last = first - 1, second - 1
    while at % 2:
        at, last = at >> 1, last >> 1
    old = new = steps[0]
    for each in steps[1:]:
        if last == 0:
            return False
        if at % 2 or at == last:
            old, new = node_hash(each, old), node_hash(each, new)
            while at % 2 == 0 and at:
                at, last = at >> 1, last >> 1
        else:
            new = node_hash(new, each)
        at, last = at >> 1, last >> 1
    return last == 0 and old == first_root and new == second_root


def _left(size: int) -> int:
    """Leaves on the left of a tree of more than one: the largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1
