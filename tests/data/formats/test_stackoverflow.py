"""StackOverflow as TensorFlow Federated publishes it, in files with that layout's tables, indices and messages.

Source of the tables: tensorflow_federated/python/simulation/datasets/sql_client_data_test.py; of the features:
`create_synthetic_data_dictionary` of stackoverflow.py there. Users are made, by the rules of its `load_data`.
"""

import json
import random
import sqlite3
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import REPOSITORY

import tacit
from tacit.compute import Hardware
from tacit.data import ClientText, open_source
from tacit.data.formats.stackoverflow import read_example
from tacit.data.manifest import NO_TIME
from tacit.data.vocabulary_choice import VocabularyChoice
from tacit.errors import SourceError
from tacit.recipe import Recipe

TABLES = """
CREATE TABLE examples (
    split_name TEXT NOT NULL,
    client_id TEXT NOT NULL,
    serialized_example_proto BLOB NOT NULL);
CREATE INDEX idx_client_id_split ON examples (split_name, client_id);
CREATE TABLE client_metadata (
    client_id TEXT NOT NULL,
    split_name TEXT NOT NULL,
    num_examples INTEGER NOT NULL);
CREATE INDEX idx_metadata_client_id ON client_metadata (client_id);
"""


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(features: Mapping[str, Sequence[bytes] | int]) -> bytes:
    """A serialised tf.train.Example of bytes features and int64 ones, packed as protocol buffers write them."""
    entries = b"".join(
        field(1, field(1, name.encode()) + field(2, feature(value))) for name, value in sorted(features.items())
    )
    return field(1, entries)


def feature(value: Sequence[bytes] | int) -> bytes:
    """A BytesList (field 1 of a Feature) or an Int64List of one number (field 3), in two's complement of 64 bits."""
    if isinstance(value, int):
        return field(3, field(1, varint(value % 2**64)))
    return field(1, b"".join(field(1, each) for each in value))


def post(text: str, date: str, **others: str) -> bytes:
    """A sentence with the six features that `stackoverflow.py` parses."""
    said = {"tags": "sql|sql-server", "title": "function to calculate median", "type": "answer", **others}
    written = {"tokens": text, "creation_date": date, **said}
    return example({"score": -1, **{name: [value.encode()] for name, value in written.items()}})


