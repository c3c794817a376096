"""A counted model from a cache to a keyboard: made, read, evaluated, and refused where a network is needed."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from tests.support.training.tiny import SETTINGS, tiny_cache, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError, TacitError
from tacit.evaluation.accuracy import evaluate
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.reader_accuracy import evaluate_reader
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import EvaluationSettings
from tacit.evaluation.trigram import text_of
from tacit.keyboard.model_folder import load_model
from tacit.keyboard.phone_model import load_phone_model
from tacit.keyboard.suggest import reader_of
from tacit.networks.metrics import TOP1
from tacit.networks.model_files import read_files
from tacit.networks.ngram.reader import NGramReader
from tacit.text.vocabulary import BOS


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def folder(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("counted") / "pb"
    tacit.ngram(cache, made, cutoffs=(1, 1, 1), declared_public=True)
    return made


def test_it_is_made_of_public_text_alone(cache: Cache, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--declared-public"):
        tacit.ngram(cache, tmp_path / "pb")
    assert not (tmp_path / "pb").exists()
    found = tacit.ngram(cache, tmp_path / "pb", declared_public=True)
    assert found.to_record()["cutoffs"] == [1, 2, 3] and found.held_out is not None
    assert "declared public" in found.source and "declared" in str(found)
    assert read_files(tmp_path / "pb").public_text == found.source
    again = tacit.ngram(cache, tmp_path / "pb", declared_public=True)
    assert again == found and found.bytes == sum(each.stat().st_size for each in (tmp_path / "pb").iterdir())


def test_the_weight_of_pairs_is_the_best_for_the_text_that_was_left_out(cache: Cache, tmp_path: Path) -> None:
    found = tacit.ngram(cache, tmp_path / "pb", declared_public=True)
    model = load_phone_model(tmp_path / "pb")
    assert isinstance(model.reader, NGramReader) and model.reader.tables.pair_weight == found.pair_weight
    reader, text = model.reader, text_of(cache, cache.clients("validation"))
    nats, state, scores = list[float](), (), np.zeros(0, np.float32)
    for token in text.tolist():
        nats += [] if token == BOS else [-float(scores[token])]
        state, scores = reader.step(state, token)
    assert np.mean(nats) == pytest.approx(found.held_out, abs=0.02)  # a byte a probability
    tables = reader.tables
    for other in (0.0, 0.5, 1.0):
        reader.tables = replace(tables, pair_weight=other)
        worse, state = list[float](), ()
        for token in text.tolist():
            worse += [] if token == BOS else [-float(scores[token])]
            state, scores = reader.step(state, token)
        assert np.mean(worse) > np.mean(nats) - 0.005
    alone = tacit.ngram(tiny_cache(tmp_path / "c", {"train": 5}), tmp_path / "alone", declared_public=True)
    assert alone.pair_weight == 0 and alone.held_out is None


def test_it_suggests_and_its_probabilities_sum_to_one(folder: Path) -> None:
    model = load_phone_model(folder)
    ((_, words),) = tacit.suggest(folder, ["wab wac"], k=56).after
    assert [each.probability for each in words] == sorted((each.probability for each in words), reverse=True)
    state, scores = model.reader.step(model.reader.begin(), BOS)
    for token in (4, 5, 6, 7, 3, 8):
        assert np.exp(scores.astype(np.float64)).sum() == pytest.approx(1, abs=1e-6)
        state, scores = model.reader.step(state, token)
    assert state == (7, 3, 8)


def test_it_loads_neither_jax_nor_a_compiler(folder: Path) -> None:
    code = f"""
