"""What a finished training is held against: the same clients, the same words, counted by the same rules."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.support.training.tiny import SETTINGS, tiny_cache, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.evaluation.accuracy import evaluate
from tacit.evaluation.baselines import comparison_models_of
from tacit.evaluation.comparison_models import BOTH, BOTH_AND_NETWORK, CLIENTS, FREE, PUBLIC_NGRAM, WITH_NGRAM
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.settings import EvaluationSettings
from tacit.jobs.train.job import TrainingResult
from tacit.keyboard.prompts import PROMPTS, prompts_for
from tacit.networks.cifg.network import Cifg
from tacit.text.vocabulary import Provenance, Vocabulary
from tacit.training.central import CentralTraining
from tacit.training.pretrain import Pretraining

PLAN = Pretraining(
    central=CentralTraining(batch_size=2, words=6, learning_rate=0.01), sentences=400, every=100, patience=2
)
ONE = Cores(Hardware(workers=1))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def trained(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    """From a model of public text, whose cache is the same typists'."""
    at = tmp_path_factory.mktemp("runs")
    network = Cifg(embedding=SETTINGS.embedding, units=SETTINGS.units)
    tacit.pretrain(cache, at / "first", model=network, settings=PLAN, held_out=3, declared_public=True)
    return tacit.train(tiny_recipe(cache.path), at / "run", init=at / "first")


def held_out(cache: Cache, split: str) -> HeldOut:
    return HeldOut.read(cache, cache.clients(split), sentences=8, words=6)


def test_each_comparison_model_is_counted_as_an_evaluation_counts(cache: Cache, trained: TrainingResult) -> None:
    found = trained.summary().tested
    assert found is not None
    clients = held_out(cache, "test")
    first = tacit.load_model(trained.run.path.parent / "first")
    model = trained.model()
    slow = {
        "model": evaluate(model.network, model.parameters, clients, cores=ONE).metrics(),
        "start": evaluate(first.network, first.parameters, clients, cores=ONE).metrics(),
    }
    for name, metrics in slow.items():
        for metric in ("top1_accuracy", "top3_accuracy", "cross_entropy"):
            assert found.value(name, metric) == pytest.approx(metrics[metric], abs=1e-4), (name, metric)
    assert found.value("model", "top1_accuracy") == pytest.approx(trained.test["top1_accuracy"])
    validated = trained.summary().validated
    assert validated is not None and set(validated.sums) == {"model", FREE}  # its words are alphabetical
    last = max(each.step for each in trained.run.metrics() if each.split == "validation")
    (seen,) = [
        each.value
        for each in trained.run.metrics()
        if (each.step, each.split, each.name) == (last, "validation", "top1_accuracy")
    ]
    assert validated.value("model", "top1_accuracy") == pytest.approx(seen)
    assert set(found.sums) == {
        "model",
        "start",
        PUBLIC_NGRAM,
        FREE,
        CLIENTS,
        BOTH,
        BOTH_AND_NETWORK,
        "model" + WITH_NGRAM,
    }


def test_a_recipe_without_baselines_is_held_against_its_start_alone(
    cache: Cache, trained: TrainingResult, tmp_path: Path
) -> None:
    recipe = tiny_recipe(cache.path)
    spared = recipe.evaluation.model_copy(update={"baselines": False})
    first = trained.run.path.parent / "first"
    ended = tacit.train(recipe.model_copy(update={"evaluation": spared}), tmp_path / "run", init=first)
    found, whole = ended.summary().tested, trained.summary().tested
    assert found is not None and whole is not None and set(found.sums) == {"model", "start"}
    assert found.sums == {name: whole.sums[name] for name in found.sums}  # the same training
    assert "evaluation.baselines" in (tmp_path / "run" / "simulation" / "report.md").read_text(encoding="utf-8")


