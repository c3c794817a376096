"""What a token is, for who signs it and who shows it.

A token is the epoch (4 bytes), 32 random bytes and the signature of `tacit token v1`, a zero byte and the epoch, behind
these 32 bytes, as RSABSSA-SHA384-PSS-Randomized prepares it. Its hash leaves the signature out, of which there may be
several.
"""

import re
from typing import TYPE_CHECKING

from tacit.protocol.messages import TokenKey, TokenRequest
from tacit.protocol.signing import digest

if TYPE_CHECKING:
    from tacit.protocol.blind_rsa import PublicKey

CODE = re.compile(r"[!-~]{20,200}")  # an enrolment's
EPOCH_BYTES = 4


def token_key_entry(key: TokenKey) -> str:
    """Its line in the transparency log, where an epoch has one."""
    return f"{epoch_entries(key.epoch)}{digest(key)}"


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
    """What tells a request from every other, and what a device's evidence in it is for: 32 bytes."""
    return bytes.fromhex(digest(request.model_copy(update={"evidence": None})))


def public_key(key: TokenKey) -> "PublicKey":
    """Raises: InputError for one that is not used."""
    from tacit.protocol.blind_rsa import PublicKey  # loaded where devices enrol

    return PublicKey(int(key.modulus, 16), key.exponent)
