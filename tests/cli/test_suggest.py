"""`tacit suggest`: a row for each prompt, and the same as JSON."""

import json
from pathlib import Path

import jax
import pytest
from click.testing import Result
from tests.support.training.tiny import SETTINGS, tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.errors import InputError
from tacit.keyboard.model_folder import write_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("suggest")
    cache = tiny_cache(at / "cache", {"train": 1})
    write_model(at / "model", SETTINGS, SETTINGS.init(jax.random.key(1)), cache.vocabulary_path.read_bytes())
    return at / "model"


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["suggest", *map(str, words)])


def test_a_row_for_each_prompt(model: Path) -> None:
    result = invoke(model, "I will see", "", "--words", "4")
    assert result.exit_code == 0, result.output
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["after", "first", "second", "third", "4th"]
    assert [row.split("  ")[0] for row in rows] == ["I will see", "(the first word)"]
    (first, *_), *_ = (words for _, words in tacit.suggest(model, ["I will see"], k=4).after)
    assert f"{first.word} {first.probability:.0%}" in rows[0]


def test_as_json_and_from_python(model: Path) -> None:
    result = invoke(model, "I will see", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record == tacit.suggest(str(model), ["I will see"]).to_record()
    assert (record["schema"], record["version"], record["model"]) == ("tacit.suggestions", 1, str(model))
    (row,) = record["after"]
    assert row["prompt"] == "I will see" and len(row["words"]) == 3
    shares = [each["probability"] for each in row["words"]]
    assert shares == sorted(shares, reverse=True) and all(0 < share < 1 for share in shares)
    assert "<table>" in tacit.suggest(tacit.load_model(model), ["I will see"])._repr_html_()


def test_what_cannot_be_asked(model: Path) -> None:
    with pytest.raises(InputError, match="there is no prompt"):
        tacit.suggest(model, [])
    for words in ((model, "I", "--words", "0"), (model.parent / "cache", "I")):
        result = invoke(*words)
        assert result.exit_code == 2 and result.stderr.startswith("error: ")
