"""A changed recipe is the one that its file would give, and `--set` reads what TOML reads."""

import copy
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from tests.support.jobs.mixture_runs import Parts, recipe_of, values, with_rounds
from tests.support.training.tiny import tiny_recipe, tiny_values

from tacit.errors import InputError, RecipeError
from tacit.jobs.changed_recipe import changed_rounds
from tacit.recipe import Recipe
from tacit.recipe.changes import parsed_changes
from tacit.recipe.shipped_recipes import shipped

CACHE = Path("caches/mine")
PARTS = Parts(Path("public"), Path("typed"), Path("pb"), Path("net"))
CHANGES: dict[str, list[Any]] = {
    "name": ["another"],
    "rounds.rounds": [7, 30],
    "rounds.report_goal": [3],
    "privacy.noise_multiplier": [0.5, 2.0],
    "privacy.mechanism": [{"name": "tree"}],
    "privacy.delta": [1e-6],
    "server.learning_rate": [0.25],
    "model.units": [32],
    "model.kind": ["gru"],
    "evaluation.baselines": [False],
    "run.seed": [8, None],
    "data.cache": ["elsewhere"],
    "population.timer_hours": [48.0],
}


def slowly(given: dict[str, Any], changes: dict[str, Any]) -> Recipe:
    """The recipe whose file has other lines."""
    found = copy.deepcopy(given)
    for key, value in changes.items():
        *sections, last = key.split(".")
        table = found
        for section in sections:
            table = table.setdefault(section, {})
        if value is None:
            del table[last]
        else:
            table[last] = value
    return Recipe.from_toml(tomli_w.dumps(found))


@given(st.lists(st.sampled_from(sorted(CHANGES)), unique=True), st.data())
def test_a_changed_recipe_is_the_one_with_other_lines(keys: list[str], data: st.DataObject) -> None:
    changes = {key: data.draw(st.sampled_from(CHANGES[key])) for key in keys}
    recipe = tiny_recipe(CACHE)
    before = recipe.to_toml()
    changed = recipe.changed(changes)
    assert changed == slowly(tiny_values(CACHE), changes)
    assert Recipe.from_toml(changed.to_toml()) == changed
    assert recipe.to_toml() == before


@pytest.mark.parametrize("name", shipped())
def test_no_change_changes_nothing(name: str) -> None:
    assert Recipe.load(name).changed({}) == Recipe.load(name)


def test_a_change_of_a_change_and_of_a_clip_norm_that_adapts() -> None:
    clipped = tiny_values(CACHE, clipping={"initial": 0.1})
    clipped["privacy"] = {"mechanism": {"name": "independent"}, "noise_multiplier": 0.3}
    recipe = Recipe.from_toml(tomli_w.dumps(clipped)).changed({"clipping.initial": 0.3})
    assert recipe.privacy.clip_norm == 0.3
    assert recipe.changed({"clipping.initial": 0.1}).privacy.clip_norm == 0.1
    assert tiny_recipe(CACHE).changed({"privacy.noise_multiplier": None, "privacy.epsilon": 2.0}).privacy.epsilon == 2.0


def test_a_mixture_is_changed_too() -> None:
    changed = recipe_of(with_rounds(PARTS)).changed({"privacy.epsilon": 2.0, "training.rounds.rounds": 4})
    rounds = changed.rounds(96)
    assert changed.privacy.epsilon == 2.0 and rounds is not None and rounds.rounds.rounds == 4
    assert recipe_of(values(PARTS)).changed({}) == recipe_of(values(PARTS))
    with pytest.raises(
        RecipeError, match=r"with mixture.weigth=0.5: the key 'mixture.weigth' is unknown; did you mean"
    ):
        recipe_of(values(PARTS)).changed({"mixture.weigth": 0.5})


BANDED = {"mechanism": {"name": "banded", "bands": 3}, "epsilon": 8.0, "delta": 1e-5}


def asked_again(said: str) -> dict[str, Any]:
    """The changes of the one command line that a refusal prints, as a shell hands them on."""
    (line,) = re.findall("`(--set .*?)`", said)
    return {
        key: value for key, (value,) in parsed_changes([each for each in shlex.split(line) if each != "--set"]).items()
    }


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"rounds.min_separation": 2}, "privacy.mechanism.bands=3 is above 2: .* bands end at rounds.min_separation=2"),
        ({"privacy.mechanism.name": "tree"}, "privacy.mechanism.bands does not belong to mechanism 'tree'"),
        ({"privacy.mechanism.name": "none"}, "privacy.mechanism.bands says something of a mechanism"),
        ({"privacy.zcdp": 0.5}, "privacy.epsilon and privacy.zcdp are given"),
    ],
)
def test_a_change_that_another_key_forbids_prints_a_command_that_works(changes: dict[str, Any], rule: str) -> None:
    recipe = tiny_recipe(CACHE, privacy=BANDED)
    with pytest.raises(RecipeError, match=rule) as refused:
        recipe.changed(changes)
    again = asked_again(str(refused.value))
    assert changes.keys() <= again.keys()
    assert recipe.changed(again) != recipe
    (first, *more), said = changes, str(refused.value)
    assert not more and said.count(f"{first}={changes[first]}:") == 1, "once, before the rule"


