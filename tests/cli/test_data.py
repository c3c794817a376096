"""`tacit data`: text goes in with a vocabulary whose origin is said aloud; refusals are one line and exit code 2."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from tacit.cli.data import app, import_clients, summary
from tacit.data import Cache, ImportProgress, split_of
from tacit.errors import InputError
from tacit.jobs.import_data import VocabularyChoice
from tacit.keyboard.vocabulary import OOV, Vocabulary

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


def test_the_cache_keeps_its_vocabulary(clients: Path, public: Path, tmp_path: Path) -> None:
    seen: list[ImportProgress] = []
    choice = VocabularyChoice(public=(str(public),))
    cache = import_clients(str(clients), tmp_path / "c", vocabulary=choice, progress=seen.append)
    vocabulary = Vocabulary.load(cache.vocabulary_path)
    assert vocabulary.words == ("the", "dog", "The", "cat")  # ten thousand were not to be had
    assert vocabulary.sha256 == cache.manifest.vocabulary.sha256
    ids, lengths = cache.sentences(0)
    assert [vocabulary.word_of(int(id)) for id in ids[: lengths[0]]] == ["<bos>", "The", "dog", "<eos>"]
    assert seen[-1].clients == 4
    again = import_clients(str(clients), tmp_path / "d", vocabulary=VocabularyChoice(file=cache.vocabulary_path))
    assert again.manifest == cache.manifest


def test_lower_case(clients: Path, public: Path, tmp_path: Path) -> None:
    facts = run_json("import", clients, "--out", tmp_path / "c", "--vocabulary-from", public, "--lowercase")
    assert facts["vocabulary"]["lowercase"] is True
    assert facts["oov_rate"] == 2 / 10  # a, zebra


def test_word_lists(clients: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("dog\n\nThe\ndog\ncat\n", encoding="utf-8")
    facts = run_json("import", clients, "--out", tmp_path / "c", "--word-list", words, "--vocabulary-size", 6)
    assert facts["vocabulary"]["provenance"] == "word list"
    assert Vocabulary.load(tmp_path / "c" / "vocabulary.json").words == ("dog", "The")
    assert "has 3 words" in refusal(
        "import", clients, "--out", tmp_path / "d", "--word-list", words, "--vocabulary-size", 9
    )


def test_private_words_only_when_asked_and_said_aloud(clients: Path, tmp_path: Path) -> None:
    out = tmp_path / "c"
    result = run("import", clients, "--out", out, "--vocabulary-from-private")
    assert result.exit_code == 0
    assert "VOCABULARY FROM PRIVATE TEXT" in result.stdout
    cache = Cache.open(out)
    assert cache.manifest.vocabulary.kind == "private"
    trained = " ".join(text for name, texts in TYPED.items() if split_of(name) == "train" for text in texts)
    known = Vocabulary.load(cache.vocabulary_path).words
    assert all(word in trained for word in known)
    assert OOV in cache.sentences(2)[0]
    assert OOV not in cache.sentences(0)[0]


def test_a_display_for_people(clients: Path, public: Path, tmp_path: Path) -> None:
    result = run("import", clients, "--out", tmp_path / "c", "--vocabulary-from", public)
    assert result.exit_code == 0
    for piece in ("clients    3", "words      10", "left out   1 clients without a sentence", "public:", "█"):
        assert piece in result.stdout
    assert "PRIVATE" not in result.stdout


def test_public_text_has_no_clients(clients: Path, tmp_path: Path) -> None:
    """What looks like somebody's text is not taken for public text by mistake."""
    line = refusal("import", clients, "--out", tmp_path / "c", "--vocabulary-from", clients)
    assert "client_id" in line
    assert "--vocabulary-from-private" in line
    assert not (tmp_path / "c").exists()


def test_refusals(clients: Path, public: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "c")
    vocabulary = ("--vocabulary-from", public)
    assert "exactly one" in refusal("import", clients, *out)
    assert "2 origins" in refusal("import", clients, *out, *vocabulary, "--vocabulary-from-private")
    assert "is unknown" in refusal("import", "ftp:x", *out, *vocabulary)
    assert "no public text at" in refusal("import", clients, *out, "--vocabulary-from", tmp_path / "none")
    assert "has 4 different words" in refusal("import", clients, *out, *vocabulary, "--vocabulary-size", 50)
    assert "no 'text'" in refusal("import", clients, *out, "--vocabulary-from", write_numbers(tmp_path))
    assert "there is no cache" in refusal("show", tmp_path / "c")
    assert "no manifest.json" in refusal("show", tmp_path)
    assert "is not a cache" in refusal("import", clients, "--out", tmp_path, *vocabulary)
    assert "no word list" in refusal("import", clients, *out, "--word-list", tmp_path / "none")
    assert "no vocabulary at" in refusal("import", clients, *out, "--vocabulary", tmp_path / "none")
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    assert "not UTF-8" in refusal("import", clients, *out, "--word-list", tmp_path / "latin")
    assert not (tmp_path / "c").exists()


def write_numbers(folder: Path) -> Path:
    pq.write_table(pa.table({"number": [1]}), folder / "numbers.parquet")
    return folder / "numbers.parquet"


def test_saved_vocabularies_do_not_bend(clients: Path, public: Path, tmp_path: Path) -> None:
    choice = VocabularyChoice(public=(str(public),))
    saved = import_clients(str(clients), tmp_path / "c", vocabulary=choice).vocabulary_path
    file = VocabularyChoice(file=saved)
    with pytest.raises(InputError, match="has 8 ids, not 9"):
        import_clients(str(clients), tmp_path / "d", vocabulary=file, vocabulary_size=9)
    with pytest.raises(InputError, match="keeps capitals"):
        import_clients(str(clients), tmp_path / "d", vocabulary=file, lowercase=True)


def test_summaries_count_bytes(clients: Path, public: Path, tmp_path: Path) -> None:
    cache = import_clients(str(clients), tmp_path / "c", vocabulary=VocabularyChoice(public=(str(public),)))
    on_disk = sum(path.stat().st_size for path in cache.path.iterdir() if path.name != "manifest.json")
    assert summary(cache)["bytes"] == on_disk
