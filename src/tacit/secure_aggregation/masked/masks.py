"""Masks added to a vector and taken away again, many at once: the bytes of `secrets.counter_mode`, as words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Self

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import GCM

from tacit.compiled import compiled
from tacit.secure_aggregation.secrets import NONCE_BYTES, Words, counter_mode

BLOCK = 1 << 14  # words: 64 KiB, so that sum and streams stay in a core's second cache
STREAMS, LANES = 32, 8  # masks made in turn for one block of a sum, and added in one go
HEAD = 8  # words of a mask before those that Galois counter mode makes: the cipher's blocks of counter 0 and 1
NEGATED = 0xFFFFFFFF
_ZEROS = bytes(4 * BLOCK)  # what is encrypted
_NO_NONCE = bytes(NONCE_BYTES)  # under a key that is used once


def after_head(seed: bytes) -> CipherContext:
    """The same bytes from the HEAD-th word on, up to 64 GiB.

    Galois counter mode with a nonce of zeros encrypts by counter mode from counter 2 on (NIST SP 800-38D, 7.1). Its
    tag is not asked for. OpenSSL computes it on a processor's widest vectors, and counter mode alone on narrow ones.
    """
    return Cipher(AES256(seed), GCM(_NO_NONCE)).encryptor()


def add_masks(total: Words, masks: Iterable[tuple[bytes, bool]]) -> None:
    """total += mask, or -= mask, modulo 2^32, for many (seed, subtract): right modulo every smaller power of two too.

    The mask of 32 bytes is uniform 32-bit words, as many as `total` (any number,) uint32 has. No other vector is ever
    in memory: the sum is taken a block at a time, which stays in the core's second cache for STREAMS masks, and is
    gone through once for LANES of them.
    """
    made = np.zeros((LANES, BLOCK + 4), np.uint32)  # one block of the cipher more, for which it asks
    rows = [row.data.cast("B") for row in made]
    head, rest = total[:HEAD], total[HEAD:]
    waiting = iter(masks)
    while some := list(islice(waiting, STREAMS)):
        groups = [_Group.from_masks(some[at : at + LANES]) for at in range(0, len(some), LANES)]
        for group in groups:
            _add_lanes(head, group.heads, group.signs)
        for start in range(0, rest.size, BLOCK):
            part = rest[start : start + BLOCK]
            nothing = memoryview(_ZEROS)[: 4 * part.size]
            for group in groups:
                for row, stream in zip(rows, group.streams, strict=False):
                    stream.update_into(nothing, row)
                _add_lanes(part, made[: len(group.streams)], group.signs)


@dataclass(frozen=True)
class _Group:
    """At most LANES masks that are added in one go."""

    heads: Words  # (masks, HEAD)
    streams: tuple[CipherContext, ...]  # of what comes behind the heads
    signs: Words  # (masks,): all bits set where the mask is subtracted

    @classmethod
    def from_masks(cls, masks: Sequence[tuple[bytes, bool]]) -> Self:
        heads = b"".join(counter_mode(seed).update(bytes(4 * HEAD)) for seed, _ in masks)
        return cls(
            heads=np.frombuffer(heads, "<u4").astype(np.uint32).reshape(-1, HEAD),
            streams=tuple(after_head(seed) for seed, _ in masks),
            signs=np.array([NEGATED if subtract else 0 for _, subtract in masks], np.uint32),
        )


@compiled
def _add_lanes(total: Words, made: Words, signs: Words) -> None:
    """total += all rows of made (rows, columns), each negated where its sign has all bits set: -x is (x ^ -1) + 1."""
    ones = np.uint32(0)
    for row in range(made.shape[0]):
        ones -= signs[row]
    if made.shape[0] == 8:
        m0, m1, m2, m3, m4, m5, m6, m7 = made[0], made[1], made[2], made[3], made[4], made[5], made[6], made[7]
        s0, s1, s2, s3, s4, s5, s6, s7 = signs[0], signs[1], signs[2], signs[3], signs[4], signs[5], signs[6], signs[7]
        for at in range(total.size):
            some = (m0[at] ^ s0) + (m1[at] ^ s1) + (m2[at] ^ s2) + (m3[at] ^ s3)
            more = (m4[at] ^ s4) + (m5[at] ^ s5) + (m6[at] ^ s6) + (m7[at] ^ s7)
            total[at] += some + more + ones
    else:
        for row in range(made.shape[0]):
            for index in range(total.size):
                total[index] += made[row, index] ^ signs[row]
        for index in range(total.size):
            total[index] += ones
