"""Trees and proofs: the published ones, a slow reference by the definitions, and proofs of what is not so."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.protocol.log_proofs import is_included, leaf_hash, root_of
from tacit.server.log.merkle_tree import MerkleTree

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "merkle.json").read_text())
ENTRIES = [bytes.fromhex(each) for each in GOLDEN["leaves"]]
SIZES = st.integers(1, 70)


# -- the definitions of RFC 9162, sections 2.1.1, 2.1.3.1 and 2.1.4.1, word by word ------------------------------------


def mth(entries: list[bytes]) -> bytes:
    if not entries:
        return sha256().digest()
    if len(entries) == 1:
        return sha256(b"\0" + entries[0]).digest()
    k = split(len(entries))
    return sha256(b"\1" + mth(entries[:k]) + mth(entries[k:])).digest()


def path(m: int, entries: list[bytes]) -> list[bytes]:
    if len(entries) == 1:
        return []
    k = split(len(entries))
    if m < k:
        return [*path(m, entries[:k]), mth(entries[k:])]
    return [*path(m - k, entries[k:]), mth(entries[:k])]


def split(size: int) -> int:
    k = 1
    while 2 * k < size:
        k *= 2
    return k


def entries_of(size: int) -> list[bytes]:
    return [each.to_bytes(2, "big") for each in range(size)]


def tree_of(entries: list[bytes]) -> MerkleTree:
    return MerkleTree(leaf_hash(each) for each in entries)


# -- published ---------------------------------------------------------------------------------------------------------


def test_the_roots_of_certificate_transparency() -> None:
    tree = tree_of(ENTRIES)
    assert tree.root(0).hex() == GOLDEN["empty"]
    assert [tree.root(size).hex() for size in range(1, 9)] == GOLDEN["roots"]
    assert [tree_of(ENTRIES[:size]).root().hex() for size in range(1, 9)] == GOLDEN["roots"]
    assert [root_of(map(leaf_hash, ENTRIES[:size])).hex() for size in range(9)] == [GOLDEN["empty"], *GOLDEN["roots"]]


@pytest.mark.parametrize(("index", "size", "proof"), GOLDEN["inclusion"])
def test_its_proofs_of_inclusion(index: int, size: int, proof: list[str]) -> None:
    found = tree_of(ENTRIES).inclusion(index, size)
    assert [each.hex() for each in found] == proof
    assert is_included(leaf_hash(ENTRIES[index]), index, size, found, bytes.fromhex(GOLDEN["roots"][size - 1]))


def test_what_is_no_hash_proves_nothing() -> None:
    """In a tree of one the leaf is the root, of whatever length they are: of transparency-dev/merkle's cases."""
    leaf = leaf_hash(ENTRIES[0])
    assert is_included(leaf, 0, 1, [], leaf)
    for other in (b"", leaf[:31], leaf + b"x"):
        assert not is_included(other, 0, 1, [], other)
        root = sha256(b"\1" + leaf + other).digest()
        assert not is_included(leaf, 0, 2, [other], root)


# -- against the twin, and against who lies ----------------------------------------------------------------------------


@given(SIZES, st.data())
def test_inclusion(size: int, data: st.DataObject) -> None:
    entries = entries_of(size)
    tree, index = tree_of(entries_of(size + data.draw(st.integers(0, 5)))), data.draw(st.integers(0, size - 1))
    found, root, leaf = tree.inclusion(index, size), tree.root(size), leaf_hash(entries[index])
    assert root == mth(entries) == root_of(map(leaf_hash, entries)) and found == path(index, entries)
    assert is_included(leaf, index, size, found, root)
    assert not is_included(leaf_hash(b"another"), index, size, found, root)
    other = data.draw(st.integers(-1, size + 1).filter(lambda each: each != index))
    assert not is_included(leaf, other, size, found, root)
    assert not is_included(leaf, index, size, [*found, bytes(32)], root)
    if found:
        at = data.draw(st.integers(0, len(found) - 1))
        assert not is_included(leaf, index, size, found[:at] + found[at + 1 :], root)
        assert not is_included(leaf, index, size, [*found[:at], bytes(32), *found[at + 1 :]], root)


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=8), st.integers(-2, 70), st.integers(-2, 70))
def test_made_up_proofs_prove_nothing(made_up: list[bytes], one: int, other: int) -> None:
    tree = tree_of(entries_of(70))
    if (one, other) != (0, 1):
        assert not is_included(bytes(32), one, other, made_up, tree.root(max(other, 0)))


def test_what_a_tree_has_not_is_not_proved() -> None:
    tree = tree_of(ENTRIES)
    for index, size in ((-1, 8), (8, 8), (3, 3), (0, 9), (0, 0)):
        with pytest.raises(InputError, match="8 entries"):
            tree.inclusion(index, size)
    with pytest.raises(InputError, match="8 entries"):
        tree.root(9)
