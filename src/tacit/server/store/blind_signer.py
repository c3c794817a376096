"""The private half of blind RSA signatures, RFC 9474; the public one is `protocol/blind_rsa.py`.

Python's integers take a time that depends on them. The signer therefore blinds its own operation: what it raises to a
power is what came, times the power of a random number, and random multiples of p - 1 and q - 1 are added to its
exponents. It checks each signature before it gives it, for one that is wrong modulo a single prime tells both.
"""

import math
import os

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tacit.errors import InputError
from tacit.protocol.blind_rsa import EXPONENT, LEAST_BITS, Draw, PublicKey, unit


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
        blind = unit(key.n, draw)
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
