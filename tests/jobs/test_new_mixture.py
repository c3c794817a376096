"""`recipe new` writes a mixture wherever public text is known: whole, with reasons, trainable."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.jobs.mixture_runs import Parts, opened, parts_at
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.errors import InputError
from tacit.jobs.plan.new_mixture import NewMixture, new_mixture, new_recipe_for
from tacit.jobs.plan.new_recipe import NewRecipe
from tacit.jobs.train.mixture import train_mixture
from tacit.planning.counts import sums_for
from tacit.privacy import gaussian
from tacit.recipe.mixture import MixtureRecipe

EPSILON = 20.0  # of so few clients


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return parts_at(tmp_path_factory.mktemp("parts"))


def asked(parts: Parts, **changes: Any) -> dict[str, Any]:
    given = {"epsilon": EPSILON, "public": parts.public, "ngram": parts.ngram, "init": parts.network, **changes}
    return {"data": parts.typed, **given}


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_recipe_is_whole_and_gives_a_reason_for_each_value(parts: Parts, share: float) -> None:
    made = new_mixture(**asked(parts, training_share=share))
    text = made.to_toml()
    assert MixtureRecipe.from_toml(text) == made.recipe, "the file is the recipe"
    for line in text.splitlines():
        key, _, value = line.partition(" = ")
        if value and not line.startswith(("#", "name = ")):
            assert len(value.partition(" # ")[2]) > 5, f"{key} says not why"
    rounds = made.recipe.rounds(made.proposal.clients)
    assert (rounds is not None) == (share > 0) == ("[training.rounds]" in text)
    clients = made.proposal.clients
    spent = made.recipe.counts_rho(clients) + (
        0.0 if rounds is None else rounds.designed().guarantee(rounds.matrix()).zcdp
    )
    assert spent == pytest.approx(gaussian.zcdp_for_epsilon(EPSILON, made.proposal.delta), rel=1e-6)
    wanted = sums_for(tacit.open_data(parts.public), clients=clients, rho=made.recipe.counts_rho(clients))
    assert made.recipe.mixture.parsed_sums() == wanted


def test_nothing_that_clients_typed_goes_in(parts: Parts, tmp_path: Path) -> None:
    """Other sentences of as many clients: the same recipe to the last character, but for the name of its cache."""
    same = tacit.data.VocabularyChoice(file=opened(parts).vocabulary_path)
    typed = {f"client {n}": ["ak ak ak bk"] * (1 + n % 3) for n in range(120)}
    texts = tacit.data.TextsOf(typed, description="clients of a test")
    other = tacit.import_data(texts, tmp_path / "typed", vocabulary=same)
    one, another = (new_mixture(**asked(parts, data=each, name="one")).to_toml() for each in (parts.typed, other.path))
    assert one.replace(str(parts.typed), "") == another.replace(str(other.path), "")


def test_public_text_that_the_first_model_knows_makes_it_a_mixture(parts: Parts, tmp_path: Path) -> None:
    found = new_recipe_for(parts.typed, epsilon=EPSILON, init=parts.network)
    assert isinstance(found, NewMixture) and found.recipe.mixture.public == parts.public
    assert found.recipe.mixture.ngram == () and "counted by the run" in " ".join(str(found).split())
    alone = new_recipe_for(parts.typed, epsilon=EPSILON, init=parts.network, network_alone=True, anyway=True)
    assert isinstance(alone, NewRecipe)
    without = new_recipe_for(parts.typed, epsilon=EPSILON, anyway=True, out=tmp_path / "r.toml")
    assert isinstance(without, NewRecipe) and "with --public CACHE" in " ".join(str(without).split())


def test_the_recipe_makes_the_mixture(parts: Parts, tmp_path: Path) -> None:
    made = new_mixture(**asked(parts, ngram=None, out=tmp_path / "r.toml"))
    assert made.path == tmp_path / "r.toml" and "next: tacit train" in " ".join(str(made).split())
    done = train_mixture(tmp_path / "r.toml", tmp_path / "run", seed=1)
    assert done.arms[1]["verdict"] == "helps" and done.epsilon <= EPSILON
    assert tacit.verify(tmp_path / "run").holds
    assert "is there and says something else" in refusal(asked(parts, epsilon=8.0, out=tmp_path / "r.toml"))


def refusal(given: dict[str, Any]) -> str:
    with pytest.raises(InputError) as refused:
        new_mixture(**given)
    return str(refused.value)


def test_what_cannot_be_is_refused(parts: Parts, tmp_path: Path) -> None:
    for changes, message in (
        ({"epsilon": 0}, "epsilon=0 is no budget"),
        ({"epsilon": 0.001}, "noise would hide every word that 9"),
        ({"delta": 2.0}, "delta=2 is not between 0 and 1"),
        ({"training_share": 1.0}, "training_share=1 must be 0 (no rounds) or more and below 1"),
        ({"training_share": -0.1}, "training_share=-0.1 must be"),
        ({"training_share": 0.5, "init": None}, "rounds begin from a network of public text; "),
        ({"public": parts.typed}, "is clients', and what is chosen by it would tell of it"),
        ({"ngram": parts.network}, "is a model of the kind 'cifg'; give one of `tacit ngram`"),
        ({"init": tmp_path}, "holds no model"),
        ({"out": tmp_path}, "is no file"),
    ):
        assert message in refusal(asked(parts, **changes)), message
    with pytest.raises(InputError, match="ngram is of a mixture, and network_alone wants none"):
        new_recipe_for(parts.typed, epsilon=1.0, ngram=parts.ngram, network_alone=True)
    with pytest.raises(InputError, match="a mixture needs public text over the clients' words"):
        new_recipe_for(parts.typed, epsilon=1.0, ngram=parts.ngram)


def test_the_command_writes_it(parts: Parts, tmp_path: Path) -> None:
    args = ["recipe", "new", "--data", str(parts.typed), "--epsilon", "20", "--public", str(parts.public)]
    printed = CliRunner().invoke(app, args)
    assert printed.exit_code == 0 and MixtureRecipe.from_toml(printed.stdout).mixture.network is None
    plain = CliRunner().invoke(app, [*args, "--json"])
    assert json.loads(plain.stdout)["schema"] == "tacit.recipe.mixture"
