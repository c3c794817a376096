"""Rows from wherever a program has them: the same clients, whatever holds them; what does not fit is said."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import ClientText, TableOf, batches
from tacit.errors import SourceError

COLUMNS: dict[str, list[Any]] = {
    "client_id": ["ann", "bob", "ann"],
    "text": ["good morning", "good grief", "good night"],
    "timestamp": [30, None, 20],
    "other": [1.5, None, 2.0],
}
ROWS = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]
WANTED = {"ann": ["good night", "good morning"], "bob": ["good grief"]}  # in the order of time


class Speaks:
    """As tables of others do: one method that is a protocol."""

    def __init__(self, **methods: Callable[..., Any]) -> None:
        for name, method in methods.items():
            setattr(self, name, method)


class Again:
    """Rows that begin anew with every loop."""

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(ROWS)


class HuggingFace:
    """What is asked of a data set of theirs, streaming or not."""

    features = ("client_id", "text", "timestamp", "other")  # None where types are not known

    def with_format(self, form: str) -> "HuggingFace":
        assert form == "arrow"
        return self

    def iter(self, batch_size: int) -> Iterator[pa.Table]:
        assert batch_size > 0
        yield pa.table({name: values[:2] for name, values in COLUMNS.items()})
        yield pa.table({name: values[2:] for name, values in COLUMNS.items()})


TABLE = pa.table(COLUMNS)
HOLDERS: dict[str, Callable[[], Any]] = {
    "an Arrow table": lambda: TABLE,
    "a reader of batches": lambda: TABLE.to_reader(max_chunksize=1),
    "a mapping of columns": lambda: COLUMNS,
    "arrays of NumPy": lambda: (
        {name: np.array(COLUMNS[name]) for name in ("client_id", "text")}
        | {"timestamp": pa.array(COLUMNS["timestamp"])}
    ),
    "Arrow's C stream": lambda: Speaks(__arrow_c_stream__=TABLE.__arrow_c_stream__),
    "to_arrow": lambda: Speaks(to_arrow=lambda: TABLE),
    "the dataframe protocol": lambda: Speaks(__dataframe__=TABLE.__dataframe__),
    "views of text, as polars has": lambda: TABLE.set_column(1, "text", TABLE["text"].cast(pa.string_view())),
    "categories": lambda: TABLE.set_column(0, "client_id", TABLE["client_id"].dictionary_encode()),
    "rows": lambda: ROWS,
    "rows that begin anew": Again,
    "a data set of Hugging Face": HuggingFace,
}


def typed(source: Any) -> dict[str, list[str]]:
    """What each client typed; reading twice gives the same."""
    first, second = ({each.client_id: list(each.texts) for each in source.clients()} for _ in range(2))
    assert first == second
    return first


@pytest.mark.parametrize("holder", HOLDERS)
def test_whoever_holds_them_they_are_the_same_clients(holder: str) -> None:
    assert typed(TableOf(HOLDERS[holder]())) == WANTED


def pandas() -> Any:
    return pytest.importorskip("pandas", reason="needs pandas").DataFrame(COLUMNS).astype({"timestamp": "Int64"})


def polars() -> Any:
    return pytest.importorskip("polars", reason="needs polars").DataFrame(COLUMNS)


def hugging_face() -> Any:
    return pytest.importorskip("datasets", reason="needs datasets").Dataset.from_list(ROWS)


def streaming() -> Any:
    return pytest.importorskip("datasets", reason="needs datasets").IterableDataset.from_generator(lambda: iter(ROWS))


def streaming_of_known_types() -> Any:
    return hugging_face().to_iterable_dataset().shuffle(seed=3, buffer_size=1)


@pytest.mark.parametrize("table", [pandas, polars, hugging_face, streaming, streaming_of_known_types])
def test_the_real_ones(table: Callable[[], Any]) -> None:
    assert typed(TableOf(table())) == WANTED


def test_times_of_pandas_and_a_split_of_hugging_face() -> None:
    frame = pytest.importorskip("pandas", reason="needs pandas").DataFrame(
        {"client_id": ["ann", "ann"], "text": ["b", "a"], "timestamp": [datetime(2024, 1, 2, tzinfo=UTC)] * 2}
    )
    (ann,) = TableOf(frame).clients()
    assert ann.timestamps is not None and ann.timestamps.tolist() == [1704153600] * 2
    library = pytest.importorskip("datasets", reason="needs datasets")
    sets = library.DatasetDict(
        {"train": library.Dataset.from_list(ROWS[:1]), "test": library.Dataset.from_list(ROWS[1:2])}
    )
    assert {each.client_id: each.split for each in TableOf(sets).clients()} == {"ann": "train", "bob": "test"}


def test_columns_may_have_other_names() -> None:
    renamed = TABLE.rename_columns(["user", "body", "sent", "text"])
    assert typed(TableOf(renamed, client_id="user", text="body", timestamp="sent")) == WANTED
    undated = TableOf(renamed, client_id="user", text="body")
    assert all(each.timestamps is None for each in undated.clients())


def test_a_mapping_of_splits_fixes_them() -> None:
    source = TableOf({"validation": ROWS[1:2], "train": pa.table({"client_id": [7, 7], "text": ["x", "y"]})})
    found = [(each.client_id, each.split, list(each.texts)) for each in source.clients()]
    assert found == [("7", "train", ["x", "y"]), ("bob", "validation", ["good grief"])]
    with pytest.raises(SourceError, match=r"client 'ann' is in .* train"):
        list(TableOf({"train": ROWS[:1], "test": ROWS[2:]}).clients())


@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.text("xyz ", max_size=5)), min_size=1, max_size=30),
    at_once=st.integers(1, 7),
)
def test_how_many_are_read_at_once_changes_nothing(rows: list[tuple[str, str]], at_once: int) -> None:
    given = [{"client_id": owner, "text": text} for owner, text in rows]
    whole = typed(TableOf({"client_id": [owner for owner, _ in rows], "text": [text for _, text in rows]}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "ROWS_AT_ONCE", at_once)
        assert typed(TableOf(given)) == whole
    slow: dict[str, list[str]] = {}
    for owner, text in rows:
        slow.setdefault(owner, []).append(text)
    assert slow == whole


def test_rows_may_leave_out_what_may_be_unknown() -> None:
    source = TableOf([{"client_id": "a"}, {"client_id": "a", "text": "x", "timestamp": 5}])
    (client,) = source.clients()
    assert isinstance(client, ClientText) and list(client.texts) == ["", "x"]


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ([], "the table cannot be read|has no"),
        (iter(ROWS), "can be read once"),
        ((row for row in ROWS), "can be read once"),
        (["good morning"], "the table cannot be read"),
        ([{"client_id": "a", "text": "x"}, 7], "the table cannot be read"),
        ([{"client_id": "a", "text": 5}], "'text' is int64, not text"),
        ([{"client_id": "a", "text": "x"}, {"client_id": "a", "text": 5}], "the table cannot be read"),
        ({}, "has no 'client_id': its columns are"),
        ({"user": ["a"], "text": ["x"]}, r"has no 'client_id'.*user, text.*TableOf\(table, client_id=\.\.\.\)"),
        ({"client_id": [1.5], "text": ["x"]}, "'client_id' is double, which is no name"),
        ({"client_id": [["a"]], "text": ["x"]}, "'client_id' is list.*, which is no name"),
        ({"client_id": ["a"], "text": ["x"], "timestamp": ["noon"]}, "'timestamp' is string"),
        (pa.table([["a"], ["b"], ["x"]], names=["client_id", "client_id", "text"]), "has 2 columns called 'client_id'"),
        ({"train": [{"client_id": "a"}]}, "the table of train has no 'text'"),
        ({"ann": ["good morning"]}, "has no 'client_id'.*TextsOf"),
        (object(), "the table cannot be read"),
        (7, "the table cannot be read"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_what_does_not_fit_is_said(table: Any, complaint: str) -> None:
    with pytest.raises(SourceError, match=complaint):
        TableOf(table)


def test_rows_of_nobody_and_columns_that_come_and_go_are_refused() -> None:
    with pytest.raises(SourceError, match="a row has no client_id"):
        list(TableOf([{"client_id": "a", "text": "x"}, {"text": "y"}]).clients())
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SourceError, match="loses its column 'text' on the way"):
        patch.setattr(batches, "ROWS_AT_ONCE", 1)
        list(TableOf([{"client_id": "a", "text": "x"}, {"client_id": "a"}]).clients())
