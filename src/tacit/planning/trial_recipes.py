"""From the recipe that somebody wants in production to the recipes of its trials, and from the chosen trial back.

A trial is the recipe at a small report goal with an adaptive clip norm; production is the recipe at a large one with
the clip norm fixed. Both keep the noise on the mean as the recipe has it.
"""

import math
from dataclasses import replace
from functools import lru_cache

from tacit.design.catalogue.tree import TREE
from tacit.design.mechanism import ChosenMechanism
from tacit.design.parameters import TreeParameters
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError
from tacit.planning.noise_forecast import errors_of_models
from tacit.planning.tuning import (
    Choice,
    TrialName,
    TuningSettings,
    grid,
    scaled_noise_multiplier,
    trial_restarts,
)
from tacit.privacy import Guarantee, Participation
from tacit.privacy.strategy import Matrix, Tree
from tacit.recipe import Recipe
from tacit.recipe.sections import ClippingSection, PrivacySection

START = 10  # the first clip norm is the recipe's by this: "start low" (arXiv:2305.18465, Section 2.1)
SCALES: dict[str, object] = {
    "clip_norm": 1.0,
    "noise_multiplier": None,
    "zcdp": None,
    "epsilon": None,
}  # what no design depends on
AROUND = (0.5, 1.0, 2.0)  # times the recipe's server learning rate, where no list is given


def trial_names(recipe: Recipe, settings: TuningSettings) -> list[TrialName]:
    """The trials that are asked for, in the order in which they are done. Raises: InputError."""
    usual = tuple(factor * recipe.server.learning_rate for factor in AROUND)
    of_recipe = 0.5 if recipe.clipping is None else recipe.clipping.quantile
    rates, quantiles = settings.server_learning_rates, settings.quantiles
    pairs = grid(usual if rates is None else rates, (of_recipe,) if quantiles is None else quantiles)
    return [TrialName(setting=pair, number=n) for n in range(1, settings.seeds + 1) for pair in pairs]


def trial_report_goal(recipe: Recipe, settings: TuningSettings) -> int:
    """Clients of a trial's cohort."""
    return recipe.rounds.report_goal if settings.report_goal is None else settings.report_goal


def trial_base(recipe: Recipe, settings: TuningSettings) -> Recipe:
    """What all trials have in common.

    A mechanism with one clip norm gives way to a tree that restarts; its noise multiplier is then such that the models
    have the error that the recipe's mechanism gives. Decryptors, beside whom no clip norm adapts, give way to a
    server that adds the noise of all of them. Raises: InputError, AccountingError, RecipeError.
    """
    goal, initial = trial_report_goal(recipe, settings), settings.initial_clip_norm
    for name, value in (
        ("report-goal", goal),
        ("rounds", settings.rounds),
        ("min-separation", settings.min_separation),
    ):
        if value is not None and value < 1:
            raise InputError(f"--{name} {value} must be at least 1.")
    if initial is not None and not 0 < initial < float("inf"):
        raise InputError(f"--initial-clip-norm {initial:g} must be a number above 0.")
    rounds = recipe.rounds.rounds if settings.rounds is None else settings.rounds
    limits = {"rounds": rounds, "report_goal": goal, "max_participations": None}
    if settings.min_separation is not None:
        limits["min_separation"] = settings.min_separation
    if settings.rounds is None and settings.report_goal is None and settings.min_separation is None:
        limits["max_participations"] = recipe.rounds.max_participations  # the recipe's own cohorts
    privacy = _trial_privacy(recipe, rounds, goal)
    clipping = _trial_clipping(recipe, goal, initial)
    changed: dict[str, object] = {
        "rounds": recipe.rounds.model_copy(update=limits),
        "privacy": privacy.model_copy(
            update={
                "clip_norm": clipping.initial,
                "population": recipe.privacy.population if settings.public is None else None,
            }
        ),
        "clipping": clipping,
        "evaluation": recipe.evaluation.model_copy(update={"baselines": False}),  # trials are held against each other
        "aggregation": recipe.aggregation
        and recipe.aggregation.model_copy(update={"decryptors": None, "honest_decryptors": 1}),
    }
    if settings.data is not None:
        changed["data"] = recipe.data.model_copy(update={"cache": settings.data})
    return _checked(recipe.model_copy(update=changed), "a trial's recipe")


def trial_recipe(base: Recipe, name: TrialName) -> Recipe:
    """The recipe of one trial. Trials of equal number have equal seeds where the recipe fixes one: pairs."""
    assert base.clipping is not None  # by trial_base
    seed = base.run.seed
    changed = {
        "name": f"{base.name} {name}",
        "server": base.server.model_copy(update={"learning_rate": name.setting.server_learning_rate}),
        "clipping": base.clipping.model_copy(update={"quantile": name.setting.quantile}),
        "run": base.run.model_copy(update={"seed": None if seed is None else seed + name.number - 1}),
    }
    return _checked(base.model_copy(update=changed), f"the recipe of {name}")


