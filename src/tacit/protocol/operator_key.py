"""The operator's key, which signs what `signing.py` checks: a server's, and no device's."""

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.errors import InputError
from tacit.files import read_bounded, write_whole
from tacit.protocol.attestation import NOTHING, Attestation
from tacit.protocol.fields import Purpose, SignedDocument
from tacit.protocol.messages import Receipt, Signed, SignedPlan
from tacit.protocol.signing import digest, signed_bytes

KEY_BYTES = 32


class OperatorKey:
    """The operator's Ed25519 key: what it signed, a device that pinned the public half believes."""

    def __init__(self, private: bytes) -> None:
        """private: 32 random bytes. Raises: InputError for another number of them."""
        if len(private) != KEY_BYTES:
            raise InputError(
                f"an operator's key has {KEY_BYTES} bytes, and this one has {len(private)}; make a new one."
            )
        self._key = Ed25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw().hex()

    @classmethod
    def in_file(cls, path: Path) -> "OperatorKey":
        """That of a file, made where there is none, which its owner alone may read.

        Raises: InputError for a file that is something else, and for one that others may read.
        """
        if not path.exists():
            made = os.urandom(KEY_BYTES)
            mask = os.umask(0o077)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, made.hex().encode() + b"\n")
            finally:
                os.umask(mask)
            return cls(made)
        if path.stat().st_mode & 0o077:
            raise InputError(f"'{path}' holds a secret key and others may read it; `chmod 600 {path}`.")
        try:
            return cls(bytes.fromhex(read_bounded(path).decode("ascii").strip()))
        except (ValueError, OSError) as error:
            raise InputError(
                f"'{path}' is no operator's key ({error}); give another path, where one is made."
            ) from None

    def sign(self, message: bytes) -> str:
        """128 hexadecimal digits, of what is no document and says itself what it is for."""
        return self._key.sign(message).hex()

    def round_key(self, task: str) -> bytes:
        """The X25519 key (32 bytes) of a sealed round's server: of this task alone, and the same after a restart."""
        from tacit.secure_aggregation.secrets import derived

        return derived(self._key.private_bytes_raw(), "server of a sealed round", task.encode())

    def signature(self, purpose: Purpose, text: str) -> str:
        """128 hexadecimal digits; Ed25519 is deterministic, so the same ones every time."""
        return self._key.sign(signed_bytes(purpose, text)).hex()

    def signed(self, document: SignedDocument) -> Signed:
        """The document's text, signed."""
        text = document.to_json()
        return Signed(document=text, signature=self.signature(document.purpose, text))

    def plan(self, text: str, *, server: Attestation = NOTHING) -> SignedPlan:
        """The text of a plan, signed, with what attests the environment of this server."""
        evidence = server.evidence(bytes.fromhex(digest(text)))
        said = None if evidence is None else evidence.hex()
        return SignedPlan(document=text, signature=self.signature("plan", text), evidence=said)

    def receipt(self, assignment: str, sha256: str) -> Signed:
        """A receipt for a report's body, signed."""
        return self.signed(Receipt(assignment=assignment, sha256=sha256, received=True))
