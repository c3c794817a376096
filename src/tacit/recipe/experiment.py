"""A whole experiment: its sections, what they mean together, and which contradict each other.

Every key has a default with its reason beside it; an unknown key, a wrong value or two values that contradict each
other are refused with the name of the key. What a recipe means is what its rooms say: the sections `model`, `client`
and `server` are their settings types, `privacy` and `rounds` become one Guarantee.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import tomli_w
from pydantic import BaseModel, Field, ValidationError, model_validator

from tacit.design.bands import most_bands
from tacit.design.catalogue import MECHANISMS
from tacit.design.catalogue.banded import BANDED
from tacit.design.workload import PREFIX, Workload
from tacit.errors import AccountingError, RecipeError
from tacit.files import PathLike, as_path
from tacit.networks.training_cost import TrainingCost
from tacit.parsing import parsed_toml
from tacit.privacy import Guarantee
from tacit.privacy.delta import LARGEST
from tacit.privacy.strategy import Matrix
from tacit.recipe.changes import made_with, said
from tacit.recipe.complaint import first_complaint
from tacit.recipe.deployment_section import DeploymentSection
from tacit.recipe.model_section import Network, section_of
from tacit.recipe.recipe_files import read_recipe
from tacit.recipe.sections import (
    NONE,
    AggregationSection,
    ClientSection,
    ClippingSection,
    DataSection,
    EvaluationSection,
    PopulationSection,
    PrivacySection,
    RoundsSection,
    RunSection,
    Section,
    ServerSection,
    TrainingLossSection,
)
from tacit.recipe.shipped_recipes import named, shipped
from tacit.training import RoundPlan
from tacit.training.adaptive_clipping import AdaptiveClipping
from tacit.training.private_loss import PrivateLoss
from tacit.training.secure_updates import SecureUpdates

SMALLEST = 5  # ids of a vocabulary: the specials and a word; how many there are is the cache's to say


class Recipe(Section):
    """A whole experiment."""

    name: str = Field(min_length=1)
    data: DataSection
    model: Network = Field(default_factory=lambda: section_of()())
    client: ClientSection = ClientSection()
    server: ServerSection = ServerSection()
    rounds: RoundsSection
    privacy: PrivacySection
    clipping: ClippingSection | None = None
    training_loss: TrainingLossSection | None = None
    aggregation: AggregationSection | None = None
    population: PopulationSection | None = None
    deployment: DeploymentSection | None = None
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()

    @model_validator(mode="before")
    @classmethod
    def _begins_with_one_clip_norm(cls, values: Any) -> Any:
        """privacy.clip_norm is the first clip norm of a run that adapts it, and need not be said twice."""
        if not isinstance(values, dict):
            return values
        privacy, clipping = values.get("privacy"), values.get("clipping")
        initial: Any = clipping.get("initial") if isinstance(clipping, dict) else None
        if not isinstance(privacy, dict) or type(initial) not in (int, float) or not 0 < initial < float("inf"):
            return values  # what is wrong there has a rule of its own
        fixed = privacy.get("clip_norm", initial)
        if fixed != initial:
            raise ValueError(
                f"privacy.clip_norm={fixed} and clipping.initial={initial} contradict each other, since the clip norm "
                "of adaptive clipping begins with the latter; drop privacy.clip_norm."
            )
        return {**values, "privacy": {**privacy, "clip_norm": fixed}}

    @model_validator(mode="after")
    def _can_adapt_its_clip_norm(self) -> Self:
        if self.clipping is not None and not self.privacy.adapts:
            adapting = ", ".join([NONE, *(name for name, each in MECHANISMS.items() if each.adapts)])
            raise ValueError(
                f"[clipping] needs a mechanism whose noise starts afresh ({adapting}), not privacy.mechanism="
                f"'{self.privacy.mechanism_name}', which has one clip norm; drop [clipping] or name one of those below "
                "[privacy.mechanism]."
            )
        return self

    @model_validator(mode="after")
    def _has_a_design_for_its_workload(self) -> Self:
        privacy, mechanism = self.privacy, self.privacy.mechanism
        if privacy.workload == "server" and (mechanism is None or not mechanism.mechanism.any_workload):
            able = ", ".join(name for name, each in MECHANISMS.items() if each.any_workload)
            raise ValueError(
                f"privacy.workload='server' wants a design for what the server makes of the means, and "
                f"privacy.mechanism='{privacy.mechanism_name}' has none; drop privacy.workload, or name one of {able} "
                "below [privacy.mechanism] (left out, the best of them)."
            )
        self.workload()
        return self

    @model_validator(mode="after")
    def _bands_do_not_overlap(self) -> Self:
        mechanism = self.privacy.mechanism
        if mechanism is None or mechanism.mechanism.name != BANDED.name:  # a custom one may have its reason
            return self
        bands: int | None = getattr(mechanism.parameters, "bands", None)
        reach = most_bands(self.rounds.participation())
        if bands is not None and bands > reach:
            raise ValueError(
                f"privacy.mechanism.bands={bands} is above {reach}: what a client adds in two of its rounds must not "
                f"overlap, so bands end at rounds.min_separation={self.rounds.min_separation} (with one participation "
                f"at the rounds); give at most {reach} (--set privacy.mechanism.bands={reach}), or leave it out."
            )
        return self

    @model_validator(mode="after")
    def _can_open_its_sums(self) -> Self:
        if self.aggregation is not None:
            self.aggregation.settings().min_reports(self.rounds.report_goal)
        return self

    @model_validator(mode="after")
    def _keeps_every_sum_from_the_server(self) -> Self:
        """Of decryptors who add the noise, no release may be left to a server that adds it."""
        if self.deployment is not None and self.deployment.contributors:
            said, drop = "deployment.noise='decryptors'", "deployment.noise"
        elif self.aggregation is not None and self.aggregation.decryptors is not None:
            said, drop = f"aggregation.decryptors={self.aggregation.decryptors}", "aggregation.decryptors"
        else:
            return self
        if self.privacy.mechanism is None:
            raise ValueError(
                f"{said}: they add the noise of the mechanism, and privacy.mechanism='none' has none; drop {drop}, or "
                "name a mechanism below [privacy.mechanism]."
            )
        for name in ("clipping", "training_loss"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"[{name}] releases sums of its own to which the server adds noise, so that it knows them without, "
                    f"and {said} is there that it knows none; drop [{name}] or {drop}."
                )
        return self

    @model_validator(mode="after")
    def _extrapolate_to_more(self) -> Self:
        larger, goal = self.privacy.extrapolate_to, self.rounds.report_goal
        if larger is not None and larger <= goal:
            raise ValueError(
                f"privacy.extrapolate_to={larger} is not above rounds.report_goal={goal}, and a cohort stands in for a "
                f"larger one only; give more than {goal}, or drop it."
            )
        return self

    @model_validator(mode="after")
    def _deployment_fits(self) -> Self:
        if self.deployment is None:
            return self
        if self.population is not None:
            raise ValueError(
                "[population] simulates who comes and [deployment] asks real devices; drop one of the two sections."
            )
        self.deployment.check(self.rounds, self.aggregation)
        mechanism = self.privacy.mechanism
        if mechanism is not None and mechanism.path is not None:
            raise ValueError(
                f"privacy.mechanism='{mechanism.name}' is code of somebody's own, and devices import nothing that a "
                "plan names; leave [privacy.mechanism] out for the best of tacit's, or name blt or banded."
            )
        return self

    @classmethod
    def from_argument(cls, recipe: object) -> Self:
        """A recipe as it is, or else the one that `load` finds. Raises: InputError for what is neither, RecipeError."""
        if isinstance(recipe, cls):
            return recipe
        if isinstance(recipe, Mapping):
            raise RecipeError(
                "recipe is a dictionary; give the path of a recipe, the name of a shipped one, or a Recipe: "
                "Recipe.model_validate of tacit.recipe makes one of a dictionary."
            )
        return cls.load(as_path("recipe", recipe))

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """A file, or else the shipped recipe of that name. Raises: RecipeError naming file, key and rule."""
        path = as_path("path", path)
        text = read_recipe(path)
        text = named(path) if text is None else text
        if text is None:
            raise RecipeError(
                f"there is no recipe '{path}'; give a file in TOML, or a shipped one: {', '.join(shipped())}."
            )
        return cls.from_toml(text, where=str(path))

    @classmethod
    def from_toml(cls, text: str, *, where: str = "recipe") -> Self:
        """Raises: RecipeError naming `where`, the key and the rule."""
        try:
            values = parsed_toml(text)
        except ValueError as error:
            raise RecipeError(f"{where} is not TOML: {error}; mend that line.") from error
        if isinstance(kind := values.get("kind"), str):
            way_out = "; a copy without its first line is one" if kind == "train" else ""
            raise RecipeError(
                f"{where} begins with kind = {kind!r}: it is a run's record of what was asked, and no recipe; give the "
                f"recipe that the run was begun with{way_out}."
            )
        if "mixture" in values:
            raise RecipeError(
                f"{where} has [mixture]: it makes counts and a network one model, which `tacit train` does (in Python "
                "`tacit.train_mixture`); for rounds alone give a recipe without that section."
            )
        return cls._from_values(values, where)

    @classmethod
    def _from_values(cls, values: Mapping[str, Any], where: str) -> Self:
        try:
            recipe = cls.model_validate(values)
            # at the largest of the deltas that a population may have: the least noise
            if not recipe.privacy.needs_design:
                recipe.with_delta(recipe.privacy.delta or LARGEST).plan().guarantee.checked()
            if recipe.population is not None:
                recipe.population.rules(recipe.rounds.report_goal)
            recipe.model.settings(vocabulary=SMALLEST)
            recipe.client_cost(vocabulary=SMALLEST, parameters=0).check()
        except ValidationError as error:
            raise RecipeError(f"{where}: {first_complaint(error, cls, values)}") from error
        except ValueError as error:
            raise RecipeError(f"{where}: {error}") from error
        return recipe

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """The same experiment with other values: {"rounds.rounds": 100, "privacy.epsilon": 2}, as if its file said so.

        changes: by dotted keys of the TOML; None leaves a key out, so that its default holds. Raises: RecipeError
        naming the key and the rule, as of a file.
        """
        given = self.given()
        if self.clipping is not None and "clip_norm" in given["privacy"]:
            del given["privacy"]["clip_norm"]  # it is clipping.initial's, which may be what changes
        where = f"the recipe {self.name!r} with {said(changes)}"
        return made_with(lambda values: self._from_values(values, where), given, changes)

    def given(self) -> dict[str, Any]:
        """The keys that were given, without defaults: TOML of them makes the same recipe."""
        given: dict[str, Any] = without_none(self.model_dump(mode="json", exclude_unset=True))
        if "model" in given:
            given["model"]["kind"] = self.model.kind
        return given

    def to_toml(self) -> str:
        """Every key with its value; `from_toml` gives the same recipe back."""
        return tomli_w.dumps(without_none(self.model_dump(mode="json")))

    def differences(self, other: Self) -> list[str]:
        """The keys in which `other` is another experiment, as "section.key is THERE, not HERE"; empty if in none."""
        return differences(self, other)

    def designed(self) -> Self:
        """The same experiment with a strategy in numbers: a run keeps those, since designing again elsewhere could give
        other last digits, and its noise must stay the noise of one matrix. What is too large for a recipe stays asked:
        see `matrix`.
        """
        section = self.privacy.designed(self.rounds.participation(), self._may_be_matrix, self.workload())
        return self.model_copy(update={"privacy": section})

    def workload(self) -> Workload:
        """The workload that the mechanism is designed for. Raises: RecipeError where the recipe requests the server's
        and the server is not linear.
        """
        return self.server.workload() if self.privacy.workload == "server" else PREFIX

    @property
    def _may_be_matrix(self) -> bool:
        """Whether a matrix may be chosen where none is named: not for real devices, each of which would fetch it."""
        return self.deployment is None

    def client_cost(self, *, vocabulary: int, parameters: int) -> TrainingCost:
        """What a client's training takes of its machine, in a round; of a network with so many ids and numbers."""
        asked = {name: getattr(self.client, name) for name in ("epochs", "batch_size", "sentences", "words")}
        return TrainingCost.estimate(**asked, vocabulary=vocabulary, parameters=parameters)

    def matrix(self) -> Matrix | None:
        """The designed strategy matrix; None where the strategy is a few numbers. A run keeps it.

        Raises: InputError where the mechanism has none for this participation.
        """
        return self.privacy.matrix(self.rounds.participation(), self._may_be_matrix, self.workload())

    def why_mechanism(self) -> str | None:
        """Which mechanism a recipe that names none gets, and why; None where it names one."""
        choice = self.privacy.choice(self.rounds.participation(), self._may_be_matrix, self.workload())
        return None if choice is None else choice.why()

    def with_population(self, population: Path) -> Self:
        """The same experiment, entered in the budget of `population`."""
        return self.model_copy(update={"privacy": self.privacy.model_copy(update={"population": population})})

    def with_delta(self, delta: float) -> Self:
        """The same experiment, its epsilon given at `delta`."""
        return self.model_copy(update={"privacy": self.privacy.model_copy(update={"delta": delta})})

    def clients(self, cached: int) -> int:
        """How many may take part: about so many real devices, or else the training clients of the cache."""
        return cached if self.deployment is None else self.deployment.devices

    def guarantee(self, matrix: Matrix | None = None) -> Guarantee:
        """What the planned run promises; with adaptive clipping, updates and counts together [paper 1, Theorem 1].

        matrix: what `matrix` designed, or the run kept.
        """
        participation = self.rounds.participation()
        strategy = self.privacy.strategy(participation, matrix, self.workload())
        rho = self.privacy.spent()
        inflation = 1.0 if self.aggregation is None else self.aggregation.inflation
        if strategy is not None and rho is not None:
            return Guarantee.for_zcdp(
                rho,
                participation=participation,
                strategy=strategy,
                clip_norm=self.privacy.clip_norm,
                clip_inflation=inflation,
            )
        return Guarantee(
            participation=participation,
            strategy=strategy,
            clip_norm=self.privacy.clip_norm,
            noise_multiplier=self.privacy.noise_multiplier or 0.0,
            clip_inflation=inflation,
        )

    def plan(self, matrix: Matrix | None = None) -> RoundPlan:
        """What the trainer runs. matrix: as for `guarantee`."""
        guarantee = self.guarantee(matrix)
        loss, rest = self._training_loss(guarantee)
        return RoundPlan(
            guarantee=guarantee,
            report_goal=self.rounds.report_goal,
            client=self.client.settings(),
            server=self.server.settings(),
            clipping=self._clipping(rest),
            loss=loss,
            secure=self.secure_updates(),
            separation=None if self.deployment is None else self.deployment.separation(self.rounds),
        )

    def secure_updates(self) -> SecureUpdates | None:
        """How sums are made, and by whom they get their noise; None: in the clear."""
        if self.aggregation is None:
            return None
        secure, real = self.aggregation.settings(), self.deployment
        if real is None or not real.contributors:
            return secure
        return replace(secure, decryptors=real.contributors, honest_decryptors=real.honest_decryptors)

    def _training_loss(self, planned: Guarantee) -> tuple[PrivateLoss | None, Guarantee]:
        """(how the loss is released, what is left for the rest). Raises: RecipeError where it alone costs all."""
        if self.training_loss is None:
            return None, planned
        settings = self.training_loss.settings()
        try:
            return settings, settings.guarantees(planned, self.rounds.report_goal)[0]
        except AccountingError as error:
            raise RecipeError(f"training_loss.stddev (left out: training_loss.bound / 20): {error}") from error

    def _clipping(self, planned: Guarantee) -> AdaptiveClipping | None:
        """Raises: RecipeError where the counts alone cost all that may be spent."""
        if self.clipping is None:
            return None
        settings = self.clipping.settings()
        try:
            settings.guarantees(planned, self.rounds.report_goal)
        except AccountingError as error:
            raise RecipeError(f"clipping.bit_stddev (left out: rounds.report_goal / 20): {error}") from error
        return settings


def differences(one: BaseModel, other: BaseModel) -> list[str]:
    """The keys in which `other` differs from `one`, as "section.key is THERE, not HERE"; empty if in none."""
    here, there = _flat(one.model_dump(mode="json")), _flat(other.model_dump(mode="json"))
    keys = [*here, *(key for key in there if key not in here)]  # a section may be in one of them alone
    return [
        f"{key} is {_short_text(there.get(key))}, not {_short_text(here.get(key))}"
        for key in keys
        if here.get(key) != there.get(key)
    ]


def _flat(values: dict[str, Any], under: str = "") -> dict[str, Any]:
    """{"section.key": value}, also of sections within sections; a section that was not given has no keys."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{under}{name}.")
        elif value is not None or under:
            flat[f"{under}{name}"] = value
    return flat


def _short_text(value: Any) -> str:
    if value is None:
        return "not given"
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 60 else f"{written[:57]}..."


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    """TOML has no null: what was not given is left out."""
    return {
        key: without_none(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None
    }
