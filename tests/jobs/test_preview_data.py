"""`tacit.preview_data`: what an import would read, before anything is written; and what looks wrong is said by both."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import TextsOf, VocabularyChoice
from tacit.errors import SourceError
from tacit.jobs.preview_data import CLIENTS, TEXTS, described_preview
from tacit.progress import Event, Warned

ROWS = [
    {"who": f"person number {number:03}", "body": "word " * 40, "at": 1_700_000_000 + number, "likes": 3}
    for number in range(50)
]
NAMED = {"client_id": "who", "text": "body", "timestamp": "at"}


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    rows = [*ROWS, {"who": "person number 000", "body": None}]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "posts.jsonl"


def test_what_would_be_read_is_counted_and_shown_shortly(posts: Path, tmp_path: Path) -> None:
    found = tacit.preview_data(str(posts), **NAMED)
    assert (found.clients, found.texts, found.characters) == (50, 51, 50 * 200)
    assert sum(found.splits.values()) == 50 and found.splits["train"] > 30
    assert (found.earliest, found.latest, found.undated_texts) == (1_700_000_000, 1_700_000_049, 1)
    assert found.left_out == {"rows without text": 1}
    assert found.how_read == (
        "a JSON object a line; columns: client_id is 'who', text is 'body', timestamp is 'at'; not read: likes",
    )
    assert len(found.first) == CLIENTS and all(len(client.texts) <= TEXTS for client in found.first)
    assert all(len(text) <= 60 for client in found.first for text in client.texts)
    assert found.first[0].of == 2
    shown = "\n".join(getattr(block, "text", "") for block in described_preview(found))
    assert "2023-11-14 22:13 to 2023-11-14 22:14; 1 texts without" in shown and "word " * 12 not in shown
    assert [path.name for path in tmp_path.iterdir()] == ["posts.jsonl"]


def test_it_reads_what_an_import_reads(posts: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("word\n")
    choice = VocabularyChoice(word_list=str(tmp_path / "words.txt"))
    made = tacit.import_data(str(posts), tmp_path / "cache", vocabulary=choice, **NAMED).manifest
    found = tacit.preview_data(str(posts), **NAMED)
    assert (found.clients, dict(found.splits), dict(found.left_out)) == (made.clients, made.splits, made.left_out)


@pytest.mark.parametrize("source", [TextsOf({"ann": "x"}), pa.table({"client_id": ["ann"], "text": ["x"]})], ids=type)
def test_what_a_program_holds_has_a_preview(source: Any) -> None:
    found = tacit.preview_data(source)
    assert (found.clients, found.earliest, found.first[0].texts) == (1, None, ("x",))
    with pytest.raises(SourceError, match="lines is for a source that is named"):
        tacit.preview_data(source, lines="messages")


def test_lines_that_look_like_messages_are_said_by_both(tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / "ann.txt").write_text("good morning\nhow are you\n" * 10)
    (tmp_path / "words.txt").write_text("good\n")
    seen: list[Event] = []
    choice = VocabularyChoice(word_list=str(tmp_path / "words.txt"))
    source = f"folder:{tmp_path / 'chats'}"
    cache = tacit.import_data(source, tmp_path / "cache", vocabulary=choice, progress=seen.append)
    said = [event.message for event in seen if isinstance(event, Warned) and event.code == "doubtful reading"]
    assert said == list(tacit.preview_data(source).doubts) and "--lines messages" in said[0]
    assert cache.manifest.sentences == 1
    apart = tacit.import_data(source, tmp_path / "cache", vocabulary=choice, lines="messages")
    assert apart.manifest.sentences == 20


def test_the_command_shows_it_and_says_what_is_missing(posts: Path, tmp_path: Path) -> None:
    named = [f"--{column.replace('_', '-')}={name}" for column, name in NAMED.items()]
    done = CliRunner().invoke(app, ["data", "import", str(posts), "--preview", *named])
    assert done.exit_code == 0 and "50 (" in done.output and "left out   1 rows without text" in done.output
    done = CliRunner().invoke(app, ["data", "import", str(posts), "--preview", "--json", *named])
    record = json.loads(done.stdout)
    assert (record["schema"], record["clients"]) == ("tacit.data_preview", 50)
    done = CliRunner().invoke(app, ["data", "import", str(posts), *named])
    assert done.exit_code == 2 and "give --out CACHE, or --preview" in done.output
    done = CliRunner().invoke(app, ["data", "import", str(posts), "--preview", "--delimiter", ";"])
    assert done.exit_code == 2 and "takes no --delimiter" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["posts.jsonl"]
