"""How long a sealed report may be: what both ends, and the check before a report is read, take from a task's digits."""

from functools import lru_cache

from tacit.secure_aggregation.one_message.messages import OneMessageRound

AROUND = 4096  # bytes of a report beside its ciphertexts, boxes and parts, at most
BESIDE_A_BOX = 8


@lru_cache(maxsize=100)
def settings_of(sealed: str) -> OneMessageRound:
    """Of a task's hexadecimal digits. Raises: InputError, ProtocolError for what are none."""
    return OneMessageRound.from_bytes(bytes.fromhex(sealed))


def most_sealed_bytes(sealed: str) -> int:
    """No report of the round is longer."""
    settings = settings_of(sealed)
    boxes = len(settings.decryptors) * (settings.box_bytes + BESIDE_A_BOX)
    return settings.body_bytes + boxes + settings.parts_bytes + AROUND