def test_bands_above_what_the_rounds_allow_say_how_many_may_be() -> None:
    recipe = tiny_recipe(CACHE, privacy=BANDED)
    with pytest.raises(RecipeError, match=r"bands=9 is above 3: .* give at most 3 \(--set privacy.mechanism.bands=3\)"):
        recipe.changed({"privacy.mechanism.bands": 9})
    assert recipe.changed({"privacy.mechanism.bands": 3}) == recipe
    once = {"rounds.max_participations": 1, "privacy.mechanism.bands": 9}
    assert recipe.changed(once).privacy.mechanism_name == "banded", "a client that comes once overlaps with nothing"


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"privacy.zcdp": 0.5}, "privacy.epsilon and privacy.zcdp each say the whole price"),
        ({"mixture.sums": "word_counts:100"}, "mixture.sums = 'word_counts:100' is one text, and a list of sums is"),
    ],
)
def test_so_does_a_change_of_a_recipe_of_counts(changes: dict[str, Any], rule: str) -> None:
    recipe = recipe_of(values(PARTS))
    with pytest.raises(RecipeError, match=rule) as refused:
        recipe.changed(changes)
    assert recipe.changed(asked_again(str(refused.value))) != recipe


@pytest.mark.parametrize("key", ["rounds.rounds", "training.rounds.rounds", "client.epochs", "mixture.counts_share"])
def test_a_recipe_of_counts_alone_has_no_keys_of_rounds(key: str) -> None:
    recipe = recipe_of(values(PARTS))
    with pytest.raises(RecipeError, match=f"{key} is a key of a recipe with rounds, and this one makes counts") as no:
        recipe.changed({key: 0.5})
    (line,) = re.findall("`(tacit .*?)`", str(no.value))
    words = shlex.split(line)
    assert words[:3] == ["tacit", "recipe", "new"] and words[words.index("--data") + 1] == str(recipe.data.cache)


def test_keys_of_rounds_are_below_training_where_there_are_rounds() -> None:
    recipe = recipe_of(with_rounds(PARTS))
    with pytest.raises(RecipeError, match=r"rounds\.rounds is a key of rounds, and those of a mixture are below") as no:
        recipe.changed({"rounds.rounds": 4})
    assert recipe.changed(asked_again(str(no.value))) == recipe.changed({"training.rounds.rounds": 4})


def test_a_command_for_rounds_names_the_one_that_takes_a_recipe_of_counts(tmp_path: Path) -> None:
    path = tmp_path / "counts.toml"
    path.write_text(recipe_of(values(PARTS)).to_toml(), encoding="utf-8")
    with pytest.raises(RecipeError, match=r"has \[mixture\]: .* this command takes rounds alone") as no:
        changed_rounds(path, ["privacy.epsilon=2"])
    assert f"`tacit train {path} --out RUN --set privacy.epsilon=2`" in str(no.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds.round": 5}, "'rounds.round' is unknown; did you mean rounds.rounds?"),
        ({"round.rounds": 5}, r"the key 'round' is unknown; did you mean \[rounds\]"),
        ({"rounds.rounds": "many"}, "rounds.rounds = 'many'"),
        ({"rounds.rounds": 0}, "'tiny' with rounds.rounds=0: rounds.rounds = 0"),
        ({"rounds.rounds.x": 5}, "rounds.rounds.x: 'rounds.rounds' is a value and no section"),
        ({"rounds": 5}, r"rounds = 5, but 'rounds' is a section; write \[rounds\]"),
        ({"privacy.epsilon": 2.0}, "privacy.epsilon"),
        ({"privacy.zcdp": None}, "privacy.zcdp is to be left out, and the recipe does not have it"),
        ({"rounds.rounds": None}, "the key 'rounds.rounds' is missing"),
        ({"rounds..rounds": 5}, "'rounds..rounds' is no key of a recipe; write SECTION.KEY"),
        ({"": 5}, "'' is no key"),
        ({"mixture.weight": 0.5}, "mixture"),
    ],
)
def test_a_bad_change_is_refused_by_key_and_rule(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message) as refused:
        tiny_recipe(CACHE).changed(changes)
    assert "\n" not in str(refused.value)


PLAIN = st.one_of(
    st.booleans(),
    st.integers(-(10**15), 10**15),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs", "Cc"])),
)


@given(st.lists(st.one_of(PLAIN, st.lists(PLAIN, max_size=3)), min_size=1, max_size=4))
def test_values_are_read_as_toml_reads_each(given: list[Any]) -> None:
    """However many there are, in quotes, brackets and commas."""
    written = [tomli_w.dumps({"value": each}).removeprefix("value = ").replace("\n", "") for each in given]
    expected = [tomllib.loads(f"value = {each}")["value"] for each in written]
    assert parsed_changes([f"a.b={', '.join(written)}"]) == {"a.b": expected}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=caches/mine", ["caches/mine"]),
        ("a=blt-b400,tree", ["blt-b400", "tree"]),
        ("a=1,x,2.5", [1, "x", 2.5]),
        ('a="1,2"', ["1,2"]),
        ("a=[1,2]", [[1, 2]]),
        ("a=[1,2],[3]", [[1, 2], [3]]),
        ("a={name = 'tree', restarts = [5, 7]}", [{"name": "tree", "restarts": [5, 7]}]),
        ("a=", [None]),
        ("a=1,", [1, None]),
        ("a = 5", [5]),
        ("a=b=c", ["b=c"]),
        ("a=2026-11-28", ["2026-11-28"]),
        ("a=1\nb = 2", ["1\nb = 2"]),
        ("a=don't", ["don't"]),
        ("a=" + "9" * 400, ["9" * 400]),
    ],
)
def test_what_is_no_toml_is_a_text(text: str, found: list[Any]) -> None:
    assert parsed_changes([text]) == {"a": found}


@pytest.mark.parametrize("text", ["", "rounds", "=5", "rounds.=5", ".x=5", "a b=5", "[rounds]=5"])
def test_what_sets_no_key_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"sets no key; write SECTION.KEY=VALUE"):
        parsed_changes([text])


def test_a_key_that_is_set_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"--set gives a.b twice; give it once"):
        parsed_changes(["a.b=1", "a.b=2"])
