"""JSON Lines, CSV, TSV, SQLite, Arrow: what is in them, where, and what is said of what should not be."""

import csv
import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
from tests.data.formats.exports import CSV, JSON_LINES, arrow_bytes, sqlite_bytes

from tacit.data import Source, open_source
from tacit.data.formats import lines
from tacit.data.formats.tables import Columns
from tacit.data.manifest import NO_TIME
from tacit.errors import SourceError


def source(folder: Path, name: str, content: str | bytes, **how: Any) -> Source:
    (folder / name.rpartition(":")[2]).write_bytes(content if isinstance(content, bytes) else content.encode())
    kind, colon, file = name.rpartition(":")
    return open_source(f"{kind}{colon}{folder / file}", **how)


def typed(source: Source) -> dict[str, list[str]]:
    return {client.client_id: list(client.texts) for client in source.clients()}


ANN = '{"client_id": "ann", "text": "x"}\n'


class TestJsonLines:
    def test_clients_times_and_other_keys(self, tmp_path: Path) -> None:
        (ann, bob) = source(tmp_path, "a.jsonl", JSON_LINES).clients()
        assert (ann.client_id, list(ann.texts)) == ("ann", ["", "good morning"])
        assert ann.timestamps is not None and ann.timestamps.tolist() == [NO_TIME, 30]
        assert (bob.client_id, list(bob.texts)) == ("bob", ["café 😀"])
        assert bob.timestamps is not None and bob.timestamps.tolist() == [1714564800]

    def test_columns_by_other_names_numbers_as_names_and_a_zone(self, tmp_path: Path) -> None:
        rows = [{"who": 7, "said": "later", "at": "2024-03-31 12:00"}, {"who": 7, "said": "sooner", "at": "2024-01-01"}]
        called = Columns(client_id="who", text="said", timestamp="at")
        content = "\ufeff" + "\n\n".join(map(json.dumps, rows))
        opened = source(tmp_path, "a.NDJSON", content, called=called, time_zone="Europe/Madrid")
        (client,) = opened.clients()
        assert (client.client_id, list(client.texts)) == ("7", ["sooner", "later"])
        assert client.timestamps is not None and client.timestamps.tolist() == [1704063600, 1711879200]

    def test_halves_of_a_character_are_mended_and_counted(self, tmp_path: Path) -> None:
        opened = source(tmp_path, "a.jsonl", '{"client_id": "ann", "text": "cut \\ud83d"}\n')
        assert typed(opened) == {"ann": ["cut \ufffd"]}
        assert list(opened.left_out.values()) == [1] and "lone surrogates" in next(iter(opened.left_out))

    def test_what_is_left_out_is_counted_once(self, tmp_path: Path) -> None:
        opened = source(tmp_path, "a.jsonl", '{"client_id": "a", "text": null}\n{"client_id": "a", "text": ""}\n' + ANN)
        for _ in range(2):
            assert typed(opened) == {"a": ["", ""], "ann": ["x"]}
            assert opened.left_out == {"rows without text": 2}

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            (ANN + '{"client_id": "b", "text": 5}', r"a.jsonl, line 2: the text is 5, which is no text"),
            (ANN + '{"client_id": null, "text": "x"}', "line 2: the row has no client_id"),
            (ANN + '{"text": "x"}', "line 2: the row has no client_id"),
            (ANN + '{"client_id": "", "text": "x"}', "line 2: the row has no client_id"),
            (ANN + '{"client_id": true, "text": "x"}', "line 2: the client_id is True, which is no name"),
            (ANN + '{"client_id": 1.5, "text": "x"}', "line 2: the client_id is 1.5, which is no name"),
            (ANN + '{"client_id": ["a"], "text": "x"}', "line 2: the client_id is \\['a'\\], which is no name"),
            (ANN + '{"client_id": 7, "text": "x"}', "line 2: the client_id is 7, and on line 1 of another type"),
            (ANN + '{"client_id": "\\udc00", "text": "x"}', "line 2: the client_id .* is no text in Unicode"),
            (
                ANN + '{"client_id": "a", "client_id": "b", "text": "x"}',
                "line 2 is no JSON .*'client_id' is there twice",
            ),
            (ANN + '{"client_id": "a", "text": "x', "line 2 is no JSON .*Unterminated string"),
            (ANN + '["a", "x"]', r"line 2 is \[\"a\", \"x\"\]\.\.\. and no object"),
            (ANN + "[" * 100_000, "line 2 is no JSON"),
            (ANN + '{"client_id": "a", "text": "x", "timestamp": NaN}', "line 2: the timestamp nan is no time"),
            (ANN + '{"client_id": "a", "text": "x", "timestamp": true}', "line 2: the timestamp True is no time"),
            (ANN + '{"client_id": "a", "text": "x", "timestamp": "noon"}', "line 2: the timestamp 'noon' is no time"),
            (ANN + '{"client_id": "a", "text": "x", "timestamp": "2024-01-01 10:00"}', "line 2: .* --time-zone"),
            (ANN + '{"client_id": "a", "text": "x", "timestamp": 1e300}', "line 2: the timestamp 1e\\+300 is no time"),
            ('{"user": "a", "text": "x"}', r"line 1 and those after it has no 'client_id'.*did you mean 'user'"),
            (ANN.encode() + b'{"client_id": "\xff"}', "line 2 is not utf-8; declare what it is, --encoding cp1252"),
            (ANN.encode("utf-16"), "line 1 is not utf-8; declare what it is, --encoding utf-16"),
        ],
    )
    def test_what_is_no_row_is_named(self, content: str | bytes, complaint: str, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=complaint):
            typed(source(tmp_path, "a.jsonl", content))

    def test_a_line_without_an_end_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lines, "MOST_LINE", 100)
        with pytest.raises(SourceError, match=r"line 2 has more than 100 characters"):
            typed(source(tmp_path, "a.jsonl", ANN + "x" * 101))

    def test_packed_files_that_are_cut_are_refused(self, tmp_path: Path) -> None:
        packed = gzip.compress(ANN.encode() * 5_000)
        assert len(typed(source(tmp_path, "a.jsonl.GZ", packed))["ann"]) == 5_000
        with pytest.raises(SourceError, match="cannot be unpacked"):
            typed(source(tmp_path, "a.jsonl.gz", packed[:-20]))

    def test_a_folder_with_all_below_it_and_a_prefix(self, tmp_path: Path) -> None:
        (tmp_path / "chat" / "sub").mkdir(parents=True)
        for name in ("chat/one.JSONL", "chat/sub/two.test.jsonl", "chat/.hidden.jsonl", "chat/readme.txt"):
            (tmp_path / name).write_text(ANN.replace("ann", Path(name).stem))
        opened = open_source(f"jsonl:{tmp_path / 'chat'}")
        assert {client.client_id: client.split for client in opened.clients()} == {"one": None, "two.test": "test"}
        assert opened.left_out == {"files that are hidden or not called *.jsonl": 2}
        for split in ("train", "TEST"):
            (tmp_path / f"blogs.{split}.jsonl").write_text(ANN.replace("ann", split))
        assert {client.split for client in open_source(f"jsonl:{tmp_path / 'blogs'}").clients()} == {"train", "test"}


