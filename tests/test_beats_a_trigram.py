"""Differences over seeds and over clients are those that one reckons by hand; the experiment runs to its end."""

import importlib
import json
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.conftest import REPOSITORY

import tacit
from tacit.data.vocabulary_choice import VocabularyChoice
from tacit.evaluation.accuracy import Evaluation
from tacit.networks.metrics import Counts

WORDS = [4, 10, 6]  # of three clients


@pytest.fixture
def benchmark_(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Found as where it is run from, beside the scripts that it imports."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks" / "utility"))
    return importlib.import_module("beats_a_trigram")


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


@pytest.mark.nightly
def test_the_smoke_works(benchmark_: ModuleType, tmp_path: Path) -> None:
    words = [f"{first}{second}" for first in "bcdfghjklmnpqrstvwxz" for second in "aeiou"]
    (tmp_path / "words.txt").write_text("\n".join(words), encoding="utf-8")
    draw = np.random.default_rng(0)
    texts = {f"{number}": [" ".join(draw.choice(words, 8)) for _ in range(12)] for number in range(200)}
    rows = [{"client_id": client, "text": text} for client, mine in texts.items() for text in mine]
    public = tmp_path / "public.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": [row["text"] for row in rows]}), public)
    cache = tacit.import_data(rows, tmp_path / "cache", vocabulary=VocabularyChoice(word_list=tmp_path / "words.txt"))
    chosen = VocabularyChoice(file=cache.path / "vocabulary.json")
    tacit.import_data(f"public:{public}", tmp_path / "public", vocabulary=chosen)
    command = [
        sys.executable,
        str(REPOSITORY / "benchmarks" / "utility" / "beats_a_trigram.py"),
        "--smoke",
        "--seeds",
        "2",
    ]
    command += ["--cache", str(cache.path), "--public", str(tmp_path / "public"), "--runs", str(tmp_path / "runs")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    figures = {json.loads(line)["figure"] for line in ended.stdout.splitlines()}
    assert figures == {*benchmark_.NETWORKS, *benchmark_.TRIGRAMS, "pair"}
    table = subprocess.run([*command, "--table"], capture_output=True, text=True)
    assert "trigram of as many sentences" in table.stdout, table.stderr[-2000:]
