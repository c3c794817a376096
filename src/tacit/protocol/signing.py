"""Documents in one form, their digests, and how the operator's signatures of them (`operator_key.py`) are checked.

The canonical form is that of RFC 8785 (JSON Canonicalization Scheme): UTF-8, keys in order, no spaces, text escaped as
little as JSON allows, numbers as ECMAScript writes them. What is signed is `tacit PURPOSE v1`, a zero byte and that
form, so that a signature of one kind of document is none of another.
"""

import hashlib
import json
import math
from typing import Any, Literal, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tacit.protocol.fields import Document
from tacit.protocol.messages import (
    SignedHead,
    SignedPlan,
    SignedReceipt,
    SignedTask,
    SignedTokenKey,
)

Purpose: TypeAlias = Literal["plan", "task", "receipt", "head", "token-key", "hand-over"]
LARGEST_WHOLE = 2**53  # that a number of JSON says exactly everywhere
PLAIN_BELOW, PLAIN_FROM = 1e21, 1e-6  # between which ECMAScript writes a number without an exponent


def canonical(document: Document) -> bytes:
    """The one form of a document, RFC 8785."""
    return _written(document.model_dump(mode="json")).encode()


def canonical_json(value: Any) -> bytes:
    """The one form of any JSON value. Raises: ValueError for what has none."""
    return _written(value).encode()


def digest(document: Document) -> str:
    """SHA-256 of the canonical form, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(document)).hexdigest()


def is_signed(signed: SignedPlan | SignedTask | SignedReceipt | SignedHead | SignedTokenKey, public: str) -> bool:
    """Whether the operator whose public key (64 hexadecimal digits) this is signed the document for what it is."""
    match signed:
        case SignedPlan():
            return is_signature("plan", signed.plan, signed.signature, public)
        case SignedTask():
            return is_signature("task", signed.task, signed.signature, public)
        case SignedReceipt():
            return is_signature("receipt", signed.receipt, signed.signature, public)
        case SignedHead():
            return is_signature("head", signed.head, signed.signature, public)
        case SignedTokenKey():
            return is_signature("token-key", signed.key, signed.signature, public)


def is_signature(purpose: Purpose, document: Document, signature: str, public: str) -> bool:
    """Whether this is the signature of the document for the purpose, by the owner of the public key."""
    message = signed_bytes(purpose, document)
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), message)
    except InvalidSignature:
        return False
    return True


def signed_bytes(purpose: Purpose, document: Document) -> bytes:
    """What is signed of a document for the purpose."""
    return f"tacit {purpose} v1\0".encode() + canonical(document)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("keys are text")
        ordered = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))  # RFC 8785, section 3.2.3
        return "{" + ",".join(f"{_text(key)}:{_written(inner)}" for key, inner in ordered) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        if abs(value) > LARGEST_WHOLE:
            raise ValueError(f"{value} is beyond the whole numbers that JSON says exactly everywhere")
        return str(value)
    if isinstance(value, float):
        return _number(value)
    raise ValueError(f"{type(value).__name__} is no value of JSON")


def _text(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    written.encode()  # ValueError: halves of characters
    return written


def _number(value: float) -> str:
    """As ECMAScript's Number::toString writes it (ECMA-262, 6.1.6.1.20): the shortest digits, as in `repr`."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number of JSON")
    if value == 0:
        return "0"
    sign, size = "-" if value < 0 else "", abs(value)
    mantissa, _, exponent = f"{size!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)  # digits before the decimal point
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if PLAIN_FROM <= size < PLAIN_BELOW:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        if point >= len(digits):
            return f"{sign}{digits}{'0' * (point - len(digits))}"
        return f"{sign}{digits[:point]}.{digits[point:]}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"
