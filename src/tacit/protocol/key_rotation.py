"""How an operator changes its key: the old one signs the new one, once, and everybody can see it in the log.

A device that pinned the old key believes the new one from then on, and the old one no more. Whoever has stolen the old
key could do the same: what they sign stands in the log, or no device follows. Between runs alone: a run ends under the
key that it began with.
"""

from pathlib import Path

from tacit.files import write_whole
from tacit.protocol.messages import KeyRotation, SignedKeyRotation
from tacit.protocol.operator_key import OperatorKey

PREVIOUS, SUFFIX = ".previous", ".hand-over"  # of files beside the operator's key: the one before it; what that signed


def previous_key(path: Path) -> OperatorKey | None:
    """The key before the one in this file; None where there is none. Raises: InputError."""
    before = path.with_suffix(PREVIOUS)
    return OperatorKey.in_file(before) if before.exists() else None


def signed_key_rotation(old: OperatorKey, new: OperatorKey) -> SignedKeyRotation:
    """By both: the new one too, so that nobody hands over to a key that is not theirs."""
    made = KeyRotation(old=old.public, new=new.public)
    return SignedKeyRotation(
        hand_over=made, by_old=old.signature("hand-over", made), by_new=new.signature("hand-over", made)
    )


def keep(path: Path, signed: SignedKeyRotation) -> None:
    """Beside the key in this file, for workers to serve, now and when the old key is gone."""
    write_whole(path.with_suffix(SUFFIX), signed.model_dump_json().encode() + b"\n")


def kept(path: Path) -> str | None:
    """What `keep` wrote, JSON; None where the operator never changed its key."""
    file = path.with_suffix(SUFFIX)
    return file.read_text(encoding="ascii") if file.exists() else None
