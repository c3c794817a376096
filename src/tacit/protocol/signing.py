"""Documents in one form, their digests, and the operator's signatures of them.

The canonical form is that of RFC 8785 (JSON Canonicalization Scheme): UTF-8, keys in order, no spaces, text escaped as
little as JSON allows, numbers as ECMAScript writes them. What is signed is `tacit PURPOSE v1`, a zero byte and that
form, so that a signature of one kind of document is none of another.
"""

import hashlib
import json
import math
import os
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.errors import InputError
from tacit.files import write_whole
from tacit.protocol.attestation import NOTHING, Attestation
from tacit.protocol.fields import Document
from tacit.protocol.messages import (
    Plan,
    Receipt,
    RoundTask,
    SignedHead,
    SignedPlan,
    SignedReceipt,
    SignedTask,
    TreeHead,
)
from tacit.protocol.token_messages import SignedTokenKey, TokenKey
from tacit.version import __version__

Purpose: TypeAlias = Literal["plan", "task", "receipt", "head", "token-key", "hand-over"]
KEY_BYTES = 32
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
            return cls(bytes.fromhex(path.read_text(encoding="ascii").strip()))
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

    def signature(self, purpose: Purpose, document: Document) -> str:
        """128 hexadecimal digits; Ed25519 is deterministic, so the same ones every time."""
        return self._key.sign(_signed(purpose, document)).hex()

    def plan(self, plan: Plan, *, server: Attestation = NOTHING) -> SignedPlan:
        """The plan, signed, with what attests the environment of this server."""
        evidence = server.evidence(bytes.fromhex(digest(plan)))
        said = None if evidence is None else evidence.hex()
        return SignedPlan(plan=plan, signature=self.signature("plan", plan), evidence=said)

    def task(self, task: RoundTask) -> SignedTask:
        """The task, signed."""
        return SignedTask(task=task, signature=self.signature("task", task))

    def receipt(self, assignment: str, sha256: str) -> SignedReceipt:
        """A receipt for a report's body, signed."""
        receipt = Receipt(assignment=assignment, sha256=sha256, received=True)
        return SignedReceipt(receipt=receipt, signature=self.signature("receipt", receipt))

    def head(self, head: TreeHead) -> SignedHead:
        """The head of the log, signed; `transparency.TransparencyLog` alone decides which."""
        return SignedHead(head=head, signature=self.signature("head", head))

    def token_key(self, key: TokenKey) -> SignedTokenKey:
        """The key of an epoch's tokens, signed."""
        return SignedTokenKey(key=key, signature=self.signature("token-key", key))


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
    message = _signed(purpose, document)
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), message)
    except InvalidSignature:
        return False
    return True


@cache
def code_digest() -> str:
    """SHA-256 of the installed package: its version, and the path and SHA-256 of each .py file, in order of paths.

    One line each, `version 0.1.0` first, then `sha256  path` as sha256sum writes it, paths relative to the package.
    """
    lines = [f"version {__version__}\n"]
    lines += [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {path}\n" for path, file in sorted(_sources())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _sources(folder: Traversable | None = None, above: str = "") -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for each in (files("tacit") if folder is None else folder).iterdir():
        if each.is_dir():
            found += _sources(each, f"{above}{each.name}/")
        elif each.name.endswith(".py"):
            found.append((f"{above}{each.name}", each))
    return found


def _signed(purpose: Purpose, document: Document) -> bytes:
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
