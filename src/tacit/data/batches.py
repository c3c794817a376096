"""Whatever holds rows, as Arrow tables of some rows each: known by what it can do, so that no package is asked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from tacit.errors import SourceError
from tacit.extras import when_used

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = when_used("pyarrow")

ROWS_AT_ONCE = 20_000  # a few megabytes of text
KNOWN = (
    "a table of Arrow, pandas or polars, anything else that speaks Arrow's C stream or the dataframe protocol, a data "
    "set of Hugging Face, a mapping of columns, or a list of rows as mappings"
)


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Rows that can be read again and again."""

    schema: Any  # pyarrow.Schema
    read: Callable[[], Iterator["pa.Table"]]


def holds_rows(value: object) -> bool:
    """Whether it may hold rows; `batches_of` says for sure."""
    speaks = ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__", "to_arrow", "with_format", "__iter__")
    return any(hasattr(value, name) for name in speaks)


def batches_of(rows: Any, where: str) -> Batches:
    """Raises: SourceError where it holds no rows that we know how to read, or can be read only once."""
    try:
        if hasattr(rows, "with_format") and getattr(rows, "features", None):  # a data set of Hugging Face whose types
            # are known; the rows of another are mappings
            return _streamed(lambda: rows.with_format("arrow").iter(batch_size=ROWS_AT_ONCE), where)
        if _is_rows(rows):
            return _streamed(lambda: _tables_of(rows, where), where)
        table = _table(rows)
    except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{where} cannot be read ({str(error)[:200]}); give {KNOWN}.") from error
    return Batches(schema=table.schema, read=lambda: iter([table]))


def _table(rows: Any) -> "pa.Table":
    if isinstance(rows, pa.Table):
        return rows
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__") or isinstance(rows, Mapping):
        return pa.table(rows)
    if hasattr(rows, "to_arrow"):
        return pa.table(rows.to_arrow())
    if hasattr(rows, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return from_dataframe(rows)
    return pa.table(rows)


def _is_rows(rows: Any) -> bool:
    """Whether it gives mappings, one for each row."""
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping | str | bytes) or hasattr(rows, "__arrow_c_stream__"):
        return False
    if isinstance(rows, Iterator):
        return True
    return isinstance(next(iter(rows), None), Mapping)


def _tables_of(rows: Any, where: str) -> Iterator["pa.Table"]:
    if isinstance(rows, Iterator):
        raise SourceError(
            f"{where} is of the type {type(rows).__name__}, which can be read once, and text is read two or three "
            "times; give a list, or an object whose __iter__ begins anew."
        )
    each = iter(rows)
    while some := list(islice(each, ROWS_AT_ONCE)):
        names = dict.fromkeys(name for row in some for name in row)  # a row may leave some out
        yield pa.table({name: [row.get(name) for row in some] for name in names})


def _streamed(read: Callable[[], Iterator["pa.Table"]], where: str) -> Batches:
    """Columns are those of the first rows."""
    first = next(read(), None)
    if first is None:
        raise SourceError(f"{where} has no rows; give one that has.")

    def tables() -> Iterator["pa.Table"]:
        try:
            yield from read()
        except (pa.ArrowException, TypeError) as error:
            raise SourceError(f"{where} cannot be read to its end ({str(error)[:200]}).") from error

    return Batches(schema=first.schema, read=tables)
