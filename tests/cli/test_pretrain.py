"""`tacit pretrain`: from public text to a model that can be loaded."""

import json
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jax.flatten_util import ravel_pytree
from tests.support.training.tiny import tiny_cache, tiny_recipe
from typer.testing import CliRunner

from tacit.cli.commands import app
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.jobs.train.learner import learner_of
from tacit.jobs.train.run import begin, carry_on
from tacit.keyboard.model_folder import ORIGIN, WEIGHTS, load_model, write_model
from tacit.networks.cifg.network import Cifg
from tacit.networks.gru import Gru
from tacit.networks.language_model import LanguageModel, next_word_loss
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.statements.run_facts import statement_of
from tacit.training.hooks import Hooks

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
    assert [each["sentences"] for each in found["evaluations"]] == [0, 4096, 6144, 9000]
    assert found["evaluations"][0]["loss"] is None
    assert found["held_out"]["cross_entropy"] < 0.7 * found["evaluations"][0]["held_out"]
    model = load_model(tmp_path / "first")
    assert model.network == Cifg(embedding=8, units=12, vocabulary=model.vocabulary.size)
    assert model.vocabulary.sha256 == Cache.open(public).manifest.vocabulary.sha256
    assert np.isfinite(
        np.asarray(next_word_loss(model.network)(model.parameters, np.array([[1, 4, 5, 6, 2, 0, 0]])))
    ).all()


def test_the_same_command_again_finds_it_done_and_another_is_refused(public: Path, tmp_path: Path) -> None:
    first = pretrain(public, tmp_path / "first")
    assert first[0] == 0 and "held-out top-1" in first[1] and "tacit train RECIPE --init" in first[1]
    assert pretrain(public, tmp_path / "first")[1] == first[1]
    code, _, complaint = pretrain(public, tmp_path / "first", "--units", "13")
    assert code == 2
    assert "begun with other settings (model.units was 12 and is now 13)" in complaint.replace("\n", " ")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no model"):
        load_model(tmp_path)
    (tmp_path / "broken").mkdir()
    network = Cifg(vocabulary=6, embedding=2, units=3)
    words = '{"format": "tacit-vocabulary-1"}'
    write_model(tmp_path / "broken", network, network.init(jax.random.key(0)), words.encode())
    with pytest.raises(InputError, match="vocabulary"):
        load_model(tmp_path / "broken")
    (tmp_path / "broken" / WEIGHTS).write_bytes(b"torn")
    with pytest.raises(InputError, match="is damaged"):
        load_model(tmp_path / "broken")


def private_recipe(public: Path, first: Path | None, **model: int) -> Recipe:
    """A private run on the same words, of the size of the pre-trained model unless told otherwise."""
    size = {"embedding": 8, "units": 12, **model}
    return tiny_recipe(public, model=size if first is None else {**size, "init": str(first)}, server={"momentum": 0.0})


def test_a_private_run_begins_from_it_and_says_so(public: Path, tmp_path: Path) -> None:
    assert pretrain(public, tmp_path / "first")[0] == 0
    model = load_model(tmp_path / "first").parameters
    recipe = private_recipe(public, tmp_path / "first")
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    with begin(recipe, tmp_path / "run") as run:
        learner = learner_of(run, recipe, Cache.open(public), Hooks())
        np.testing.assert_array_equal(learner.start, ravel_pytree(model)[0])
        carry_on(run, hardware=Hardware(workers=1), until=2)
        assert "the text that the first model was trained on (public text text.parquet)" in statement_of(run).markdown()
    weights = tmp_path / "first" / "model" / WEIGHTS
    network, words = rest_of(tmp_path / "first")
    write_model(tmp_path / "first" / "model", network, model._replace(bias=model.bias + 1), words)
    assert weights.is_file()
    with Run.open(tmp_path / "run") as run, pytest.raises(RunError, match=r"is not the one that .* began from"):
        carry_on(run, hardware=Hardware(workers=1))


def rest_of(path: Path) -> tuple[LanguageModel, bytes]:
    return load_model(path).network, (path / "model" / "vocabulary.json").read_bytes()


def test_a_first_model_that_does_not_fit_or_is_not_public_is_refused(public: Path, tmp_path: Path) -> None:
    assert pretrain(public, tmp_path / "first")[0] == 0
    with pytest.raises(InputError, match=r"units=12 \(the recipe: 13\)"):
        begin(private_recipe(public, tmp_path / "first", units=13), tmp_path / "run")
    other = tiny_cache(tmp_path / "other")
    with pytest.raises(InputError, match="knows other words than the cache"):
        begin(private_recipe(other.path, tmp_path / "first"), tmp_path / "run")
    (tmp_path / "first" / "model" / ORIGIN).unlink()
    with pytest.raises(InputError, match="not known to be of public text only"):
        begin(private_recipe(public, tmp_path / "first"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_kind_is_pre_trained_by_its_name(public: Path, tmp_path: Path) -> None:
    assert pretrain(public, tmp_path / "gru", "--kind", "gru", "--tied")[0] == 0
    model = load_model(tmp_path / "gru")
    assert model.network == Gru(embedding=8, units=12, tied=True, vocabulary=model.vocabulary.size)
    code, _, complaint = pretrain(public, tmp_path / "own", "--kind", "tests.support.networks.gru:Gru")
    assert code == 2 and "the unknown key 'embedding'; its keys are vocabulary, units" in complaint.replace("\n", " ")
    assert "model.kind='lstm' is unknown" in pretrain(public, tmp_path / "none", "--kind", "lstm")[2]