def write(path: Path, rows: list[tuple[str, str, bytes]]) -> Path:
    """The tables that tensorflow_federated's sql_client_data.py reads."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES)
        connection.executemany("INSERT INTO examples VALUES (?, ?, ?)", rows)
        counts = Counter((user, split) for split, user, _ in rows)
        counted = [(*key, count) for key, count in counts.items()]
        connection.executemany("INSERT INTO client_metadata VALUES (?, ?, ?)", counted)
    return path


# Users whose number ends in 0 are held out, at all dates; of the others what was written since 2018 is test.
PUBLISHED = [
    ("train", "11", post("if you're using sql 2005 or better", "2010-01-08 09:34:05 UTC")),
    ("test", "11", post("the spec is available here .", "2018-03-01 00:00:00 UTC", type="question")),
    ("train", "11", post("css3 does finally define the", "2008-08-10 08:28:52.1 UTC")),
    ("heldout", "20", post("thanks .", "2018-11-01 10:00:00.25 UTC")),
    ("heldout", "20", post("edit :", "2009-02-03 04:05:06 UTC")),
    ("test", "33", post("new here", "2018-06-01 00:00:00 UTC")),
    ("train", "47", post("which is exactly how you'd want it", "2017-12-31 23:59:59.999 UTC")),
    ("test", "11", post("if you are on mac osx", "2018-01-01 00:00:00 UTC")),
]
ALL_THREE = {
    "20": ("validation", ["edit :", "thanks ."]),
    "11#test": ("test", ["if you are on mac osx", "the spec is available here ."]),
    "33": ("test", ["new here"]),
    "11": ("train", ["css3 does finally define the", "if you're using sql 2005 or better"]),
    "47": ("train", ["which is exactly how you'd want it"]),
}


def read(spec: str) -> dict[str, ClientText]:
    """All clients by name, as many as were expected; reading twice gives the same."""
    source = open_source(spec)
    clients = list(source.clients())
    assert [client.client_id for client in source.clients()] == [client.client_id for client in clients]
    assert source.expected_clients == len(clients)
    return {client.client_id: client for client in clients}


def so(path: Path, rows: list[tuple[str, str, bytes]]) -> str:
    return f"stackoverflow:{write(path, rows)}"


class TestThePublishedFile:
    """Train is before 2018 and test since then, so most users of test are users of train."""

    def read(self, spec: str) -> dict[str, tuple[str | None, list[str]]]:
        return {name: (client.split, list(client.texts)) for name, client in read(spec).items()}

    def test_what_a_user_of_train_wrote_later_is_a_client_of_test(self, tmp_path: Path) -> None:
        place = f"stackoverflow:{write(tmp_path / 'so.sqlite', PUBLISHED)}"
        clients = self.read(place)
        assert clients == ALL_THREE and list(clients) == list(ALL_THREE)
        source = open_source(place)
        assert source.description.endswith("layout; users of test who are in train, too (1), are named ID#test")
        assert source.left_out == {}

    def test_or_each_user_is_in_one_split(self, tmp_path: Path) -> None:
        place = f"stackoverflow-unseen:{write(tmp_path / 'so.sqlite', PUBLISHED)}"
        assert self.read(place) == {name: kept for name, kept in ALL_THREE.items() if name != "11#test"}
        assert open_source(place).left_out == {"users of test who are in train, too": 1}

    def test_is_imported_with_its_splits(self, tmp_path: Path) -> None:
        path = write(tmp_path / "so.sqlite", PUBLISHED)
        chosen = VocabularyChoice(private=True)
        whole = tacit.import_data(f"stackoverflow:{path}", tmp_path / "whole", vocabulary=chosen)
        assert whole.manifest.splits == {"train": 2, "validation": 1, "test": 2}
        assert [whole.name(int(client)) for client in whole.clients("test")] == ["11#test", "33"]
        apart = tacit.import_data(f"stackoverflow-unseen:{path}", tmp_path / "apart", vocabulary=chosen)
        assert apart.manifest.splits == {"train": 2, "validation": 1, "test": 1}
        assert apart.manifest.left_out == {"users of test who are in train, too": 1}
        words = [json.loads(cache.vocabulary_json)["words"] for cache in (whole, apart)]
        assert words[0] == words[1] and "mac" not in words[0]  # those of train alone

    @pytest.mark.long
    def test_its_shipped_recipe_trains_on_it(self, tmp_path: Path) -> None:
        """From the file to a verified run: the recipe as it ships, with a network, cohorts and rounds for 12 users."""
        texts = ("if you're using sql", "the spec is available here", "which is exactly how", "new here")
        users = [("train", 1, "2010"), ("heldout", 10, "2011"), ("test", 3, "2018")]
        rows = [
            (split, f"{number}{last}", post(text, f"{year}-01-08 09:34:05 UTC"))
            for split, last, year in users
            for number in range(1, 13)
            for text in texts
        ]
        words = tmp_path / "words.txt"
        words.write_text("\n".join(sorted({word for text in texts for word in text.split()})), encoding="utf-8")
        spec = so(tmp_path / "so.sqlite", rows)
        tacit.import_data(spec, tmp_path / "cache", vocabulary=VocabularyChoice(word_list=words))
        shipped = tomllib.loads((REPOSITORY / "recipes" / "stackoverflow.toml").read_text(encoding="utf-8"))
        shipped["data"]["cache"] = str(tmp_path / "cache")
        shipped["model"] = {"embedding": 4, "units": 4}
        shipped["rounds"] |= {"rounds": 4, "report_goal": 3, "min_separation": 2}
        shipped["evaluation"] |= {"every": 2, "clients": 4, "test_clients": 4}
        recipe = Recipe.model_validate(shipped, strict=False)
        ended = tacit.train(recipe, tmp_path / "run", hardware=Hardware(workers=1), anyway=True)
        assert ended.run.finished and tacit.verify(tmp_path / "run").holds

    @pytest.mark.parametrize("splits", [("train", "heldout"), ("heldout", "test"), ("heldout", "validation")])
    def test_other_splits_share_no_user(self, splits: tuple[str, str], tmp_path: Path) -> None:
        rows = [(split, "20", post("x", "")) for split in splits]
        path = write(tmp_path / "so.sqlite", rows)
        complaint = f"client '20' .* is in {splits[0]} and in {splits[1]}; only train and test"
        for name in ("stackoverflow", "stackoverflow-unseen"):
            with pytest.raises(SourceError, match=complaint):
                open_source(f"{name}:{path}")

    def test_a_path_may_have_what_means_something_in_an_address(self, tmp_path: Path) -> None:
        (folder := tmp_path / "100% of it? #1").mkdir()
        assert self.read(f"stackoverflow:{write(folder / 'so.sqlite', PUBLISHED)}") == ALL_THREE

    def test_a_data_set_of_other_features_is_refused(self, tmp_path: Path) -> None:
        """As Shakespeare's file of the same layout: its posts have no tokens, and were empty texts."""
        path = write(tmp_path / "s.sqlite", [("train", "HAMLET", example({"snippets": [b"to be"]}))])
        with pytest.raises(SourceError, match="would be the feature 'tokens', and its features of bytes are snippets"):
            read(f"stackoverflow:{path}")

    def test_a_date_of_another_zone_is_taken_by_its_word(self, tmp_path: Path) -> None:
        path = write(tmp_path / "so.sqlite", [("train", "1", post("x", "1970-01-01 02:00:05+02:00"))])
        assert read(f"stackoverflow:{path}")["1"].timestamps.tolist() == [5]  # type: ignore[union-attr]


