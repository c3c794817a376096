"""Where folders are put that somebody names: by a link, to a folder that is empty or not there yet, or by `.`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.made_runs import training_metadata
from tests.support.training.tiny import tiny_cache

from tacit.folders import place_of
from tacit.runs import Run
from tacit.runs.budget import PopulationBudget
from tacit.secure_aggregation.one_message.decryptor import make_decryptor

MADE: dict[str, Callable[[Path], object]] = {
    "a cache": lambda path: tiny_cache(path, {"train": 1}),
    "a run": lambda path: Run.create(path, 'name = "tiny"\n', training_metadata(population=40), bytes(16)).close(),
    "a decryptor": make_decryptor,
}


@pytest.mark.parametrize("there", [True, False], ids=["empty", "not there"])
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_a_link_leads_to_is_filled_and_the_link_stays(
    make: Callable[[Path], object], there: bool, tmp_path: Path
) -> None:
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    if there:
        target.mkdir(parents=True)
    link.symlink_to(target)
    make(link)
    assert link.is_symlink() and list(target.iterdir()) and sorted(os.listdir(tmp_path)) == ["elsewhere", "link"]
    assert os.listdir(target.parent) == ["target"], "no draft is left"


def test_of_a_budget_too(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    PopulationBudget.create(tmp_path / "link", clients="all", zcdp=1.0)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").is_dir()


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_the_folder_one_stands_in_may_become_it(
    make: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    make(Path())
    assert list(place.iterdir())


def test_a_link_to_itself_is_no_folder_and_no_traceback(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    assert place_of(link).is_symlink()
    with pytest.raises(OSError, match=r"\[Errno"):
        make_decryptor(link)
