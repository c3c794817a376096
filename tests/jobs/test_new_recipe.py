"""tacit.new_recipe: a whole recipe with a reason for each value, or a refusal that says what would work."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest
from tests.support.training.tiny import CLIENTS, SETTINGS, tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.data import Cache
from tacit.errors import CacheError, InputError
from tacit.jobs.plan.new_recipe import NewRecipe, new_recipe
from tacit.jobs.train.noise_forecast import forecast_for_record
from tacit.keyboard.model_folder import write_model
from tacit.networks.language_model import parameter_count
from tacit.networks.model_files import write_origin
from tacit.planning.judgement import FreeModel
from tacit.planning.new_recipe import Corpus, RecipeProposal, propose
from tacit.planning.noise_forecast import ratio_for
from tacit.recipe import Recipe
from tacit.recipe.model_section import ModelSection, section_of

PUBLIC = section_of("cifg").model_validate({"embedding": 32, "units": 64, "init": Path("public")})


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def proposal(
    train: int, epsilon: float, first: ModelSection | None = None, delta: float | None = None
) -> RecipeProposal:
    corpus = Corpus(cache=Path("cache"), train=train, validation=train // 10, test=train // 10)
    return propose(corpus, name="made", epsilon=epsilon, size=size, first=first, delta=delta)


def size(section: ModelSection) -> int:
    """Parameters, with 2,000 words."""
    return parameter_count(section.settings(2_000))


def refusal(*args: Any, **asked: Any) -> str:
    with pytest.raises(InputError) as refused:
        new_recipe(*args, **asked)
    return str(refused.value)


def test_an_epsilon_that_protects_nobody_is_said_to(cache: Cache) -> None:
    for epsilon, said in ((1000.0, True), (20.0, False)):
        lines = str(new_recipe(cache, epsilon=epsilon, anyway=True).blocks())
        assert ("an epsilon above 20 protects nobody by itself" in lines) == said


# -- what is written ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clients", "epsilon", "first"),
    [
        *[(261, 8.0, PUBLIC), (979, 8.0, None), (6131, 2.0, PUBLIC), (30_000, 1.0, None), (400_000, 8.0, PUBLIC)],
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in [(261, 8.0, None), (979, 8.0, PUBLIC), (6131, 2.0, None), (400_000, 8.0, None)]
        ),
    ],
)
def test_a_recipe_is_whole_keeps_its_epsilon_and_gives_a_reason_for_each_value(
    clients: int, epsilon: float, first: ModelSection | None
) -> None:
    made = proposal(clients, epsilon, first)
    text = made.to_toml()
    recipe = Recipe.from_toml(text)
    assert recipe == made.recipe
    for line in text.splitlines():
        key, _, value = line.partition(" = ")
        if value and not line.startswith(("#", 'name = "made"')):
            assert "# " in value and len(value.partition("# ")[2]) > 5, f"{key} says not why"
    designed, matrix = recipe.designed(), recipe.matrix()
    guarantee = designed.guarantee(matrix)
    assert epsilon * (1 - 1e-6) <= guarantee.epsilon(made.delta) <= epsilon
    told = forecast_for_record(
        designed, designed.plan(matrix), designed.model.settings(2_000), clients=clients, public=first is not None
    ).noise_forecast
    assert told is not None
    assert told.ratio == pytest.approx(ratio_for(made.shape.share_kept), rel=0.3), (
        "the estimate is of another mechanism"
    )
    assert made.shape.share_kept - 0.02 < told.share_kept < made.shape.share_kept + 0.12, "on the careful side"


def test_the_same_population_gets_the_same_recipe() -> None:
    assert proposal(5000, 8.0).to_toml() == proposal(5000, 8.0).to_toml()
    assert "as asked for" in proposal(5000, 8.0, delta=1e-7).reasons["privacy.delta"]
    assert proposal(5000, 8.0, delta=1e-7).recipe.privacy.delta == 1e-7


def test_what_would_work_does() -> None:
    few = proposal(200, 2.0)
    assert few.prospect == "too noisy" and few.working_epsilon and few.working_clients
    assert proposal(200, few.working_epsilon).prospect == "worth it"
    assert proposal(200, few.working_epsilon * 0.8).prospect != "worth it"
    assert few.written_epsilon and few.written_epsilon < few.working_epsilon
    assert proposal(200, few.written_epsilon).prospect == "may not pay off"
    assert proposal(200, few.written_epsilon * 0.9).prospect == "too noisy"
    assert proposal(few.working_clients, 2.0, delta=few.delta).prospect == "worth it"
    assert proposal(int(few.working_clients * 0.8), 2.0, delta=few.delta).prospect != "worth it"


def test_it_is_written_once_and_an_edited_one_stays(cache: Cache, tmp_path: Path) -> None:
    path = tmp_path / "below" / "recipe.toml"
    made = new_recipe(cache.path, epsilon=8, out=path, anyway=True)
    assert isinstance(made, NewRecipe) and made.path == path and path.read_text() == made.to_toml()
    assert Recipe.load(path) == made.recipe
    assert new_recipe(cache, epsilon=8, out=path, anyway=True).to_toml() == made.to_toml()
    path.write_text(path.read_text() + "# mine\n")
    assert "is there and says something else" in refusal(cache, epsilon=8, out=path, anyway=True)
    assert path.read_text().endswith("# mine\n")
    assert made.blocks() and "40 training clients" in made._repr_html_()
    assert json.loads(json.dumps(made.to_record()))["judgement"] == "too noisy"


def test_nothing_that_clients_typed_goes_in(cache: Cache, tmp_path: Path) -> None:
    """Twice the sentences, and other ones: the same recipe to the last character, but for the name of its cache."""
    other = tiny_cache(tmp_path / "cache", dict(reversed(CLIENTS.items())))
    texts = [each.sentences(int(each.clients("train")[0]))[0].tolist() for each in (cache, other)]
    assert texts[0] != texts[1]
    one, another = (new_recipe(each, epsilon=8, name="one", anyway=True).to_toml() for each in (cache, other))
    assert one.replace(str(cache.path), "") == another.replace(str(other.path), "")


def test_the_recipe_trains(cache: Cache, tmp_path: Path) -> None:
    made = new_recipe(cache, epsilon=8, anyway=True)
    begun = tacit.train(made.recipe, tmp_path / "run", seed=1, until=1, anyway=True)
    assert begun.rounds == 1


# -- a public model ----------------------------------------------------------------------------------------------------


def test_a_public_model_gives_its_network_and_begins_the_run(cache: Cache, tmp_path: Path) -> None:
    write_model(tmp_path / "p", SETTINGS, SETTINGS.init(jax.random.key(1)), cache.vocabulary_json.encode())
    assert "not known to be of public text" in refusal(cache, epsilon=8, init=tmp_path / "p")
    write_origin(tmp_path / "p", "the manuals")
    made = new_recipe(cache, epsilon=8, init=tmp_path / "p", anyway=True)
    assert made.recipe.model.init == tmp_path / "p" and made.recipe.model.settings(60) == SETTINGS
    assert made.recipe.server.method == "sgd" and "TOO NOISY" in str(made.blocks()[0])
    assert "holds no model" in refusal(cache, epsilon=8, init=tmp_path / "none")


@pytest.mark.parametrize(
    ("clients", "epsilon", "prospect"),
    [(261, 2.0, "too noisy"), (261, 8.0, "may not pay off"), (3700, 1.0, "may not pay off"), (3700, 8.0, "worth it")],
)
def test_what_a_public_model_gains_depends_on_how_near_its_text_is(clients: int, epsilon: float, prospect: str) -> None:
    made = proposal(clients, epsilon, PUBLIC)
    alike, unlike, farthest = made.gains
    assert made.prospect == prospect and alike < unlike < farthest and alike <= 0.02 and unlike <= 0.15
    assert made.judgement.verdict == ("too noisy" if prospect == "too noisy" else "not compared")
    for ratio in (1.0, 1.01, 1.1, 2.0):
        free = FreeModel(weights={"a": 0.4, "b": 0.6}, text="manuals", top1=0.2 * ratio, network=0.2, sentences=9)
        over = replace(made, free=free).judgement
        assert over.over_free == pytest.approx([0.2 * (1 + each - ratio) for each in (alike, unlike, farthest)])
        assert over.verdict != "worth it" or (alike >= ratio * 1 - 1 and over.over_free.low >= 0)
        assert over.verdict != "may not pay off" or over.over_free.best > 0
        head = " ".join(line.lstrip("# ") for line in replace(made, free=free).to_toml().splitlines()[:9])
        assert f"{over.verdict.upper()}. " in head and "a 40%, b 60% (weights fitted on held-out public text)" in head
    if prospect == "too noisy":
        assert made.working_epsilon and proposal(clients, made.working_epsilon, PUBLIC).prospect == "worth it"
        assert made.working_clients
        assert proposal(made.working_clients, epsilon, PUBLIC, made.delta).prospect == "worth it"


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_recipe_that_cannot_work_says_what_would(cache: Cache, tmp_path: Path) -> None:
    said = refusal(cache, epsilon=0.1, out=tmp_path / "r.toml")
    assert "a model of the 40 training clients" in said and "--anyway writes the recipe all the same" in said
    assert "a model of public text to begin from" in said
    said = refusal(cache, epsilon=8)
    found = re.search(
        r"epsilon (\d+) for these clients \(from epsilon (\d+) on a recipe is written too: MAY NOT PAY OFF\)", said
    )
    assert found and re.search(r"\); [\d,]+ training clients at this epsilon", said)
    assert new_recipe(cache, epsilon=float(found[2])).proposal.prospect == "may not pay off"
    assert new_recipe(cache, epsilon=float(found[1])).proposal.prospect == "worth it"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"epsilon": 0}, "epsilon=0 is no budget"),
        ({"epsilon": -1.0}, "epsilon=-1 is no budget"),
        ({"epsilon": float("nan")}, "epsilon = nan"),
        ({"epsilon": 8, "delta": 1.0}, "delta=1 is not between 0 and 1"),
        ({"epsilon": 8, "name": ""}, "name='' is empty"),
        ({"epsilon": 8, "out": "."}, "is no file"),
    ],
)
def test_what_cannot_be_is_refused(cache: Cache, asked: dict[str, Any], message: str) -> None:
    assert message in refusal(cache, anyway=True, **asked)


def test_populations_that_cannot_be_judged_or_make_no_cohort_are_refused(tmp_path: Path) -> None:
    blind = tiny_cache(tmp_path / "blind", {**CLIENTS, "test": 0})
    assert "none of the clients" in refusal(blind, epsilon=8) and "in the test split" in refusal(blind, epsilon=8)
    few = tiny_cache(tmp_path / "few", {**CLIENTS, "train": 12})
    assert "12 training clients make no cohorts of 20" in refusal(few, epsilon=8)
    with pytest.raises(CacheError, match="there is no cache"):
        new_recipe(tmp_path / "nowhere", epsilon=8)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_prints_the_recipe_or_writes_it(cache: Cache, tmp_path: Path) -> None:
    asked = ["recipe", "new", "--data", str(cache.path), "--epsilon", "8"]
    refused = CliRunner().invoke(app, asked)
    assert refused.exit_code == 2 and "What would work" in refused.stderr
    printed = CliRunner().invoke(app, [*asked, "--anyway"])
    assert tomllib.loads(printed.stdout)["privacy"]["epsilon"] == 8.0
    written = CliRunner().invoke(app, [*asked, "--anyway", "--out", str(tmp_path / "r.toml")])
    assert "next: tacit train" in written.stdout and Recipe.load(tmp_path / "r.toml")
    plain = CliRunner().invoke(app, [*asked, "--anyway", "--json"])
    assert json.loads(plain.stdout)["schema"] == "tacit.recipe"
