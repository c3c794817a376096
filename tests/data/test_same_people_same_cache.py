"""The same people in any format of rows are the same cache, to the byte; so are rows in any order of memory."""

import csv
import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.data import ClientText, TableOf, VocabularyChoice, open_source
from tacit.data.clients import Source
from tacit.data.formats import scattered_rows
from tacit.data.manifest import MANIFEST
from tacit.errors import SourceError

Rows = list[tuple[str, str, int | None]]
NAMES = ("client_id", "text", "timestamp")
NO_SURROGATES = st.characters(exclude_categories=["Cs"])
NASTY = st.sampled_from(
    ['"', ",", ";", "\t", "\n", "\r\n", "\r", "'", "\\", '""', "\u2028", "\x00", " ", "\ufeff", "é", "😀"]
)
WRITTEN = st.characters(max_codepoint=0x52F)  # with blanks between words, as a vocabulary wants them
TEXT = st.lists(st.one_of(NASTY, st.text(WRITTEN, max_size=4), st.just("word")), max_size=6).map("".join)
OWNER = st.one_of(
    st.sampled_from(["ann", "bob", "7"]), st.text(NO_SURROGATES, min_size=1, max_size=4), TEXT.filter(bool)
)
TIME = st.one_of(st.none(), st.integers(-(10**9), 2 * 10**9))
ROWS = st.lists(st.tuples(OWNER, TEXT, TIME), min_size=1, max_size=12).filter(
    lambda rows: any("word" in text for _, text, _ in rows)
)


def columns_of(rows: Rows) -> dict[str, list[Any]]:
    return {name: list(values) for name, values in zip(NAMES, zip(*rows, strict=True), strict=True)}


def table_of(rows: Rows) -> pa.Table:
    types = (pa.string(), pa.string(), pa.int64())
    return pa.table(
        {name: pa.array(values, of) for (name, values), of in zip(columns_of(rows).items(), types, strict=True)}
    )


def as_json_lines(rows: Rows, folder: Path) -> Source:
    lines = (json.dumps(dict(zip(NAMES, row, strict=True)), ensure_ascii=len(rows) % 2 == 0) for row in rows)
    (folder / "a.JSONL").write_text("".join(line + "\r\n" for line in lines), encoding="utf-8", newline="")
    return open_source(str(folder / "a.JSONL"))


def as_json_lines_packed(rows: Rows, folder: Path) -> Source:
    as_json_lines(rows, folder)
    (folder / "a.jsonl.gz").write_bytes(gzip.compress((folder / "a.JSONL").read_bytes()))
    return open_source(str(folder / "a.jsonl.gz"))


def as_delimited(rows: Rows, path: Path, encoding: str, **dialect: Any) -> None:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, **dialect)
        writer.writerow(["other", *NAMES])
        writer.writerows([number, *row] for number, row in enumerate(rows))


def as_csv(rows: Rows, folder: Path) -> Source:
    as_delimited(rows, folder / "a.csv", "utf-8-sig")
    return open_source(str(folder / "a.csv"))


def as_csv_of_elsewhere(rows: Rows, folder: Path) -> Source:
    as_delimited(rows, folder / "b.txt", "utf-16", delimiter=";", quoting=csv.QUOTE_ALL, lineterminator="\n")
    return open_source(f"csv:{folder / 'b.txt'}", delimiter=";", encoding="utf-16")


def as_tsv(rows: Rows, folder: Path) -> Source:
    as_delimited(rows, folder / "a.tsv", "utf-8", delimiter="\t")
    return open_source(f"tsv:{folder / 'a.tsv'}")


