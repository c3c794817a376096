"""Recipes that come with the package: found by name, in a clone and in a wheel; a file of the user's comes first."""

import re
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY

from tacit.errors import RecipeError
from tacit.recipe import Recipe
from tacit.recipe.shipped_recipes import shipped


def test_every_shipped_recipe_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(shipped()) >= 6
    for name in shipped():
        for path in (name, f"{name}.toml", f"recipes/{name}.toml"):
            assert Recipe.load(Path(path)).name == name


def test_a_file_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = shipped()["own-data"].replace('name = "own-data"', 'name = "mine"')
    Path("own-data.toml").write_text(text, encoding="utf-8")
    assert Recipe.load(Path("own-data.toml")).name == "mine"


@pytest.mark.parametrize("path", ["own-dta", "elsewhere/own-data.toml", "own-data.json"])
def test_another_name_is_told_which_there_are(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match=rf"no recipe '{re.escape(path)}'.*shipped.*docstrings-private, own-data"):
        Recipe.load(Path(path))


def test_the_private_ones_promise_what_is_usual_and_each_has_its_baseline() -> None:
    for name in shipped():
        recipe = Recipe.load(Path(name))
        if name.endswith("-nonprivate"):
            assert recipe.privacy.mechanism is None
        else:
            assert recipe.privacy.epsilon is not None and recipe.privacy.epsilon <= 8
            without = Recipe.load(Path(f"{name.removesuffix('-private')}-nonprivate"))
            assert {each.split(" ")[0].split(".")[0] for each in recipe.differences(without)} == {"name", "privacy"}


def test_a_clone_has_them_in_a_folder_and_the_page_in_a_table() -> None:
    files = sorted(path.stem for path in (REPOSITORY / "recipes").glob("*.toml"))
    page = (REPOSITORY / "docs" / "recipes.md").read_text(encoding="utf-8")
    assert (
        files == list(shipped()) == sorted(re.findall(r"^\| \[([\w-]+)\]\(\.\./recipes/\1\.toml\)", page, re.MULTILINE))
    )
