"""A run's plan, as devices get it: what its folder says that it promises, in one document that never changes."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from tacit.deployment.matrix_files import check_affordable, matrix_file
from tacit.deployment.messages import UNATTESTED, Aggregation, Plan, Separation, TrainingPrivacy
from tacit.deployment.signing import code_digest
from tacit.errors import InputError
from tacit.privacy.separation import DeviceSeparation
from tacit.recipe import Recipe
from tacit.recipe.deployment_section import DeploymentSection
from tacit.runs import Run
from tacit.runs.draft import SETTINGS
from tacit.statements.accounts import matrix_of, trained
from tacit.training import RoundPlan


def check_servable(recipe: Recipe) -> None:
    """Raises: InputError for a recipe whose promise ends where devices have its plan: the plan has the recipe."""
    if recipe.run.seed is not None and recipe.privacy.mechanism is not None:
        raise InputError(
            f"run.seed={recipe.run.seed} of the recipe {recipe.name!r} goes to every device with its plan, and whoever "
            "has it computes the noise and takes it away; drop [run] seed, so that noise is drawn in secret."
        )
    asked, limits = recipe.privacy.mechanism, recipe.rounds.participation()
    if asked is not None and asked.mechanism.matrix is not None:
        bands = getattr(asked.parameters, "bands", limits.rounds) or limits.min_separation
        check_affordable(asked.mechanism.matrix, limits.rounds, min(bands, limits.rounds), limits)


def plan_of(run: Run, enrolment: Literal["none", "tokens"] = "none") -> Plan:
    """The plan of a training run for real devices. Raises: InputError where its recipe has no [deployment]."""
    recipe = Recipe.from_toml(run.settings, where=str(run.path / SETTINGS))
    if recipe.deployment is None:
        raise InputError(
            f"the recipe {recipe.name!r} has no section [deployment], so it says nothing of real devices; add one "
            "(docs/recipes.md), or simulate it with `tacit train`."
        )
    metadata, matrix = trained(run), matrix_of(run)
    planned = recipe.plan(matrix)
    guarantee, kept = planned.guarantee, recipe.deployment.separation(recipe.rounds)
    promises = guarantee.strategy is not None and guarantee.noise_multiplier > 0
    return Plan(
        version=1,
        kind="train",
        population=recipe.deployment.population,
        run=recipe.name,
        recipe=_published(recipe).to_toml(),
        code=code_digest(),
        privacy=TrainingPrivacy(
            kind="training",
            zcdp=guarantee.zcdp if promises else None,
            epsilon=guarantee.epsilon(metadata.delta) if promises else None,
            delta=metadata.delta,
            clip_norm=guarantee.clip_norm,
            noise_multiplier=guarantee.noise_multiplier,
            mechanism=recipe.privacy.mechanism_name,
            matrix=None if matrix is None else matrix_file(matrix)[0],
            report_goal=planned.report_goal,
            rounds=planned.rounds,
            max_participations=_most(kept, planned.rounds),
        ),
        separation=Separation(rounds=kept.rounds, timer_seconds=kept.timer_seconds, clock="start"),
        aggregation=_aggregation(recipe.deployment, planned),
        vocabulary=metadata.data.vocabulary_sha256,
        attestation=UNATTESTED,
        enrolment=enrolment,
    )


def _aggregation(section: DeploymentSection, planned: RoundPlan) -> Aggregation:
    keepers = section.named_keepers()
    return Aggregation(
        kind="plain" if planned.secure is None else "sealed" if keepers else "encoded",
        threshold=planned.report_goal,
        keepers=tuple(each.identity for each in keepers),
        boxes=tuple(each.box for each in keepers),
        corrupt=section.corrupt_keepers if keepers else 0,
        contributors=(),
    )


def _most(kept: DeviceSeparation, rounds: int) -> int | None:
    """How often one device takes part, where that is known before the rounds are."""
    return None if kept.rounds is None and kept.most is None else kept.by_index(rounds).max_participations


def _published(recipe: Recipe) -> Recipe:
    """The same with files and folders by their names: where they lie on this machine is no device's business."""
    sections = {}
    for name, section in recipe:
        if isinstance(section, BaseModel):
            named = {field: Path(value.name) for field, value in section if isinstance(value, Path)}
            sections[name] = section.model_copy(update=named)
    return recipe.model_copy(update=sections)
