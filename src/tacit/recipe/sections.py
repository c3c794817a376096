"""The sections of a recipe: every key, its default, and the reason for it."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    field_validator,
    model_validator,
)

from tacit.compute.precision import Precision
from tacit.design.best import BEST, BestMechanism, BestParameters, best_mechanism
from tacit.design.catalogue import chosen
from tacit.design.mechanism import ChosenMechanism
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError, RecipeError, conceivable
from tacit.population.devices import RoundRules
from tacit.privacy import Participation
from tacit.privacy.delta import default_delta
from tacit.privacy.encoding import MOST as INFLATION
from tacit.privacy.encoding import SIGMAS
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.privacy.measured_participation import Clock
from tacit.privacy.shared_noise import check_honest
from tacit.privacy.strategy import Dense, Matrix, Strategy
from tacit.secure_aggregation.simulated_protocol import FEWEST, Protocol, SimulatedProtocol
from tacit.training import ClientTraining, ServerOptimizer
from tacit.training.adaptive_clipping import AdaptiveClipping
from tacit.training.client import MOST
from tacit.training.private_loss import PrivateLoss
from tacit.training.secure_updates import SecureUpdates
from tacit.training.server import Method

MOST_DROPOUT = 0.3  # above, rounds are given up again and again: more than half of the clients must stay
LARGEST = 4096  # rounds of a full matrix: 128 MB
NONE = "none"  # the mechanism that adds no noise; it promises nothing
THE_BEST = ChosenMechanism(mechanism=BEST, parameters=BestParameters())  # the one of least error for the participation
BELOW = 1 - 1e-9  # of what epsilon allows is spent: no rounding of a sum takes the run above what was asked
NOISES = ("epsilon", "zcdp", "noise_multiplier")  # the keys that say how much noise: exactly one of them


class Section(BaseModel):
    # Strict: TOML has types of its own, so "3" and true are no numbers here.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    @field_validator("*")
    @classmethod
    def _can_be_meant(cls, value: Any, key: ValidationInfo) -> Any:
        conceivable(f"{key.field_name} =", value)
        return value


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

    def linear(self) -> Workload | None:
        """The server's linear map of the means, in units of the learning rate; None for a method that divides by its
        history.
        """
        if self.method not in ("sgd", "momentum", "nesterov"):
            return None
        momentum = 0.0 if self.method == "sgd" else self.momentum
        return Workload(momentum=momentum, nesterov=self.method == "nesterov" and momentum > 0, cooldown=self.cooldown)

    def workload(self) -> Workload:
        """`linear`. Raises: RecipeError where there is none."""
        found = self.linear()
        if found is None:
            raise RecipeError(
                f"privacy.workload='server' designs for what the server makes of the means, and server.method="
                f"'{self.method}' divides by what it saw, which no matrix says; take momentum, nesterov or sgd, or "
                "drop privacy.workload."
            )
        return found


class RoundsSection(Section):
    """The number of rounds, the reports of each, and the separation of a client's participations."""

    rounds: int = Field(ge=1)
    report_goal: int = Field(ge=1)  # clients of every cohort, and the constant the sum is divided by
    min_separation: int = Field(ge=1)  # rounds from one participation of a client to its next (the papers' MinS + 1)
    max_participations: int | None = Field(default=None, ge=1)  # default: as many as min_separation allows

    def participation(self) -> Participation:
        if self.max_participations is None:
            return Participation.worst_case(rounds=self.rounds, min_separation=self.min_separation).of_a_run()
        return Participation(
            rounds=self.rounds, min_separation=self.min_separation, max_participations=self.max_participations
        ).of_a_run()


def _mechanism(values: object) -> ChosenMechanism | None:
    """What `[privacy.mechanism]` says; None for the name "none". ValueError naming the key."""
    if values is None or isinstance(values, ChosenMechanism):
        return values
    if not isinstance(values, dict):
        raise ValueError(
            f"privacy.mechanism = {values!r}, but 'privacy.mechanism' is a section; write [privacy.mechanism] and "
            'below it name = "..." with what else is said of it.'
        )
    if values == {"name": NONE}:
        return None
    if values.get("name") == NONE:
        more = next(key for key in values if key != "name")
        raise ValueError(f"privacy.mechanism.{more} says something of a mechanism, and name = 'none' is none; drop it.")
    if values == {"name": BEST.name}:
        return THE_BEST
    where = "privacy.mechanism"
    try:
        return chosen(values, error=RecipeError, where=where)
    except RecipeError:
        raise
    except InputError as error:
        raise ValueError(f"{where}: {error}") from error


def _plain_mechanism(mechanism: ChosenMechanism | None) -> dict[str, Any]:
    return {"name": NONE} if mechanism is None else mechanism.to_plain()


