"""A recipe of a mixture survives TOML, divides one budget, and refuses each bad value with its name and a way out."""

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY
from tests.support.jobs.mixture_runs import SUMS, TRAINING, Parts, recipe_of, values, with_rounds

from tacit.errors import RecipeError
from tacit.privacy import gaussian
from tacit.recipe import Recipe
from tacit.recipe.mixture import MixtureRecipe, is_mixture

PARTS = Parts(Path("public"), Path("typed"), Path("pb"), Path("net"))


def refusal(given: dict[str, Any]) -> str:
    with pytest.raises(RecipeError) as refused:
        recipe_of(given)
    return str(refused.value)


@pytest.mark.parametrize("given", [values(PARTS), with_rounds(PARTS), values(PARTS, run=None, evaluation=None)])
def test_a_recipe_survives_toml(given: dict[str, Any], tmp_path: Path) -> None:
    recipe = recipe_of(given)
    assert MixtureRecipe.from_toml(recipe.to_toml()) == recipe
    (tmp_path / "r.toml").write_text(recipe.to_toml(), encoding="utf-8")
    assert MixtureRecipe.load(tmp_path / "r.toml") == recipe == MixtureRecipe.from_argument(recipe)
    assert is_mixture(tmp_path / "r.toml") and not is_mixture(tmp_path / "none") and not is_mixture(tmp_path)
    with pytest.raises(RecipeError, match=r"has \[mixture\]: it makes counts and a network one model"):
        Recipe.load(tmp_path / "r.toml")


def test_counts_and_rounds_together_cost_what_was_asked() -> None:
    recipe = recipe_of(with_rounds(PARTS, mixture={"counts_share": 0.3}))
    rounds = recipe.rounds(96)
    assert rounds is not None and rounds.model.init == PARTS.network and rounds.privacy.delta == 1e-5
    whole = gaussian.zcdp_for_epsilon(8.0, 1e-5)
    assert recipe.counts_rho(96) == pytest.approx(0.3 * whole, rel=1e-8)
    assert recipe.counts_rho(96) + rounds.guarantee().zcdp == pytest.approx(whole, rel=1e-8)
    assert recipe.counts_rho(96) + rounds.guarantee().zcdp <= whole
    assert recipe_of(values(PARTS)).rounds(96) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (values(PARTS, mixture={"sums": []}), "neither is given; give one"),
        (values(PARTS, mixture={"cells": "cells.txt"}), "both are given; give one"),
        (values(PARTS, mixture={"sums": ["words"]}), "mixture.sums: 'words' is no sum; write"),
        (values(PARTS, mixture={"sums": [SUMS[1]]}), "lack word_counts, by which words are bent; add"),
        (values(PARTS, mixture={"sums": [SUMS[0], SUMS[0]]}), "summed twice, at twice the noise; sum each once"),
        (values(PARTS, mixture={"sums": ["word_counts:64 norm -1"]}), "mixture.sums: "),
        (values(PARTS, mixture={"ngram": ["pb", "pb"]}), "names a model twice; name each once"),
        (values(PARTS, mixture={"ngram": 3}), "mixture.ngram = 3"),
        (values(PARTS, mixture={"public": None}), "the key 'mixture.public' is missing; give it"),
        (values(PARTS, mixture={"publik": "x"}), "'mixture.publik' is unknown; did you mean mixture.public?"),
        (values(PARTS, mixture={"weight": 0}), "mixture.weight = 0"),
        (values(PARTS, mixture={"weight": 1.5}), "mixture.weight = 1.5"),
        (values(PARTS, mixture={"weight": 0.5, "network": None}), "mixture.weight=0.5 is a network's"),
        (values(PARTS, mixture={"counts_share": 0.0}), "mixture.counts_share = 0.0"),
        (values(PARTS, mixture={"counts_share": 0.5}), "leaves the rest to rounds, and there are none; add [training]"),
        (with_rounds(PARTS, mixture={"counts_share": 1.0}), "leaves nothing to the rounds of [training]; give 0.5"),
        (with_rounds(PARTS, mixture={"network": None}), "begin from a network of public text, and none is named"),
        (values(PARTS, privacy={"epsilon": None}), "neither is given; give one"),
        (values(PARTS, privacy={"zcdp": 0.1}), "both are given; give one"),
        (values(PARTS, privacy={"epsilon": -1.0}), "privacy.epsilon = -1.0"),
        (values(PARTS, privacy={"delta": 1.0}), "privacy.delta = 1.0"),
        (values(PARTS, evaluation={"test_clients": 1}), "evaluation.test_clients = 1"),
        (values(PARTS, evaluation={"sentences": 0}), "evaluation.sentences = 0"),
        (values(PARTS, run={"seed": -1}), "run.seed = -1"),
        (values(PARTS, training={"privacy": {"epsilon": 1.0}}, mixture={"counts_share": 0.5}), "training.privacy.eps"),
        (values(PARTS, training={"data": {}}, mixture={"counts_share": 0.5}), "training.data follows from"),
        (values(PARTS, training={"deployment": {}}, mixture={"counts_share": 0.5}), "training.deployment follows"),
        (
            values(PARTS, training={**TRAINING, "model": {"init": "other"}}, mixture={"counts_share": 0.5}),
            "training.model.init follows from the mixture's own sections",
        ),
        (values(PARTS, training={**TRAINING, "model": 3}, mixture={"counts_share": 0.5}), "write [training.privacy]"),
        (
            values(PARTS, training={**TRAINING, "rounds": {"rounds": 0}}, mixture={"counts_share": 0.5}),
            "recipe, [training]: rounds.rounds = 0",
        ),
    ],
)
def test_a_bad_value_is_refused_with_a_way_out(given: dict[str, Any], message: str) -> None:
    assert message in refusal(given)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there is no recipe"):
        MixtureRecipe.load(str(tmp_path / "none"))
    with pytest.raises(RecipeError, match="is a folder; give a recipe"):
        MixtureRecipe.load(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(RecipeError, match="is not UTF-8"):
        MixtureRecipe.load(tmp_path / "bytes")
    with pytest.raises(RecipeError, match="is not TOML"):
        MixtureRecipe.from_toml("name = ")


def test_the_page_names_every_key_with_its_default() -> None:
    page = (REPOSITORY / "docs" / "mixture.md").read_text(encoding="utf-8")
    for section, kind in MixtureRecipe.model_fields.items():
        if section in ("mixture", "privacy", "evaluation"):
            keys = kind.annotation.model_fields  # type: ignore[union-attr]
            for key in keys:
                assert f"| `{section}.{key}` |" in page, f"docs/mixture.md does not tell {section}.{key} of a mixture"
