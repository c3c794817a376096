"""The papers' figures, drawn anew: their orders, at every point."""

import csv
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import REPOSITORY

from tacit.design.losses import losses
from tacit.design.toeplitz import design_lambda_cgd
from tacit.privacy import Tree
from tacit.reports.figure import Figure, Line

pytestmark = pytest.mark.drawn


@pytest.fixture(scope="module", autouse=True)
def benchmarks() -> Iterator[None]:
    """The scripts there find each other, as where one of them is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "benchmarks" / "papers"))
        yield


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    return importlib.import_module("paper_figures")


def test_the_quick_figures_of_the_papers(figures: ModuleType, tmp_path: Path) -> None:
    figures.write(tmp_path, ["blt-figure-9"], None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"blt-figure-9.{kind}" for kind in ("csv", "png", "svg")
    ]
    with (tmp_path / "blt-figure-9.csv").open() as file:
        rows = list(csv.DictReader(file))
    cost = {(row["panel"][:8], row["curve"].split(",")[0], row["x"]): float(row["y"]) for row in rows}
    for (panel, curve, rounds), zcdp in cost.items():
        assert curve == "tree" or zcdp < cost[panel, "tree", rounds]  # the paper's order, at every number of rounds


def test_a_wrong_guess_is_judged_by_the_right_design() -> None:
    """By hand for a mechanism with one number, and for one that has none to guess."""
    wrong_guesses = importlib.import_module("wrong_guesses")
    for wrong in wrong_guesses.guesses(shrunk=20):
        for row in wrong_guesses.rows(wrong, "lambda-cgd", "rms"):
            served = wrong.came[row.came]
            right, guessed = (losses(design_lambda_cgd(at, objective="rms"), served) for at in (served, wrong.guess))
            assert (row.right, row.loss) == (right.rms_loss, guessed.rms_loss)
            assert row.exact and row.loss >= row.right * (1 - 1e-9)
        for row in wrong_guesses.rows(wrong, "tree-variance-reduced", "max"):
            assert row.ratio == 1 and row.loss == losses(Tree(variance_reduced=True), wrong.came[row.came]).max_loss


def test_a_matrix_says_nothing_beyond_its_rounds() -> None:
    wrong_guesses = importlib.import_module("wrong_guesses")
    rounds = next(wrong for wrong in wrong_guesses.guesses(shrunk=20) if wrong.what.startswith("rounds"))
    found = {row.came: row.ratio for row in wrong_guesses.rows(rounds, "banded", "rms")}
    assert found[50] >= 1 and found[80] >= 1 and found[125] is None and found[200] is None


@pytest.mark.nightly
def test_the_papers_sentences_hold_but_for_three_that_the_page_names() -> None:
    """All but the stopwatch's."""
    claims = importlib.import_module("paper_claims")
    found = [claim for part in claims.PARTS[1:] for claim in part()]
    assert {claim.paper for claim in found if not claim.agrees} == {
        "pt-PT BLT-3.12 is more private than TreeAgg-7 across the training",  # with the noise multiplier printed
        "BandMF-4.523's noise multiplier gives about the rmse of TreeAgg-7",
        "es-ES BLT-7.379's noise multiplier gives a guarantee similar to BandMF-1.411's",
    }
    assert len(found) == 18


@pytest.mark.nightly  # two minutes
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
