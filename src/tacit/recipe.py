"""One experiment as a frozen value: TOML in, TOML out.

Every key has a default with its reason beside it; an unknown key, a wrong value or two values that contradict each
other are refused with the name of the key. What a recipe means is what its rooms say: the sections `model`, `client`
and `server` are their settings types, `privacy` and `rounds` become one Guarantee.
"""

import json
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tacit.design.blt import design_blt
from tacit.design.toeplitz import design_banded_inverse, design_banded_toeplitz
from tacit.errors import AccountingError, RecipeError
from tacit.keyboard.model import ModelSettings
from tacit.privacy import Blt, Guarantee, Independent, Participation, Tree
from tacit.privacy.strategy import PUBLISHED_BLT, BandedInverse, BandedToeplitz, Strategy
from tacit.training import ClientTraining, RoundPlan, ServerOptimizer
from tacit.training.adaptive_clipping import AdaptiveClipping
from tacit.training.precision import Precision
from tacit.training.server import Method

Mechanism = Literal["none", "independent", "tree", "tree-variance-reduced", "blt", "banded-toeplitz", "banded-inverse"]
# The ways to say which strategy of its family a mechanism is: exactly one of them, whole. The last is a wish, which
# `Recipe.designed` turns into the numbers of the way before it.
WAYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "blt": (("blt",), ("theta", "omega"), ("buffers",)),
    "banded-toeplitz": (("coefficients",), ("bands",)),
    "banded-inverse": (("coefficients",), ("bands",)),
}
ADAPTING = ("none", "independent", "tree", "tree-variance-reduced")  # those under which a clip norm may change
CHOICES = ("blt", "theta", "omega", "buffers", "coefficients", "bands")


class _Section(BaseModel):
    # Strict: TOML has types of its own, so "3" and true are no numbers here.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class DataSection(_Section):
    """Whose text."""

    # Made by `tacit data import`; relative paths are relative to the current folder.
    cache: Path = Field(strict=False)


class ModelSection(_Section):
    """The network; its vocabulary is the cache's."""

    embedding: int = 96  # papers 1 and 5
    units: int = 670  # papers 1 and 5
    tied: bool = False  # paper 1's 2.4 M parameters are those of separate embeddings
    init: Path | None = Field(default=None, strict=False)  # a model of `tacit pretrain` to begin from; else random

    def settings(self, vocabulary: int) -> ModelSettings:
        return ModelSettings(vocabulary=vocabulary, embedding=self.embedding, units=self.units, tied=self.tied)


class ClientSection(_Section):
    """Local training; see ClientTraining."""

    epochs: int = 1  # one pass over the batches, as Algorithm 1 of paper 1 is written
    batch_size: int = 16
    learning_rate: float = 0.5  # a start for tuning; the papers do not print theirs
    sentences: int = 64  # bounds a client's time in a round
    words: int = 20  # bounds a client's time; the rest of a longer sentence is not used
    proximal: float = 0.0  # plain local SGD, as the papers; one pass drifts little
    precision: Precision = "float32"  # the same model on every machine; bfloat16 where there are units for it is faster

    def settings(self) -> ClientTraining:
        return ClientTraining(**self.model_dump())


class ServerSection(_Section):
    """The server's optimizer; see ServerOptimizer."""

    method: Method = "momentum"  # paper 1, Algorithm 1
    learning_rate: float = 1.0
    momentum: float = 0.9  # paper 1, Algorithm 1
    adaptivity: float = 1e-5  # of adam, yogi, adagrad; below the means' coordinates (about 1e-4), above rounding
    cooldown: float = 0.0  # the papers do not; post-processing, like every step of the server

    def settings(self) -> ServerOptimizer:
        return ServerOptimizer(**self.model_dump())