class TestDelimited:
    def test_quotes_and_line_breaks(self, tmp_path: Path) -> None:
        assert typed(source(tmp_path, "a.csv", CSV)) == {"ann": ['good, "morning"\r\nthere'], "bob": ["café"]}

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "latin-1", "cp1252", "utf-32"])
    def test_declared_encodings(self, encoding: str, tmp_path: Path) -> None:
        content = "client_id;text\nann;café ñ\n".encode(encoding)
        assert typed(source(tmp_path, "a.CSV", content, encoding=encoding, delimiter=";")) == {"ann": ["café ñ"]}

    def test_quotes_that_are_text(self, tmp_path: Path) -> None:
        content = 'client_id\ttext\nann\t"so\nbob\tit "is"\n'
        assert typed(source(tmp_path, "a.tsv", content, quotes="none")) == {"ann": ['"so'], "bob": ['it "is"']}
        with pytest.raises(SourceError, match=r"a.tsv, line 2: the row is no TSV .*--quotes none"):
            typed(source(tmp_path, "a.tsv", content))

    @pytest.mark.parametrize(
        ("content", "how", "complaint"),
        [
            ("client_id;text\na;x\n", {}, r"line 1: the first row is one column.*--delimiter ';'"),
            ("client_id\ttext\na\tx\n", {}, r"--delimiter tab"),
            ("client_id,text\na,x\nb,y,z\n", {}, "line 3: the row has 3 fields and the first row 2"),
            ("client_id,text\na\n", {}, "line 2: the row has 1 fields"),
            ('client_id,text\n"a\n\n",x\nb\n', {}, "line 5: the row has 1 fields"),
            ("client_id,text\n,x\n", {}, "line 2: the row has no client_id"),
            ("client_id,text,text\na,x,y\n", {}, "has 2 columns called 'text'"),
            ("a,b\n", {}, "has no 'client_id': its columns are a, b"),
            ("", {}, "has no names of columns"),
            (b"client_id,text\na,x\n\nb,caf\xe9\n", {}, "line 4 is not utf-8"),
            (b'client_id,text\na,"x\ncaf\xe9"\n', {}, "line 3 is not utf-8"),
            ("client_id,text\na,x\n", {"encoding": "klingon"}, "the encoding 'klingon' is unknown"),
            ("client_id,text\na,x\n", {"encoding": "base64"}, "the encoding 'base64' is unknown"),
            ("client_id,text\na,x\n", {"delimiter": "||"}, r"the delimiter '\|\|' is not one sign"),
            ("client_id,text\na,x\n", {"delimiter": '"'}, "is not one sign"),
            ("client_id,text\na,x\n", {"quotes": "single"}, "quotes='single' is unknown"),
            ("client_id,text\na,x\n", {"time_zone": "Mars"}, "the time zone 'Mars' is unknown"),
            ("client_id,text\na,x\n", {"lines": "messages"}, "takes no --lines, which is for folder"),
            ("client_id,text\na,x\n", {"query": "SELECT 1"}, "takes no --query, which is for sqlite"),
        ],
    )
    def test_what_is_no_row_is_named(
        self, content: str | bytes, how: dict[str, str], complaint: str, tmp_path: Path
    ) -> None:
        with pytest.raises(SourceError, match=complaint):
            typed(source(tmp_path, "a.csv", content, **how))

    def test_a_field_without_an_end_is_refused_in_bounded_memory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tacit.data.formats.delimited.MOST_TEXT", 200_000)
        csv.field_size_limit(131_072)  # as in a new process
        content = 'client_id,text\na,"x\n' + "some text\n" * 100_000
        with pytest.raises(SourceError, match=r"line 2: the row is no CSV \(field larger than field limit"):
            typed(source(tmp_path, "a.csv", content))


