"""The cryptography that others wrote, and the one way in which it is used here.

| what | by |
|---|---|
| a secret of two | X25519 (RFC 7748), then HKDF-SHA256 (RFC 5869) bound to purpose, both public keys and context |
| a mask | AES-256 in counter mode (NIST SP 800-38A) under a key of its own, from counter 0, as little-endian words |
| a box | ChaCha20-Poly1305 (RFC 8439) with associated data; to a public key with an ephemeral key of the sender's |
| a tag between two parties | GMAC, AES-256-GCM over associated data alone (NIST SP 800-38D) |
| an identity | Ed25519 (RFC 8032); what is signed begins with a label of its purpose |

Randomness is an argument, `Draw`: `os.urandom` wherever something is to be secret; `seeded` in a simulation that says
so, and for test vectors. Python can neither compute in constant time nor erase memory (docs/threat-model.md).
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR, GCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tacit.compiled import compiled
from tacit.errors import InputError, ProtocolError

Draw: TypeAlias = Callable[[int], bytes]  # so many random bytes
Words: TypeAlias = npt.NDArray[np.uint32]

SECRET_BYTES = KEY_BYTES = 32
SIGNATURE_BYTES = 64
NONCE_BYTES = 12
TAG_BYTES = 16
BOX_BYTES = NONCE_BYTES + TAG_BYTES  # by which a box is longer than what is in it
SEALED_BYTES = KEY_BYTES + TAG_BYTES  # and a sealed one
BLOCK = 1 << 14  # words: 64 KiB, so that sum and streams stay in a core's second cache
STREAMS, LANES = 32, 8  # masks made in turn for one block of a sum, and added in one go
HEAD = 8  # words of a mask before those that Galois counter mode makes: the cipher's blocks of counter 0 and 1
NEGATED = 0xFFFFFFFF
_ZEROS = bytes(4 * BLOCK)  # what is encrypted
_NO_NONCE = bytes(NONCE_BYTES)  # under a key that is used once


def seeded(seed: bytes) -> Draw:
    """Bytes that follow from 32 bytes: AES-256 in counter mode. For simulations that say so, and for test vectors."""
    stream = counter_mode(seed)
    return lambda size: stream.update(bytes(size))


def derived(secret: bytes, purpose: str, *context: bytes) -> bytes:
    """32 bytes for one purpose: HKDF-SHA256 without salt; info is purpose and context, each behind its length (4)."""
    parts = (f"tacit secure aggregation 1 {purpose}".encode(), *context)
    info = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    return HKDF(SHA256(), KEY_BYTES, None, info).derive(secret)


def commitment(purpose: str, secret: bytes) -> bytes:
    """SHA-256 of a random secret of 32 bytes, bound to its purpose: hides it, and can be opened in one way only."""
    return hashlib.sha256(f"tacit secure aggregation 1 {purpose}".encode() + b"\0" + secret).digest()


class KeyPair:
    """An X25519 key of a party's own, with what others see of it."""

    def __init__(self, private: bytes) -> None:
        """`private`: 32 random bytes."""
        self.private = private
        self._key = X25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw()

    def agreed(self, public: bytes, purpose: str, *context: bytes) -> bytes:
        """32 bytes that only the holders of these two keys know: of one purpose, one context and this pair.

        Both get the same. Raises: ProtocolError where the other key is of small order, so that anybody could know them.
        """
        try:
            secret = self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise ProtocolError("a public key is no point of Curve25519 that two parties may agree with.") from None
        return derived(secret, purpose, *sorted((self.public, public)), *context)


def public_key(private: bytes) -> bytes:
    """The X25519 public key of 32 private bytes."""
    return KeyPair(private).public


def agreed(private: bytes, public: bytes, purpose: str, *context: bytes) -> bytes:
    """`KeyPair.agreed`, for a key that agrees once."""
    return KeyPair(private).agreed(public, purpose, *context)


def boxed(key: bytes, content: bytes, associated: bytes, draw: Draw) -> bytes:
    """A nonce of 12 random bytes and the content under ChaCha20-Poly1305."""
    nonce = draw(NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, content, associated)


def unboxed(key: bytes, box: bytes, associated: bytes) -> bytes:
    """Raises: ProtocolError unless `boxed` made the box with this key and these associated data."""
    return _opened(key, box[:NONCE_BYTES], box[NONCE_BYTES:], associated)


def sealed(public: bytes, content: bytes, associated: bytes, draw: Draw) -> bytes:
    """A box that only the holder of a private key opens: an ephemeral public key of 32 bytes, and the box."""
    ephemeral = KeyPair(draw(KEY_BYTES))
    key = ephemeral.agreed(public, "sealed box")
    return ephemeral.public + ChaCha20Poly1305(key).encrypt(_NO_NONCE, content, associated)


def unsealed(private: bytes, box: bytes, associated: bytes) -> bytes:
    """Raises: ProtocolError unless `sealed` made the box for this key, with these associated data."""
    if len(box) < SEALED_BYTES:
        raise ProtocolError(f"a sealed box has {len(box)} bytes, and never fewer than {SEALED_BYTES}.")
    return _opened(agreed(private, box[:KEY_BYTES], "sealed box"), _NO_NONCE, box[KEY_BYTES:], associated)


def _opened(key: bytes, nonce: bytes, box: bytes, associated: bytes) -> bytes:
    if len(nonce) < NONCE_BYTES:
        raise ProtocolError("a box ends within its nonce.")
    try:
        return ChaCha20Poly1305(key).decrypt(nonce, box, associated)
    except InvalidTag:
        raise ProtocolError("a box does not open: it was changed, or made for others.") from None


def tag(key: bytes, data: bytes) -> bytes:
    """16 bytes that only the two holders of a key can make for these data. A key tags one message, ever."""
    return AESGCM(key).encrypt(_NO_NONCE, b"", data)


def check_tag(key: bytes, data: bytes | memoryview, given: bytes) -> None:
    """Raises: ProtocolError unless `tag` gave this for the data."""
    try:
        AESGCM(key).decrypt(_NO_NONCE, given, data)
    except (InvalidTag, ValueError):
        raise ProtocolError(
            "a tag is not that of its message: it was changed on its way, or somebody else sent it."
        ) from None


class Identity:
    """An Ed25519 key: who signs. Its public key is how others know a device from round to round."""

    def __init__(self, private: bytes) -> None:
        """`private`: 32 random bytes."""
        if len(private) != KEY_BYTES:
            raise InputError(f"an identity is {KEY_BYTES} random bytes, not {len(private)}.")
        self._key = Ed25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw()

    def sign(self, purpose: str, message: bytes) -> bytes:
        """64 bytes; the purpose keeps what was signed for one thing from being shown for another."""
        return self._key.sign(_labelled(purpose, message))


def check_signature(public: bytes, purpose: str, message: bytes, signature: bytes) -> None:
    """Raises: ProtocolError unless the holder of this identity signed the message for this purpose."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _labelled(purpose, message))
    except (InvalidSignature, ValueError):
        raise ProtocolError(f"a signature ({purpose}) is not that of its signer.") from None


def _labelled(purpose: str, message: bytes) -> bytes:
    return f"tacit secure aggregation 1 {purpose}".encode() + b"\0" + message


def counter_mode(seed: bytes) -> CipherContext:
    """AES-256 in counter mode under this key from counter 0: of zeros it makes the bytes of a mask."""
    return Cipher(AES256(seed), CTR(bytes(16))).encryptor()


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
