"""A run's plan, as devices get it: what its folder says that it promises, in one document that never changes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel

from tacit.errors import InputError
from tacit.jobs.discover.job import devices_of, vocabulary_digest
from tacit.jobs.discover.job import settings_of as discovery_of
from tacit.privacy.separation import DeviceSeparation
from tacit.protocol.fields import MOST_WORDS
from tacit.protocol.matrix_files import check_affordable, matrix_file
from tacit.protocol.messages import UNATTESTED, Aggregation, LocalPrivacy, Plan, Separation, TrainingPrivacy
from tacit.protocol.signing import code_digest
from tacit.protocol.train import Training, trained_words
from tacit.recipe import Recipe
from tacit.recipe.deployment_section import DeploymentSection
from tacit.runs import Run
from tacit.runs.draft import SETTINGS
from tacit.server.count_plan import plan_about_models
from tacit.statements.accounts import matrix_of, trained

Enrolment: TypeAlias = Literal["none", "tokens"]


def check_servable(recipe: Recipe) -> None:
    """Raises: InputError for a recipe whose promise ends where devices have its plan, since the plan has the recipe, or
    whose tasks they would all refuse.
    """
    if (words := trained_words(Training.model_construct(**recipe.client.model_dump()))) > MOST_WORDS:
        raise InputError(
            f"the recipe {recipe.name!r} has a device train on {words:,} words a round, padding counted, and devices "
            f"take {MOST_WORDS:,}; lower client.epochs, sentences or words."
        )
    if recipe.run.seed is not None and recipe.privacy.mechanism is not None:
        raise InputError(
            f"run.seed={recipe.run.seed} of the recipe {recipe.name!r} goes to every device with its plan, and whoever "
            "has it computes the noise and takes it away; drop [run] seed, so that noise is drawn in secret."
        )
    asked, limits = recipe.privacy.mechanism, recipe.rounds.participation()
    if asked is not None and asked.mechanism.matrix is not None:
        bands = getattr(asked.parameters, "bands", limits.rounds) or limits.min_separation
        check_affordable(asked.mechanism.matrix, limits.rounds, min(bands, limits.rounds), limits)


def plan_of(run: Run, enrolment: Enrolment = "none") -> Plan:
    """The plan of a run for real devices. Raises: InputError for a run that asks none."""
    made = PLANS.get(run.kind)
    if made is None:
        raise InputError(f"'{run.path}' is a run of `tacit {run.kind}`, which asks no devices; give one that does.")
    return made(run, enrolment)


def _of_training(run: Run, enrolment: Enrolment) -> Plan:
    """Raises: InputError where its recipe has no [deployment]."""
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
        aggregation=aggregation_of(
            recipe.deployment, "plain" if planned.secure is None else "encoded", threshold=planned.report_goal
        ),
        vocabulary=metadata.data.vocabulary_sha256,
        attestation=UNATTESTED,
        enrolment=enrolment,
    )


def _of_words(run: Run, enrolment: Enrolment) -> Plan:
    """What a device sends is priced as a whole: its reports' epsilons add up, and epsilon-DP is epsilon^2/2-zCDP (Bun &
    Steinke 2016, arXiv:1605.02065, Proposition 1.4).
    """
    devices, settings = devices_of(run), discovery_of(run)
    epsilon, least = settings.reports.user_epsilon, settings.fewest_users
    return Plan(
        version=1,
        kind="discover",
        population=devices.deployment.population,
        run=devices.name,
        recipe=run.settings,
        code=code_digest(),
        privacy=LocalPrivacy(
            kind="local",
            zcdp=epsilon**2 / 2,
            local_epsilon=epsilon,
            report_goal=least,
            rounds=settings.groups,
            max_participations=1,
        ),
        separation=Separation(rounds=settings.groups, timer_seconds=None, clock="start"),
        aggregation=aggregation_of(devices.deployment, "plain", threshold=least),
        vocabulary=vocabulary_digest(run),
        attestation=UNATTESTED,
        enrolment=enrolment,
    )


PLANS: Mapping[str, Callable[[Run, Enrolment], Plan]] = {  # by the kind of run
    "train": _of_training,
    "discover": _of_words,
    "evaluate": plan_about_models,
    "personalize": plan_about_models,
}


def aggregation_of(section: DeploymentSection, kind: Literal["plain", "encoded"], *, threshold: int) -> Aggregation:
    """How reports are summed; where there are keepers they open sums. kind: without them."""
    keepers = section.named_keepers()
    return Aggregation(
        kind="sealed" if keepers else kind,
        threshold=threshold,
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
