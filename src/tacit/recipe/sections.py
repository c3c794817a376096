"""The sections of a recipe: every key, its default, and the reason for it."""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tacit.compute.precision import Precision
from tacit.design.banded import design_banded
from tacit.design.blt import design_blt
from tacit.design.dense import design_dense, full_tree
from tacit.design.toeplitz import design_banded_inverse, design_banded_toeplitz
from tacit.errors import InputError
from tacit.population.devices import RoundRules
from tacit.privacy import Blt, Independent, Participation, Tree
from tacit.privacy.participation import Clock
from tacit.privacy.strategy import PUBLISHED_BLT, Banded, BandedInverse, BandedToeplitz, Dense, Strategy
from tacit.training import ClientTraining, ServerOptimizer
from tacit.training.adaptive_clipping import AdaptiveClipping
from tacit.training.server import Method

Mechanism = Literal[
    "none",
    "independent",
    "tree",
    "tree-variance-reduced",
    "tree-full",
    "blt",
    "banded-toeplitz",
    "banded-inverse",
    "banded",
    "dense",
]
TREES = ("tree", "tree-variance-reduced")  # those that restart
MATRICES = ("tree-full", "banded", "dense")  # too many numbers for a recipe: a run keeps them in a file of their own
LARGEST = 4096  # rounds of a full matrix: 128 MB
# The ways to say which strategy of its family a mechanism is: exactly one of them, whole. The last is a wish, which
# `Recipe.designed` turns into the numbers of the way before it, or `Recipe.matrix` into a matrix.
WAYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "blt": (("blt",), ("theta", "omega"), ("buffers",)),
    "banded-toeplitz": (("coefficients",), ("bands",)),
    "banded-inverse": (("coefficients",), ("bands",)),
    "banded": (("bands",),),
}
ADAPTING = ("none", "independent", *TREES)  # those under which a clip norm may change
CHOICES = ("blt", "theta", "omega", "buffers", "coefficients", "bands")


class Section(BaseModel):
    # Strict: TOML has types of its own, so "3" and true are no numbers here.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class DataSection(Section):
    """Whose text."""

    # Made by `tacit data import`; relative paths are relative to the current folder.
    cache: Path = Field(strict=False)


class ClientSection(Section):
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


class ServerSection(Section):
    """The server's optimizer; see ServerOptimizer."""

    method: Method = "momentum"  # paper 1, Algorithm 1
    learning_rate: float = 1.0
    momentum: float = 0.9  # paper 1, Algorithm 1
    adaptivity: float = 1e-5  # of adam, yogi, adagrad; below the means' coordinates (about 1e-4), above rounding
    cooldown: float = 0.0  # the papers do not; post-processing, like every step of the server

    def settings(self) -> ServerOptimizer:
        return ServerOptimizer(**self.model_dump())


class RoundsSection(Section):
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


class PrivacySection(Section):
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
        if self.restarts and self.mechanism not in TREES:
            raise ValueError(
                f"privacy.restarts belong to {' and '.join(TREES)}, not to mechanism='{self.mechanism}'; drop them."
            )
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
        """Whether the strategy is still to be designed."""
        return self.buffers is not None or self.bands is not None or self.mechanism in MATRICES

    def designed(self, participation: Participation) -> "PrivacySection":
        """The same section with the numbers of the strategy designed for `participation`, where they are few."""
        if self.buffers is not None:
            blt = design_blt(participation, buffers=self.buffers, objective=self.objective)
            return self.model_copy(update={"buffers": None, "theta": blt.theta, "omega": blt.omega})
        if self.bands is not None and self.mechanism not in MATRICES:
            design = design_banded_toeplitz if self.mechanism == "banded-toeplitz" else design_banded_inverse
            banded = design(participation, bands=self.bands, objective=self.objective)
            return self.model_copy(update={"bands": None, "coefficients": banded.coefficients})
        return self

    def matrix(self, participation: Participation) -> Banded | Dense | None:
        """The strategy matrix for `participation`, designed; None where a strategy is a few numbers.

        Raises: InputError where there is none: more bands than the separation, more than one participation of "dense".
        """
        if self.mechanism == "banded" and self.bands is not None:
            return design_banded(participation, bands=self.bands, objective=self.objective)
        if self.mechanism not in MATRICES:
            return None
        if participation.rounds > LARGEST:
            raise InputError(
                f"privacy.mechanism='{self.mechanism}' is a full matrix and rounds.rounds={participation.rounds} are "
                f"too many for one; ask for at most {LARGEST} rounds, or take blt or banded."
            )
        return full_tree(participation.rounds) if self.mechanism == "tree-full" else design_dense(participation)

    def strategy(self, matrix: Banded | Dense | None = None) -> Strategy | None:
        """None for mechanism "none". A wish must have been `designed` before; `matrix` is what a matrix was asked for.

        Raises: InputError where a matrix is needed and not given.
        """
        match self.mechanism:
            case "none":
                return None
            case "tree-full" | "banded" | "dense":
                if matrix is None:
                    raise InputError(f"privacy.mechanism='{self.mechanism}' needs its matrix; give what was designed.")
                return matrix
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


class ClippingSection(Section):
    """A clip norm that follows the updates; see AdaptiveClipping. Left out, the clip norm is privacy.clip_norm."""

    initial: float = Field(gt=0)  # C^0; start low, see AdaptiveClipping
    quantile: float = 0.5  # paper 1
    learning_rate: float = 0.2  # paper 1
    bit_stddev: float | None = None  # paper 1: report goal / 20

    def settings(self) -> AdaptiveClipping:
        return AdaptiveClipping(**self.model_dump())


class PopulationSection(Section):
    """Who comes is simulated: devices with a timer and hours of their own; see RoundRules, whose defaults these are."""

    timer_hours: float  # of a device, from one participation to the next
    clock: Clock = "finish"  # when the timer starts: as the papers count
    over_selection: float = 1.3  # arXiv:1902.01046, Section 9
    check_in_minutes: float = 30.0
    deadline_minutes: float = 15.0
    pause_minutes: float = 2.0
    most_days: float = 365.0

    def rules(self, report_goal: int) -> RoundRules:
        """Raises: InputError naming the key."""
        try:
            return RoundRules(report_goal=report_goal, **self.model_dump())
        except InputError as error:
            raise InputError(f"population.{error}") from error


class EvaluationSection(Section):
    """How often and on how many held-out clients; looking at them has no guarantee, and the statement says so."""

    every: int = Field(default=20, ge=1)  # rounds
    clients: int = Field(default=100, ge=1)  # validation clients during the run (the first of the cache)
    test_clients: int = Field(default=200, ge=1)  # test clients at the end
    sentences: int = Field(default=64, ge=1)  # of each


class RunSection(Section):
    """Reproducibility."""

    seed: int | None = Field(default=None, ge=0)  # given: anyone can recompute the noise; the statement says so loudly
