"""What a token is, for who signs it and who shows it.

A token is the epoch (4 bytes), 32 random bytes and the signature of `tacit token v1`, a zero byte and the epoch, behind
these 32 bytes, as RSABSSA-SHA384-PSS-Randomized prepares it. Its hash leaves the signature out, of which there may be
several.
"""

import hashlib
import re
from typing import TYPE_CHECKING

from tacit.protocol.messages import TokenKey, TokenRequest
from tacit.protocol.signing import digest

if TYPE_CHECKING:
    from tacit.protocol.blind_rsa import PublicKey

CODE = re.compile(r"[!-~]{20,200}")  # an enrolment's
EPOCH_BYTES = 4


def token_key_entry(epoch: int, text: str) -> str:
    """The line in the transparency log of a TokenKey's text, of which its epoch has one."""
    return f"{epoch_entries(epoch)}{digest(text)}"


def epoch_entries(epoch: int) -> str:
    """How lines of the log begin that are for a key of tokens of this epoch."""
    return f"token-key {epoch} "


def message_of(epoch: int) -> bytes:
    """What is signed, behind 32 random bytes."""
    return b"tacit token v1\0" + epoch.to_bytes(EPOCH_BYTES, "big")


def token_of(epoch: int, prepared: bytes, signature: bytes) -> str:
    """As it is shown, in hexadecimal digits."""
    from tacit.protocol.blind_rsa import PREFIX_BYTES

    return (epoch.to_bytes(EPOCH_BYTES, "big") + prepared[:PREFIX_BYTES] + signature).hex()


def bound_to(request: TokenRequest) -> bytes:
    """What tells a request from every other, and what a device's evidence in it is for: 32 bytes.

    SHA-256 of `tacit token-request v2`, a zero byte, the code, a zero byte, the epoch and the blinded messages.
    """
    parts = [b"tacit token-request v2", request.code.encode(), request.epoch.to_bytes(EPOCH_BYTES, "big")]
    return hashlib.sha256(b"\0".join(parts) + bytes.fromhex("".join(request.blinded))).digest()


def public_key(key: TokenKey) -> "PublicKey":
    """Raises: InputError for one that is not used."""
    from tacit.protocol.blind_rsa import PublicKey  # loaded where devices enrol

    return PublicKey(int(key.modulus, 16), key.exponent)