def test_the_first_words_are_counted_one_by_one(cache: Cache) -> None:
    found = comparison_models_of(held_out(cache, "test"), {}, first_words=True)
    hits = words = 0
    for sentence in held_out(cache, "test").sentences.reshape(-1, 7):
        for target in sentence[1:]:
            words += target >= 4
            hits += target in (4, 5, 6)
    assert found.value("first words", "top3_accuracy") == hits / words
    assert found.value("first words", "cross_entropy") is None


def test_the_first_words_of_an_alphabetical_list_are_nobodys_baseline(cache: Cache) -> None:
    counted, left_out = (comparison_models_of(held_out(cache, "test"), {}, first_words=each) for each in (True, False))
    assert set(counted.sums) == {"first words"} and not left_out.sums
    assert counted.predicted == left_out.predicted


def test_train_and_evaluate_agree_where_they_count_alike(cache: Cache, trained: TrainingResult) -> None:
    """All test clients, the same sentences: what differs is by word against by client, and both say so."""
    asked = EvaluationSettings(clients=0, sentences=8, words=6)
    found = tacit.evaluate([trained.run.path], cache, settings=asked)
    (row,) = found.exact["models"].values()
    assert row["pooled"] == pytest.approx(trained.test["top1_accuracy"])
    assert row["mean"].value != row["pooled"]
    said = " ".join(block.text for block in found.blocks() if hasattr(block, "text"))
    assert f"Counted by word, as `tacit train` counts: {trained.run.path} {row['pooled']:.2%}" in said
    printed = " ".join(block.text for block in trained.blocks() if hasattr(block, "text"))
    assert "counted by word (who types more counts more) over the first 6 clients" in printed
    free = trained.summary().tested.value(FREE, "top1_accuracy")  # type: ignore[union-attr]
    assert f"the best free model, public n-grams mixed with its start {free:.2%}" in printed


def test_where_the_public_text_is_gone_the_run_says_so(cache: Cache, tmp_path: Path) -> None:
    public = tiny_cache(tmp_path / "public")
    network = Cifg(embedding=SETTINGS.embedding, units=SETTINGS.units)
    tacit.pretrain(public, tmp_path / "first", model=network, settings=PLAN, held_out=3, declared_public=True)
    shutil.rmtree(tmp_path / "public")
    summary = tacit.train(tiny_recipe(cache.path), tmp_path / "run", init=tmp_path / "first").summary()
    assert not summary.trigram and "the public text of the first model is not at hand" in summary.public_text
    random = tacit.train(tiny_recipe(cache.path), tmp_path / "random").summary()
    assert not random.trigram and "began from no model of public text" in random.public_text
    assert set(random.tested.sums) == {"model", "start", CLIENTS}  # type: ignore[union-attr]


def test_the_released_model_is_asked(trained: TrainingResult) -> None:
    asked = trained.summary().suggestions
    assert tuple(asked) in PROMPTS.values()
    for prompt, words in asked.items():
        assert words == tuple(trained.model().next_words(prompt, 3))


@pytest.mark.parametrize(
    ("words", "prompts"),
    [
        ("i will see you thank for what do it was", "English"),
        ("yo no me gracias por que la verdad gusta", "Spanish"),
        ("Return the If name of This is an error", "documentation"),
        ("zzz", "English"),
    ],
)
def test_prompts_are_those_that_the_vocabulary_knows_best(words: str, prompts: str) -> None:
    known = Vocabulary(
        words=tuple(words.split()),
        provenance=Provenance(kind="public", description="a test"),
        lowercase=words == words.lower(),
    )
    assert prompts_for(known) == PROMPTS[prompts]


def test_the_gain_is_of_the_difference_client_by_client(trained: TrainingResult) -> None:
    found = trained.summary().tested
    assert found is not None
    gain = found.gain("model", "start", "top1_accuracy")
    assert gain is not None
    ours, theirs = (np.array(found.sums[name]["top1_accuracy"]) for name in ("model", "start"))
    assert gain.value == pytest.approx(float((ours - theirs).sum() / np.sum(found.predicted)))
    assert gain.low <= gain.value <= gain.high