import sys
from tacit.keyboard.phone_model import load_phone_model
load_phone_model({str(folder)!r}).next_words("wab")
heavy = {{"jax", "numba", "pyarrow", "scipy"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reader_is_counted_as_the_network_that_it_reads(cache: Cache) -> None:
    parameters = SETTINGS.init(jax.random.key(5))
    held_out = HeldOut.read(cache, cache.clients("test"), sentences=9, words=6)
    slow = evaluate(SETTINGS, parameters, held_out, cores=Cores(Hardware(workers=1)))
    found = evaluate_reader(reader_of(SETTINGS, parameters), held_out)
    for one, other in zip(found.clients, slow.clients, strict=True):
        assert one._replace(sums={}) == other._replace(sums={})
        for name, value in other.sums.items():
            assert one.sums[name] == pytest.approx(value, rel=1e-4)


def test_it_is_evaluated_beside_a_network(cache: Cache, folder: Path, tmp_path: Path) -> None:
    tacit.train(tiny_recipe(cache.path), tmp_path / "run")
    settings = EvaluationSettings(sentences=9, words=6)
    found = tacit.evaluate([tmp_path / "run", folder], cache, settings=settings, out=tmp_path / "both")
    assert set(found.exact["models"]) == {str(tmp_path / "run"), str(folder)}
    counts = [json.loads(line) for line in (tmp_path / "both/simulation/counts.jsonl").read_text().splitlines()]
    held_out = HeldOut.read(cache, np.array([counts[0]["client"]]), sentences=9, words=6)
    own = evaluate_reader(load_phone_model(folder).reader, held_out)
    assert counts[0]["counts"][1]["sums"][TOP1] == own.total.sums[TOP1]
    settings = EvaluationSettings(sentences=9, words=6, split_name="train")
    priced = tacit.evaluate(
        [tmp_path / "run", folder], cache, settings=settings, release=ReleaseCost(zcdp=1e4), out=tmp_path / "priced"
    )
    assert priced.released is not None and tacit.verify(tmp_path / "priced").holds
    exact = priced.exact["models"][str(folder)]["mean"].value
    mean = priced.released["models"][str(folder)]["mean"].value
    assert 0.5 < mean < exact, "beyond the last cut, 0.6, an accuracy counts as if it were there"
    assert priced.to_record()["released"]["against_the_first"]


def test_where_a_network_is_needed_it_is_refused(cache: Cache, folder: Path) -> None:
    with pytest.raises(InputError, match=r"is counted and no network.*nothing trains it"):
        load_model(folder)
    with pytest.raises(TacitError, match="ngram"):
        tiny_recipe(cache.path, model={"kind": "ngram"})


@pytest.mark.parametrize("there", ["file.txt", "model.safetensors"])
def test_nothing_but_a_counted_model_is_replaced(cache: Cache, folder: Path, tmp_path: Path, there: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / there).write_bytes(b"mine")
    with pytest.raises(InputError, match="is not replaced"):
        tacit.ngram(cache, out, declared_public=True)
    tacit.ngram(cache, tmp_path / "pb", declared_public=True)
    (tmp_path / "pb" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"'notes\.txt' beside"):
        tacit.ngram(cache, tmp_path / "pb", declared_public=True)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(InputError, match="is a link"):
        tacit.ngram(cache, tmp_path / "link", declared_public=True)


@pytest.mark.parametrize(
    ("change", "says"),
    [({"order": 3}, "damaged"), ({"vocabulary": 61}, "do not belong together"), ({"pair_weight": 2.0}, "damaged")],
)
def test_files_of_two_models_are_refused(folder: Path, tmp_path: Path, change: dict[str, float], says: str) -> None:
    for each in folder.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    settings = json.loads((tmp_path / "settings.json").read_text())
    (tmp_path / "settings.json").write_text(json.dumps({**settings, **change}))
    if "order" in change:
        (tmp_path / "settings.json").write_text(json.dumps({**settings, "order": 5}))
    with pytest.raises(InputError, match=says):
        load_phone_model(tmp_path)
    whole = (folder / "model.safetensors").read_bytes()
    for damaged in (whole[:-1], whole[:50], b"", whole[: len(whole) // 2]):
        (tmp_path / "model.safetensors").write_bytes(damaged)
        with pytest.raises(InputError, match="is damaged"):
            load_phone_model(tmp_path)
