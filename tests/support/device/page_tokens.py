"""Tokens by docs/protocol.md and RFC 9474 alone: RSABSSA-SHA384-PSS-Randomized, with Python's own integers."""

import hashlib
import math
import os
import secrets
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

SALT = 48  # bytes, as many as SHA-384 has


class Blinded(NamedTuple):
    """A message that was sent blinded, and how to take the blinding away."""

    prefix: bytes  # 32 random bytes before the message
    inverse: int
    sent: str


def blinded(key: dict[str, Any]) -> Blinded:
    """One for a `TokenKey`. Raises: ValueError for a key whose factors it met."""
    modulus, prefix = int(key["modulus"], 16), secrets.token_bytes(32)
    encoded = int.from_bytes(_pss(prefix + _message(key), modulus.bit_length() - 1), "big")
    if math.gcd(encoded, modulus) != 1:
        raise ValueError("no key of RSA")
    blind = 1 + secrets.randbelow(modulus - 1)
    sent = encoded * pow(blind, key["exponent"], modulus) % modulus
    return Blinded(prefix, pow(blind, -1, modulus), f"{sent:0512x}")


def token(key: dict[str, Any], one: Blinded, signature: str) -> str:
    """292 bytes in hexadecimal digits. Raises: InvalidSignature."""
    modulus = int(key["modulus"], 16)
    signed = (int(signature, 16) * one.inverse % modulus).to_bytes(256, "big")
    public = rsa.RSAPublicNumbers(key["exponent"], modulus).public_key()
    scheme = padding.PSS(padding.MGF1(hashes.SHA384()), SALT)
    public.verify(signed, one.prefix + _message(key), scheme, hashes.SHA384())
    return (key["epoch"].to_bytes(4, "big") + one.prefix + signed).hex()


def _message(key: dict[str, Any]) -> bytes:
    return b"tacit token v1\0" + int(key["epoch"]).to_bytes(4, "big")


def _pss(message: bytes, bits: int) -> bytes:
    """EMSA-PSS-ENCODE: RFC 8017, section 9.1.1."""
    length, salt = -(-bits // 8), os.urandom(SALT)
    hashed = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = bytes(length - SALT - len(hashed) - 2) + b"\1" + salt
    blocks = (hashlib.sha384(hashed + number.to_bytes(4, "big")).digest() for number in range(-(-len(block) // 48)))
    masked = bytearray(one ^ other for one, other in zip(block, b"".join(blocks), strict=False))
    masked[0] &= 0xFF >> (8 * length - bits)
    return bytes(masked) + hashed + b"\xbc"
