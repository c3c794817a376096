"""Rows are remembered once, and the tables that follow from them stand in pages as they are made anew."""

import importlib
import json
import statistics
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import REPOSITORY

SHARES = st.floats(0, 1, allow_subnormal=False)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Found as where it is run from, with a folder of its own."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks" / "utility"))
    module = importlib.import_module("remembered_rows")
    monkeypatch.setattr(module, "REMEMBERED", tmp_path)
    return module


def test_a_row_is_remembered_once_and_not_otherwise(rows: ModuleType, tmp_path: Path) -> None:
    for _ in range(2):
        rows.remember_row("some.jsonl", "chat", "public", 1, {"top1": 0.12345678, "less": (0.1, 0.05, 0.2)})
    (line,) = (tmp_path / "some.jsonl").read_text().splitlines()
    facts = {"top1": 0.123457, "less": [0.1, 0.05, 0.2]}
    assert json.loads(line) == {"experiment": "chat", "arm": "public", "seed": 1, "facts": facts}
    with pytest.raises(ValueError, match="delete its line"):
        rows.remember_row("some.jsonl", "chat", "public", 1, {"top1": 0.13})
    rows.remember_row("some.jsonl", "blogs", "public", 1, {"top1": 0.13})
    assert [row.experiment for row in rows.remembered_rows(tmp_path / "some.jsonl", "blogs")] == ["blogs"]


def test_a_table_has_a_line_an_arm(rows: ModuleType) -> None:
    for seed, top1, nats in ((1, 0.183, 4.7), (2, 0.185, 4.71)):
        rows.remember_row("some.jsonl", "chat", "network", seed, {"top1": top1, "nats": nats})
    rows.remember_row("some.jsonl", "chat", "network", None, {"top1_less": [0.0046, -0.001, 0.0067]})
    rows.remember_row("some.jsonl", "chat", "public", 1, {"top1": 0.17, "said": "one text"})
    shown = rows.made("by_arm some.jsonl chat top1 nats 'less public: top-1, points=top1_less' said")
    assert shown.splitlines() == [
        "|  | seeds | top-1, % | nats | less public: top-1, points | said |",
        "|---|--:|--:|--:|--:|--:|",
        "| network | 2 | 18.40 ± 0.14 | 4.705 ± 0.007 | +0.46 (-0.10 to +0.67) |  |",
        "| public | 1 | 17.00 |  |  | one text |",
    ]
    assert rows.made("by_arm some.jsonl chat top1 'only:pub*'").splitlines()[2:] == ["| public | 1 | 17.00 |"]


@given(values=st.lists(SHARES, min_size=2, max_size=6, unique=True))
def test_a_level_is_mean_and_deviation(values: list[float]) -> None:
    from benchmarks.utility.remembered_rows import level

    middle, deviation = map(float, level("top1", values).split(" ± "))
    assert middle == pytest.approx(100 * statistics.mean(values), abs=0.0051)
    assert deviation == pytest.approx(100 * statistics.stdev(values), abs=0.0051)


def test_a_page_is_made_anew_between_its_comments(rows: ModuleType, tmp_path: Path) -> None:
    rows.remember_row("some.jsonl", "chat", "public", 1, {"top1": 0.17})
    mark = "<!-- remembered: by_arm some.jsonl chat top1 -->"
    page = f"Before.\n\n{mark}\nold | figures\n<!-- end -->\n\n| a | table |\n|---|---|\n"
    made = rows.rendered(page)
    assert "| public | 1 | 17.00 |" in made and "old" not in made
    assert made.startswith(f"Before.\n\n{mark}\n") and made.endswith("| a | table |\n|---|---|\n")
    assert rows.rendered(made) == made
    assert list(rows.asked_in(made)) == ["by_arm some.jsonl chat top1"]


def test_a_function_of_another_benchmark_is_found(rows: ModuleType) -> None:
    assert rows.function_of("cells.spread").__module__ == "cells"
