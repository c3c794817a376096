"""What stands in the transparency log, line by line, the root of its tree, and the proof that an entry is in it.

Its tree is the Merkle tree of RFC 9162, section 2.1. For whoever writes the log, and for devices, which have no
database.

A leaf is SHA-256(0x00, entry), a node SHA-256(0x01, left, right); a tree of n leaves has the largest power of two below
n of them on its left. A proof of inclusion shows that a leaf is in a tree with a root, by about log2(n) hashes.
"""

import hashlib
from collections.abc import Iterable, Sequence

HASH_BYTES = 32


def plan_entry(digest: str) -> str:
    """The line for a plan. digest: `signing.digest` of it."""
    return f"plan {digest}"


def key_rotation_entry(digest: str) -> str:
    """The line for a change of the operator's key. digest: of the `KeyRotation`."""
    return f"hand-over {digest}"


def bundle_entry(digest: str) -> str:
    """The line for a page's bundle. digest: `page_bundle.digest_of` its files."""
    return f"bundle {digest}"


def leaf_of(entry: str) -> bytes:
    """The entry's leaf, 32 bytes."""
    return leaf_hash(entry.encode())


def leaf_hash(entry: bytes) -> bytes:
    """32 bytes."""
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """32 bytes."""
    return hashlib.sha256(b"\1" + left + right).digest()


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The root of the tree with these leaves (section 2.1.1), in one go: what has no neighbour is its own parent."""
    level = list(leaves)
    if not level:
        return hashlib.sha256().digest()
    while len(level) > 1:
        alone = level[-1:] if len(level) % 2 else []
        level = [node_hash(left, right) for left, right in zip(level[::2], level[1::2], strict=False)] + alone
    return level[0]


def is_included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether the path proves that the leaf is in the tree with this root (section 2.1.3.2).

    What is no hash proves nothing: neither a leaf nor a step of the path of another length.
    """
    if not 0 <= index < size or any(len(each) != HASH_BYTES for each in (leaf, *path)):
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