class RoundsSection(_Section):
    """How many rounds, of whom, how far apart."""

    rounds: int = Field(ge=1)
    report_goal: int = Field(ge=1)  # clients of every cohort, and the constant the sum is divided by
    min_separation: int = Field(ge=1)  # rounds from one participation of a client to its next (the papers' MinS + 1)
    max_participations: int | None = Field(default=None, ge=1)  # default: as many as min_separation allows

    def participation(self) -> Participation:
        if self.max_participations is None:
            return Participation.worst_case(rounds=self.rounds, min_separation=self.min_separation)
        return Participation(
            rounds=self.rounds, min_separation=self.min_separation, max_participations=self.max_participations
        )


class PrivacySection(_Section):
    """The mechanism and how much noise it adds."""

    mechanism: Mechanism
    clip_norm: float = Field(default=1.0, gt=0)
    noise_multiplier: float | None = Field(default=None, gt=0)  # z: seeds have standard deviation z * clip_norm
    zcdp: float | None = Field(default=None, gt=0)  # or the rho that the planned run may spend
    delta: float = Field(default=1e-10, gt=0, lt=1)  # the papers'
    blt: str | None = None  # published parameters: b400, b100 or b1000
    theta: tuple[float, ...] | None = Field(default=None, strict=False)  # or the decays of one's own
    omega: tuple[float, ...] | None = Field(default=None, strict=False)  # and their weights
    buffers: int | None = Field(default=None, ge=1)  # or how many, to be designed for this run's participation
    coefficients: tuple[float, ...] | None = Field(default=None, strict=False)  # banded: of C, or of its inverse
    bands: int | None = Field(default=None, ge=1)  # or how many, to be designed for this run's participation
    objective: Literal["max", "rms"] = "max"  # what a design minimises: the worst prefix sum's error, as paper 4's
    restarts: tuple[int, ...] = Field(default=(), strict=False)  # trees: the rounds at which a new tree begins
    stands_in_for: int | None = Field(default=None, ge=1)  # the production report goal this cohort stands for

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        noises = [name for name in ("noise_multiplier", "zcdp") if getattr(self, name) is not None]
        if self.mechanism == "none" and noises:
            raise ValueError(
                f"privacy.{noises[0]} says noise but privacy.mechanism='none' says none; drop one of them."
            )
        if self.mechanism != "none" and len(noises) != 1:
            raise ValueError(
                f"privacy.mechanism='{self.mechanism}' needs exactly one of privacy.noise_multiplier and privacy.zcdp; "
                f"{'both are' if noises else 'neither is'} given."
            )
        self._says_its_strategy_once()
        if self.blt is not None and self.blt not in PUBLISHED_BLT:
            raise ValueError(f"privacy.blt='{self.blt}' is not published; use one of {', '.join(PUBLISHED_BLT)}.")
        if self.restarts and not self.mechanism.startswith("tree"):
            raise ValueError(f"privacy.restarts belong to trees, not to mechanism='{self.mechanism}'; drop them.")
        return self

    def _says_its_strategy_once(self) -> None:
        given = {name for name in CHOICES if getattr(self, name) is not None}
        ways = WAYS.get(self.mechanism, ())
        foreign = sorted(given.difference(*ways))
        if foreign:
            raise ValueError(f"privacy.{foreign[0]} does not belong to mechanism='{self.mechanism}'; drop it.")
        begun = [way for way in ways if given.intersection(way)]
        if ways and len(begun) != 1:
            choices = ", or ".join(" with ".join(f"privacy.{name}" for name in way) for way in ways)
            raise ValueError(
                f"privacy.mechanism='{self.mechanism}' needs exactly one of {choices}; "
                f"{'several are' if begun else 'none is'} given."
            )
        if begun and not given.issuperset(begun[0]):
            raise ValueError(f"{' and '.join(f'privacy.{name}' for name in begun[0])} come together; give both.")

    @property
    def is_wish(self) -> bool:
        """Whether the numbers of the strategy are still to be designed."""
        return self.buffers is not None or self.bands is not None

    def designed(self, participation: Participation) -> "PrivacySection":
        """The same section with the numbers of the strategy designed for `participation`."""
        if self.buffers is not None:
            blt = design_blt(participation, buffers=self.buffers, objective=self.objective)
            return self.model_copy(update={"buffers": None, "theta": blt.theta, "omega": blt.omega})
        if self.bands is not None:
            design = design_banded_toeplitz if self.mechanism == "banded-toeplitz" else design_banded_inverse
            banded = design(participation, bands=self.bands, objective=self.objective)
            return self.model_copy(update={"bands": None, "coefficients": banded.coefficients})
        return self

    def strategy(self) -> Strategy | None:
        """None for mechanism "none". A wish must have been `designed` before."""
        match self.mechanism:
            case "none":
                return None
            case "independent":
                return Independent()
            case "tree" | "tree-variance-reduced":
                return Tree(restarts=self.restarts, variance_reduced=self.mechanism == "tree-variance-reduced")
            case "blt":
                if self.blt is not None:
                    return PUBLISHED_BLT[self.blt]
                return Blt(theta=self.theta or (), omega=self.omega or ())
            case "banded-toeplitz":
                return BandedToeplitz(coefficients=self.coefficients or ())
            case "banded-inverse":
                return BandedInverse(coefficients=self.coefficients or ())


