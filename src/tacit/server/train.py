"""Training on real devices: a recipe as a served job, its plan, and a round's question as they get it."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import BaseModel

from tacit.code_digest import code_digest
from tacit.errors import InputError, TrainingError
from tacit.jobs.opened_cache import open_cache
from tacit.jobs.train.job import train
from tacit.jobs.train.run import begin
from tacit.privacy.separation import DeviceSeparation
from tacit.progress import Progress
from tacit.protocol.fields import MOST_WORDS
from tacit.protocol.matrix_files import check_affordable
from tacit.protocol.messages import UNATTESTED, VERSION, Plan, Separation, TrainingPrivacy
from tacit.protocol.served_bodies import matrix_file, model_body
from tacit.protocol.train import EncodedSum, TrainDocument, Training, trained_words
from tacit.recipe import Recipe
from tacit.recipe.deployment_section import DeploymentSection
from tacit.runs import Run
from tacit.runs.draft import SETTINGS
from tacit.server.rounds.rounds import ServedRounds
from tacit.server.rounds.who_could_come import needed
from tacit.server.served import Enrolment, ServedJob, aggregation_of
from tacit.statements.accounts import matrix_of, trained
from tacit.training import TrainQuestion
from tacit.training.hooks import Hooks
from tacit.training.secure_updates import RoundEncoding


@dataclass(frozen=True)
class ServedTraining(ServedJob):
    """A recipe that real devices train."""

    recipe: Recipe

    def __post_init__(self) -> None:
        if self.recipe.deployment is None:
            raise InputError(
                f"the recipe {self.recipe.name!r} has no section [deployment], so it says nothing of real devices; add "
                "one (docs/recipes.md), or simulate it with `tacit train`."
            )
        check_servable(self.recipe)

    @property
    def name(self) -> str:
        """See ServedJob."""
        return self.recipe.name

    @property
    def deployment(self) -> DeploymentSection:
        """See ServedJob."""
        assert self.recipe.deployment is not None  # it was made with one
        return self.recipe.deployment

    @property
    def needs(self) -> tuple[int, int]:
        """See ServedJob."""
        asked, apart = self.recipe.rounds, self.deployment.separation(self.recipe.rounds).rounds
        return needed(asked.report_goal, apart or 1, asked.rounds), asked.report_goal

    @classmethod
    def from_toml(cls, text: str, *, where: str) -> Self:
        """See ServedJob."""
        return cls(Recipe.from_toml(text, where=where))

    def to_toml(self) -> str:
        """See ServedJob."""
        return self.recipe.to_toml()

    def placed(self, data: Path | None) -> Self:
        """See ServedJob."""
        own = open_cache(self.recipe.data.cache if data is None else data)
        section = self.recipe.data.model_copy(update={"cache": own.path.absolute()})
        return type(self)(self.recipe.model_copy(update={"data": section}))

    def begun(self, out: Path, collector: ServedRounds, progress: Progress) -> Run:
        """See ServedJob."""
        return begin(self.recipe, out, hooks=Hooks(collector=collector), progress=progress)

    def run(self, out: Path, collector: ServedRounds, progress: Progress) -> None:
        """See ServedJob."""
        train(self.recipe, out, collector=collector, progress=progress)

    def document(self, question: TrainQuestion) -> tuple[TrainDocument, bytes]:
        """See ServedJob; the content is the model."""
        return document(question)

    @staticmethod
    def plan(run: Run, enrolment: Enrolment) -> Plan:
        """See ServedJob. Raises: InputError where its recipe has no [deployment]."""
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
            version=VERSION,
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


def document(question: TrainQuestion) -> tuple[TrainDocument, bytes]:
    """The question as devices get it, and the model. Raises: TrainingError for what they cannot be asked."""
    if question.noise:
        raise TrainingError("decryptors of a simulation add no noise to the sums of real devices; drop them.")
    if question.separation is None:
        raise TrainingError("real devices have no identities; the recipe's [deployment] says what each keeps.")
    least = max(question.goal, question.min_reports)
    task = TrainDocument(
        kind="train",
        parameters=len(question.model),
        client=Training(**dataclasses.asdict(question.client)),
        clip_norm=question.clip_norm,
        clip_estimate=question.clip_estimate,
        loss_bound=question.loss_bound,
        encoded=None if question.secure is None else _encoded(question.secure, least),
    )
    return task, model_body(np.asarray(question.model))


def _encoded(secure: RoundEncoding, least: int) -> EncodedSum:
    numbers = dataclasses.asdict(secure.encoding)
    return EncodedSum(**numbers, signs=secure.signs.hex(), length=secure.length, threshold=least)


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
    chosen, limits = recipe.privacy.mechanism, recipe.rounds.participation()
    if chosen is not None and chosen.mechanism.matrix is not None:
        bands = getattr(chosen.parameters, "bands", limits.rounds) or limits.min_separation
        check_affordable(chosen.mechanism.matrix, limits.rounds, min(bands, limits.rounds), limits)


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
