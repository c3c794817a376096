"""Files of events as TensorBoard reads them: records of TensorFlow around messages of protocol buffers.

A record is its length (uint64), a check of the length, the message and its check; a check is a masked CRC-32C, and all
is little-endian. The messages are Event and Summary of TensorFlow's event.proto and summary.proto: a double, two
numbers and a name. Written here, since the writers that there are bring 20 MB or lose what was flushed.
"""

import struct
from collections.abc import Sequence

CASTAGNOLI = 0x82F63B78  # the polynomial of CRC-32C, its bits reversed
VERSION = b"brain.Event:2"  # of the format, in the first event of a file


def _table() -> tuple[int, ...]:
    rows = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (CASTAGNOLI if value & 1 else 0)
        rows.append(value)
    return tuple(rows)


_TABLE = _table()


def crc32c(content: bytes) -> int:
    """RFC 3720, Section 12.1: 0xE3069283 of the digits 1 to 9."""
    check = 0xFFFFFFFF
    for byte in content:
        check = _TABLE[(check ^ byte) & 0xFF] ^ check >> 8
    return check ^ 0xFFFFFFFF


def record(message: bytes) -> bytes:
    """A message with its length and both checks around it."""
    length = struct.pack("<Q", len(message))
    return length + _masked(length) + message + _masked(message)


def _masked(content: bytes) -> bytes:
    check = crc32c(content)
    return struct.pack("<I", ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def first_event(when: float) -> bytes:
    """The event that a file begins with. when: seconds since 1970."""
    return b"\x09" + struct.pack("<d", when) + _field(3, VERSION)


def event(numbers: Sequence[tuple[str, float]], step: int, when: float) -> bytes:
    """An event that says numbers by name, as float32, after so many steps."""
    values = [_field(1, _field(1, name.encode()) + b"\x15" + struct.pack("<f", value)) for name, value in numbers]
    return b"\x09" + struct.pack("<d", when) + b"\x10" + _varint(step) + _field(5, b"".join(values))


def _field(number: int, content: bytes) -> bytes:
    """A field of protocol buffers that says how long it is."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """value: 0 or more, in groups of seven bits, the lowest first."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