class ClippingSection(_Section):
    """A clip norm that follows the updates; see AdaptiveClipping. Left out, the clip norm is privacy.clip_norm."""

    initial: float = Field(gt=0)  # C^0; start low, see AdaptiveClipping
    quantile: float = 0.5  # paper 1
    learning_rate: float = 0.2  # paper 1
    bit_stddev: float | None = None  # paper 1: report goal / 20

    def settings(self) -> AdaptiveClipping:
        return AdaptiveClipping(**self.model_dump())


class EvaluationSection(_Section):
    """How often and on how many held-out clients; looking at them has no guarantee, and the statement says so."""

    every: int = Field(default=20, ge=1)  # rounds
    clients: int = Field(default=100, ge=1)  # validation clients during the run (the first of the cache)
    test_clients: int = Field(default=200, ge=1)  # test clients at the end
    sentences: int = Field(default=64, ge=1)  # of each


class RunSection(_Section):
    """Reproducibility."""

    seed: int | None = Field(default=None, ge=0)  # given: anyone can recompute the noise; the statement says so loudly


class Recipe(_Section):
    """A whole experiment."""

    name: str = Field(min_length=1)
    data: DataSection
    model: ModelSection = ModelSection()
    client: ClientSection = ClientSection()
    server: ServerSection = ServerSection()
    rounds: RoundsSection
    privacy: PrivacySection
    clipping: ClippingSection | None = None
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
        if self.clipping is not None and self.privacy.mechanism not in ADAPTING:
            raise ValueError(
                f"[clipping] needs a mechanism whose noise starts afresh ({', '.join(ADAPTING)}), not privacy."
                f"mechanism='{self.privacy.mechanism}', which has one clip norm; drop [clipping] or take one of those."
            )
        return self

    @model_validator(mode="after")
    def _stands_in_for_more(self) -> Self:
        larger, goal = self.privacy.stands_in_for, self.rounds.report_goal
        if larger is not None and larger <= goal:
            raise ValueError(
                f"privacy.stands_in_for={larger} is not above rounds.report_goal={goal}, and a cohort stands in for a "
                f"larger one only; give more than {goal}, or drop it."
            )
        return self

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises: RecipeError naming the file, the key and the rule."""
        try:
            text = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise RecipeError(f"there is no recipe '{path}'; the shipped ones are in recipes/.") from None
        except UnicodeDecodeError as error:
            raise RecipeError(
                f"'{path}' is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8."
            ) from error
        return cls.from_toml(text, where=str(path))

    @classmethod
    def from_toml(cls, text: str, *, where: str = "recipe") -> Self:
        """Raises: RecipeError naming `where`, the key and the rule."""
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise RecipeError(f"{where} is not TOML: {error}; mend that line.") from error
        try:
            recipe = cls.model_validate(values)
            if not recipe.privacy.is_wish:
                recipe.plan()
            recipe.model.settings(vocabulary=5)
        except ValidationError as error:
            raise RecipeError(f"{where}: {_first_complaint(error)}") from error
        except ValueError as error:
            raise RecipeError(f"{where}: {error}") from error
        return recipe

    def to_toml(self) -> str:
        """Every key with its value; `from_toml` gives the same recipe back."""
        return tomli_w.dumps(_without_none(self.model_dump(mode="json")))

    def differences(self, other: Self) -> list[str]:
        """The keys in which `other` is another experiment, as "section.key is THERE, not HERE"; empty if in none."""
        here, there = _flat(self.model_dump(mode="json")), _flat(other.model_dump(mode="json"))
        keys = [*here, *(key for key in there if key not in here)]  # a section may be in one of them alone
        return [
            f"{key} is {_brief(there.get(key))}, not {_brief(here.get(key))}"
            for key in keys
            if here.get(key) != there.get(key)
        ]

    def designed(self) -> Self:
        """The same experiment with a strategy in numbers: a run keeps those, since designing again elsewhere could give
        other last digits, and its noise must stay the noise of one matrix.
        """
        section = self.privacy.designed(self.rounds.participation())
        return self.model_copy(update={"privacy": section})

    def guarantee(self) -> Guarantee:
        """What the planned run promises; with adaptive clipping, updates and counts together [paper 1, Theorem 1]."""
        strategy, participation = self.privacy.strategy(), self.rounds.participation()
        if strategy is not None and self.privacy.zcdp is not None:
            return Guarantee.for_zcdp(
                self.privacy.zcdp, participation=participation, strategy=strategy, clip_norm=self.privacy.clip_norm
            )
        return Guarantee(
            participation=participation,
            strategy=strategy,
            clip_norm=self.privacy.clip_norm,
            noise_multiplier=self.privacy.noise_multiplier or 0.0,
        )

    def plan(self) -> RoundPlan:
        """What the trainer runs."""
        return RoundPlan(
            guarantee=self.guarantee(),
            report_goal=self.rounds.report_goal,
            client=self.client.settings(),
            server=self.server.settings(),
            clipping=self._clipping(),
        )

    def _clipping(self) -> AdaptiveClipping | None:
        """Raises: RecipeError where the counts alone cost all that may be spent."""
        if self.clipping is None:
            return None
        settings = self.clipping.settings()
        try:
            settings.guarantees(self.guarantee(), self.rounds.report_goal)
        except AccountingError as error:
            raise RecipeError(f"clipping.bit_stddev (left out: rounds.report_goal / 20): {error}") from error
        return settings


def _first_complaint(error: ValidationError) -> str:
    """One sentence about the first wrong key: the key, its value, the rule."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    more = f" ({error.error_count() - 1} more after it)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        return f"the key '{key}' is unknown; remove it or mend its spelling (docs/recipes.md lists all).{more}"
    if first["type"] == "missing":
        return f"the key '{key}' is missing; give it.{more}"
    if first["type"] == "value_error":
        return f"{first['msg'].removeprefix('Value error, ')}{more}"
    if first["type"] == "model_type":
        return f"{key} = {first['input']!r}, but '{key}' is a section; write [{key}] and its keys below it.{more}"
    rule = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    return f"{key} = {first['input']!r}: {rule}; docs/recipes.md lists every key with its default.{more}"


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    """{"section.key": value}; a section that was not given has no keys."""
    given = {name: value for name, value in values.items() if value is not None}
    sections = {name: value if isinstance(value, dict) else {"": value} for name, value in given.items()}
    return {f"{name}.{key}".rstrip("."): value for name, keys in sections.items() for key, value in keys.items()}


def _brief(value: Any) -> str:
    if value is None:
        return "not given"
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 60 else f"{written[:57]}..."


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    """TOML has no null: what was not given is left out."""
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None
    }
