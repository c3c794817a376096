"""Pairs of trainings over seeds and clients: against Student's t where one of both does not vary, and by simulation."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.conftest import REPOSITORY

CLIENTS = 30


@pytest.fixture(scope="module")
def pairs() -> ModuleType:
    """Found as where it is run from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "benchmarks" / "utility"))
        return importlib.import_module("crossed_pairs")


def run_of(folder: Path, right: list[float], words: list[float]) -> Path:
    """What a finished run says of its test clients."""
    sums = {"model": {"top1_accuracy": right, "cross_entropy": [5.0 * each for each in words]}}
    (folder / "simulation").mkdir(parents=True)
    tested = {"tested": {"predicted": words, "sums": sums}}
    (folder / "simulation" / "record.json").write_text(json.dumps(tested), encoding="utf-8")
    return folder


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=8).filter(lambda values: max(values) - min(values) > 0.2))
def test_where_clients_are_alike_p_is_students_over_seeds(pairs: ModuleType, values: list[float]) -> None:
    words = np.linspace(5, 20, CLIENTS)
    found = pairs.crossed(np.outer(values, words), words)
    assert found.value == pytest.approx(np.mean(values), abs=1e-12)
    assert found.p_value == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue, abs=1e-6)
    assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0) or abs(found.p_value - 0.05) < 1e-6


def test_chance_alone_is_rarely_told_where_clients_differ_too(pairs: ModuleType) -> None:
    """Of 400 tables with nothing in them 5% at most have a p below it; over seeds alone most would."""
    random = np.random.default_rng(1)
    drawn = [random.normal(0, 0.02, (6, 1)) + random.normal(0, 1, CLIENTS) for _ in range(400)]
    told = np.mean([pairs.crossed(table, np.ones(CLIENTS)).p_value < 0.05 for table in drawn])
    assert told < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    assert np.mean([stats.ttest_1samp(table.mean(axis=1), 0.0).pvalue < 0.05 for table in drawn]) > 0.7


def test_runs_are_compared_seed_by_seed_on_the_same_words(pairs: ModuleType, tmp_path: Path) -> None:
    words = [10.0, 30.0]
    these = [run_of(tmp_path / f"a{seed}", [2.0 + seed, 6.0 + seed], words) for seed in range(3)]
    those = [run_of(tmp_path / f"b{seed}", [1.0 + seed, 5.0], words) for seed in range(3)]
    found = pairs.apart(these, those, "top1")
    assert found.value == pytest.approx((2 + 3 + 4) / 3 / 40)
    assert found.low < found.value < found.high
    other = run_of(tmp_path / "other", [1.0, 5.0], [10.0, 31.0])
    with pytest.raises(ValueError, match=r"other' was judged by other words"):
        pairs.apart(these, [*those[:2], other], "top1")
    with pytest.raises(ValueError, match="2 seeds say nothing of other seeds"):
        pairs.apart(these[:2], those[:2], "top1")
    assert pairs.apart(these, these, "nats") == (0.0, 0.0, 0.0, 1.0), "the same twice is told apart by nothing"


def test_a_table_has_holms_p_values_for_all_that_it_compares(
    pairs: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("remembered_rows"), "REMEMBERED", tmp_path)
    for name, p_value in (("a - b", 0.01), ("a - c", 0.3)):
        facts = {"seeds": 8, "top1": [0.002, 0.001, 0.003], "p_top1": p_value, "nats": [-0.02, -0.03, 0.01]}
        pairs.remember_row("some.jsonl", "pairs", name, None, {**facts, "p_nats": 0.2})
    assert pairs.table(tmp_path / "some.jsonl", "pairs").splitlines() == [
        "|  | seeds | top-1, points | p among 4 | nats | p among 4 |",
        "|---|--:|--:|--:|--:|--:|",
        "| a - b | 8 | +0.20 (+0.10 to +0.30) | 0.0400 | -0.020 (-0.030 to +0.010) | 0.6000 |",
        "| a - c | 8 | +0.20 (+0.10 to +0.30) | 0.6000 | -0.020 (-0.030 to +0.010) | 0.6000 |",
    ]
