"""What `tacit plan production` leaves in its folder: the production recipe with reasons, and the planned statement."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.data import CacheManifest
from tacit.design.catalogue import mechanism_named
from tacit.design.mechanism import ChosenMechanism
from tacit.errors import InputError
from tacit.planning.production import Production
from tacit.planning.scenario import AccountedPlan
from tacit.planning.tuning import Tuned
from tacit.population.devices import RoundRules
from tacit.privacy.encoding import Encoding
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.recipe import Recipe
from tacit.recipe.sections import PopulationSection, PrivacySection, RoundsSection
from tacit.statements import TrainingFacts
from tacit.statements.run_facts import PUBLIC_DATA
from tacit.statements.statement import Statement, statement

RULES = ("clock", "over_selection", "check_in_minutes", "deadline_minutes", "pause_minutes", "most_days")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the production recipe begins: a recipe, or defaults for a cache; and what is known besides.

    `chosen` and `timed`: whether the mechanism was chosen here, and whether the timer was asked for.
    """

    recipe: Path | None
    cache: Path | None
    model: Path | None
    tuned: Tuned | None
    chosen: bool = True
    timed: bool = False

    def base(self) -> Recipe:
        """The recipe to build on. Raises: InputError where nobody says whose text, RecipeError."""
        if self.recipe is not None:
            return Recipe.load(self.recipe)
        if self.cache is None:
            raise InputError(
                "whose text production.toml trains on is not given; give --recipe BASE.toml, or --cache FOLDER (a "
                "cache of `tacit data import`, which need not be there yet)."
            )
        return Recipe.model_validate(
            {
                "name": "production",
                "data": {"cache": self.cache},
                "rounds": {"rounds": 1, "report_goal": 1, "min_separation": 1},
                "privacy": {"mechanism": {"name": "none"}},
            }
        )

    def with_what_is_known(self, base: Recipe) -> Recipe:
        """The base with the cache, model, learning rate and clip norm that were given beside it."""
        changed: dict[str, Any] = {}
        if self.cache is not None:
            changed["data"] = base.data.model_copy(update={"cache": self.cache})
        if self.model is not None:
            changed["model"] = base.model.model_copy(update={"init": self.model})
        if self.tuned is not None:
            changed["server"] = base.server.model_copy(update={"learning_rate": self.tuned.server_learning_rate})
            changed["privacy"] = base.privacy.model_copy(update={"clip_norm": self.tuned.clip_norm})
        return base.model_copy(update=changed)


def production_recipe(base: Recipe, production: Production, delta: float, rules: RoundRules) -> Recipe:
    """The base at the scale of the plan, its clip norm fixed. Raises: RecipeError where that contradicts itself."""
    plan, seen = production.plan, production.simulated
    participation = plan.guarantee.participation
    privacy = PrivacySection(
        mechanism=_mechanism(plan),
        clip_norm=base.privacy.clip_norm,
        noise_multiplier=plan.guarantee.noise_multiplier,
        delta=delta,
    )
    rounds = RoundsSection(
        rounds=plan.rounds,
        report_goal=plan.report_goal,
        min_separation=participation.min_separation,
        max_participations=participation.max_participations,
    )
    population = PopulationSection(timer_hours=seen.timer_hours, **{name: getattr(rules, name) for name in RULES})
    changed = {
        "name": f"{base.name} production" if base.name != "production" else base.name,
        "rounds": rounds,
        "privacy": privacy,
        "clipping": None,
        "population": population,
    }
    recipe = base.model_copy(update=changed)
    return Recipe.from_toml(recipe.to_toml(), where="the production recipe")


def _mechanism(plan: AccountedPlan) -> ChosenMechanism:
    """The plan's mechanism with the numbers that it was designed to have."""
    mechanism = mechanism_named(plan.mechanism.name)
    if mechanism.matrix is not None:
        raise InputError(f"a recipe cannot hold a {plan.strategy.kind} strategy in numbers; choose another mechanism.")
    parameters = mechanism.parameters()
    if parameters.needs_design:
        parameters = parameters.settled(plan.strategy)
    return ChosenMechanism(mechanism=mechanism, parameters=parameters)


