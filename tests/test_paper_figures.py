"""The papers' figures, drawn anew: their orders, at every point."""

import csv
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import REPOSITORY

from tacit.reports.figure import Figure, Line

pytestmark = pytest.mark.drawn


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    """benchmarks/paper_figures.py, which is no package."""
    spec = importlib.util.spec_from_file_location("paper_figures", REPOSITORY / "benchmarks" / "paper_figures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["paper_figures"] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_quick_figures_of_the_papers(figures: ModuleType, tmp_path: Path) -> None:
    figures.write(tmp_path, ["blt-figure-9"], None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"blt-figure-9.{kind}" for kind in ("csv", "png", "svg")
    ]
    with (tmp_path / "blt-figure-9.csv").open() as file:
        rows = list(csv.DictReader(file))
    price = {(row["panel"][:8], row["curve"].split(",")[0], row["x"]): float(row["y"]) for row in rows}
    for (panel, curve, rounds), zcdp in price.items():
        assert curve == "tree" or zcdp < price[panel, "tree", rounds]  # the paper's order, at every number of rounds


@pytest.mark.long
def test_every_figure_keeps_the_papers_orders(figures: ModuleType) -> None:
    """And each family computes as many curves as it says."""
    for name, (build, expected) in figures.builders().items():
        told: list[str] = []
        found = list(build(told.append))
        assert len(told) == expected, name
        assert all(line.startswith(name) for line in told)
        for figure in found:
            if figure.name.startswith("gboard-figure-4"):
                _check_gboard(figure)


def _check_gboard(figure: Figure) -> None:
    curves = {mark.label: mark.y for mark in figure.panels[0].marks if isinstance(mark, Line)}
    for rounds in (500, 1000, 2000, 4000):
        tree, blt = curves[f"tree, {rounds} rounds"], curves[f"BLT, {rounds} rounds"]
        assert all(ours < theirs for ours, theirs in zip(blt, tree, strict=True))
        assert tree[-1] < tree[0] / 10  # a larger report goal, or a larger MinS, is far more private
    for fewer, more in ((500, 1000), (1000, 2000), (2000, 4000)):
        pairs = zip(curves[f"tree, {fewer} rounds"], curves[f"tree, {more} rounds"], strict=True)
        assert all(short <= long for short, long in pairs)