def as_sqlite(rows: Rows, folder: Path) -> Source:
    with closing(sqlite3.connect(folder / "a.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE posts (author TEXT, body TEXT, at INTEGER)")
        connection.executemany("INSERT INTO posts VALUES (?, ?, ?)", rows)
    query = "SELECT body AS text, author AS client_id, at AS timestamp FROM posts ORDER BY rowid"
    return open_source(f"sqlite:{folder / 'a.sqlite'}?{query}")


def as_parquet(rows: Rows, folder: Path) -> Source:
    pq.write_table(table_of(rows), folder / "a.parquet")
    return open_source(str(folder / "a.parquet"))


def as_feather(rows: Rows, folder: Path) -> Source:
    with pa.ipc.new_file(folder / "a.feather", table_of(rows).schema) as writer:
        writer.write_table(table_of(rows), max_chunksize=3)
    return open_source(str(folder / "a.feather"))


def as_saved_data_set(rows: Rows, folder: Path) -> Source:
    """As `save_to_disk` of Hugging Face writes it: streams of Arrow, and a file that says in which order."""
    table, names = table_of(rows), []
    for number, begin in enumerate(range(0, len(table), 5)):
        names.append(f"data-{number:05d}-of-many.arrow")
        (folder / "saved").mkdir(exist_ok=True)
        with pa.ipc.new_stream(folder / "saved" / names[-1], table.schema) as writer:
            writer.write_table(table.slice(begin, 5))
    state = {"_data_files": [{"filename": name} for name in names], "_split": None, "_fingerprint": "0"}
    (folder / "saved" / "state.json").write_text(json.dumps(state))
    return open_source(f"arrow:{folder / 'saved'}")


def as_table(rows: Rows, folder: Path) -> Source:
    return TableOf(table_of(rows))


def as_mappings(rows: Rows, folder: Path) -> Source:
    return TableOf([dict(zip(NAMES, row, strict=True)) for row in rows])


FORMATS: dict[str, Callable[[Rows, Path], Source]] = {
    made.__name__.removeprefix("as_"): made
    for made in (
        as_json_lines,
        as_json_lines_packed,
        as_csv,
        as_csv_of_elsewhere,
        as_tsv,
        as_sqlite,
        as_parquet,
        as_feather,
        as_saved_data_set,
        as_table,
        as_mappings,
    )
}


def bytes_of(cache: Path) -> dict[str, bytes]:
    """All of a cache but its source's description, and the digest that covers it."""
    found = {path.name: path.read_bytes() for path in cache.iterdir()}
    manifest = json.loads(found[MANIFEST])
    del manifest["source"], manifest["digest"]
    return found | {MANIFEST: json.dumps(manifest).encode()}


@settings(max_examples=15, deadline=None)
@given(rows=ROWS)
def test_the_same_people_are_the_same_cache(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("t")
    (folder / "words.txt").write_text("word\nother\n")
    made = {}
    for name, written in FORMATS.items():
        tacit.import_data(
            written(rows, folder), folder / name, vocabulary=VocabularyChoice(word_list=folder / "words.txt")
        )
        made[name] = bytes_of(folder / name)
    first = made.pop("table")
    assert {name: {file for file in first if files[file] != first[file]} for name, files in made.items()} == {
        name: set() for name in made
    }


@pytest.mark.parametrize("name", ["essays-es.test", "shakespeare.test"])
def test_real_text_in_other_formats_is_the_same_cache(name: str, shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / f"{name}.parquet"
    if not path.is_file():
        pytest.skip(f"needs {path.name}")
    table = pq.read_table(path, columns=[each for each in NAMES if each in pq.read_schema(path).names])
    rows = [(row["client_id"], row["text"], row.get("timestamp")) for row in table.to_pylist()]
    (tmp_path / "words.txt").write_text("the\nde\n")
    made = []
    for form, written in FORMATS.items():
        words = VocabularyChoice(word_list=tmp_path / "words.txt")
        tacit.import_data(written(rows, tmp_path), tmp_path / form, vocabulary=words)
        made.append(bytes_of(tmp_path / form))
    assert all(each == made[0] for each in made) and len(made[0]["ids"]) > 10_000


def typed(clients: Source) -> list[tuple[str, list[str], list[int] | None]]:
    """In order."""

    def plain(client: ClientText) -> tuple[str, list[str], list[int] | None]:
        times = None if client.timestamps is None else client.timestamps.tolist()
        return client.client_id, list(client.texts), times

    return [plain(client) for client in clients.clients()]


@given(
    owners=st.lists(st.sampled_from(["a", "b", "é", "z", "\U0001f600", "\uffff"]), min_size=1, max_size=60),
    run=st.integers(1, 400),
    sample=st.integers(1, 5),
    at_once=st.integers(1, 9),
)
def test_what_does_not_fit_in_memory_is_put_together_the_same(
    owners: list[str], run: int, sample: int, at_once: int
) -> None:
    """Runs on disk of a few rows each, against a dictionary."""
    rows = [(owner, f"{number}", None) for number, owner in enumerate(owners)]
    slow = {owner: [text for other, text, _ in rows if other == owner] for owner in sorted(set(owners))}
    batches = [table_of(rows[begin : begin + at_once]) for begin in range(0, len(rows), at_once)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scattered_rows, "RUN_BYTES", run)
        patch.setattr(scattered_rows, "SAMPLE", sample)
        tables = list(scattered_rows.by_client(batches))
    names = [name for table in tables for name in table["client_id"].to_pylist()]
    texts = [text for table in tables for text in table["text"].to_pylist()]
    assert names == [name for name, those in slow.items() for _ in those]
    assert texts == [text for those in slow.values() for text in those]
    together = [set(table["client_id"].to_pylist()) for table in tables]
    assert sum(map(len, together)) == len(set(owners))  # no client is in two tables


def test_no_more_than_some_rows_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"{number * 7919 % 1000:03}", "x" * 50, None) for number in range(20_000)]
    batches = [table_of(rows[begin : begin + 500]) for begin in range(0, len(rows), 500)]
    whole = sum(batch.nbytes for batch in batches)
    monkeypatch.setattr(scattered_rows, "RUN_BYTES", whole // 10)
    monkeypatch.setattr(scattered_rows, "SAMPLE", 10)
    parts = [table.nbytes for table in scattered_rows.by_client(batches)]
    assert len(parts) >= 9 and max(parts) < whole / 6


def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(scattered_rows, "RUN_BYTES", 1)
    monkeypatch.setattr(scattered_rows.tempfile, "TemporaryFile", full)
    with pytest.raises(SourceError, match=r"No space left on device.*TMPDIR"):
        list(scattered_rows.by_client([table_of([("a", "x", None)])]))


def test_rows_that_change_between_two_readings_are_refused() -> None:
    class Changing:
        def __iter__(self) -> Any:
            self.times = getattr(self, "times", 0) + 1
            return iter([{"client_id": f"{min(self.times, 5)}", "text": "x"}])

    source = TableOf(Changing())
    with pytest.raises(SourceError, match="was not there when it was read before"):
        for _ in range(9):
            list(source.clients())