class PrivacySection(Section):
    """The mechanism and how much noise it adds."""

    # [privacy.mechanism]: its name, and the parameters that the catalogue gives it; None: no noise is added.
    mechanism: Annotated[ChosenMechanism | None, PlainValidator(_mechanism), PlainSerializer(_plain_mechanism)] = (
        THE_BEST
    )
    clip_norm: float = Field(default=1.0, gt=0)
    epsilon: float | None = Field(default=None, gt=0)  # at delta, of everything that the planned run releases
    zcdp: float | None = Field(default=None, gt=0)  # or the rho that it may spend
    noise_multiplier: float | None = Field(default=None, gt=0)  # or z: seeds have standard deviation z * clip_norm
    delta: float | None = Field(default=None, gt=0, lt=1)  # left out: below 1/population, see privacy.delta
    population: Path | None = Field(default=None, strict=False)  # in whose budget the run is entered
    objective: Literal["max", "rms"] = "max"  # what a design minimises: the worst prefix sum's error, as paper 4's
    workload: Literal["prefix", "server"] = (
        "prefix"  # whose error that is: prefix sums', as in the papers, or the models'
    )
    extrapolate_to: int | None = Field(default=None, ge=1)  # the production report goal this cohort stands for

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        noises = [f"privacy.{name}" for name in NOISES if getattr(self, name) is not None]
        if self.mechanism is None and noises:
            raise ValueError(f"{noises[0]} says noise but privacy.mechanism='none' says none; drop one of them.")
        if self.mechanism is THE_BEST and not noises:
            raise ValueError(
                "[privacy] does not say how much noise; give privacy.epsilon = 8, say (or zcdp, or noise_multiplier), "
                'or name = "none" below [privacy.mechanism] for a run that promises nothing.'
            )
        if self.mechanism is not None and len(noises) != 1:
            raise ValueError(
                f"privacy.mechanism='{self.mechanism_name}' needs exactly one of privacy.epsilon, privacy.zcdp and "
                f"privacy.noise_multiplier; {' and '.join(noises) or 'none'} {'are' if noises else 'is'} given."
            )
        return self

    @property
    def mechanism_name(self) -> str:
        """The mechanism by its name in the catalogue, "none" where there is none."""
        return NONE if self.mechanism is None else self.mechanism.name

    def delta_for(self, population: int) -> float:
        """The delta at which epsilon is stated: the recipe's own, or else the default for so many clients."""
        return default_delta(population) if self.delta is None else self.delta

    def spent(self) -> float | None:
        """The rho that everything released may cost together; None where the noise multiplier says the noise.

        Raises: InputError for an epsilon whose delta is left to the population and not known yet.
        """
        if self.epsilon is None:
            return self.zcdp
        if self.delta is None:
            raise InputError(
                f"privacy.epsilon={self.epsilon:g} says how much noise at a delta only, and this recipe leaves delta "
                "to the population; give privacy.delta, or `recipe.with_delta(delta)`."
            )
        return zcdp_for_epsilon(self.epsilon, self.delta) * BELOW

    @property
    def adapts(self) -> bool:
        """Whether a clip norm may change while a run goes on: there is no noise, or noise that can start afresh."""
        return self.mechanism is None or self.mechanism.mechanism.adapts

    @property
    def needs_design(self) -> bool:
        """Whether the strategy is still to be designed."""
        return self.mechanism is not None and self.mechanism.needs_design

    def designed(
        self, participation: Participation, matrices: bool = True, workload: Workload = PREFIX
    ) -> "PrivacySection":
        """The same section with the numbers of the strategy designed for `participation`, where they are few.

        workload: `Recipe.workload`, here and below.
        """
        if self.mechanism is None:
            return self
        best = self.choice(participation, matrices, workload)
        mechanism = self.mechanism if best is None else best.chosen
        return self.model_copy(update={"mechanism": mechanism.settled(participation, self.objective, workload)})

    def choice(
        self, participation: Participation, matrices: bool = True, workload: Workload = PREFIX
    ) -> BestMechanism | None:
        """The mechanism that is chosen for `participation`, and why; None where the recipe names one.

        matrices: whether it may be one. Raises: InputError where there is none.
        """
        chooses = self.mechanism is not None and self.mechanism.mechanism is BEST
        return best_mechanism(participation, self.objective, matrices, workload) if chooses else None

    def matrix(self, participation: Participation, matrices: bool = True, workload: Workload = PREFIX) -> Matrix | None:
        """The strategy matrix for `participation`, designed; None where a strategy is a few numbers.

        Raises: InputError where there is none: more bands than the separation, more than one participation of "dense".
        """
        best = self.choice(participation, matrices, workload)
        if best is not None:
            return best.strategy if isinstance(best.strategy, Matrix) else None
        kind = None if self.mechanism is None else self.mechanism.mechanism.matrix
        if self.mechanism is None or kind is None:
            return None
        if kind is Dense and participation.rounds > LARGEST:
            raise InputError(
                f"privacy.mechanism='{self.mechanism_name}' is a full matrix and rounds.rounds={participation.rounds} "
                f"are too many for one; ask for at most {LARGEST} rounds, or take blt or banded."
            )
        strategy = self.mechanism.strategy(participation, self.objective, workload=workload)
        assert isinstance(strategy, Matrix)  # what the catalogue says of it
        return strategy

    def strategy(
        self, participation: Participation, matrix: Matrix | None = None, workload: Workload = PREFIX
    ) -> Strategy | None:
        """None for mechanism "none". A mechanism that needs a design is designed now; `matrix` is the designed matrix.

        Raises: InputError where a matrix is needed and not given.
        """
        if self.mechanism is None:
            return None
        if self.mechanism.mechanism.matrix is None:
            return self.mechanism.strategy(participation, self.objective, workload=workload)
        if matrix is None:
            raise InputError(f"privacy.mechanism='{self.mechanism_name}' needs its matrix; give what was designed.")
        return matrix