class TestStackOverflow:
    def test_posts_by_client_and_time(self, tmp_path: Path) -> None:
        rows = [
            ("train", "2", post("later ones", "1970-01-01 00:01:05.767 UTC")),
            ("heldout", "1", post("hello", "1970-01-02 00:00:00 UTC")),
            ("train", "2", post("first", "1970-01-01 00:00:03.1 UTC")),
            ("test", "3", example({"tokens": [b"no", b"date"]})),
        ]
        clients = read(so(tmp_path / "so.sqlite", rows))
        assert {name: client.texts for name, client in clients.items()} == {
            "1": ["hello"],
            "3": ["no date"],
            "2": ["first", "later ones"],
        }
        assert {name: client.split for name, client in clients.items()} == {
            "1": "validation",
            "3": "test",
            "2": "train",
        }
        assert {name: client.timestamps.tolist() for name, client in clients.items()} == {  # type: ignore[union-attr]
            "1": [86_400],
            "3": [NO_TIME],
            "2": [3, 65],
        }

    @given(
        st.dictionaries(st.text(max_size=5), st.lists(st.binary(max_size=200), max_size=3), max_size=4),
        st.integers(0, 10_000),
    )
    def test_examples_come_back_or_are_refused(self, features: dict[str, list[bytes]], cut: int) -> None:
        blob = example(features)
        assert read_example(blob) == features
        with suppress(ValueError, IndexError):  # what _post turns into a SourceError
            read_example(blob[: cut % len(blob)])

    def test_other_wire_types_are_stepped_over(self) -> None:
        others = varint(2 << 3 | 1) + bytes(8) + varint(3 << 3 | 5) + bytes(4) + varint(4 << 3) + varint(1000)
        assert read_example(others + example({"a": [b"b"]})) == {"a": [b"b"]}
        with pytest.raises(ValueError, match="wire type 3"):
            read_example(varint(1 << 3 | 3))

    def test_refusals(self, tmp_path: Path) -> None:
        good = post("x", "")
        cases = {
            "is in train and in heldout": [("train", "1", good), ("heldout", "1", good)],
            "has a split 'dev'": [("dev", "1", good)],
            "no tf.train.Example": [("train", "1", b"\x0a\xff")],
        }
        for number, (complaint, rows) in enumerate(cases.items()):
            with pytest.raises(SourceError, match=complaint):
                read(so(tmp_path / f"{number}.sqlite", rows))
        bad_text = example({"tokens": [b"\xff"]})
        with pytest.raises(SourceError, match="UTF-8"):
            read(so(tmp_path / "bad.sqlite", [("train", "1", bad_text)]))
        bad_date = example({"tokens": [b"x"], "creation_date": [b"yesterday"]})
        with pytest.raises(SourceError, match="yesterday"):
            read(so(tmp_path / "date.sqlite", [("train", "1", bad_date)]))

    def test_what_is_no_blob_of_anybody_is_refused(self, tmp_path: Path) -> None:
        """SQLite keeps any value in any column."""
        good = post("x", "")
        for number, (row, complaint) in enumerate(
            {
                ("train", "1", None): "a post of client '1' is nothing, and a tf.train.Example is bytes",
                ("train", "1", "text"): "is a value of the type str",
                ("train", "1", 5): "is a value of the type int",
                ("train", None, good): "has no client_id",
                (None, "1", good): "has a split None",
                (b"train", "1", good): "has a split b'train'",
                ("train", "1", b"\x80" * 100_000 + b"\x01"): "a number of more than 64 bits",
            }.items()
        ):
            path = tmp_path / f"{number}.sqlite"
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("CREATE TABLE examples (split_name, client_id, serialized_example_proto)")
                connection.execute("INSERT INTO examples VALUES (?, ?, ?)", row)
            with pytest.raises(SourceError, match=complaint):
                read(f"stackoverflow:{path}")

    def test_a_damaged_page_is_said_so(self, tmp_path: Path) -> None:
        place = so(tmp_path / "so.sqlite", [("train", f"{at}", post("x" * 99, "")) for at in range(99)])
        path = tmp_path / "so.sqlite"
        whole, draw = path.read_bytes(), random.Random(3)
        for begin in [*range(100, len(whole), 4096), *draw.sample(range(4096), 99)]:
            path.write_bytes(whole[:begin] + draw.randbytes(1000) + whole[begin + 1000 :])
            with suppress(SourceError):  # what is in no page that counts is no damage
                read(place)

    def test_files_of_another_layout_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("this is not a database, but it is long enough to be one " * 9)
        with pytest.raises(SourceError, match="is not SQLite"):
            open_source(f"stackoverflow:{tmp_path / 'text'}")
        sqlite3.connect(tmp_path / "empty").close()
        with pytest.raises(SourceError, match="no column 'split_name'"):
            open_source(f"stackoverflow:{tmp_path / 'empty'}")
        with pytest.raises(SourceError, match="is not a file"):
            open_source(f"stackoverflow:{tmp_path / 'none'}")
