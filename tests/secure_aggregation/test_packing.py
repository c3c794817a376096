"""Words of b bits on the wire: what was packed is unpacked, and nothing else is."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.secure_aggregation.packing import add_packed, pack, packed_length, unpack


@given(bits=st.integers(1, 32), seed=st.integers(0, 2**32), count=st.integers(0, 100))
def test_packed_words_are_one_long_number(bits: int, seed: int, count: int) -> None:
    words = np.random.default_rng(seed).integers(0, 1 << bits, count, dtype=np.uint32)
    packed = pack(words, bits)
    number = sum(int(word) << (bits * index) for index, word in enumerate(words))
    assert packed == number.to_bytes(packed_length(count, bits), "little")
    np.testing.assert_array_equal(unpack(packed, bits, count), words)


@given(bits=st.integers(1, 32), seed=st.integers(0, 2**32), count=st.integers(0, 700))
def test_packed_words_are_added_as_if_they_were_unpacked(bits: int, seed: int, count: int) -> None:
    chance = np.random.default_rng(seed)
    packed = pack(chance.integers(0, 1 << bits, count, dtype=np.uint32), bits)
    total = chance.integers(0, 1 << 32, count, dtype=np.uint32)
    expected = total + unpack(packed, bits, count)
    add_packed(total, packed, bits)
    np.testing.assert_array_equal(total, expected)


def test_what_was_not_packed_is_not_added() -> None:
    total = np.array([1, 2, 3], np.uint32)
    for wrong in (pack(total, 3) + b"\0", b"\xff\xff"):
        with pytest.raises(InputError):
            add_packed(total, wrong, 3)
    assert total.tolist() == [1, 2, 3]


def test_what_was_not_packed_is_refused() -> None:
    packed = pack(np.array([5, 6, 7], np.uint32), 3)
    for wrong, complaint in (
        (packed + b"\0", "3 bytes are not the 2"),
        (packed[:-1], "1 bytes are not the 2"),
        (bytes([packed[0], packed[1] | 0x80]), "a bit after the last"),
    ):
        with pytest.raises(InputError, match=re.escape(complaint)):
            unpack(wrong, 3, 3)
    with pytest.raises(InputError, match="3 bits"):
        pack(np.array([8], np.uint32), 3)
    with pytest.raises(InputError, match="int64"):
        pack(np.array([1]), 3)  # type: ignore[arg-type]
    for bits in (0, 33):
        with pytest.raises(InputError, match=f"bits={bits}"):
            packed_length(3, bits)
