"""`tacit data`: text goes in with a vocabulary whose origin is said aloud; refusals are one line and exit code 2."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from tacit.cli.data import app
from tacit.data.clients import split_of

TYPED = {"a": ["The dog. The cat", "a dog"], "b": ["Dog dog dog!"], "f": ["..."], "c": ["zebra"]}  # c is not in train


@pytest.fixture
def clients(tmp_path: Path) -> Path:
    rows = [(name, text) for name, texts in TYPED.items() for text in texts]
    path = tmp_path / "typed.parquet"
    names, texts = zip(*rows, strict=True)
    pq.write_table(pa.table({"client_id": names, "text": texts}), path)
    return path


@pytest.fixture
def public(tmp_path: Path) -> Path:
    path = tmp_path / "public.parquet"
    pq.write_table(pa.table({"text": ["the dog the dog the cat", None, "<url> The"]}), path)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_json(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    values: dict[str, Any] = json.loads(result.stdout)
    return values


def refusal(*arguments: object) -> str:
    """The one line that a command refuses with."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_columns_that_have_other_names_are_named(clients: Path, public: Path, tmp_path: Path) -> None:
    usual = run_json("import", clients, "--out", tmp_path / "usual", "--vocabulary-from", public)
    other = tmp_path / "other.parquet"
    pq.write_table(pq.read_table(clients).rename_columns(["author", "body"]), other)
    named = ("--client-id", "author", "--text", "body")
    same = run_json("import", other, "--out", tmp_path / "same", "--vocabulary-from", public, *named)
    assert {**same, "cache": 0, "source": 0, "digest": 0} == {**usual, "cache": 0, "source": 0, "digest": 0}
    said = refusal("import", other, "--out", tmp_path / "none", "--vocabulary-from", public)
    assert "did you mean 'author'?" in said and "--client-id NAME" in said
    refused = run("import", other, "--out", tmp_path / "none", "--vocabulary-from", other, *named)
    assert refused.exit_code == 2 and "has a column author, so it is clients' text and not public" in refused.stderr


def test_import_and_show_agree(clients: Path, public: Path, tmp_path: Path) -> None:
    out = tmp_path / "caches" / "mine"
    imported = run_json("import", clients, "--out", out, "--vocabulary-from", public, "--vocabulary-size", 7)
    assert imported == run_json("show", out) == run_json("show", out, "--verify")
    assert (imported["clients"], imported["sentences"], imported["words"]) == (3, 5, 10)
    assert imported["clients_without_sentences"] == 1
    assert imported["oov_rate"] == 4 / 10  # known are the, dog, cat; not The (twice), Dog, zebra ... and a
    assert imported["splits"] == {
        split: sum(split_of(name) == split for name in "abc") for split in ("train", "validation", "test")
    }
    words = imported["words_per_client"]
    assert (words["median"], words["largest"]) == (3.0, 6)
    assert words["histogram"] == [
        {"from": 1, "below": 2, "clients": 1},
        {"from": 2, "below": 5, "clients": 1},
        {"from": 5, "below": 10, "clients": 1},
    ]
    assert imported["vocabulary"]["provenance"] == "public"
    assert imported["vocabulary"]["description"] == "most frequent words of public.parquet"


def test_a_display_for_people(clients: Path, public: Path, tmp_path: Path) -> None:
    result = run("import", clients, "--out", tmp_path / "c", "--vocabulary-from", public)
    assert result.exit_code == 0
    for piece in ("clients    3", "words      10", "left out   1 clients without a sentence", "public:", "█"):
        assert piece in result.stdout
    assert "PRIVATE" not in result.stdout


def test_private_words_are_said_aloud(clients: Path, tmp_path: Path) -> None:
    result = run("import", clients, "--out", tmp_path / "c", "--vocabulary-from-private")
    assert result.exit_code == 0
    assert "VOCABULARY FROM PRIVATE TEXT" in result.stdout


def test_refusals_are_one_line(clients: Path, public: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "c")
    assert "2 of these was given" in refusal(
        "import", clients, *out, "--vocabulary-from", public, "--vocabulary-from-private"
    )
    assert "is unknown" in refusal("import", "ftp:x", *out, "--vocabulary-from", public)
    assert "there is no cache" in refusal("show", tmp_path / "c")