class ClippingSection(Section):
    """A clip norm that follows the updates; see AdaptiveClipping. Left out, the clip norm is privacy.clip_norm."""

    initial: float = Field(gt=0)  # C^0; start low, see AdaptiveClipping
    quantile: float = 0.5  # paper 1
    learning_rate: float = 0.2  # paper 1
    bit_stddev: float | None = None  # paper 1: report goal / 20

    def settings(self) -> AdaptiveClipping:
        return AdaptiveClipping(**self.model_dump())


class TrainingLossSection(Section):
    """A training loss that is released with noise, under the run's guarantee; see PrivateLoss. Left out, none is."""

    bound: float = 10.0  # nats a word; a model that knows nothing has log(vocabulary), 9.9 of 20,000 words
    stddev: float | None = None  # bound / 20: a cohort's mean in twenty steps, as paper 1's counts (report goal / 20)

    def settings(self) -> PrivateLoss:
        return PrivateLoss(**self.model_dump())


class AggregationSection(Section):
    """Updates are encoded as integers, only their sum is decoded; see SecureUpdates. Left out, it is in the clear."""

    kind: Literal["secure"]
    inflation: float = Field(default=INFLATION, gt=1, le=2)  # 1% more norm, 2% more zCDP: at some 20 bits a coordinate
    sigmas: float = Field(default=SIGMAS, ge=4, le=100)  # no coordinate of a billion is ever clipped at 10
    threshold: int | None = Field(default=None, ge=2)  # left out: half the report goal, rounded up
    protocol: Protocol | None = None  # left out: integers are added without keys, as fast as can be
    protocol_clients: int | None = Field(default=None, ge=FEWEST)  # of a round; left out: 8
    protocol_dropout: float = Field(default=0.0, ge=0, le=MOST_DROPOUT)  # the chance of each of them to vanish
    # one would know all noise, as a server does; left out: the server
    decryptors: int | None = Field(default=None, ge=2)
    honest_decryptors: int = Field(default=1, ge=1)  # of them, who together add the noise that is accounted

    @model_validator(mode="after")
    def _noise_of_decryptors_once(self) -> Self:
        if self.decryptors is not None and self.protocol_dropout:
            raise ValueError(
                f"aggregation.protocol_dropout={self.protocol_dropout:g} may abort a round's protocol, which then is "
                f"begun again with another cohort, and aggregation.decryptors={self.decryptors} give a round's noise "
                f"once; "
                "drop one of the two keys."
            )
        return self

    @model_validator(mode="after")
    def _relies_on_as_many_as_there_are(self) -> Self:
        if self.decryptors is None and self.honest_decryptors != 1:
            raise ValueError(
                f"aggregation.honest_decryptors={self.honest_decryptors} of no aggregation.decryptors; say how many "
                "there are, or drop it."
            )
        if self.decryptors is not None:
            check_honest(self.decryptors, self.honest_decryptors, name="aggregation.honest_decryptors")
        return self

    @model_validator(mode="after")
    def _names_what_is_played(self) -> Self:
        if self.protocol is None and self.protocol_clients is not None:
            raise ValueError(
                f"aggregation.protocol_clients={self.protocol_clients} are to play no protocol; name one with "
                f"aggregation.protocol ({' or '.join(get_args(Protocol))}), or drop it."
            )
        if self.protocol is None and self.protocol_dropout:
            raise ValueError(
                f"aggregation.protocol_dropout={self.protocol_dropout:g} is the chance that a client vanishes from the "
                f"protocol that it plays, and none does; name one with aggregation.protocol "
                f"({' or '.join(get_args(Protocol))}), or drop it."
            )
        return self

    def settings(self) -> SecureUpdates:
        return SecureUpdates(
            sigmas=self.sigmas,
            threshold=self.threshold,
            played=self._played(),
            dropout=self.protocol_dropout,
            decryptors=self.decryptors or 0,
            honest_decryptors=self.honest_decryptors,
        )

    def _played(self) -> SimulatedProtocol | None:
        if self.protocol is None:
            return None
        few = {} if self.protocol_clients is None else {"devices": self.protocol_clients}
        return SimulatedProtocol(protocol=self.protocol, **few)


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
    sentences: int = Field(default=64, ge=1, le=MOST)  # of each
    baselines: bool = True  # whether the model is held against what is free, at the end


class RunSection(Section):
    """Reproducibility."""

    seed: int | None = Field(default=None, ge=0)  # given: anyone can recompute the noise; the statement says so loudly