class TestSqlite:
    def test_a_query_behind_a_question_mark_or_as_an_option(self, tmp_path: Path) -> None:
        (tmp_path / "a?b.db").write_bytes(sqlite_bytes())
        query = "SELECT author AS client_id, body AS text, at AS timestamp FROM posts WHERE body != '?'"
        for opened in (
            open_source(f"sqlite:{tmp_path / 'a?b.db'}", query=query),
            open_source(str(tmp_path / "a?b.db"), query=query),
            source(tmp_path, "sqlite:a.db", sqlite_bytes(), query=query),
            open_source(f"sqlite:{tmp_path / 'a.db'}?{query}"),
            open_source(
                f"sqlite:{tmp_path / 'a.db'}", query="SELECT * FROM posts",
                called=Columns(client_id="author", text="body", timestamp="at"),
            ),
        ):  # fmt: skip
            assert typed(opened) == {"ann": ["good"], "bob": ["café"]}

    @pytest.mark.parametrize(
        ("query", "complaint"),
        [
            ("", r"is read by a query.*tables: posts"),
            ("SELECT 1", "has no 'client_id': its columns are 1"),
            ("SELEC author FROM posts", "syntax error"),
            ("DELETE FROM posts", "cannot be asked that"),
            ("DROP TABLE posts", "cannot be asked that"),
            ("ATTACH 'other.db' AS other", "cannot be asked that"),
            ("PRAGMA user_version = 7", "cannot be asked that"),
            ("SELECT author client_id, body text FROM posts; DELETE FROM posts", "cannot be asked that"),
            ("SELECT author client_id, at text FROM posts", "row 1: the text is 30, which is no text"),
            ("SELECT NULL client_id, body text FROM posts", "row 1: the row has no client_id"),
            ("SELECT 1.5 client_id, body text FROM posts", "row 1: the client_id is 1.5"),
            ("SELECT x'ff' client_id, body text FROM posts", "row 1: the client_id is b"),
            ("SELECT 'a' client_id, CAST(x'ff' AS TEXT) text FROM posts", "UTF-8"),
            ("SELECT iif(at, 7, '7') client_id, body text FROM posts", "row 2: .*in the first row another type"),
            ("-- nothing", "gives no rows"),
        ],
    )
    def test_what_is_no_query_of_clients_is_refused_and_changes_nothing(
        self, query: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.db").write_bytes(before := sqlite_bytes())
        with pytest.raises(SourceError, match=complaint):
            typed(open_source(f"sqlite:{tmp_path / 'a.db'}", query=query))
        assert (tmp_path / "a.db").read_bytes() == before and [each.name for each in tmp_path.iterdir()] == ["a.db"]

    def test_two_queries_and_other_files_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.db").write_bytes(sqlite_bytes())
        with pytest.raises(SourceError, match="has a query, and another is given"):
            open_source(f"sqlite:{tmp_path / 'a.db'}?SELECT 1", query="SELECT 1")
        (tmp_path / "b.db").write_text("this is no database" * 99)
        with pytest.raises(SourceError, match=r"b\.db is not SQLite"):
            open_source(f"sqlite:{tmp_path / 'b.db'}?SELECT a FROM b")

    def test_a_database_that_somebody_writes_is_read_as_it_was(self, tmp_path: Path) -> None:
        (tmp_path / "a.db").write_bytes(sqlite_bytes())
        with closing(sqlite3.connect(tmp_path / "a.db")) as other:
            other.execute("INSERT INTO posts VALUES ('eve', 'unfinished', 1)")
            query = "SELECT author client_id, body text FROM posts"
            assert set(typed(open_source(f"sqlite:{tmp_path / 'a.db'}", query=query))) == {"ann", "bob"}


class TestArrow:
    @pytest.mark.parametrize("stream", [False, True])
    def test_a_file_or_a_stream(self, stream: bool, tmp_path: Path) -> None:
        opened = source(tmp_path, "a.Arrow", arrow_bytes(stream=stream))
        assert typed(opened) == {"ann": ["", "good"], "bob": ["café"]}

    def test_names_of_columns_that_are_no_text_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="cannot be read as Arrow"):
            source(tmp_path, "a.arrow", arrow_bytes(stream=False).replace(b"client_id", b"cl\xff\xffnt_id"))

    def test_splits_of_hugging_face_are_kept(self, tmp_path: Path) -> None:
        for split, owner in (("train", "ann"), ("test", "bob")):
            (tmp_path / split).mkdir()
            table = pa.table({"user": [owner], "body": pa.array(["x"], pa.large_string())})
            with pa.ipc.new_stream(tmp_path / split / "data-00000-of-00001.arrow", table.schema) as writer:
                writer.write_table(table)
            state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": split}
            (tmp_path / split / "state.json").write_text(json.dumps(state))
        (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
        called = Columns(client_id="user", text="body")
        found = {each.client_id: each.split for each in open_source(f"arrow:{tmp_path}", called=called).clients()}
        assert found == {"ann": "train", "bob": "test"}
        (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "dev"]}')
        with pytest.raises(SourceError, match="has a split 'dev'"):
            open_source(f"arrow:{tmp_path}", called=called)

    @pytest.mark.parametrize("state", ["{", "[]", '{"_data_files": 7}', '{"_data_files": ["../a.arrow"]}', "[" * 9_999])
    def test_a_damaged_data_set_is_refused(self, state: str, tmp_path: Path) -> None:
        (tmp_path / "state.json").write_text(state)
        with pytest.raises(SourceError, match=r"state\.json|is missing"):
            open_source(f"arrow:{tmp_path}")


@pytest.mark.parametrize(
    ("name", "kinds"), [("a.json", "jsonl:PATH, leaf:PATH or telegram:PATH"), ("a.txt", "whatsapp")]
)
def test_what_a_name_does_not_say_is_asked(name: str, kinds: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(SourceError, match=f"may be of several kinds; say which, {kinds}"):
        open_source(str(tmp_path / name))


def test_columns_are_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('lient_id,"te\nxt\x1b[31m",c\na,b,c\n', encoding="utf-8")
    with pytest.raises(SourceError, match=r"its columns are lient_id, 'te\\nxt\\x1b\[31m', c "):
        list(open_source(f"csv:{tmp_path / 'a.csv'}").clients())
