"""The ladder of next-word models on a tiny population: measured once, continued, and its intervals."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import REPOSITORY
from tests.support.training.tiny import WORDS, tiny_cache

import tacit
from tacit.data import Cache, TextsOf, VocabularyChoice

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(REPOSITORY / "benchmarks" / "utility"))  # as where it is run
    SCRIPT = runpy.run_path(str(REPOSITORY / "benchmarks" / "utility" / "next_word.py"))


def public_cache(folder: Path, vocabulary: str) -> Cache:
    """Public text of the tiny population's words: long sentences by Zipf's law."""
    draw, shares = np.random.default_rng(4), 1 / np.arange(1, len(WORDS) + 1)
    lines = [" ".join(draw.choice(WORDS, 9, p=shares / shares.sum()).tolist()) for _ in range(600)]
    (folder / "vocabulary.json").write_text(vocabulary)
    texts = TextsOf({f"text {n}": lines[50 * n : 50 * n + 50] for n in range(12)}, description="public text of a test")
    return tacit.import_data(texts, folder / "public", vocabulary=VocabularyChoice(file=folder / "vocabulary.json"))


def test_it_measures_what_is_missing_and_prints_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tiny_cache(tmp_path / "cache")
    public = public_cache(tmp_path, cache.vocabulary_json)
    ngrams = [str(tacit.ngram(public, tmp_path / "pb").folder)]
    few = tiny_cache(tmp_path / "cache of few", {"train": 2, "validation": 1})
    ngrams.append(str(tacit.ngram(few, tmp_path / "few", declared_public=True).folder))
    asked = ["--cache", str(cache.path), "--ngrams", *ngrams, "--public", str(public.path)]
    asked += ["--runs", str(tmp_path / "runs")]
    monkeypatch.setattr(sys, "argv", ["next_word.py", *asked, "--epsilons", "4", "--seeds", "2"])
    SCRIPT["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 5 and lines[2].startswith("| public n-gram, tuned | 1 |")
    assert lines[4].startswith("| n-gram bent, counts of epsilon 4 | 2 |") and " to " in lines[4]
    for seed in (1, 2):
        stated = json.loads((tmp_path / "runs" / f"mixture-4-None-{seed}" / "promise.json").read_text())
        assert stated["epsilon"] == pytest.approx(4.0, rel=1e-6) and stated["delta"] == 1e-5
        assert tacit.verify(tmp_path / "runs" / f"counts-4-{seed}").holds
    before = {path: path.read_bytes() for path in (tmp_path / "runs").glob("*.json")}
    gone = next(iter(before))
    gone.unlink()
    SCRIPT["main"]()
    assert {path: path.read_bytes() for path in (tmp_path / "runs").glob("*.json")} == before
    assert capsys.readouterr().out.splitlines() == lines


def test_intervals_are_of_the_difference_over_the_same_clients() -> None:
    """Clients differ far more than the models do, so that only a paired interval finds the difference."""
    random = np.random.default_rng(0)
    words = random.integers(20, 200, 400).astype(float)
    base = np.column_stack(
        [words, *(random.binomial(words.astype(int), random.uniform(0, 0.5, 400)) for _ in range(3))]
    )
    better = base.copy()
    better[:, 1:] += 0.01 * words[:, None]
    for mean, low, high in SCRIPT["intervals"](better, base):
        assert mean == pytest.approx(0.01) and low == pytest.approx(0.01) and high == pytest.approx(0.01)
    noisy = better.copy()
    noisy[:, 1:] += random.normal(0, 2, (400, 3))
    for mean, low, high in SCRIPT["intervals"](noisy, base):
        spread = 2 * 1.96 * 2 / np.sqrt(400) / words.mean()
        assert low < 0.01 < high and high - low == pytest.approx(spread, rel=0.15) and low < mean < high
