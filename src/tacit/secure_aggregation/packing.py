"""Words of b bits as bytes, one after another without a gap: what a residue takes on the wire.

Bit i of word k is bit (k b + i) mod 8, counted from the lowest, of byte (k b + i) // 8; bits after the last word are 0.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.errors import InputError
from tacit.privacy.encoding import WORD


def packed_length(count: int, bits: int) -> int:
    """Bytes that so many words of so many bits take. Raises: InputError unless 1 <= bits <= 32."""
    if not 1 <= bits <= WORD:
        raise InputError(f"bits={bits} is not between 1 and {WORD}; an Encoding says how many a residue has.")
    return -(-count * bits // 8)


def pack(words: NDArray[np.uint32], bits: int) -> bytes:
    """The words (n,) in packed_length(n, bits) bytes. Raises: InputError for a word that has more bits."""
    out = np.zeros(packed_length(len(words), bits), np.uint8)
    if words.dtype != np.uint32 or (len(words) and int(words.max()) >> bits):
        raise InputError(f"words in {words.dtype} have not {bits} bits each; give residues modulo 2^{bits} in uint32.")
    _pack(words, bits, out)
    return out.tobytes()


def unpack(packed: bytes, bits: int, count: int) -> NDArray[np.uint32]:
    """So many words (count,). Raises: InputError for another number of bytes, and where a bit after the last is set."""
    _must_hold(packed, bits, count)
    words = np.empty(count, np.uint32)
    _unpack(np.frombuffer(packed, np.uint8), bits, words)
    return words


def add_packed(total: NDArray[np.uint32], packed: bytes | memoryview, bits: int) -> None:
    """total += the words that these bytes hold, modulo 2^32: `unpack` and an addition in one pass over memory.

    Raises: InputError, and adds nothing, where `unpack` would raise it.
    """
    _must_hold(packed, bits, len(total))
    whole = np.frombuffer(packed, "<u4", len(packed) // 4)
    added = _add_words(total, whole, bits)
    rest = np.frombuffer(packed, np.uint8)[added * bits // 8 :]  # `added` is a multiple of 8
    words = np.empty(len(total) - added, np.uint32)
    _unpack(rest, bits, words)
    total[added:] += words


def _must_hold(packed: bytes | memoryview, bits: int, count: int) -> None:
    length = packed_length(count, bits)
    if len(packed) != length:
        raise InputError(
            f"{len(packed)} bytes are not the {length} of {count:,} words of {bits} bits; send just those."
        )
    spare = 8 * length - count * bits
    if spare and packed[-1] >> (8 - spare):
        raise InputError(f"a bit after the last of {count:,} words is set; leave them 0.")


@compiled
def _pack(words: NDArray[np.uint32], bits: int, out: NDArray[np.uint8]) -> None:
    held, have, at = np.uint64(0), np.uint64(0), 0
    for word in words:
        held |= np.uint64(word) << have
        have += np.uint64(bits)
        while have >= np.uint64(8):
            out[at] = held & np.uint64(255)
            held >>= np.uint64(8)
            have -= np.uint64(8)
            at += 1
    if have:
        out[at] = held & np.uint64(255)


@compiled
def _unpack(packed: NDArray[np.uint8], bits: int, words: NDArray[np.uint32]) -> None:
    held, have, at = np.uint64(0), np.uint64(0), 0
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for index in range(words.size):
        while have < np.uint64(bits):
            held |= np.uint64(packed[at]) << have
            have += np.uint64(8)
            at += 1
        words[index] = held & mask
        held >>= np.uint64(bits)
        have -= np.uint64(bits)


@compiled
def _add_words(total: NDArray[np.uint32], whole: NDArray[np.uint32], bits: int) -> int:
    """Adds words whose bits lie in two neighbours of `whole`, a multiple of eight of them: how many."""
    wide = np.uint64(bits)
    count = min(total.size, max(0, whole.size - 1) * 32 // bits) // 8 * 8
    mask = np.uint32((np.uint64(1) << wide) - np.uint64(1))
    for index in range(count):
        bit = np.uint64(index) * wide
        at = bit >> np.uint64(5)
        both = np.uint64(whole[at]) | np.uint64(whole[at + np.uint64(1)]) << np.uint64(32)
        total[index] += np.uint32(both >> (bit & np.uint64(31))) & mask
    return count
