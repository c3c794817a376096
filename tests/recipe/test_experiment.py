"""Recipes survive TOML, and each unknown, wrong or contradictory key is refused by its name in one line."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from tests.conftest import REPOSITORY

import tacit
from tacit.design.banded import design_banded
from tacit.design.best import best_mechanism
from tacit.design.catalogue import MECHANISMS
from tacit.design.dense import full_tree
from tacit.design.losses import losses
from tacit.design.workload import Workload
from tacit.errors import InputError, RecipeError
from tacit.jobs.design import compare_mechanisms
from tacit.privacy import Blt, Independent, Participation, Tree
from tacit.privacy.composition import Composition, ReleasedSequence
from tacit.privacy.separation import DeviceSeparation
from tacit.privacy.strategy import PUBLISHED_BLT, BandedInverse, BandedToeplitz, Dense
from tacit.recipe import Recipe
from tacit.recipe.model_section import ModelSection, section_of
from tacit.recipe.sections import THE_BEST
from tacit.training.server import Method

PAGE = REPOSITORY / "docs" / "recipes.md"
SHIPPED = [
    *sorted((REPOSITORY / "recipes").glob("*.toml")),
    *sorted((REPOSITORY / "benchmarks" / "utility" / "recipes").glob("*.toml")),
    REPOSITORY / "src" / "tacit" / "demo.toml",
]
LEAST: dict[str, Any] = {
    "name": "least",
    "data": {"cache": "caches/mine"},
    "rounds": {"rounds": 20, "report_goal": 5, "min_separation": 4},
    "privacy": {"mechanism": {"name": "none"}},
}


def test_a_clients_step_is_priced_before_it_is_taken() -> None:
    large = {**LEAST, "client": {"batch_size": 100_000, "sentences": 100_000, "words": 100_000}}
    with pytest.raises(RecipeError, match=r"recipe: client.batch_size and client.words .* GB of memory, above 32"):
        Recipe.from_toml(tomli_w.dumps(large))


def test_the_settings_of_a_run_are_told_from_a_recipe(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('kind = "train"\n' + (plain := Recipe.model_validate(LEAST).to_toml()), encoding="utf-8")
    with pytest.raises(
        RecipeError, match=r"settings.toml begins with kind = 'train': it is a run's record .* a copy without"
    ):
        Recipe.load(settings)
    settings.write_text(plain, encoding="utf-8")  # the way out that it names
    assert Recipe.load(settings) == Recipe.model_validate(LEAST)
    with pytest.raises(RecipeError, match=r"a run's record .* was begun with.$"):
        Recipe.from_toml('kind = "discover"\nusers = 3\n')


def test_a_dictionary_is_told_how_to_become_a_recipe() -> None:
    with pytest.raises(RecipeError, match=r"recipe is a dictionary; .* Recipe.model_validate"):
        Recipe.from_argument(LEAST)
    assert Recipe.from_argument(Recipe.model_validate(LEAST)) == Recipe.model_validate(LEAST)
    assert Recipe.from_argument("own-data").name
    with pytest.raises(InputError, match="recipe=3 is no path"):
        Recipe.from_argument(3)
    with pytest.raises(RecipeError, match="recipe is a dictionary"):
        tacit.train(LEAST, "nowhere")  # type: ignore[arg-type]


NEEDED = {  # of sections that may be left out
    "clipping": {"initial": 0.1},
    "population": {"timer_hours": 48.0},
    "aggregation": {"kind": "secure"},
    "deployment": {"population": "phones", "devices": 1000},
}
CLIPPED = {"mechanism": {"name": "tree", "restarts": [8]}, "noise_multiplier": 0.3}


def parsed(values: dict[str, Any]) -> Recipe:
    return Recipe.from_toml(tomli_w.dumps(values))


def changed(section: str, /, **changes: Any) -> dict[str, Any]:
    """The least recipe with some keys of a section changed; None takes a key away."""
    merged = {**LEAST.get(section, NEEDED.get(section, {})), **changes}
    return {**LEAST, section: {key: value for key, value in merged.items() if value is not None}}


def refusal(values: dict[str, Any]) -> str:
    with pytest.raises(RecipeError) as refused:
        parsed(values)
    message = str(refused.value)
    assert message.startswith("recipe: ") and message.endswith((".", "?", ".)", "it)")) and "\n" not in message
    return message


def keys(model: type[BaseModel] = Recipe, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """("section.key", field) of every key of a recipe, top level first."""
    for name, field in model.model_fields.items():
        kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
        sections = [
            section_of("cifg") if kind is ModelSection else kind for kind in kinds if issubclass(kind, BaseModel)
        ]
        if sections:
            yield from keys(sections[0], f"{name}.")
        else:
            yield prefix + name, field


# -- round trip ----------------------------------------------------------------------------------------------------

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
positive = st.floats(1e-3, 1e3)
counts = st.integers(1, 40)


@st.composite
def privacies(draw: st.DrawFn) -> dict[str, Any]:
    mechanism = draw(st.sampled_from(["none", "independent", "tree", "tree-variance-reduced", "blt"]))
    named: dict[str, Any] = {"name": mechanism}
    values: dict[str, Any] = {"mechanism": named, "delta": draw(st.floats(1e-15, 0.5)), "clip_norm": draw(positive)}
    if mechanism != "none":
        values[draw(st.sampled_from(["noise_multiplier", "zcdp", "epsilon"]))] = draw(positive)
    if mechanism.startswith("tree"):
        named["restarts"] = sorted(draw(st.sets(st.integers(1, 50), max_size=3)))
    if mechanism == "blt" and draw(st.booleans()):
        named["name"] = f"blt-{draw(st.sampled_from(sorted(PUBLISHED_BLT)))}"
    elif mechanism == "blt":
        buffers = draw(st.integers(1, 3))
        named["theta"] = [draw(st.floats(0.01, 1.0)) for _ in range(buffers)]
        named["omega"] = [draw(st.floats(0.01, 1.0 / buffers)) for _ in range(buffers)]  # sensitivity: sum to <= 1
    return values


@st.composite
def recipes(draw: st.DrawFn) -> dict[str, Any]:
    def section(**strategies: st.SearchStrategy[Any]) -> dict[str, Any]:
        """Some of the keys."""
        return {key: draw(strategy) for key, strategy in strategies.items() if draw(st.booleans())}

    goal = draw(counts)
    privacy = draw(privacies())
    if draw(st.booleans()):
        privacy["extrapolate_to"] = goal + draw(counts)
    adapting = draw(st.booleans()) and privacy["mechanism"]["name"] in ("none", "independent")
    clipping = {"initial": privacy["clip_norm"], "bit_stddev": 1e9} | section(quantile=st.floats(0.1, 0.9))
    losses = {"stddev": 1e9} | section(bound=st.floats(0.1, 20))
    encoded = section(inflation=st.floats(1.001, 2), sigmas=st.floats(4, 20), threshold=st.integers(2, max(2, goal)))
    rate, momentum = st.floats(1e-3, 10), st.just(0.0) | st.floats(1e-9, 0.99)
    method = st.sampled_from(get_args(Method))
    return (
        {
            "name": draw(names),
            "data": {"cache": draw(names.filter(lambda name: "\0" not in name))},
            "model": section(embedding=counts, units=counts, tied=st.booleans()),
            "client": section(epochs=counts, batch_size=counts, learning_rate=rate, sentences=counts, words=counts),
            "server": section(method=method, learning_rate=rate, momentum=momentum, adaptivity=positive),
            "rounds": {"rounds": draw(counts), "report_goal": goal, "min_separation": draw(counts)}
            | section(max_participations=counts),
            "privacy": privacy,
            "evaluation": section(every=counts, clients=counts, test_clients=counts, sentences=counts),
            "run": section(seed=st.integers(0, 10**15)),
        }
        | ({"clipping": clipping} if adapting else {})
        | ({"training_loss": losses} if draw(st.booleans()) else {})
        | (
            {"aggregation": {"kind": "secure"} | encoded} if draw(st.booleans()) and goal > 1 else {}
        )  # one hides nothing
    )


@given(recipes())
def test_a_recipe_survives_toml_with_all_it_was_given(values: dict[str, Any]) -> None:
    recipe = parsed(values)
    written = recipe.to_toml()
    assert Recipe.from_toml(written) == recipe
    assert Recipe.from_toml(written).to_toml() == written
    for section, given_keys in tomllib.loads(tomli_w.dumps(values)).items():
        for key, value in given_keys.items() if isinstance(given_keys, dict) else ():
            kept = tomllib.loads(written)[section][key]
            if key == "mechanism":
                assert {**kept, **value} == kept, "what has a default is written out"
            else:
                assert kept == (str(Path(value)) if key == "cache" else value)
    assert recipe.plan().guarantee.private == (recipe.privacy.mechanism is not None)


def test_what_is_left_out_is_written_out() -> None:
    written = tomllib.loads(parsed(LEAST).to_toml())
    assert written["client"] == {
        "epochs": 1,
        "batch_size": 16,
        "learning_rate": 0.5,
        "sentences": 64,
        "words": 20,
        "proximal": 0.0,
        "precision": "float32",
    }
    assert "seed" not in written["run"] and "zcdp" not in written["privacy"]


# -- what a recipe means -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("privacy", "strategy"),
    [
        ({"mechanism": {"name": "none"}}, None),
        ({"mechanism": {"name": "independent"}, "noise_multiplier": 1.0}, Independent()),
        ({"mechanism": {"name": "tree", "restarts": [8]}, "noise_multiplier": 1.0}, Tree(restarts=(8,))),
        ({"mechanism": {"name": "tree-variance-reduced"}, "noise_multiplier": 1.0}, Tree(variance_reduced=True)),
        ({"mechanism": {"name": "blt-b100"}, "noise_multiplier": 1.0}, PUBLISHED_BLT["b100"]),
        (
            {"mechanism": {"name": "blt", "theta": [0.5], "omega": [1]}, "noise_multiplier": 1},
            Blt(theta=(0.5,), omega=(1.0,)),
        ),
        (
            {"mechanism": {"name": "lambda-cgd", "coefficients": [1, -0.5]}, "noise_multiplier": 1},
            BandedInverse((1.0, -0.5)),
        ),
        ({"mechanism": {"name": "square-root", "bands": 2}, "noise_multiplier": 1}, BandedToeplitz((1.0, 0.5))),
    ],
)
def test_the_mechanism_is_the_one_asked_for(privacy: dict[str, Any], strategy: Any) -> None:
    plan = parsed(changed("privacy", **privacy)).plan()
    assert plan.guarantee.strategy == strategy
    assert plan.guarantee.noise_multiplier == (0.0 if strategy is None else 1.0)
    assert plan.report_goal == 5 and plan.rounds == 20


def test_adaptive_clipping_divides_what_may_be_spent() -> None:
    recipe = parsed({**changed("privacy", **CLIPPED), "clipping": {"initial": 0.1, "bit_stddev": 2.0}})
    plan = recipe.plan()
    assert plan.guarantee.clip_norm == plan.updates.clip_norm == recipe.privacy.clip_norm == 0.1
    assert plan.counts is not None and plan.counts.seed_stddev == 2.0
    assert plan.updates.zcdp + plan.counts.zcdp == pytest.approx(recipe.guarantee().zcdp)
    assert parsed(tomllib.loads(recipe.to_toml())) == recipe
    fixed = parsed(changed("privacy", **CLIPPED, clip_norm=0.1)).plan()
    assert fixed.counts is None and fixed.updates == fixed.guarantee == plan.guarantee


@pytest.mark.parametrize(
    ("privacy", "clipping", "message"),
    [
        ({**CLIPPED, "clip_norm": 1.0}, {}, "privacy.clip_norm=1.0 and clipping.initial=0.1 contradict each other"),
        ({**CLIPPED, "mechanism": {"name": "tree"}}, {}, "privacy.mechanism.restarts before the last round"),
        ({**CLIPPED, "mechanism": {"name": "tree", "restarts": [20]}}, {}, "restarts before the last round"),
        ({"mechanism": {"name": "blt-b400"}, "zcdp": 1.0}, {}, "privacy.mechanism='blt-b400', which has one clip norm"),
        ({"mechanism": None, "epsilon": 1.0}, {}, "drop [clipping] or name one of those below [privacy.mechanism]"),
        ({"mechanism": {"name": "blt", "buffers": 2}, "zcdp": 1.0}, {}, "needs a mechanism whose noise starts afresh"),
        (
            {"mechanism": {"name": "banded-toeplitz", "bands": 2}, "zcdp": 1.0},
            {},
            "drop [clipping] or name one of those",
        ),
        ({**CLIPPED, "noise_multiplier": 2.0}, {}, "clipping.bit_stddev (left out: rounds.report_goal / 20): counts"),
        (CLIPPED, {"bit_stddev": 0.1}, "give a bit_stddev above 0.15"),
        (CLIPPED, {"quantile": 1.0}, "clipping.quantile=1.0 must be between 0 and 1"),
        (CLIPPED, {"learning_rate": 0.0}, "clipping.learning_rate=0.0 must be a positive number"),
    ],
)
def test_a_clip_norm_that_cannot_adapt_is_refused(
    privacy: dict[str, Any], clipping: dict[str, Any], message: str
) -> None:
    assert message in refusal({**changed("privacy", **privacy), "clipping": {"initial": 0.1, **clipping}})


def test_recipes_that_differ_by_a_whole_section_say_so() -> None:
    fixed, adaptive = parsed(LEAST), parsed(changed("clipping"))
    assert "clipping.initial is 0.1, not not given" in fixed.differences(adaptive)
    assert "clipping.initial is not given, not 0.1" in adaptive.differences(fixed)
    assert adaptive.differences(adaptive) == []


@given(st.floats(0.01, 50), st.sampled_from(["independent", "tree", "blt-b400"]), st.integers(1, 9))
def test_a_rho_is_met(zcdp: float, mechanism: str, separation: int) -> None:
    values = changed("privacy", mechanism={"name": mechanism}, zcdp=zcdp)
    values["rounds"] = {**LEAST["rounds"], "min_separation": separation}
    assert parsed(values).guarantee().zcdp == pytest.approx(zcdp, rel=1e-9)


@given(
    epsilon=st.floats(0.05, 60),
    delta=st.floats(1e-12, 1e-3),
    mechanism=st.sampled_from(["independent", "tree", "blt-b400", "best"]),
    separation=st.integers(1, 9),
    beside=st.sampled_from(["nothing", "loss", "counts", "both"]),
    secure=st.booleans(),
)
def test_an_epsilon_is_met_by_everything_that_is_released(
    epsilon: float, delta: float, mechanism: str, separation: int, beside: str, secure: bool
) -> None:
    named = {"name": mechanism} | ({"restarts": [8]} if mechanism == "tree" else {})
    values = changed("privacy", mechanism=named, epsilon=epsilon, delta=delta)
    values["rounds"] = {**LEAST["rounds"], "min_separation": separation}
    if beside in ("loss", "both"):
        values["training_loss"] = {"stddev": 1e4}
    if beside in ("counts", "both") and mechanism in ("independent", "tree"):
        values["clipping"] = {"initial": 0.5, "bit_stddev": 1e4}
    if secure:
        values["aggregation"] = {"kind": "secure", "inflation": 1.5}
    plan = parsed(values).plan()
    assert plan.updates.clip_inflation == (1.5 if secure else 1.0)
    together = Composition(
        tuple(
            ReleasedSequence(what=what, guarantee=each)
            for what, each in {"updates": plan.updates, **plan.beside}.items()
        )
    )
    assert len(together.sequences) == 1 + ("training_loss" in values) + ("clipping" in values)
    assert epsilon * (1 - 1e-6) <= together.epsilon(delta) <= epsilon


def test_an_epsilon_without_a_delta_waits_for_its_population() -> None:
    recipe = parsed(changed("privacy", mechanism={"name": "tree"}, epsilon=2.0))
    with pytest.raises(InputError, match=r"privacy\.epsilon=2 says how much noise at a delta only"):
        recipe.guarantee()
    few, many = (recipe.with_delta(recipe.privacy.delta_for(clients)).guarantee() for clients in (100, 1_000_000))
    assert few.noise_multiplier < many.noise_multiplier
    assert few.epsilon(1e-5) <= 2.0 and many.epsilon(recipe.privacy.delta_for(1_000_000)) <= 2.0
    # What is refused of any delta is refused when the recipe is read.
    assert "nothing is left" in refusal(
        {**changed("privacy", mechanism={"name": "tree", "restarts": [8]}, epsilon=0.1), "clipping": {"initial": 0.1}}
    )


# -- the best mechanism --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "separation", "most", "objective"),
    [
        *[(20, 4, None, "rms"), (12, 12, 1, "max"), (5, 1, None, "max"), (40, 3, 4, "rms")],
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in [(20, 4, None, "max"), (12, 12, 1, "rms"), (5, 1, None, "rms"), (40, 3, 4, "max")]
        ),
    ],
)
def test_a_recipe_without_a_mechanism_gets_the_one_of_least_error(
    rounds: int, separation: int, most: int | None, objective: Any
) -> None:
    values = changed("privacy", mechanism=None, epsilon=3.0, delta=1e-6, objective=objective)
    values["rounds"] = {"rounds": rounds, "report_goal": 5, "min_separation": separation}
    if most is not None:
        values["rounds"]["max_participations"] = most
    asked = parsed(values)
    compared = compare_mechanisms(asked.rounds.participation(), objective=objective, slow=True)
    designed = asked.designed()
    loss = {each.mechanism: each.losses.of(objective) for each in reversed(compared.designs) if each.losses is not None}
    least = compared.designs[0].strategy_and_losses()[1].of(objective)
    assert loss[designed.privacy.mechanism_name] <= 1.01 * least
    less = [each for each in compared if each.losses is not None and each.losses.of(objective) <= 1.01 * least]
    chosen = next(each for each in compared if each.mechanism == designed.privacy.mechanism_name)
    assert chosen.memory is not None and all(chosen.memory <= (each.memory or 0) for each in less)
    assert asked.guarantee().zcdp == pytest.approx(designed.guarantee(asked.matrix()).zcdp, rel=1e-12)
    again = Recipe.from_toml(designed.to_toml())
    assert again == designed and again.designed() == designed and designed.why_mechanism() is None
    said = asked.why_mechanism()
    assert said is not None and said.startswith(f"{designed.privacy.mechanism_name} was chosen")


def test_the_best_may_be_asked_for_by_name_and_is_what_is_left_out() -> None:
    named = parsed(changed("privacy", mechanism={"name": "best"}, zcdp=1.0))
    assert named == parsed(changed("privacy", mechanism=None, zcdp=1.0)) and named.privacy.needs_design
    assert Recipe.from_toml(named.to_toml()) == named


def test_what_takes_long_to_design_or_much_to_remember_is_left_out() -> None:
    long = best_mechanism(Participation.worst_case(600, 60))
    assert not {"banded", "dense", "tree-full"} & {each.chosen.name for each in long.candidates}
    wide = best_mechanism(Participation.worst_case(400, 200))
    assert wide.chosen.name == "blt" and all(each.memory <= 128 for each in wide.candidates)


def test_participation_is_the_worst_that_the_separation_allows_unless_promised_otherwise() -> None:
    assert parsed(LEAST).guarantee().participation.max_participations == 5
    assert parsed(changed("rounds", max_participations=2)).guarantee().participation.max_participations == 2


# -- what is designed for the run ----------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["max", "rms"])
@pytest.mark.parametrize(
    "wish",
    [
        {"mechanism": {"name": "blt", "buffers": 2}},
        {"mechanism": {"name": "banded-toeplitz", "bands": 3}},
        {"mechanism": {"name": "banded-inverse", "bands": 3}},
    ],
    ids=lambda wish: wish["mechanism"]["name"],
)
def test_a_wish_becomes_numbers_that_survive_the_file(wish: dict[str, Any], objective: str) -> None:
    asked = parsed(changed("privacy", **wish, zcdp=1.0, noise_multiplier=None, objective=objective))
    designed = asked.designed()
    assert asked.privacy.needs_design and not designed.privacy.needs_design and designed.designed() == designed
    again = Recipe.from_toml(designed.to_toml())
    assert again == designed and again.guarantee() == designed.guarantee()
    assert again.guarantee().zcdp == pytest.approx(1.0)
    other = changed("privacy", **wish, zcdp=1.0, noise_multiplier=None, objective=objective)
    other["rounds"] = {**other["rounds"], "min_separation": 1}
    assert parsed(other).designed().guarantee().strategy != designed.guarantee().strategy, "another participation"


@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "lambda-cgd"},
        {"name": "square-root"},
        pytest.param({"name": "banded"}, marks=pytest.mark.nightly),
        pytest.param(None, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_a_mechanism_is_designed_for_what_the_server_makes_of_the_means(mechanism: dict[str, Any] | None) -> None:
    def asked(workload: str, **server: Any) -> Recipe:
        values = changed("privacy", mechanism=mechanism, zcdp=1.0, noise_multiplier=None, workload=workload)
        return parsed({**values, "server": server})

    def planned(recipe: Recipe) -> Any:
        return recipe.guarantee(recipe.matrix()).strategy

    def cost(recipe: Recipe) -> float:
        return losses(planned(recipe), recipe.rounds.participation(), Workload(momentum=0.9, cooldown=0.5)).max_loss

    prefix, server = asked("prefix", cooldown=0.5), asked("server", cooldown=0.5)
    assert cost(server) < cost(prefix)
    kept = server.designed()
    again = Recipe.from_toml(kept.to_toml())
    assert again == kept and planned(again) == planned(server), "what a run keeps is what it designs again"
    assert kept.guarantee(server.matrix()).zcdp == pytest.approx(1.0), "the promise depends on the strategy alone"
    assert planned(asked("server", method="sgd")) == planned(asked("prefix")), "prefix sums are what plain sgd makes"
    assert planned(asked("server", method="nesterov")) != planned(server)


def test_a_workload_that_no_matrix_says_is_refused() -> None:
    values = changed("privacy", mechanism={"name": "blt"}, workload="server", zcdp=1.0)
    with pytest.raises(RecipeError, match=r"server\.method='adam' divides by what it saw"):
        parsed({**values, "server": {"method": "adam"}})
    for name in ("tree", "none", "blt-b400"):
        given = {} if name == "none" else {"zcdp": 1.0}
        with pytest.raises(RecipeError, match=f"privacy.mechanism='{name}' has none; drop privacy.workload"):
            parsed(changed("privacy", mechanism={"name": name}, workload="server", **given))


def matrix_recipe(
    mechanism: str, *, rounds: dict[str, int] | None = None, objective: str = "max", **said: Any
) -> Recipe:
    values = changed("privacy", mechanism={"name": mechanism, **said}, zcdp=1.0, objective=objective)
    return parsed({**values, "rounds": {**LEAST["rounds"], **(rounds or {})}})


@pytest.mark.parametrize("objective", ["max", "rms"])
def test_a_matrix_is_designed_for_the_run_and_the_recipe_goes_on_asking_for_it(objective: Any) -> None:
    banded = matrix_recipe("banded", bands=3, objective=objective)
    served = banded.rounds.participation()
    assert banded.matrix() == design_banded(served, bands=3, objective=objective)
    assert matrix_recipe("tree-full").matrix() == full_tree(20)
    once = matrix_recipe("dense", rounds={"max_participations": 1}).matrix()
    assert isinstance(once, Dense) and once.rounds_defined == 20
    for recipe in (banded, matrix_recipe("tree-full"), matrix_recipe("dense", rounds={"max_participations": 1})):
        assert recipe.designed() == recipe == Recipe.from_toml(recipe.to_toml())
        assert recipe.guarantee(recipe.matrix()).zcdp == pytest.approx(1.0) and recipe.guarantee(recipe.matrix()).exact
        with pytest.raises(InputError, match="needs its matrix"):
            recipe.plan()


def test_a_matrix_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"privacy\.mechanism\.bands=5 is above 4: .*rounds\.min_separation=4"):
        matrix_recipe("banded", bands=5)
    with pytest.raises(InputError, match="max_participations=5, and the dense matrix is optimal"):
        matrix_recipe("dense").matrix()
    with pytest.raises(InputError, match=r"rounds\.rounds=5000 are too many"):
        matrix_recipe("tree-full", rounds={"rounds": 5000}).matrix()
    full = matrix_recipe("tree-full")
    assert full.privacy.strategy(full.rounds.participation(), full_tree(20)) == full_tree(20)


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [key for key, _ in keys()])
def test_a_key_that_is_misspelt_is_refused_by_its_name(key: str) -> None:
    *section, name = key.split(".")
    values = changed(section[0], **{name + "x": 1}) if section else {**LEAST, name + "x": 1}
    message = refusal(values)
    assert f"the key '{key}x' is unknown" in message and "docs/recipes.md" in message


@pytest.mark.parametrize("key", [key for key, _ in keys()])
def test_the_key_that_was_meant_is_suggested(key: str) -> None:
    """The last letters but one exchanged, a usual slip."""
    *section, name = key.split(".")
    slip = f"{name[:-2]}{name[-1]}{name[-2]}"
    values = changed(section[0], **{slip: 1}) if section else {**LEAST, slip: 1}
    where = f"{section[0]}." if section else ""
    assert f"the key '{where}{slip}' is unknown; did you mean {key}? (docs/recipes.md" in refusal(values)


@pytest.mark.parametrize(
    ("values", "meant"),
    [
        ({**LEAST, "report_goal": 3}, "rounds.report_goal"),
        ({**LEAST, "rouds": {"rounds": 3}}, "[rounds]"),
        ({key: value for key, value in LEAST.items() if key != "privacy"} | {"privcy": {"zcdp": 1.0}}, "[privacy]"),
        (changed("rounds", epsilon=8.0), "privacy.epsilon"),
        (changed("population", timer=8.0), "population.timer_hours"),
        (changed("model", kind="tests.support.networks.gru:Gru", unit=8), "model.units"),
    ],
)
def test_a_key_in_another_section_and_a_misspelt_section_are_found(values: dict[str, Any], meant: str) -> None:
    assert f"did you mean {meant}?" in refusal(values)


def test_a_key_like_no_other_is_not_guessed_at() -> None:
    assert "remove it or mend its spelling" in refusal({**LEAST, "zzz": 1})


@pytest.mark.parametrize("key", [key for key, _ in keys()])
def test_wrong_values_are_refused_by_the_name_of_their_key(key: str) -> None:
    """No key of a recipe can take any of these, but for the name, which takes any text that is not empty."""
    *section, name = key.split(".")
    for wrong in ({"a": 1}, [["x"]], float("nan"), float("inf"), -1, "", [True]):
        if key in ("data.cache", "model.init", "privacy.population") and wrong == "":
            continue  # the current folder, which then is no cache, no model and no budget
        values = changed(section[0], **{name: wrong}) if section else {**LEAST, name: wrong}
        assert re.search(rf"\b{key}\b", refusal(values)), (wrong, refusal(values))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rounds.rounds", "20"),
        ("rounds.rounds", 20.0),
        ("rounds.report_goal", True),
        ("rounds.max_participations", 0),
        ("model.tied", "yes"),
        ("model.tied", 1),
        ("model.units", 0),
        ("client.epochs", 0),
        ("client.proximal", 2.0),
        ("client.precision", "float16"),
        ("client.learning_rate", 0),
        ("server.momentum", 1.0),
        ("server.method", "newton"),
        ("server.adaptivity", 0.0),
        ("privacy.mechanism", "tree"),
        ("privacy.mechanism", {"name": "dp-sgd"}),
        ("privacy.clip_norm", 0.0),
        ("privacy.delta", 1),
        ("privacy.mechanism", {"name": "tree", "restarts": [4.5]}),
        ("evaluation.every", 0),
        ("run.seed", False),
    ],
)
def test_values_at_the_edge_are_refused(key: str, value: Any) -> None:
    section, name = key.split(".")
    assert key in refusal(changed(section, **{name: value}))


@pytest.mark.parametrize("key", [key for key, field in keys() if field.is_required()])
def test_a_key_that_is_needed_is_missed_by_its_name(key: str) -> None:
    *section, name = key.split(".")
    values = {k: v for k, v in LEAST.items() if k != name} if not section else changed(section[0], **{name: None})
    assert f"the key '{key}' is missing; give it" in refusal(values)


def blt(**said: Any) -> dict[str, Any]:
    return {"mechanism": {"name": "blt", **said}, "noise_multiplier": 1.0}


def banded(**said: Any) -> dict[str, Any]:
    return {"mechanism": {"name": "banded-toeplitz", **said}, "zcdp": 1.0}


@pytest.mark.parametrize(
    ("privacy", "message"),
    [
        ({"mechanism": {"name": "none"}, "noise_multiplier": 1.0}, "privacy.noise_multiplier says noise but"),
        ({"mechanism": {"name": "none"}, "zcdp": 1.0}, "privacy.zcdp says noise but privacy.mechanism='none'"),
        ({"mechanism": {"name": "none"}, "epsilon": 8.0}, "privacy.epsilon says noise but privacy.mechanism='none'"),
        ({"mechanism": {"name": "tree"}}, "one of privacy.epsilon, privacy.zcdp and privacy.noise_multiplier; none is"),
        ({"mechanism": None}, "[privacy] does not say how much noise; give privacy.epsilon = 8, say"),
        ({"mechanism": {"name": "best"}}, 'or name = "none" below [privacy.mechanism] for a run that promises nothing'),
        (
            {"mechanism": {"name": "tree"}, "zcdp": 1.0, "noise_multiplier": 1.0},
            "privacy.zcdp and privacy.noise_multiplier are given",
        ),
        (
            {"mechanism": None, "zcdp": 1.0, "noise_multiplier": 1.0, "epsilon": 1.0},
            "privacy.epsilon and privacy.zcdp and privacy.noise_multiplier are given",
        ),
        ({"mechanism": {"name": "best", "bands": 3}, "zcdp": 1.0}, "mechanism 'best' is none of independent, tree,"),
        ({"mechanism": {"name": "bandet"}, "zcdp": 1.0}, "did you mean banded?"),
        ({"mechanism": {"name": "blt-b400", "buffers": 2}, "zcdp": 1.0}, "mechanism 'blt-b400', which takes nothing"),
        (
            {"mechanism": {"name": "independent", "theta": [0.5]}, "zcdp": 1.0},
            "mechanism 'independent'",
        ),
        ({"mechanism": {"name": "tree", "buffers": 4}, "zcdp": 1.0}, "privacy.mechanism.buffers does not belong to"),
        (blt(bands=4), "privacy.mechanism.bands does not belong to mechanism 'blt', which takes theta, omega, buffers"),
        (
            blt(buffers=4, theta=[0.5], omega=[0.5]),
            "theta with omega, or buffers say which strategy it is",
        ),
        (blt(buffers=0), "buffers=0 is below 1"),
        (banded(bands=4, coefficients=[1.0]), "several are given; give one of them"),
        (banded(bands=0), "bands=0 is below 1"),
        (banded(coefficients=[1.0, 2.0]), "coefficient"),
        (banded(coefficients=["1.0"]), "privacy.mechanism.coefficients[0] is '1.0', and a number was expected"),
        (blt(theta=[0.5]), "theta and omega come together; give both"),
        (blt(theta=[0.5, 0.4], omega=[0.5]), "2 theta and 1 omega were given"),
        (blt(theta=[], omega=[]), "theta"),
        (blt(theta=[1.5], omega=[0.5]), "theta=(1.5,) leave (0, 1]"),
        ({"mechanism": {"name": "blt-b17"}, "zcdp": 1.0}, "mechanism 'blt-b17' is none of independent, tree,"),
        ({"mechanism": {"name": "nowhere:AT_ALL"}, "zcdp": 1.0}, "give package.module:NAME of a Mechanism"),
        ({"mechanism": {"name": "tacit.errors:InputError"}, "zcdp": 1.0}, "is a type and no Mechanism"),
        ({"mechanism": {"name": 3}, "zcdp": 1.0}, "privacy.mechanism has a wrong name"),
        (
            {"mechanism": {"name": "tree-full", "restarts": [4]}, "zcdp": 1.0},
            "which takes nothing; drop it",
        ),
        ({"mechanism": {"name": "dense", "bands": 2}, "zcdp": 1.0}, "bands does not belong to mechanism 'dense'"),
        ({"mechanism": {"name": "tree", "restarts": [4, 4]}, "zcdp": 1.0}, "restarts=(4, 4) are not increasing"),
        (
            {"mechanism": {"name": "none"}, "extrapolate_to": 5},
            "extrapolate_to=5 is not above rounds.report_goal=5",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(privacy: dict[str, Any], message: str) -> None:
    assert message in refusal(changed("privacy", **privacy))


def test_more_than_one_complaint_is_counted() -> None:
    assert refusal({**LEAST, "data": {}, "rounds": {"rounds": 0, "report_goal": 1}}).endswith("(2 more after it)")


def test_a_section_that_is_a_value_is_refused() -> None:
    assert "rounds = 3, but 'rounds' is a section; write [rounds] and its keys below it" in refusal(
        {**LEAST, "rounds": 3}
    )


def test_files_that_are_no_recipes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    cases = {None: "there is no recipe", b"name = \xff": "is not UTF-8", b"name = ": "is not TOML"}
    for content, message in cases.items():
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(RecipeError, match=message) as refused:
            Recipe.load(path)
        assert str(path) in str(refused.value) and "\n" not in str(refused.value)


def test_a_path_may_be_text_and_an_empty_file_is_no_shipped_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Recipe.load("chat-private") == Recipe.load(Path("chat-private"))
    Path("chat-private.toml").write_text("")
    with pytest.raises(RecipeError, match=r"the key .name. is missing"):
        Recipe.load("chat-private.toml")
    with pytest.raises(InputError, match="path=7 is no path"):
        Recipe.load(7)  # type: ignore[arg-type]


# -- what is shipped and what is documented ------------------------------------------------------------------------


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_recipes_are_recipes(path: Path) -> None:
    recipe = Recipe.load(path)
    assert recipe.with_delta(recipe.privacy.delta or 1e-6).plan().rounds == recipe.rounds.rounds
    defaults = {key: field.default for key, field in keys()}
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        section = f"{line[1:-1]}." if line.startswith("[") else section
        key, _, value = line.partition(" = ")
        chosen = section in ("model.", "client.", "server.") and value
        if chosen and tomllib.loads(f"x = {value}")["x"] != defaults[section + key]:
            assert "#" in value, f"{path.name}: {line!r} differs from the default and says not why"


def documented() -> dict[str, str]:
    """section.key -> default, as the tables of the page have it."""
    found, section = {}, ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            title = re.match(r"## `\[(\w+)\]`", line)
            section = f"{title[1]}." if title else ""
        row = re.match(r"\| `(\w+)` \| (.+?) \| (.+) \|$", line)
        if row:
            assert len(row[3]) > 10, f"{row[1]} has no reason"
            found[section + row[1]] = row[2]
    return found


def shown(default: Any) -> str:
    if default is None:
        return "none"
    if default is THE_BEST:
        return "the best"
    return "`" + tomli_w.dumps({"x": default}).removeprefix("x = ").strip() + "`"


def test_every_key_is_documented_with_its_default() -> None:
    wanted = {key: "required" if f.default is PydanticUndefined else shown(f.default) for key, f in keys()}
    page = documented()
    assert page.pop("rounds.max_participations").startswith("as many as")
    del wanted["rounds.max_participations"]
    assert page == wanted


def test_every_mechanism_is_documented_with_its_parameters() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, mechanism in MECHANISMS.items():
        row = next(line for line in text.splitlines() if line.startswith("| `") and f"`{name}`" in line.split("|")[1])
        for parameter in fields(mechanism.parameters):
            assert f"`{parameter.name}" in row, f"docs/recipes.md does not say what {parameter.name} of {name} is"


def test_the_recipe_on_the_page_is_one() -> None:
    (block,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    recipe = Recipe.from_toml(block).with_delta(1e-5)
    assert recipe.guarantee().epsilon(1e-5) == pytest.approx(8, rel=1e-6)


# -- real devices ------------------------------------------------------------------------------------------------------

PHONES = {"population": "phones", "devices": 1000}
A_DECRYPTOR, ANOTHER = (
    f"http://127.0.0.1:8480 {'ab' * 32} {'cd' * 32}",
    f"https://decryptor.example {'ef' * 32} {'01' * 32}",
)
DECRYPTORS = [A_DECRYPTOR, ANOTHER]


def sealed(**changes: Any) -> dict[str, Any]:
    return {"deployment": {**PHONES, **changes}, "aggregation": {"kind": "secure"}}


def test_devices_keep_the_separation_that_is_planned_with() -> None:
    by_index = parsed({**LEAST, "deployment": PHONES})
    assert by_index.plan().separation == DeviceSeparation(rounds=4)
    by_timer = parsed({**LEAST, "deployment": {**PHONES, "round_index": False, "timer_hours": 48.0}})
    assert by_timer.plan().separation == DeviceSeparation(timer_seconds=48 * 3600.0)
    both = parsed({**LEAST, "deployment": {**PHONES, "timer_hours": 0.5}})
    assert both.plan().separation == DeviceSeparation(rounds=4, timer_seconds=1800.0)
    twice = parsed({**LEAST, "deployment": PHONES, "rounds": {**LEAST["rounds"], "max_participations": 2}})
    assert twice.plan().separation == DeviceSeparation(rounds=4, most=2)
    assert parsed(LEAST).plan().separation is None
    assert (by_index.clients(7), parsed(LEAST).clients(7)) == (1000, 7), "of the cache only where it is simulated"
    assert Recipe.from_toml(both.to_toml()) == both


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"deployment": {**PHONES, "round_index": False}}, "leave devices nothing to keep"),
        ({"deployment": {**PHONES, "devices": 19}}, "are 20 devices, and deployment.devices=19; give more"),
        ({"deployment": {**PHONES, "population": "all phones"}}, "deployment.population = 'all phones'"),
        ({"deployment": {**PHONES, "over_selection": 0.9}}, "deployment.over_selection = 0.9"),
        ({"deployment": PHONES, "population": {"timer_hours": 48.0}}, "[population] simulates who comes and"),
        (
            {"deployment": {**PHONES, "devices": 49}, "rounds": {**LEAST["rounds"], "max_participations": 2}},
            "are 100 participations, and deployment.devices=49 that take part 2 times at most",
        ),
        (
            {"deployment": PHONES, "aggregation": {"kind": "secure", "protocol": "masks", "protocol_clients": 5}},
            "aggregation.protocol='masks' is played by a simulation",
        ),
        (
            {"deployment": PHONES, "aggregation": {"kind": "secure", "decryptors": 2}, "privacy": CLIPPED},
            "aggregation.decryptors=2 is played by a simulation",
        ),
        (
            {
                "deployment": PHONES,
                "privacy": {"mechanism": {"name": "tacit.design.catalogue.tree:TREE"}, "epsilon": 8.0, "delta": 1e-5},
            },
            "privacy.mechanism='tacit.design.catalogue.tree:TREE' is code of somebody's own",
        ),
        ({"deployment": {**PHONES, "decryptors": DECRYPTORS}}, "without [aggregation] updates are none"),
        ({"deployment": {**PHONES, "corrupt_decryptors": 2}}, "deployment.corrupt_decryptors=2 of no decryptors"),
        (sealed(decryptors=DECRYPTORS[:1]), "deployment.corrupt_decryptors=1 of 1 deployment.decryptors"),
        (
            sealed(decryptors=DECRYPTORS, corrupt_decryptors=2),
            "deployment.corrupt_decryptors=2 of 2 deployment.decryptors",
        ),
        (sealed(decryptors=[A_DECRYPTOR, ANOTHER.replace("01" * 32, "cd" * 32)]), "have the same box"),
        (sealed(noise="decryptors"), "there are no deployment.decryptors"),
        (sealed(decryptors=DECRYPTORS, honest_decryptors=2), "honest_decryptors=2 of noise that the server adds"),
        (
            sealed(decryptors=DECRYPTORS, noise="decryptors", honest_decryptors=2),
            "deployment.honest_decryptors=2 of 2 decryptors, of whom 1 may work with the server, cannot be relied on; "
            "give 1 to 1",
        ),
        (
            {**sealed(decryptors=DECRYPTORS, noise="decryptors"), "training_loss": {}, "privacy": CLIPPED},
            "and deployment.noise='decryptors' is there that it knows none; drop [training_loss] or deployment.noise",
        ),
        (
            {"aggregation": {"kind": "secure", "honest_decryptors": 2}},
            "honest_decryptors=2 of no aggregation.decryptors",
        ),
        (
            {"aggregation": {"kind": "secure", "decryptors": 2, "honest_decryptors": 3}},
            "aggregation.honest_decryptors=3 of 2 decryptors cannot be relied on; give 1 to 2",
        ),
        (sealed(decryptors=[A_DECRYPTOR, ANOTHER.upper()]), "which is no decryptor; write 'URL IDENTITY BOX'"),
        (sealed(decryptors=[A_DECRYPTOR, ANOTHER.replace("https", "http")]), "has no TLS, and is not this machine"),
        (sealed(decryptors=[A_DECRYPTOR, ANOTHER.replace("https://", "")]), "is no decryptor's address"),
    ],
)
def test_what_real_devices_cannot_keep_or_be_is_refused(changes: dict[str, Any], message: str) -> None:
    assert message in refusal({**LEAST, **changes})


def test_the_best_mechanism_for_real_devices_is_one_that_they_can_compute() -> None:
    best = {
        **LEAST,
        "privacy": {"epsilon": 8.0, "delta": 1e-5},
        "rounds": {"rounds": 4, "report_goal": 3, "min_separation": 2},
    }
    simulated, served = parsed(best), parsed({**best, "deployment": {**PHONES, "devices": 10}})
    assert simulated.matrix() is not None, "of all mechanisms a matrix is best here"
    assert served.matrix() is None and "was chosen" in str(served.why_mechanism())
    chosen = served.designed().privacy.mechanism
    assert chosen is not None and not chosen.needs_design


def test_decryptors_of_real_devices_are_kept_to_the_letter() -> None:
    recipe = parsed({**LEAST, **sealed(decryptors=DECRYPTORS)})
    assert recipe.deployment is not None and len(recipe.deployment.decryptors) == 2
    assert Recipe.from_toml(recipe.to_toml()) == recipe


def test_a_timer_alone_needs_no_more_devices_than_one_round_and_may_expect_fewer_participations() -> None:
    timed = {**PHONES, "devices": 5, "round_index": False, "timer_hours": 48.0}
    parsed({**LEAST, "deployment": timed, "rounds": {**LEAST["rounds"], "max_participations": 2}})
    parsed({**LEAST, "deployment": PHONES, "aggregation": {"kind": "secure", "threshold": 4}})
