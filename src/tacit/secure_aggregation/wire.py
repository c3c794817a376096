"""How messages become bytes: one envelope and a few kinds of fields, parsed strictly.

Whole numbers are little-endian, as the words of vectors are. A record is its fields in order, each behind its length
(4 bytes). A message is an envelope and a record:

    magic b"tacitsum" (8) | version (2) | kind (2) | round (32) | fields

A frozen dataclass declares its own layout by the types of its fields, `Key = Annotated[bytes, Fixed(32)]` say. What is
parsed is canonical: to_bytes(from_bytes(data)) == data, so who signs or hashes bytes signs what they say.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import islice
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar, get_type_hints

from tacit.errors import ProtocolError

MAGIC = b"tacitsum"
VERSIONS = (4, 5)  # that this program speaks: each protocol has one
ROUND_BYTES = DIGEST_BYTES = 32
LENGTH_BYTES = 4
HEADER_BYTES = len(MAGIC) + 2 + 2 + ROUND_BYTES
Buffer: TypeAlias = bytes | memoryview  # what is parsed is not copied before it is known to be whole


@dataclass(frozen=True)
class Number:
    """A whole number from 0 on, in so many bytes."""

    size: int

    def to_bytes(self, value: int) -> bytes:
        if not 0 <= value < 1 << 8 * self.size:
            raise ProtocolError(f"{value} does not fit in {self.size} bytes.")
        return int(value).to_bytes(self.size, "little")

    def from_bytes(self, data: Buffer) -> int:
        _must_have(self.size, data)
        return int.from_bytes(data, "little")


@dataclass(frozen=True)
class Fixed:
    """So many bytes."""

    size: int

    def to_bytes(self, value: bytes) -> bytes:
        _must_have(self.size, value)
        return bytes(value)

    def from_bytes(self, data: Buffer) -> bytes:
        _must_have(self.size, data)
        return bytes(data)


@dataclass(frozen=True)
class Blob:
    """Bytes of any number."""

    def to_bytes(self, value: bytes) -> bytes:
        return bytes(value)

    def from_bytes(self, data: Buffer) -> bytes:
        return bytes(data)


@dataclass(frozen=True)
class View:
    """Bytes of any number that are not copied out of their message: for what is large and read once."""

    def to_bytes(self, value: Buffer) -> bytes:
        return bytes(value)

    def from_bytes(self, data: Buffer) -> memoryview:
        return memoryview(data)


@dataclass(frozen=True)
class Rows:
    """A tuple of values of one fixed size, one after the other."""

    of: Number | Fixed

    def to_bytes(self, value: Sequence[Any]) -> bytes:
        return b"".join(self.of.to_bytes(each) for each in value)

    def from_bytes(self, data: Buffer) -> tuple[Any, ...]:
        if len(data) % self.of.size:
            raise ProtocolError(f"{len(data)} bytes are no whole number of values of {self.of.size} bytes.")
        return tuple(self.of.from_bytes(data[at : at + self.of.size]) for at in range(0, len(data), self.of.size))


@dataclass(frozen=True)
class BytesTuple:
    """A tuple of bytes of any number, each behind its length."""

    def to_bytes(self, value: Sequence[bytes]) -> bytes:
        return b"".join(_behind_its_length(each) for each in value)

    def from_bytes(self, data: Buffer) -> tuple[bytes, ...]:
        return tuple(bytes(part) for part in _parts(data))


Field = Number | Fixed | Blob | View | Rows | BytesTuple

Digest = Annotated[bytes, Fixed(DIGEST_BYTES)]
Index = Annotated[int, Number(4)]  # of a party
Count = Annotated[int, Number(8)]
Indices = Annotated[tuple[int, ...], Rows(Number(4))]
Bytes = Annotated[bytes, Blob()]
ManyBytes = Annotated[tuple[bytes, ...], BytesTuple()]


@cache
def _layout(record: Any) -> tuple[tuple[str, Field], ...]:
    hints = get_type_hints(record, include_extras=True)
    return tuple((each.name, hints[each.name].__metadata__[0]) for each in fields(record) if each.name != "round")


def _must_have(size: int, data: Buffer) -> None:
    if len(data) != size:
        raise ProtocolError(f"a field has {len(data)} bytes and must have {size}.")


def _behind_its_length(data: bytes) -> bytes:
    return len(data).to_bytes(LENGTH_BYTES, "little") + data


def _parts(data: Buffer) -> Iterator[memoryview]:
    data, at = memoryview(data), 0
    while at < len(data):
        start = at + LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "little")
        if at > len(data) or start > len(data):
            raise ProtocolError("a message ends within a field.")
        yield data[start:at]


@dataclass(frozen=True)
class Record:
    """Fields in order, each behind its length; what has no round of its own: settings, and what is signed or hashed."""

    def to_bytes(self) -> bytes:
        """Raises: ProtocolError where a value does not fit its field."""
        return _fields_to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Raises: ProtocolError unless these are the bytes of one such record, and nothing else."""
        return cls(**_fields_from_bytes(cls, data))

    def digest(self, label: str) -> bytes:
        """SHA-256 of the label, behind its length, and the record: 32 bytes."""
        return hashlib.sha256(_behind_its_length(label.encode()) + self.to_bytes()).digest()


