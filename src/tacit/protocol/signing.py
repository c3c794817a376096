"""The text of a document: its digest, and how the operator's signature of it (`operator_key.py`) is checked.

What is signed and hashed are the bytes of the text in UTF-8, as its signer wrote them and as they came. Nobody writes
a document again to check it. A signature is of `tacit PURPOSE v2`, a zero byte and the text, so that a signature of one
kind of document is none of another.
"""

import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tacit.protocol.fields import Purpose, SignedDocument
from tacit.protocol.messages import Signed
from tacit.secure_aggregation.small_order import anybody_signs


def digest(text: str) -> str:
    """SHA-256 of a document's text, 64 hexadecimal digits: the name of a plan."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_signed(kind: type[SignedDocument], signed: Signed, public: str) -> bool:
    """Whether the operator whose public key (64 hexadecimal digits) this is signed the text as a document of a kind."""
    return is_signature(kind.purpose, signed.document, signed.signature, public)


def is_signature(purpose: Purpose, text: str, signature: str, public: str) -> bool:
    """Whether this is the signature of the text for the purpose, by the owner of the public key.

    A key of small order has no owner: it signed nothing.
    """
    raw = bytes.fromhex(public)
    if anybody_signs(raw):
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(raw)
        key.verify(bytes.fromhex(signature), signed_bytes(purpose, text))
    except InvalidSignature:
        return False
    return True


def signed_bytes(purpose: Purpose, text: str) -> bytes:
    """What is signed of a text for the purpose."""
    return f"tacit {purpose} v2\0{text}".encode()
