"""Messages: what is written is read back, and nothing else is read."""

import tracemalloc
from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ProtocolError
from tacit.secure_aggregation import wire
from tacit.secure_aggregation.wire import Bytes, Count, Digest, Index, Indices, ManyBytes, Message, Record

ROUND = bytes(range(32))


@dataclass(frozen=True)
class Everything(Message):
    """A message with every kind of field."""

    kind: ClassVar[int] = 60_001
    sender: Index
    count: Count
    key: Digest
    others: Indices
    keys: Annotated[tuple[bytes, ...], wire.Rows(wire.Fixed(3))]
    content: Bytes
    boxes: ManyBytes


@dataclass(frozen=True)
class Little(Message):
    kind: ClassVar[int] = 60_002
    sender: Index


@dataclass(frozen=True)
class Settings(Record):
    clients: Index
    name: Bytes


INDICES = st.integers(0, 2**32 - 1)
EVERYTHING = st.builds(
    Everything,
    round=st.binary(min_size=32, max_size=32),
    sender=INDICES,
    count=st.integers(0, 2**64 - 1),
    key=st.binary(min_size=32, max_size=32),
    others=st.lists(INDICES, max_size=5).map(tuple),
    keys=st.lists(st.binary(min_size=3, max_size=3), max_size=3).map(tuple),
    content=st.binary(max_size=20),
    boxes=st.lists(st.binary(max_size=5), max_size=4).map(tuple),
)
MESSAGE = Everything(ROUND, 7, 2**40, bytes(32), (1, 2), (b"abc",), b"content", (b"", b"box"))


@given(message=EVERYTHING)
def test_what_is_written_is_read(message: Everything) -> None:
    assert Everything.from_bytes(message.to_bytes()) == message
    assert wire.parsed(message.to_bytes(), [Little, Everything], round=message.round) == message


def test_the_bytes_are_those_of_the_page() -> None:
    assert Little(ROUND, 258).to_bytes() == (
        b"tacitsum" + b"\x04\x00" + (60_002).to_bytes(2, "little") + ROUND + b"\x04\x00\x00\x00" + b"\x02\x01\x00\x00"
    )


def test_bytes_without_meaning_take_no_memory() -> None:
    """A million empty fields, of anybody who can send: they are not all listed to say that there are too many."""
    data = MESSAGE.to_bytes()[: wire.HEADER_BYTES] + bytes(4_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="7 fields; these bytes have 8 or more"):
            Everything.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < len(data)
    finally:
        tracemalloc.stop()


@given(message=EVERYTHING, cut=st.integers(0, 10**6))
def test_no_beginning_of_a_message_is_one(message: Everything, cut: int) -> None:
    data = message.to_bytes()
    with pytest.raises(ProtocolError):
        Everything.from_bytes(data[: cut % len(data)])


@given(message=EVERYTHING, place=st.integers(0, 10**6), change=st.integers(1, 255))
def test_whatever_is_read_would_be_written_so(message: Everything, place: int, change: int) -> None:
    """One message, one string of bytes: a changed byte is another message or none, never another spelling."""
    data = bytearray(message.to_bytes())
    data[place % len(data)] ^= change
    try:
        read = Everything.from_bytes(bytes(data))
    except ProtocolError:
        return
    assert read != message and read.to_bytes() == bytes(data)


@given(data=st.binary(max_size=200))
def test_noise_is_no_message(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Everything.from_bytes(wire.header(60_001, ROUND)[: len(data) // 4] + data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no message"),
        (b"tacitsun" + MESSAGE.to_bytes()[8:], "no message"),
        (MESSAGE.to_bytes()[:8] + b"\x05\x00" + MESSAGE.to_bytes()[10:], "Everything has version 5"),
        (MESSAGE.to_bytes()[:8] + b"\x01\x00" + MESSAGE.to_bytes()[10:], "version 1; this program speaks 4 and 5"),
        (Little(ROUND, 1).to_bytes(), "kind 60002"),
        (MESSAGE.to_bytes() + b"\0", "ends within a field"),
        (MESSAGE.to_bytes() + bytes(4), "7 fields; these bytes have 8"),
        (wire.header(60_001, ROUND), "7 fields; these bytes have 0"),
    ],
)
def test_what_is_refused_is_named(data: bytes, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        Everything.from_bytes(data)


def test_a_message_of_another_round_and_an_unexpected_kind_are_refused() -> None:
    with pytest.raises(ProtocolError, match="round 0001"):
        Everything.from_bytes(MESSAGE.to_bytes(), round=bytes(32))
    with pytest.raises(ProtocolError, match="only Little is due"):
        wire.parsed(MESSAGE.to_bytes(), [Little])


@pytest.mark.parametrize("wrong", [Little(ROUND, 2**32), Little(ROUND, -1), Little(b"short", 1)])
def test_what_does_not_fit_is_not_written(wrong: Little) -> None:
    with pytest.raises(ProtocolError):
        wrong.to_bytes()


def test_a_field_of_the_wrong_length_is_named() -> None:
    data = wire.header(60_002, ROUND) + b"\x03\x00\x00\x00" + bytes(3)
    with pytest.raises(ProtocolError, match="sender of a Little: a field has 3 bytes and must have 4"):
        Little.from_bytes(data)


def test_a_digest_knows_its_label_and_every_field() -> None:
    settings = Settings(3, b"name")
    assert Settings.from_bytes(settings.to_bytes()) == settings
    digests = {
        settings.digest("a"),
        settings.digest("b"),
        Settings(4, b"name").digest("a"),
        Settings(3, b"").digest("a"),
    }
    assert len(digests) == 4 and settings.digest("a") == Settings(3, b"name").digest("a")
