"""N-grams get what the rounds read; differences are those that one reckons by hand; the experiment runs to its end."""

import importlib
import json
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from scipy import stats
from tests.conftest import REPOSITORY

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.data.vocabulary_choice import VocabularyChoice
from tacit.evaluation.accuracy import Evaluation
from tacit.networks.metrics import Counts
from tacit.recipe import Recipe
from tacit.text.vocabulary import PAD
from tacit.training.client import gather

WORDS = [4, 10, 6]  # of three clients


@pytest.fixture
def benchmark_(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Found as where it is run from, beside the scripts that it imports."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks" / "utility"))
    return importlib.import_module("network_against_ngrams")


def evaluation(hits: list[int]) -> Evaluation:
    """Of three clients with so many words right."""
    clients = tuple(
        Counts(words=words, predicted=words, sums={"top1_accuracy": right, "cross_entropy": 2.0 * words})
        for words, right in zip(WORDS, hits, strict=True)
    )
    return Evaluation(total=sum(clients, Counts()), clients=clients)


def test_one_less_the_other_over_seeds_and_over_clients(benchmark_: ModuleType) -> None:
    network = {1: evaluation([2, 5, 3]), 2: evaluation([3, 5, 1]), 5: evaluation([4, 10, 6])}
    trigram = {1: evaluation([1, 4, 3]), 2: evaluation([2, 1, 1])}
    found = benchmark_.apart(network, trigram, "top1_accuracy")
    by_seed = [(10 - 8) / 20, (9 - 4) / 20]  # seed 5 has no pair
    assert found.seeds == 2
    assert found.over_seeds.mean == pytest.approx(statistics.mean(by_seed))
    assert found.over_seeds.deviation == pytest.approx(statistics.stdev(by_seed))
    assert found.over_clients.value == pytest.approx(statistics.mean(by_seed)), "the same words in every seed"
    gained = np.array([1.0, 2.5, 0.0])  # of each client, mean over the seeds
    left_over = gained - found.over_clients.value * np.array(WORDS)
    error = left_over.std(ddof=1) / np.sqrt(3) / np.mean(WORDS)
    assert found.over_clients.high - found.over_clients.value == pytest.approx(4.302653 * error, rel=1e-5)  # t, 2 df


def test_one_seed_has_no_interval_over_seeds(benchmark_: ModuleType) -> None:
    found = benchmark_.apart({1: evaluation([2, 5, 3])}, {1: evaluation([1, 4, 3])}, "top1_accuracy")
    assert found.over_seeds is None
    assert benchmark_.said(found.over_seeds, "top1_accuracy") == ""


def test_two_levels_that_are_not_paired(benchmark_: ModuleType) -> None:
    first, second = [18.3, 18.5, 18.37], [18.9, 18.91, 18.88, 18.93]
    both = [benchmark_.OverSeeds(statistics.mean(each), statistics.stdev(each), len(each)) for each in (first, second)]
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert benchmark_.welch(*both)[1:] == pytest.approx((expected.low, expected.high))


def made_cache(folder: Path) -> Cache:
    """200 clients with 12 sentences of 8 words each, of 100 words."""
    words = [f"{first}{second}" for first in "bcdfghjklmnpqrstvwxz" for second in "aeiou"]
    (folder / "words.txt").write_text("\n".join(words), encoding="utf-8")
    draw = np.random.default_rng(0)
    texts = {f"{number}": [" ".join(draw.choice(words, 8)) for _ in range(12)] for number in range(200)}
    rows = [{"client_id": client, "text": text} for client, mine in texts.items() for text in mine]
    public = folder / "public.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": [row["text"] for row in rows]}), public)
    cache = tacit.import_data(rows, folder / "cache", vocabulary=VocabularyChoice(word_list=folder / "words.txt"))
    chosen = VocabularyChoice(file=cache.path / "vocabulary.json")
    tacit.import_data(f"public:{public}", folder / "public", vocabulary=chosen)
    return cache


def test_ngrams_get_the_sentences_that_the_rounds_read(
    benchmark_: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = made_cache(tmp_path)
    sections = {
        "name": "small",
        "data": {"cache": str(cache.path)},
        "model": {"embedding": 4, "units": 4},
        "client": {"batch_size": 4, "sentences": 5, "words": 6},
        "rounds": {"rounds": 3, "report_goal": 7, "min_separation": 3},
        "privacy": {"clip_norm": 1.0, "mechanism": {"name": "none"}},
        "run": {"seed": 5},
    }
    recipe, read = Recipe.model_validate(sections, strict=False), list[np.ndarray]()

    def gathering(*given: Any) -> Any:
        found = gather(*given)
        read.append(found.sentences[found.sentences != PAD])
        return found

    monkeypatch.setattr("tacit.training.workers_cores.gather", gathering)
    tacit.train(recipe, tmp_path / "run", hardware=Hardware(workers=1), anyway=True)
    own = benchmark_.sentences_read(recipe, cache, 5)
    assert np.array_equal(own, np.concatenate(read))
    assert benchmark_.size_of(own) == {"sentences": 3 * 7 * 5, "tokens": 3 * 7 * 5 * 6}
    assert not np.array_equal(own, benchmark_.sentences_read(recipe, cache, 6))


@pytest.mark.nightly
def test_the_smoke_works(benchmark_: ModuleType, tmp_path: Path) -> None:
    cache = made_cache(tmp_path)
    script = REPOSITORY / "benchmarks" / "utility" / "network_against_ngrams.py"
    command = [sys.executable, str(script), "--smoke", "--seeds", "2"]
    command += ["--cache", str(cache.path), "--public", str(tmp_path / "public"), "--runs", str(tmp_path / "runs")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    figures = {json.loads(line)["figure"] for line in ended.stdout.splitlines()}
    assert figures == {*benchmark_.NETWORKS, *benchmark_.NGRAMS, "pair"}
    table = subprocess.run([*command, "--table"], capture_output=True, text=True)
    assert "n-gram of the sentences that the rounds read" in table.stdout, table.stderr[-2000:]
