"""The log's Merkle tree as it grows: its roots, and the proofs that `protocol/log_proofs.py` checks."""

import hashlib
from collections.abc import Iterable

from tacit.errors import InputError
from tacit.protocol.log_proofs import node_hash


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

    def _range(self, low: int, high: int) -> bytes:
        """The root of these leaves, from a multiple of a power of two that is no less than their number."""
        size = high - low
        if size & (size - 1) == 0:
            level = size.bit_length() - 1
            return self._levels[level][low >> level]
        middle = low + _left(size)
        return node_hash(self._range(low, middle), self._range(middle, high))


def _left(size: int) -> int:
    """Leaves on the left of a tree of more than one: the largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1
