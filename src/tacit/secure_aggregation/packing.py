"""Words of b bits as bytes, one after another without a gap: what a residue takes on the wire.

Bit i of word k is bit (k b + i) mod 8, counted from the lowest, of byte (k b + i) // 8; bits after the last word are 0.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from tacit.compiled import compiled, compiled_with
from tacit.errors import InputError
from tacit.privacy.encoding import WORD

EIGHT, LOADED = 8, 64  # words that are added in one go, and the bytes that are read for them


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
    """total += the words that these bytes hold, modulo 2^32: `unpack` and `WordSum.add` in one pass over memory.

    Raises: InputError, and adds nothing, where `unpack` would raise it.
    """
    _must_hold(packed, bits, len(total))
    data = np.frombuffer(packed, np.uint8)
    added = EIGHT * max(0, min(len(total) // EIGHT, (len(data) - LOADED) // bits + 1))
    if added:
        _adder(bits)(total[:added], data)
    rest = data[added * bits // EIGHT :]
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


@cache
def _adder(bits: int) -> Callable[[NDArray[np.uint32], NDArray[np.uint8]], None]:
    """A loop that adds words of so many bits to total (a multiple of EIGHT,), and reads LOADED bytes for each EIGHT.

    Compiled in each process that asks for it, in 70 ms.
    """
    add_eight = _eight_words(bits)

    @compiled_with(kept=False)
    def add(total: NDArray[np.uint32], packed: NDArray[np.uint8]) -> None:
        for group in range(total.size // EIGHT):
            add_eight(total, packed, group)

    return add


def _eight_words(bits: int) -> Any:
    """What a loop above calls: eight words of b bits are b bytes, and are added without a loop or a branch.

    Word k begins in byte k b // 8 of them, so a window of 64 bits from there holds it. A shuffle makes the eight
    windows, a shift by k b mod 8 and a mask the words: numba does not find this by itself, so it is spelled in LLVM's
    vectors, which every processor has in some width.
    """
    byte, half, whole = (ir.IntType(width) for width in (8, 32, 64))
    loaded, windows, halves = ir.VectorType(byte, LOADED), ir.VectorType(whole, EIGHT), ir.VectorType(half, EIGHT)
    begins = [place * bits // 8 for place in range(EIGHT)]
    places = ir.Constant(ir.VectorType(half, LOADED), [begin + index for begin in begins for index in range(8)])
    shifts = ir.Constant(windows, [place * bits % 8 for place in range(EIGHT)])
    masks = ir.Constant(windows, [(1 << bits) - 1] * EIGHT)

    @intrinsic
    def add_eight(typing: Any, total: Any, packed: Any, group: Any) -> Any:
        if (total.layout, packed.layout) != ("C", "C"):
            return None  # numba refuses it: what follows knows no strides

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            arrays = zip(signature.args[:2], arguments[:2], strict=True)
            into, source = (context.make_array(kind)(context, builder, value).data for kind, value in arrays)
            group = arguments[2]
            start = builder.gep(source, [builder.mul(group, whole(bits))])
            read = builder.load(builder.bitcast(start, loaded.as_pointer()), align=1)
            window = builder.bitcast(builder.shuffle_vector(read, read, places), windows)
            words = builder.trunc(builder.and_(builder.lshr(window, shifts), masks), halves)
            at = builder.bitcast(builder.gep(into, [builder.mul(group, whole(EIGHT))]), halves.as_pointer())
            builder.store(builder.add(builder.load(at, align=4), words), at, align=4)
            return context.get_dummy_value()

        return types.void(total, packed, group), code

    return add_eight
