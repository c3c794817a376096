"""Blind RSA signatures, RFC 9474, in the variant RSABSSA-SHA384-PSS-Randomized: who signs does not see what.

    prepare(message)             -> 32 random bytes and the message: what is signed
    Blinded.of(key, prepared)    -> z = m r^e mod n, with m the PSS encoding of it, and r^-1, which stays
    signer.sign(z)               -> z^d mod n
    blinded.finalize(key, z^d)   -> z^d r^-1 = m^d mod n, a signature of RSASSA-PSS that anybody checks

z is uniform on the units whatever was blinded, so it says nothing of the signature that comes of it. Python's integers
take a time that depends on them. The signer therefore blinds its own operation: what it raises to a power is what
came, times the power of a random number, and random multiples of p - 1 and q - 1 are added to its exponents. It checks
each signature before it gives it, for one that is wrong modulo a single prime tells both.
"""

import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
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
        blind = _unit(key.n, draw)
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


class Signer:
    """The private half."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        """Raises: InputError for a key that is not used here."""
        numbers = key.private_numbers()
        self._p, self._q, self._dp, self._dq = numbers.p, numbers.q, numbers.dmp1, numbers.dmq1
        self._q_inverse = numbers.iqmp
        self._key, self.public = key, PublicKey(numbers.public_numbers.n, numbers.public_numbers.e)

    @classmethod
    def new(cls, bits: int = LEAST_BITS) -> "Signer":
        """With a new key, from the operating system's randomness."""
        return cls(rsa.generate_private_key(EXPONENT, bits))

    @classmethod
    def from_pem(cls, content: bytes) -> "Signer":
        """Raises: InputError for what is no RSA key in PEM."""
        try:
            key = serialization.load_pem_private_key(content, password=None)
        except (ValueError, TypeError) as error:
            raise InputError(f"this is no private key in PEM ({error}).") from None
        if not isinstance(key, rsa.RSAPrivateKey):
            raise InputError("this private key is not one of RSA.")
        return cls(key)

    def to_pem(self) -> bytes:
        """PKCS #8, not encrypted."""
        form = serialization.PrivateFormat.PKCS8
        return self._key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())

    def number_of(self, blinded: bytes) -> int:
        """What a blinded message says. Raises: InputError for what is none of this key."""
        key = self.public
        if len(blinded) != key.size:
            raise InputError(f"a blinded message has {key.size} bytes, and this one {len(blinded)}.")
        message = int.from_bytes(blinded, "big")
        if not 0 < message < key.n or math.gcd(message, key.n) != 1:
            raise InputError("a blinded message is a number below the modulus, and without a factor of it.")
        return message

    def sign(self, blinded: bytes, *, draw: Draw = os.urandom) -> bytes:
        """BlindSign of RFC 9474, section 4.3. Raises: InputError for what is no blinded message of this key."""
        key, message = self.public, self.number_of(blinded)
        blind = _unit(key.n, draw)
        found = self._power(message * pow(blind, key.e, key.n) % key.n, draw) * pow(blind, -1, key.n) % key.n
        if pow(found, key.e, key.n) != message:
            raise ArithmeticError("a signature came out wrong, and was not given: see to this machine's hardware.")
        return found.to_bytes(key.size, "big")

    def _power(self, base: int, draw: Draw) -> int:
        """base^d mod n by its residues modulo the primes (RFC 8017, section 5.1.2), with longer random exponents."""
        p, q = self._p, self._q
        of_p = pow(base, self._dp + int.from_bytes(draw(8), "big") * (p - 1), p)
        of_q = pow(base, self._dq + int.from_bytes(draw(8), "big") * (q - 1), q)
        return of_q + q * ((of_p - of_q) * self._q_inverse % p)


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


def _unit(n: int, draw: Draw) -> int:
    """Uniform on the units modulo n: drawn again until it is one."""
    size, spare = (n.bit_length() + 7) // 8, -n.bit_length() % 8
    while True:
        found = int.from_bytes(draw(size), "big") >> spare
        if 0 < found < n and math.gcd(found, n) == 1:
            return found
