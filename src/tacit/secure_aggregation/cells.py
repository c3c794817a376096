"""A table of short values in a file: what passes through a server from client to client, and need not be in memory."""

import io
from collections.abc import Sequence
from itertools import accumulate
from typing import BinaryIO


class CellStore:
    """Values of at most `longest` bytes by row and column; a cell that was not written is empty."""

    def __init__(self, file: BinaryIO | None, columns: int, longest: int, *, start: int = 0) -> None:
        """`file`: open for reading and writing, with nothing of worth from byte `start` on; none: bytes in memory.

        Raises: ValueError for values that a byte cannot tell the length of.
        """
        if not 0 < longest < 256:
            raise ValueError(f"cells of {longest} bytes: 1 to 255 have a length that one byte tells.")
        self._file = io.BytesIO() if file is None else file
        self._columns, self._longest, self._start = columns, longest, start

    @classmethod
    def side_by_side(
        cls, file: BinaryIO | None, rows: int, columns: int, longest: Sequence[int]
    ) -> "tuple[CellStore, ...]":
        """Tables of so many rows, one behind the other in a file."""
        sizes = [rows * columns * (1 + each) for each in longest]
        starts = [0, *accumulate(sizes)] if file else [0] * len(sizes)
        return tuple(cls(file, columns, each, start=start) for each, start in zip(longest, starts, strict=False))

    def write(self, row: int, column: int, values: Sequence[bytes]) -> None:
        """Values from one column on. Raises: ValueError for one that is too long, or that falls outside the row."""
        if column < 0 or column + len(values) > self._columns or any(len(each) > self._longest for each in values):
            raise ValueError(f"{len(values)} values of at most {self._longest} bytes do not fit from column {column}.")
        self._file.seek(self._at(row, column))
        self._file.write(b"".join(bytes([len(each)]) + each.ljust(self._longest, b"\0") for each in values))

    def read(self, row: int, column: int) -> bytes:
        """One value; no bytes where none was written."""
        return self._read(row, column, 1)[0]

    def row(self, row: int) -> list[bytes]:
        """All values of a row."""
        return self._read(row, 0, self._columns)

    def _read(self, row: int, column: int, count: int) -> list[bytes]:
        self._file.seek(self._at(row, column))
        size = 1 + self._longest
        found = self._file.read(count * size).ljust(count * size, b"\0")
        return [found[at + 1 : at + 1 + found[at]] for at in range(0, len(found), size)]

    def _at(self, row: int, column: int) -> int:
        return self._start + (row * self._columns + column) * (1 + self._longest)
