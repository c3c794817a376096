"""A table of short values, beside a dictionary of them."""

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.secure_aggregation.cells import CellStore

COLUMNS, LONGEST = 5, 7
VALUES = st.lists(st.binary(max_size=LONGEST), max_size=COLUMNS)
WRITES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, COLUMNS), VALUES), max_size=20)


@given(writes=WRITES, on_disk=st.booleans())
def test_cells_hold_what_was_written_last(writes: list[tuple[int, int, list[bytes]]], on_disk: bool) -> None:
    slow: list[dict[tuple[int, int], bytes]] = [{}, {}]
    with tempfile.TemporaryFile(buffering=0) as file:
        first, behind = CellStore.side_by_side(file if on_disk else None, 7, COLUMNS, (LONGEST, LONGEST + 1))
        for which, (row, column, values) in enumerate(writes):
            values = values[: COLUMNS - column]
            (first, behind)[which % 2].write(row, column, values)
            slow[which % 2].update({(row, column + place): value for place, value in enumerate(values)})
        for cells, expected in ((first, slow[0]), (behind, slow[1])):
            for row in range(7):
                assert cells.row(row) == [expected.get((row, column), b"") for column in range(COLUMNS)]
                for column in range(COLUMNS):
                    assert cells.read(row, column) == expected.get((row, column), b"")


def test_what_does_not_fit_changes_no_other_cell() -> None:
    cells = CellStore(None, COLUMNS, LONGEST)
    cells.write(1, 0, [b"there"])
    for column, values in ((0, [bytes(LONGEST + 1)]), (COLUMNS - 1, [b"", b""]), (-1, [b"no"])):
        with pytest.raises(ValueError, match="do not fit"):
            cells.write(0, column, values)
    assert cells.read(1, 0) == b"there" and cells.read(0, COLUMNS - 1) == b""
    with pytest.raises(ValueError, match="1 to 255"):
        CellStore(None, COLUMNS, 256)
