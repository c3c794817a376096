"""Models with different vocabularies are judged by the same words: the sums equal those of a loop, word by word."""

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.conftest import REPOSITORY

import tacit
from tacit.data.vocabulary_choice import VocabularyChoice
from tacit.text.vocabulary import OOV, SPECIALS

SIZES = (7, 9, 12)


@pytest.fixture
def benchmark_(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Found as where it is run from, beside the scripts that it imports."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks" / "utility"))
    return importlib.import_module("vocabulary_size")


def one_word(scores: list[float], target: int, vocabulary: int) -> dict[str, Any]:
    """The slow reference: a word, from what the page says is measured."""
    whole = sum(math.exp(score) for score in scores)
    order = sorted(range(SPECIALS, vocabulary), key=lambda word: (-scores[word], word))
    event = [target] if SPECIALS <= target < SIZES[0] else [OOV, *range(SIZES[0], vocabulary)]
    return {
        "first": target == order[0],
        "shown": target in order[:3],
        "band": next((band for band, size in enumerate(SIZES) if SPECIALS <= target < size), None),
        "nats": -math.log(sum(math.exp(scores[word]) for word in event) / whole),
    }


@pytest.mark.parametrize("vocabulary", SIZES)
def test_words_are_judged_as_one_by_one(benchmark_: ModuleType, vocabulary: int) -> None:
    draw = np.random.default_rng(vocabulary)
    targets = draw.integers(0, SIZES[-1], 300).astype(np.int32)  # padding and ends among them, which nobody types
    scores = draw.integers(-2, 3, (300, vocabulary)).astype(np.float32)  # many are equal
    found = benchmark_.judged(*benchmark_.seen(scores, targets, SIZES[0], np), targets, SIZES)
    typed = [int(target) for target in targets if target >= OOV]
    rows = [row for row, target in zip(scores.tolist(), targets, strict=True) if target >= OOV]
    slow = [one_word(row, target, vocabulary) for row, target in zip(rows, typed, strict=True)]
    assert (found.words, found.first) == (len(slow), sum(each["first"] for each in slow))
    assert found.shown == sum(each["shown"] for each in slow)
    assert found.bands == tuple(sum(each["first"] and each["band"] == band for each in slow) for band in range(3))
    assert found.asked == tuple(sum(each["band"] == band for each in slow) for band in range(3))
    assert found.nats == pytest.approx(sum(each["nats"] for each in slow), rel=1e-6)


@pytest.mark.nightly
def test_the_smoke_works(tmp_path: Path) -> None:
    """Caches of made-up text, a round or two of each size, and the tables of what came of it."""
    words = [f"{first}{second}" for first in "bcdfghjklmnpqrstvwxz" for second in ("a", "e", "i", "o", "u")]
    draw = np.random.default_rng(0)
    shares = 1 / np.arange(1, len(words) + 1)

    def rows(clients: int) -> list[dict[str, str]]:
        chosen = draw.choice(words, (clients, 12, 8), p=shares / shares.sum())
        return [
            {"client_id": f"client {client}", "text": " ".join(sentence)}
            for client, sentences in enumerate(chosen)
            for sentence in sentences
        ]

    listed = tmp_path / "words.txt"
    listed.write_text("\n".join(words), encoding="utf-8")
    texts = tmp_path / "texts.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": [row["text"] for row in rows(2000)]}), texts)
    private, sizes = rows(200), (20, 40, 60)
    for size in sizes:
        choice = VocabularyChoice(word_list=listed)
        tacit.import_data(private, tmp_path / f"private{size}", vocabulary=choice, vocabulary_size=size)
        made = VocabularyChoice(file=tmp_path / f"private{size}" / "vocabulary.json")
        tacit.import_data(f"public:{texts}", tmp_path / f"public{size}", vocabulary=made)
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "utility" / "vocabulary_size.py"), "--smoke"]
    command += ["--cache", str(tmp_path / "private{}"), "--public", str(tmp_path / "public{}")]
    command += ["--runs", str(tmp_path / "runs"), "--sizes", *map(str, sizes)]
    for more in ([], ["--table"], ["--typist"]):
        done = subprocess.run([*command, *more], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        if not more:
            figures = {row["figure"]: row for row in map(json.loads, done.stdout.splitlines())}
            assert {"quiet-20-1", "noise-60-2", "tune-quiet-6", "public-40"} <= figures.keys()
    assert "sqrt(parameters)" in subprocess.run([*command, "--table"], capture_output=True, text=True).stdout
