"""Blind RSA signatures, RFC 9474, in the variant RSABSSA-SHA384-PSS-Randomized: who signs does not see what.

    prepare(message)                     -> 32 random bytes and the message: what is signed
    Blinded.from_prepared(key, prepared) -> z = m r^e mod n, with m the PSS encoding of it, and r^-1, which stays
    signer.sign(z)                       -> z^d mod n
    blinded.finalize(key, z^d)           -> z^d r^-1 = m^d mod n, a signature of RSASSA-PSS that anybody checks

z is uniform on the units whatever was blinded, so it says nothing of the signature that comes of it. The private half,
the signer, is the server's (`server/store/blind_signer.py`).
"""

import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tacit.errors import InputError

PREFIX_BYTES = 32  # RFC 9474, section 4.1
SALT_BYTES = HASH_BYTES = 48  # section 5
EXPONENT = 65537
LEAST_BITS, MOST_BITS = 2048, 4096
_HASH = hashes.SHA384()
_PSS = padding.PSS(mgf=padding.MGF1(_HASH), salt_length=SALT_BYTES)
Draw = Callable[[int], bytes]


@dataclass(frozen=True)
class PublicKey:
    """The half that everybody has. Raises: InputError for a modulus of a length that is not used, or an even one."""

    n: int
    e: int = EXPONENT

    def __post_init__(self) -> None:
        bits = self.n.bit_length()
        if not LEAST_BITS <= bits <= MOST_BITS or bits % 8 or self.n % 2 == 0:
            raise InputError(
                f"a blind-signature key has an odd modulus of {LEAST_BITS} to {MOST_BITS} bits, in whole bytes; this "
                f"one has {bits}. Take another key."
            )
        if not 65537 <= self.e < 1 << 32 or self.e % 2 == 0:
            raise InputError(
                f"a blind-signature key has an odd exponent from 65537 on, not {self.e}; take another key."
            )

    @property
    def size(self) -> int:
        """Bytes of a blinded message, and of a signature: always so many."""
        return self.n.bit_length() // 8

    def is_signature(self, prepared: bytes, signature: bytes) -> bool:
        """Whether this is a signature of what was prepared (RFC 9474, section 4.5)."""
        if len(signature) != self.size:
            return False
        try:
            rsa.RSAPublicNumbers(self.e, self.n).public_key().verify(signature, prepared, _PSS, _HASH)
        except InvalidSignature:
            return False
        return True


def prepare(message: bytes, *, draw: Draw = os.urandom) -> bytes:
    """What is signed for a message: PrepareRandomize of RFC 9474, section 4.1. draw: so many random bytes."""
    return draw(PREFIX_BYTES) + message


@dataclass(frozen=True)
class Blinded:
    """A message that waits for its signature. `sent` goes to the signer, all else stays."""

    key: PublicKey
    prepared: bytes
    sent: bytes  # key.size of them
    inverse: int = field(repr=False)

    @classmethod
    def from_prepared(cls, key: PublicKey, prepared: bytes, *, draw: Draw = os.urandom) -> "Blinded":
        """Blind of RFC 9474, section 4.2. Raises: InputError where the key turns out to be none."""
        salt = draw(SALT_BYTES)
        encoded = int.from_bytes(emsa_pss_encode(prepared, key.n.bit_length() - 1, salt), "big")
        if math.gcd(encoded, key.n) != 1:
            raise InputError("the signer's modulus has a factor that anybody finds; take another key.")
        blind = unit(key.n, draw)
        sent = encoded * pow(blind, key.e, key.n) % key.n
        return cls(key, prepared, sent.to_bytes(key.size, "big"), pow(blind, -1, key.n))

    def finalize(self, blind_signature: bytes) -> bytes:
        """The signature, checked: Finalize of RFC 9474, section 4.4. Raises: InputError for what is none."""
        if len(blind_signature) != self.key.size:
            raise InputError(f"a blind signature has {self.key.size} bytes, and this one {len(blind_signature)}.")
        found = int.from_bytes(blind_signature, "big") * self.inverse % self.key.n
        signature = found.to_bytes(self.key.size, "big")
        if not self.key.is_signature(self.prepared, signature):
            raise InputError("what the signer gave is no signature of what was sent; it is not used.")
        return signature


def emsa_pss_encode(message: bytes, bits: int, salt: bytes) -> bytes:
    """EMSA-PSS-ENCODE of RFC 8017, section 9.1.1, with SHA-384 and MGF1 of it: an integer of at most so many bits."""
    length = (bits + 7) // 8
    digest = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    data = bytes(length - len(salt) - HASH_BYTES - 2) + b"\x01" + salt
    masked = bytearray(a ^ b for a, b in zip(data, _mgf1(digest, len(data)), strict=True))
    masked[0] &= 0xFF >> (8 * length - bits)
    return bytes(masked) + digest + b"\xbc"


def _mgf1(seed: bytes, length: int) -> bytes:
    """RFC 8017, appendix B.2.1."""
    blocks = (hashlib.sha384(seed + count.to_bytes(4, "big")).digest() for count in range(-(-length // HASH_BYTES)))
    return b"".join(blocks)[:length]


def unit(n: int, draw: Draw) -> int:
    """Uniform on the units modulo n: drawn again until it is one."""
    size, spare = (n.bit_length() + 7) // 8, -n.bit_length() % 8
    while True:
        found = int.from_bytes(draw(size), "big") >> spare
        if 0 < found < n and math.gcd(found, n) == 1:
            return found
