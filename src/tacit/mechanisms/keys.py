"""Keys: noise is drawn from a secret and from what it is added to, so that two sums never have the same noise.

Whoever sees x + n and x' + n with one n sees x - x' without any. So the key of a round's seeds is a pseudorandom
function of everything that the noise is added to and scaled by, and of the key of the round before, which stands for
all that was released until then. Equal runs have equal bits, and a run that is resumed on other data has other noise.

What is summed is first hashed (GMAC, several gigabytes a second), then HMAC-SHA256 makes the key: a universal hash
followed by a pseudorandom function is one. Two different sums have equal tags with probability below 2**-110, and tags
never leave the process.
"""

import hashlib
import hmac
import secrets
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tacit.errors import InputError
from tacit.mechanisms.seeds import SEED_KEY_BYTES

KEY_BYTES = 16
ROUND_KEY_BYTES = 32
HASHED = 1 << 20  # bytes to a tag
# What noise is drawn for.
PURPOSES = ("model update", "clip norm", "evaluation histogram", "local reports", "training loss", "noise of a keeper")


def fresh_key() -> bytes:
    """A key of 128 bits from the operating system: what private noise is made of."""
    return secrets.token_bytes(KEY_BYTES)


class RoundKey(NamedTuple):
    """What a round's seeds are drawn from, and what the next round's key is bound to."""

    whole: bytes  # 32 bytes

    @property
    def seeds(self) -> bytes:
        """The 16 bytes that seeds are drawn from."""
        return self.whole[:SEED_KEY_BYTES]


def round_key(
    key: bytes, purpose: str, round: int, *, bound_to: bytes, summed: npt.NDArray[Any], before: bytes = b""
) -> RoundKey:
    """The key of one round's noise.

    bound_to: how the noise is made of the seeds (standard deviation, weights). summed: what the noise is added to, of
    any shape and type; its bytes count. before: the whole key of the round before. Raises: InputError for a key,
    purpose or round that cannot be.
    """
    if len(key) != KEY_BYTES:
        raise InputError(f"a noise key has {len(key)} bytes, but must have {KEY_BYTES}: take one from fresh_key().")
    if purpose not in PURPOSES:
        raise InputError(f"purpose={purpose!r} is not one that noise is drawn for: {', '.join(PURPOSES)}.")
    if round < 0:
        raise InputError(f"round={round} cannot be: rounds begin at 0.")
    about = f"{purpose} {round} {summed.dtype.str} {summed.shape}".encode()
    parts = (about, bound_to, before, _tags(_part(key, b"tags")[:SEED_KEY_BYTES], summed))
    message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return RoundKey(hmac.digest(_part(key, b"rounds"), message, "sha256"))


def _part(key: bytes, use: bytes) -> bytes:
    """A key for one use, from which no other follows."""
    return hmac.digest(key, b"tacit noise: " + use, hashlib.sha256)


def _tags(key: bytes, summed: npt.NDArray[Any]) -> bytes:
    """A tag of 16 bytes for every HASHED bytes. One nonce for all: tags are compared inside a hash, never shown."""
    content, gmac = np.ascontiguousarray(summed).reshape(-1).view(np.uint8).data, AESGCM(key)
    return b"".join(
        gmac.encrypt(bytes(12), b"", content[start : start + HASHED]) for start in range(0, len(content), HASHED)
    )
