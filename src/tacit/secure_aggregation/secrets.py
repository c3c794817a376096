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
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tacit.errors import InputError, ProtocolError
from tacit.secure_aggregation.small_order import anybody_signs

Draw: TypeAlias = Callable[[int], bytes]  # so many random bytes
Words: TypeAlias = npt.NDArray[np.uint32]

SECRET_BYTES = KEY_BYTES = 32
SIGNATURE_BYTES = 64
NONCE_BYTES = 12
TAG_BYTES = 16
BOX_BYTES = NONCE_BYTES + TAG_BYTES  # by which a box is longer than what is in it
SEALED_BYTES = KEY_BYTES + TAG_BYTES  # and a sealed one
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
    if anybody_signs(public):
        raise ProtocolError(f"an identity ({purpose}) is a point of small order, for which anybody could sign.")
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _labelled(purpose, message))
    except (InvalidSignature, ValueError):
        raise ProtocolError(f"a signature ({purpose}) is not that of its signer.") from None


def _labelled(purpose: str, message: bytes) -> bytes:
    return f"tacit secure aggregation 1 {purpose}".encode() + b"\0" + message


def counter_mode(seed: bytes) -> CipherContext:
    """AES-256 in counter mode under this key from counter 0: of zeros it makes the bytes of a mask."""
    return Cipher(AES256(seed), CTR(bytes(16))).encryptor()
