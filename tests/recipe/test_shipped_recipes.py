"""Recipes that come with the package: found by name, in a clone and in a wheel; a file of the user's comes first."""

import json
import re
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from typer.testing import CliRunner

import tacit
from tacit.cli.recipe import app
from tacit.errors import CacheError, InputError, RecipeError
from tacit.jobs.shipped_recipes import shipped_recipe
from tacit.recipe import Recipe
from tacit.recipe.shipped_recipes import caches, shipped


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


def test_a_file_may_begin_with_an_editors_mark_and_a_folder_is_none(tmp_path: Path) -> None:
    marked = tmp_path / "marked.toml"
    marked.write_text(shipped()["own-data"], encoding="utf-8-sig")
    assert Recipe.load(marked) == Recipe.load(Path("own-data"))
    with pytest.raises(RecipeError, match="is a folder; give a recipe"):
        Recipe.load(tmp_path)


@pytest.mark.parametrize("path", ["own-dta", "elsewhere/own-data.toml", "own-data.json"])
def test_another_name_is_told_which_there_are(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        RecipeError, match=rf"no recipe '{re.escape(path)}'.*shipped.*chat-private, chat-secure, own-data"
    ):
        Recipe.load(Path(path))


def test_the_private_ones_promise_what_is_usual_and_each_has_its_baseline() -> None:
    for name in shipped():
        recipe = Recipe.load(Path(name))
        if name.endswith("-nonprivate"):
            assert recipe.privacy.mechanism is None
        else:
            assert recipe.privacy.epsilon is not None and recipe.privacy.epsilon <= 8
            if recipe.deployment is not None:  # real devices' own, with nothing to set it beside
                continue
            kind = name.removesuffix("-private").removesuffix("-secure")
            without = Recipe.load(Path(f"{kind}-nonprivate"))
            changed = {each.split(" ")[0].split(".")[0] for each in recipe.differences(without)}
            assert changed == {"name", "privacy", *(["aggregation"] if name.endswith("-secure") else [])}


def test_a_clone_has_them_in_a_folder_and_the_page_in_a_table() -> None:
    files = sorted(path.stem for path in (REPOSITORY / "recipes").glob("*.toml"))
    page = (REPOSITORY / "docs" / "recipes.md").read_text(encoding="utf-8")
    assert (
        files == list(shipped()) == sorted(re.findall(r"^\| \[([\w-]+)\]\(\.\./recipes/\1\.toml\)", page, re.MULTILINE))
    )


def test_each_says_beside_its_cache_what_makes_it() -> None:
    assert set(caches()) == {str(Recipe.load(Path(name)).data.cache) for name in shipped()}
    for cache, command in caches().items():
        assert command == "tacit demo" or re.fullmatch(rf"tacit data import \S+ --out {cache}", command)


@pytest.mark.parametrize("copied", [False, True])
def test_a_cache_that_is_not_made_yet_is_refused_with_what_makes_it(
    copied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in shipped():
        recipe, command = name, caches()[str(Recipe.load(Path(name)).data.cache)]
        if copied:
            recipe = f"copy-of-{name}.toml"
            assert str(shipped_recipe(name, out=recipe).path) == recipe
        served = Recipe.load(Path(name)).deployment is not None
        train = (lambda recipe: tacit.serve([recipe], "out")) if served else (lambda recipe: tacit.train(recipe, "run"))
        for job in (train, tacit.noise_forecast):
            with pytest.raises(CacheError, match=rf"there is no cache at \S+ yet; `{re.escape(command)}` makes it"):
                job(recipe)
    with pytest.raises(CacheError, match="`tacit data import SOURCE --out elsewhere` makes one"):
        tacit.train("own-data", "run", data="elsewhere")


def test_a_copy_is_written_once_and_an_edited_one_is_left_alone(tmp_path: Path) -> None:
    copy = tmp_path / "below" / "mine.toml"
    for _ in range(2):
        assert shipped_recipe("own-data", out=copy).toml == copy.read_text(encoding="utf-8") == shipped()["own-data"]
    copy.write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="says something else"):
        shipped_recipe("own-data", out=copy)
    with pytest.raises(InputError, match=r"did you mean own-data\?"):
        shipped_recipe("own-dta")


def test_the_command_prints_copies_and_lists() -> None:
    printed, listed, record = (
        CliRunner().invoke(app, words).stdout for words in (["show", "own-data"], ["list"], ["list", "--json"])
    )
    assert printed == shipped()["own-data"]
    recipes = json.loads(record)["recipes"]
    assert [each["name"] for each in recipes] == list(shipped())
    for each in recipes:
        assert each["name"] in listed and each["about"] == each["toml"].splitlines()[0][2:]
