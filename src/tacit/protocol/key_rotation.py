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
    text = KeyRotation(old=old.public, new=new.public).to_json()
    return SignedKeyRotation(
        document=text, by_old=old.signature("hand-over", text), by_new=new.signature("hand-over", text)
    )


def signed_once(path: Path, old: OperatorKey, new: OperatorKey) -> SignedKeyRotation:
    """The change to the key in this file: as it was signed first, and else signed and kept beside it, for workers to
    serve, now and when the old key is gone. Raises: InputError.
    """
    if (before := kept(path)) is not None:
        signed = SignedKeyRotation.from_json(before)
        said = KeyRotation.from_json(signed.document)
        if (said.old, said.new) == (old.public, new.public):
            return signed
    made = signed_key_rotation(old, new)
    write_whole(path.with_suffix(SUFFIX), made.to_json().encode() + b"\n")
    return made


def kept(path: Path) -> str | None:
    """What `signed_once` wrote, JSON; None where the operator never changed its key."""
    file = path.with_suffix(SUFFIX)
    return file.read_text(encoding="ascii") if file.exists() else None
