"""`tacit pretrain`: from public text to a model that can be loaded."""

import json
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tacit.cli import app
from tacit.cli.models import WEIGHTS, load_model, write_model
from tacit.errors import InputError
from tacit.keyboard import model as cifg
from tacit.population import Cache

SMALL = [
    "--embedding",
    "8",
    "--units",
    "12",
    "--sentences",
    "9000",
    "--every",
    "3000",
    "--words",
    "6",
    "--learning-rate",
    "0.02",
]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences in which the next word follows from the one before, as a cache."""
    folder = tmp_path_factory.mktemp("public")
    words = [f"{a}{b}" for a in "bcdfg" for b in "aeiou"]
    draw = np.random.default_rng(0)
    starts = draw.integers(25, size=8000)
    text = [" ".join(words[(start + i) % 25] for i in range(4)) for start in starts]
    pq.write_table(pa.table({"text": text}), folder / "text.parquet")
    source = f"public:{folder / 'text.parquet'}"
    options = ["--vocabulary-from", str(folder / "text.parquet"), "--vocabulary-size", "29", "--out"]
    done = CliRunner().invoke(app, ["data", "import", source, *options, str(folder / "cache")])
    assert done.exit_code == 0, done.output
    return folder / "cache"


def pretrain(public: Path, out: Path, *more: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["pretrain", str(public), "--out", str(out), *SMALL, *more])
    return done.exit_code, done.stdout, done.stderr


def test_a_model_comes_out_that_knows_the_public_text(public: Path, tmp_path: Path) -> None:
    code, out, _ = pretrain(public, tmp_path / "first", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["source"] == "public text text.parquet"
    assert [look["sentences"] for look in found["looks"]] == [0, 4096, 6144, 9000]
    assert found["held_out"]["cross_entropy"] < 0.7 * found["looks"][0]["held_out"]
    model, settings, vocabulary = load_model(tmp_path / "first")
    assert (settings.embedding, settings.units, settings.vocabulary) == (8, 12, vocabulary.size)
    assert vocabulary.sha256 == Cache.open(public).manifest.vocabulary.sha256
    assert np.isfinite(np.asarray(cifg.loss(model, np.array([[1, 4, 5, 6, 2, 0, 0]])))).all()


def test_the_same_command_again_finds_it_done_and_another_is_refused(public: Path, tmp_path: Path) -> None:
    first = pretrain(public, tmp_path / "first")
    assert first[0] == 0 and "held-out top-1" in first[1] and "tacit train RECIPE --init" in first[1]
    assert pretrain(public, tmp_path / "first")[1] == first[1]
    code, _, complaint = pretrain(public, tmp_path / "first", "--units", "13")
    assert code == 2
    assert "model.units=12 (now 13)" in complaint.replace("\n", " ")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no model"):
        load_model(tmp_path)
    (tmp_path / "broken").mkdir()
    settings = cifg.ModelSettings(vocabulary=6, embedding=2, units=3)
    model = cifg.init(settings, key=jax.random.key(0))
    words = '{"format": "tacit-vocabulary-1"}'
    write_model(tmp_path / "broken", model, settings, words.encode())
    with pytest.raises(InputError, match="vocabulary"):
        load_model(tmp_path / "broken")
    (tmp_path / "broken" / WEIGHTS).write_bytes(b"torn")
    with pytest.raises(InputError, match="is damaged"):
        load_model(tmp_path / "broken")
