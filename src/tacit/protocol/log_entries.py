"""What stands in the transparency log, line by line: for whoever writes it, and for devices, which have no database."""

from tacit.protocol.merkle import leaf_hash


def plan_entry(digest: str) -> str:
    """The line for a plan. digest: `signing.digest` of it."""
    return f"plan {digest}"


def key_rotation_entry(digest: str) -> str:
    """The line for a change of the operator's key. digest: of the `KeyRotation`."""
    return f"hand-over {digest}"


def leaf_of(entry: str) -> bytes:
    """The entry's leaf, 32 bytes."""
    return leaf_hash(entry.encode())