def production_recipe(recipe: Recipe, choice: Choice, report_goal: int) -> Recipe:
    """The recipe at a large report goal, with the chosen server learning rate and a fixed clip norm.

    Mechanism, rounds and participation are the recipe's; restarts that only served an adaptive clip norm, a fixed seed
    and `extrapolate_to` are dropped. Raises: RecipeError, InputError, AccountingError where there can be no such run.
    """
    privacy = recipe.privacy
    changed: dict[str, object] = {"clip_norm": choice.clip_norm, "zcdp": None, "epsilon": None, "extrapolate_to": None}
    if privacy.mechanism is not None:
        changed["noise_multiplier"] = scaled_noise_multiplier(
            _noise_multiplier(recipe), report_goal=recipe.rounds.report_goal, to=report_goal
        )
    if recipe.clipping is not None and privacy.mechanism is not None:
        changed["mechanism"] = _restarted(privacy.mechanism, ())
    made = recipe.model_copy(
        update={
            "server": recipe.server.model_copy(update={"learning_rate": choice.setting.server_learning_rate}),
            "rounds": recipe.rounds.model_copy(update={"report_goal": report_goal}),
            "privacy": privacy.model_copy(update=changed),
            "clipping": None,
            "run": recipe.run.model_copy(update={"seed": None}),
        }
    )
    return _checked(made, "the production recipe")


def planned(recipe: Recipe) -> Guarantee:
    """What a run of the recipe promises before its first round; a mechanism is designed once, however often settings.

    Raises: InputError, AccountingError where the mechanism cannot be had for this participation.
    """
    noise = {name: getattr(recipe.privacy, name) for name in SCALES}
    section = recipe.privacy.model_copy(update=SCALES)
    section, matrix = _designed(section, recipe.rounds.participation(), recipe.workload())
    return recipe.model_copy(update={"privacy": section.model_copy(update=noise)}).guarantee(matrix)


@lru_cache(maxsize=4)
def _designed(
    section: PrivacySection, participation: Participation, workload: Workload
) -> tuple[PrivacySection, Matrix | None]:
    """A section without scales: some minutes for thousands of rounds of "banded"."""
    return section.designed(participation, workload=workload), section.matrix(participation, workload=workload)


def _noise_multiplier(recipe: Recipe) -> float:
    """That of the recipe, computed where it says a price instead."""
    return recipe.privacy.noise_multiplier or planned(recipe).noise_multiplier


def _trial_privacy(recipe: Recipe, rounds: int, report_goal: int) -> PrivacySection:
    wanted = recipe.privacy
    if wanted.mechanism is None:
        return wanted.model_copy(update={"extrapolate_to": None})
    trees = not wanted.adapts
    update: dict[str, object] = {
        "zcdp": None,
        "epsilon": None,
        "extrapolate_to": None,
        "noise_multiplier": scaled_noise_multiplier(
            _noise_multiplier(recipe),
            report_goal=recipe.rounds.report_goal,
            to=report_goal,
            error_ratio=(_error_over_tree(recipe) if trees else 1.0) * _noisier(recipe),
        ),
    }
    mechanism = ChosenMechanism(mechanism=TREE, parameters=TreeParameters()) if trees else wanted.mechanism
    if isinstance(mechanism.parameters, TreeParameters):
        mechanism = _restarted(mechanism, trial_restarts(rounds, mechanism.parameters.restarts))
    update["mechanism"] = mechanism
    kept = PrivacySection(mechanism=mechanism, noise_multiplier=1.0, delta=wanted.delta) if trees else wanted
    return kept.model_copy(update=update)


def _noisier(recipe: Recipe) -> float:
    """The deviation of the noise of all decryptors, in what the multiplier says; 1 where the server adds it."""
    if recipe.aggregation is None:
        return 1.0
    return math.sqrt((recipe.aggregation.decryptors or 1) / recipe.aggregation.honest_decryptors)


def _restarted(mechanism: ChosenMechanism, restarts: tuple[int, ...]) -> ChosenMechanism:
    """The same with other restarts, where it has any."""
    if not isinstance(mechanism.parameters, TreeParameters):
        return mechanism
    return replace(mechanism, parameters=replace(mechanism.parameters, restarts=restarts))


def _error_over_tree(recipe: Recipe) -> float:
    """Error that training leaves in the server's models under the recipe's mechanism over that under a tree, at equal
    seeds; the largest or the root mean square, whichever the recipe's `objective` is. Of prefix sums, where the server
    divides by what it saw: nothing was measured of those.
    """
    strategy, server = planned(recipe).strategy, recipe.server.linear()
    assert strategy is not None  # by the caller: there is noise
    reach = 0.0 if server is None else recipe.server.learning_rate * recipe.privacy.clip_norm
    ours, of_tree = (
        errors_of_models(each, server or PREFIX, recipe.rounds.rounds, reach) for each in (strategy, Tree())
    )
    return ours.max / of_tree.max if recipe.privacy.objective == "max" else ours.rms / of_tree.rms


def _trial_clipping(recipe: Recipe, report_goal: int, initial: float | None) -> ClippingSection:
    """As the recipe has it; the noise of its counts grows with the report goal, as paper 1's does."""
    given = recipe.clipping
    if given is None:
        return ClippingSection(initial=recipe.privacy.clip_norm / START if initial is None else initial)
    bits = None if given.bit_stddev is None else given.bit_stddev * report_goal / recipe.rounds.report_goal
    return given.model_copy(
        update={"bit_stddev": bits, "initial": given.initial if initial is None else initial},
    )


def _checked(recipe: Recipe, where: str) -> Recipe:
    """The same, through every rule that a recipe in a file meets."""
    return Recipe.from_toml(recipe.to_toml(), where=where)
