"""One experiment as a frozen value: TOML in, TOML out.

Every key has a default with its reason beside it; an unknown key, a wrong value or two values that contradict each
other are refused with the name of the key. What a recipe means is what its rooms say: the sections `model`, `client`
and `server` are their settings types, `privacy` and `rounds` become one Guarantee.
"""

import tomllib
from pathlib import Path
from typing import Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tacit.errors import RecipeError
from tacit.keyboard.model import ModelSettings
from tacit.privacy import Blt, Guarantee, Independent, Participation, Tree
from tacit.privacy.strategy import PUBLISHED_BLT, Strategy
from tacit.training import ClientTraining, RoundPlan, ServerOptimizer
from tacit.training.server import Method

Mechanism = Literal["none", "independent", "tree", "tree-variance-reduced", "blt"]


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

    def settings(self, vocabulary: int) -> ModelSettings:
        return ModelSettings(vocabulary=vocabulary, embedding=self.embedding, units=self.units, tied=self.tied)


class ClientSection(_Section):
    """Local training; see ClientTraining."""

    epochs: int = 1  # one pass over the batches, as Algorithm 1 of paper 1 is written
    batch_size: int = 16
    learning_rate: float = 0.5  # a start for tuning; the papers do not print theirs
    sentences: int = 64  # bounds a client's time in a round
    words: int = 20  # bounds a client's time; the rest of a longer sentence is not used

    def settings(self) -> ClientTraining:
        return ClientTraining(**self.model_dump())


class ServerSection(_Section):
    """The server's optimizer; see ServerOptimizer."""

    method: Method = "momentum"  # paper 1, Algorithm 1
    learning_rate: float = 1.0
    momentum: float = 0.9  # paper 1, Algorithm 1
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
        own = self.theta is not None or self.omega is not None
        if self.mechanism != "blt" and (own or self.blt is not None):
            raise ValueError(
                f"privacy.blt, theta and omega belong to mechanism='blt', not '{self.mechanism}'; drop them."
            )
        if self.mechanism == "blt" and own == (self.blt is not None):
            raise ValueError(
                f"privacy.mechanism='blt' needs either privacy.blt ({', '.join(PUBLISHED_BLT)}) or privacy.theta and "
                "privacy.omega; give one of the two."
            )
        if own and (self.theta is None or self.omega is None):
            raise ValueError("privacy.theta and privacy.omega come together; give both.")
        if self.blt is not None and self.blt not in PUBLISHED_BLT:
            raise ValueError(f"privacy.blt='{self.blt}' is not published; use one of {', '.join(PUBLISHED_BLT)}.")
        if self.restarts and not self.mechanism.startswith("tree"):
            raise ValueError(f"privacy.restarts belong to trees, not to mechanism='{self.mechanism}'; drop them.")
        return self

    def strategy(self) -> Strategy | None:
        if self.mechanism == "none":
            return None
        if self.mechanism == "independent":
            return Independent()
        if self.mechanism == "blt":
            if self.theta is not None and self.omega is not None:
                return Blt(theta=self.theta, omega=self.omega)
            return PUBLISHED_BLT[str(self.blt)]
        return Tree(restarts=self.restarts, variance_reduced=self.mechanism == "tree-variance-reduced")


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
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()

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

    def guarantee(self) -> Guarantee:
        """What the planned run promises."""
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
        )


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


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    """TOML has no null: what was not given is left out."""
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None
    }
