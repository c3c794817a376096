"""What the experiments share: intervals over seeds, recipes from sections, and which folders count as finished."""

import signal
from pathlib import Path

import pytest
from benchmarks.utility.cells import (
    Ended,
    Played,
    cell,
    chosen,
    finished,
    paired,
    play,
    read,
    remember,
    remembered,
    small,
    spread,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.support.made_runs import training_metadata

from tacit.runs import Run

SECTIONS = {
    "rounds": {"rounds": 4, "report_goal": 2, "min_separation": 2},
    "privacy": {"mechanism": {"name": "tree"}, "noise_multiplier": 1.0},
}


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=8).filter(lambda values: max(values) - min(values) > 1e-3))
def test_a_spread_has_students_interval(values: list[float]) -> None:
    found = spread(values)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=found.mean, scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


def test_pairs_forget_what_they_share() -> None:
    shared = [10.0, 20.0, 35.0]
    apart = paired(shared, [value + 1 for value in shared])
    assert (apart.mean, apart.deviation) == (1.0, 0.0)
    with pytest.raises(ValueError, match="zip"):
        paired([1.0, 2.0], [1.0])


def test_sections_of_an_experiment_go_before_the_small_ones() -> None:
    merged = small({"client": {"learning_rate": 0.25}, **SECTIONS})
    made = cell("one", merged, cache=Path("nowhere"), seed=3).recipe
    assert (made.client.learning_rate, made.client.batch_size, made.privacy.clip_norm) == (0.25, 16, 0.5)
    assert (made.run.seed, made.data.cache, made.name) == (3, Path("nowhere"), "one")


def test_cells_are_chosen_by_name() -> None:
    cells = [cell(name, SECTIONS, cache=Path("nowhere"), seed=1) for name in ("tree-1", "tree-2", "blt-1")]
    assert [each.name for each in chosen(cells, ["tree-*"])] == ["tree-1", "tree-2"]


def test_a_folder_of_another_recipe_is_not_taken_for_a_cell(tmp_path: Path) -> None:
    asked = cell("one", SECTIONS, cache=Path("nowhere"), seed=1)
    assert not finished(asked, tmp_path)
    recipe = asked.recipe.to_toml()
    with Run.create(tmp_path / "one", recipe, training_metadata(asked=recipe, recipe=recipe), bytes(16)) as run:
        run.finish()
    assert finished(asked, tmp_path)
    assert read([asked], tmp_path)["one"].folder == tmp_path / "one"
    with pytest.raises(SystemExit, match=r"run\.seed is 1, not 2"):
        finished(cell("one", SECTIONS, cache=Path("nowhere"), seed=2), tmp_path)


def test_what_cells_came_to_is_remembered_without_their_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [cell(name, SECTIONS, cache=Path("caches/some"), seed=1) for name in ("tree-1", "tree-2")]
    curves = {"test_accuracy": {2: 0.1, 4: 0.123456789}, "validation_accuracy": {4: 0.2}, "test_other": {4: 1.0}}
    played = Played(curves, 12.34, tmp_path, training_metadata(), ())
    file = tmp_path / "kept" / "cells.jsonl"
    for _ in range(2):  # a second time adds nothing
        remember(cells, {"tree-1": played}, file, ["accuracy"])
    assert len(file.read_text().splitlines()) == 1
    found = remembered(cells, file)
    assert found == {"tree-1": Ended({"test_accuracy": {2: 0.1, 4: 0.123457}, "validation_accuracy": {4: 0.2}}, 12.3)}
    assert found["tree-1"].last("test_accuracy") == 0.123457
    elsewhere = [cell("tree-1", SECTIONS, cache=Path("/other/some"), seed=1)]
    assert remembered(elsewhere, file) == found, "where a cache lies changes no result"
    assert capsys.readouterr().err == ""
    assert remembered([cell("tree-1", SECTIONS, cache=Path("caches/some"), seed=2)], file) == {}
    assert "1 cells" in capsys.readouterr().err


def test_a_cell_that_fails_is_named(tmp_path: Path) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match="failed: one"):
        play([cell("one", SECTIONS, cache=tmp_path / "no-cache", seed=1)], tmp_path / "runs")
    assert signal.getsignal(signal.SIGTERM) is handler
    assert "no-cache" in (tmp_path / "runs" / "one.log").read_text()
