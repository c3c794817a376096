"""What stands in the transparency log, line by line, and the two proofs that let anybody check that it only grows.

Its tree is the Merkle tree of RFC 9162, section 2.1. For whoever writes the log, and for devices, which have no
database.

A leaf is SHA-256(0x00, entry), a node SHA-256(0x01, left, right); a tree of n leaves has the largest power of two below
n of them on its left. A proof of inclusion shows that a leaf is in a tree with a root, one of consistency that a tree
begins with the leaves of a smaller one; each is about log2(n) hashes.
"""

import hashlib
from collections.abc import Sequence


def plan_entry(digest: str) -> str:
    """The line for a plan. digest: `signing.digest` of it."""
    return f"plan {digest}"


def key_rotation_entry(digest: str) -> str:
    """The line for a change of the operator's key. digest: of the `KeyRotation`."""
    return f"hand-over {digest}"


def leaf_of(entry: str) -> bytes:
    """The entry's leaf, 32 bytes."""
    return leaf_hash(entry.encode())


def leaf_hash(entry: bytes) -> bytes:
    """32 bytes."""
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """32 bytes."""
    return hashlib.sha256(b"\1" + left + right).digest()


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