def reasons_for(production: Production, origin: Origin, encoding: Encoding | None, delta: float) -> dict[str, str]:
    """Beside each value that was decided here."""
    plan, seen, noisier = production.plan, production.simulated, production.reached.noisier
    participation, guarantee = plan.guarantee.participation, plan.guarantee
    utility = production.scenario.utility
    bears = (
        f"noise multiplier {utility.noise_multiplier:g} at {utility.report_goal} reports with {utility.mechanism.name}"
    )
    noise = (
        f"the noise on the mean of {bears}" if noisier == 1 else f"{noisier:.4g} times the noise on the mean of {bears}"
    )
    coded = "" if encoding is None else "; the clip norm inflated by secure aggregation is counted"
    design = (
        f"designed for {participation.rounds} rounds, separation {participation.min_separation}, "
        f"{participation.max_participations} visits"
    )
    cost = f"zCDP {guarantee.zcdp:.6g}, epsilon {guarantee.epsilon(delta):.6g}"
    if noisier == 1:
        chosen = "the least that reaches the target"
    elif production.largest_feasible is None:
        chosen = "the most that the system takes"
    else:
        chosen = "of those that end in time, the one with the least noise for the target"
    timer = "as asked for" if origin.timed else "the largest MinS in acceptable days"
    found = {
        "data.cache": "as given" if origin.cache is not None else f"of {origin.recipe}",
        "rounds.rounds": "as given: the target number of rounds",
        "rounds.report_goal": f"{chosen}, by simulation (step 3)",
        "rounds.min_separation": f"MinS {participation.rounds_between} + 1, which the timer promised in simulation",
        "rounds.max_participations": "MaxP, which the timer promised in simulation",
        "privacy.mechanism.name": "the least zCDP at this noise on the mean" if origin.chosen else "as asked for",
        "privacy.mechanism.theta": design,
        "privacy.mechanism.omega": design,
        "privacy.mechanism.coefficients": design,
        "privacy.noise_multiplier": f"{noise}; {cost} as planned{coded}",
        "privacy.delta": "as given",
        "privacy.clip_norm": "fixed; scale it with the server's learning rate"
        if origin.recipe is None
        else f"of {origin.recipe}",
        "population.timer_hours": f"{timer}: {seen.days:.3g} days, simulated (step 4)",
    }
    if origin.model is not None:
        found["model.init"] = "the pre-trained model (step 1)"
    if origin.tuned is not None:
        found["server.learning_rate"] = f"tuned in {origin.tuned.folder} (step 6)"
        found["privacy.clip_norm"] = f"the estimate of {origin.tuned.folder}, fixed (step 6)"
    return found


def statement_of_plan(
    recipe: Recipe, production: Production, path: Path, *, delta: float, encoding: Encoding | None, tuned: Tuned | None
) -> Statement:
    """What the production run would promise; `path` is where its record will be."""
    plan, seen = production.plan, production.simulated
    guarantee = replace(plan.guarantee, clip_norm=recipe.privacy.clip_norm)
    kind, described = vocabulary_of(recipe.data.cache)
    first = () if recipe.model.init is None else (f"the text that the model {recipe.model.init} was trained on",)
    tuning = "whatever was tried on the same devices before this run to choose its settings"
    seed = recipe.run.seed
    facts = TrainingFacts(
        planned=guarantee,
        delta=delta,
        population=production.scenario.clients.devices,
        report_goal=plan.report_goal,
        cohort_rule=(
            f"the first {plan.report_goal:,} reports of a round are used, and every device keeps a timer of "
            f"{seen.timer_hours:g} hours; how many rounds that is, nobody enforces, so MinS and MaxP are an expectation"
        ),
        vocabulary_kind=kind,
        vocabulary_description=described,
        released="the model after every round",
        looked_at=(
            f"the text of up to {recipe.evaluation.clients:,} validation devices every {recipe.evaluation.every:,} "
            f"rounds and of up to {recipe.evaluation.test_clients:,} test devices at the end, without noise",
            tuning if tuned is None else f"{tuning}: {tuned.cost}",
        ),
        public_data=PUBLIC_DATA[kind] + first,
        verify_command=f"tacit verify {shlex.quote(str(path))}",
        key_source=OPERATING_SYSTEM if seed is None else f"fixed seed {seed}",
        aggregation=(
            "in the clear, by a trusted server"
            if encoding is None
            else f"secure aggregation, scale {encoding.scale:.6g} before rounding, {encoding.dimension:,} coordinates"
        ),
        decryptors=0 if recipe.aggregation is None else recipe.aggregation.decryptors or 0,
        honest_decryptors=1 if recipe.aggregation is None else recipe.aggregation.honest_decryptors,
    )
    simulation = (
        f"{production.scenario.clients.devices:,} simulated devices, timer of {seen.timer_hours:g} hours, "
        f"{seen.days:.3g} days, one seed."
    )
    return statement(replace(facts, simulated=seen.realised, simulation=simulation))


def vocabulary_of(cache: Path) -> tuple[str, str]:
    """(kind, description) of a cache's vocabulary; that of clients' text, the worst, where the cache is not there."""
    if not cache.exists():
        return "private", f"not known yet, because there is no cache '{cache}'; the worst is assumed"
    known = CacheManifest.load(cache).vocabulary
    return known.kind, known.description