@dataclass(frozen=True)
class Message:
    """An envelope around fields. A subclass says its `kind`, a number of its own (`tests/secure_aggregation`)."""

    kind: ClassVar[int]
    version: ClassVar[int] = 4  # of its protocol

    round: bytes  # 32 bytes: the digest of the round's public settings

    def to_bytes(self) -> bytes:
        """Raises: ProtocolError where a value does not fit its field."""
        return header(self.kind, self.round, self.version) + _fields_to_bytes(self)

    @classmethod
    def from_bytes(cls, data: Buffer, *, round: bytes | None = None) -> Self:
        """Raises: ProtocolError unless these are the bytes of one such message (of this round, where it is given)."""
        kind, of_round = opened(data)
        if kind != cls.kind:
            raise ProtocolError(f"a message of kind {kind} came where kind {cls.kind} ({cls.__name__}) is due.")
        if (version := _version(data)) != cls.version:
            raise ProtocolError(f"a {cls.__name__} has version {version}; this program speaks {cls.version} alone.")
        if round is not None and of_round != round:
            raise ProtocolError(f"a {cls.__name__} is of round {of_round.hex()[:16]}, not of {round.hex()[:16]}.")
        return cls(round=of_round, **_fields_from_bytes(cls, memoryview(data)[HEADER_BYTES:]))


Parsed = TypeVar("Parsed", bound=Message)


def header(kind: int, round: bytes, version: int = Message.version) -> bytes:
    """The first HEADER_BYTES of a message."""
    _must_have(ROUND_BYTES, round)
    return MAGIC + Number(2).to_bytes(version) + Number(2).to_bytes(kind) + round


def opened(data: Buffer) -> tuple[int, bytes]:
    """(kind, round) of a message. Raises: ProtocolError where it is none, or of a version that is not ours."""
    if len(data) < HEADER_BYTES or data[: len(MAGIC)] != MAGIC:
        raise ProtocolError("these bytes are no message of secure aggregation.")
    if (version := _version(data)) not in VERSIONS:
        raise ProtocolError(f"a message has version {version}; this program speaks {VERSIONS[0]} and {VERSIONS[1]}.")
    kind = int.from_bytes(data[len(MAGIC) + 2 : len(MAGIC) + 4], "little")
    return kind, bytes(data[len(MAGIC) + 4 : HEADER_BYTES])


def parsed(data: bytes, kinds: Sequence[type[Parsed]], *, round: bytes | None = None) -> Parsed:
    """The message that these bytes are, one of `kinds`. Raises: ProtocolError where they are none of them."""
    kind, _ = opened(data)
    for each in kinds:
        if each.kind == kind:
            return each.from_bytes(data, round=round)
    raise ProtocolError(f"a message has kind {kind}; only {', '.join(each.__name__ for each in kinds)} is due.")


def _version(data: Buffer) -> int:
    return int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2], "little")


def _fields_to_bytes(record: Any) -> bytes:
    layout = _layout(record.__class__)
    return b"".join(_behind_its_length(field.to_bytes(getattr(record, name))) for name, field in layout)


def _fields_from_bytes(record: type, data: Buffer) -> dict[str, Any]:
    layout = _layout(record)
    parts = list(islice(_parts(data), len(layout) + 1))  # no more: an empty field takes 4 bytes, and 200 in memory
    if len(parts) != len(layout):
        many = f"{len(parts)} or more" if len(parts) > len(layout) else len(parts)
        raise ProtocolError(f"a {record.__name__} has {len(layout)} fields; these bytes have {many}.")
    values = {}
    for (name, field), part in zip(layout, parts, strict=True):
        try:
            values[name] = field.from_bytes(part)
        except ProtocolError as error:
            raise ProtocolError(f"{name} of a {record.__name__}: {error}") from None
    return values
