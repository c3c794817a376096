"""A sealed round in its task: how long a report may be, and which seed binds the round to what it asks."""

import hashlib
from functools import lru_cache

from tacit.protocol.messages import RoundTask
from tacit.secure_aggregation.one_message.messages import OneMessageRound

AROUND = 4096  # bytes of a report beside its ciphertexts, boxes and parts, at most
BESIDE_A_BOX = 8


@lru_cache(maxsize=100)
def settings_of(sealed: str) -> OneMessageRound:
    """Of a task's hexadecimal digits. Raises: InputError, ProtocolError for what are none."""
    return OneMessageRound.from_bytes(bytes.fromhex(sealed))


def seed_of(task: RoundTask) -> bytes:
    """The seed (32 bytes) of an attempt's public polynomials: random, since its name is, and of this question alone.

    Whoever computes it from a task of its own is in a round with all who have the same plan, round, attempt and
    rotation: a contributor's noise is in the basis in which devices report.
    """
    said = f"tacit sealed round v1\0{task.plan} {task.round} {task.task} ".encode()
    return hashlib.sha256(said + task.asks.signs).digest()


def most_sealed_bytes(sealed: str) -> int:
    """No report of the round is longer."""
    settings = settings_of(sealed)
    boxes = len(settings.decryptors) * (settings.box_bytes + BESIDE_A_BOX)
    return settings.body_bytes + boxes + settings.parts_bytes + AROUND
