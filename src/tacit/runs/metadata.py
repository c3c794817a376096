"""What each kind of run records of itself when it begins: written once, read typed, never changed.

What is learnt later (that it finished, where its time went) is a note of the run instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tacit.federation.kinds import KINDS, loaded


@dataclass(frozen=True, kw_only=True)
class BudgetUsed:
    """The budget of the population that a run is entered in."""

    path: str
    entry: str  # its name there
    state: Mapping[str, Any]  # of the budget with this run's planned cost, as `statements.population` writes it


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """What every run records."""

    kind: ClassVar[str]
    steps_hold_states: ClassVar[bool] = False  # the files in `steps/`: states to go on from, and not what was released
    versions: Mapping[str, str]  # of tacit, Python and the packages that decide a bit
    created: float  # Unix seconds
    key_source: str  # who drew the noise key: "operating system", or "fixed seed N"
    budget: BudgetUsed | None = None  # of its population; None: it names none


@dataclass(frozen=True, kw_only=True)
class CacheUsed:
    """The cache of clients' text that a run trains on."""

    cache: str
    source: str
    vocabulary_sha256: str
    vocabulary_size: int
    clients: int  # of every split: the log of a run has their numbers, from 0
    cache_digest: str


@dataclass(frozen=True, kw_only=True)
class FirstModelUsed:
    """The model of public text that a run began from."""

    path: str
    public_text: str | None
    digest: str

    @classmethod
    def from_model(cls, model: Any) -> "FirstModelUsed":
        """model: a `keyboard.model_folder.TrainedModel`."""
        return cls(path=str(model.path.resolve()), public_text=model.public_text, digest=model.digest)


@dataclass(frozen=True, kw_only=True)
class SecureSumUsed:
    """How updates are encoded for a sum that nobody can open; `privacy.encoding.Encoding` says what each number is."""

    parameters: int
    dimension: int
    clip_norm: float  # the first; scale times clip norm stays where it is adapted
    scale: float
    report_goal: int
    sigmas: float
    inflation: float  # at most
    bits: int  # of a coordinate
    clipping_probability: float  # of an update, at most
    threshold: int  # no sum of fewer reports is opened
    protocol: str | None = None  # that some clients of each round play; None: none
    protocol_clients: int = 0  # how many
    protocol_dropout: float = 0.0  # with which chance each of them vanished
    decryptors: int = 0  # parties that each added noise, in the server's place; 0: it added it
    honest_decryptors: int = 1  # of them, whose noise together is what is accounted; 1: each added all of it

    @classmethod
    def from_encoding(cls, encoding: Any, secure: Any) -> "SecureSumUsed":
        """encoding: a `privacy.encoding.Encoding`. secure: a `training.secure_updates.SecureUpdates`."""
        played = secure.played
        return cls(
            parameters=encoding.parameters,
            dimension=encoding.dimension,
            clip_norm=encoding.clip_norm,
            scale=encoding.scale,
            report_goal=encoding.report_goal,
            sigmas=encoding.sigmas,
            inflation=encoding.inflation,
            bits=encoding.bits,
            clipping_probability=encoding.clipping_probability,
            threshold=secure.min_reports(encoding.report_goal),
            protocol=None if played is None else played.protocol,
            protocol_clients=0 if played is None else played.devices,
            protocol_dropout=secure.dropout,
            decryptors=secure.decryptors,
            honest_decryptors=secure.honest_decryptors,
        )


@dataclass(frozen=True, kw_only=True)
class DeploymentUsed:
    """Real devices without identities, and what each of them keeps by itself."""

    population: str  # the name by which they check in
    devices: int  # about how many there are, by the operator's word
    rounds: int | None  # each takes part in none that comes fewer rounds after its last; None: it counts none
    timer_seconds: float | None  # each stays away for so long; None: it has no timer
    most: int | None = None  # each takes part in so many rounds at most; None: as many as the rest allows
    decryptors: int = 0  # parties that open a round's sum together, and no report; 0: the server sees each report
    corrupt_decryptors: int = 0  # so many of them may work with the server and learn nothing else
    contributors: int = 0  # of them, who each add noise to every sum; 0: the server adds it
    honest_decryptors: int = 1  # of those, whose noise together is what is accounted

    @classmethod
    def from_section(
        cls, section: Any, *, rounds: int | None, timer_seconds: float | None, most: int | None
    ) -> "DeploymentUsed":
        """section: a `recipe.deployment_section.DeploymentSection`; the others: what each device keeps by itself."""
        return cls(
            population=section.population,
            devices=section.devices,
            rounds=rounds,
            timer_seconds=timer_seconds,
            most=most,
            decryptors=len(section.decryptors),
            corrupt_decryptors=section.corrupt_decryptors if section.decryptors else 0,
            contributors=section.contributors,
            honest_decryptors=section.honest_decryptors,
        )


@dataclass(frozen=True, kw_only=True)
class TrainingMetadata(Metadata):
    """Of a run of `tacit.train`."""

    kind: ClassVar[str] = "train"
    steps_hold_states: ClassVar[bool] = True
    asked: str  # the recipe as it was given, in TOML
    recipe: str  # the same with the mechanism's numbers filled in
    data: CacheUsed
    vocabulary: Mapping[str, str]  # kind and description of where it comes from
    population: int  # training clients, or about so many real devices
    report_goal: int
    participation: Mapping[str, int]  # as planned
    guarantee: Mapping[str, Any]  # of the model updates, as `statements.accounts` writes it
    also_released: Mapping[str, Mapping[str, Any]]  # sequences beside the updates, the same
    delta: float
    parameters: int  # of the model
    first_model: FirstModelUsed | None
    extrapolate_to: int | None  # the report goal of the larger cohort whose signal-to-noise it has
    simulated: Mapping[str, Any] | None  # the simulated population
    deployment: DeploymentUsed | None = None  # real devices; None: clients of the cache, or of one's own collector
    evaluation: Mapping[str, Any]
    hooks: Mapping[str, str] = field(default_factory=dict)  # parts of the program's own, by argument: qualified names
    why_mechanism: str | None = None  # of one that the recipe left to the program
    secure: SecureSumUsed | None = None  # how updates were encoded for sums of integers; None: summed in the clear
    foreseen: str | None = None  # what its noise was expected to leave of the model, by the plan alone


@dataclass(frozen=True, kw_only=True)
class DiscoveryMetadata(Metadata):
    """Of a run of `tacit.discover`."""

    kind: ClassVar[str] = "discover"
    assignment: int | None  # decides who is asked in which layer; None: whoever comes first
    delta: float  # where the central epsilon is read
    population: int  # clients
    data: str | None  # where they are read from; None where they stood in memory
    vocabulary: str | None  # the file of the words that devices know; None where they stood in memory
    vocabulary_kind: str  # and where they come from
    vocabulary_description: str
    deployment: DeploymentUsed | None = None  # real devices; None: clients whose text is at hand
    asked_by: str | None = None  # the class of their collector


@dataclass(frozen=True, kw_only=True)
class AskingMetadata(Metadata):
    """Of a run that asks clients for counts: about models, or of their text."""

    of: ClassVar[str]  # what its statement is about
    source: str  # of the clients' text
    asked: int  # clients
    delta: float  # where the epsilon of a release is given
    deployment: DeploymentUsed | None = None  # real devices; None: simulated clients
    asked_by: str | None = None  # the class of the collector that asked them


@dataclass(frozen=True, kw_only=True)
class EvaluationMetadata(AskingMetadata):
    """Of a run of `tacit.evaluate`."""

    kind: ClassVar[str] = "evaluate"
    of: ClassVar[str] = "models"


@dataclass(frozen=True, kw_only=True)
class CountMetadata(AskingMetadata):
    """Of a run of `tacit.count`."""

    kind: ClassVar[str] = "count"
    of: ClassVar[str] = "device statistics"
    vocabulary_kind: str | None = None  # of the words that a released sum names; None: no word is named


@dataclass(frozen=True, kw_only=True)
class PersonalizationMetadata(AskingMetadata):
    """Of a run of `tacit.personalize`."""

    kind: ClassVar[str] = "personalize"
    of: ClassVar[str] = "personalization"


@dataclass(frozen=True, kw_only=True)
class TypingMetadata(AskingMetadata):
    """Of a run of `tacit.type_ab`."""

    kind: ClassVar[str] = "type"
    of: ClassVar[str] = "typing"
    data: str | None  # where the text is read from; None where it stood in memory


@dataclass(frozen=True, kw_only=True)
class PretrainingMetadata(Metadata):
    """Of a run of `tacit.pretrain`: public text, so nothing is promised."""

    kind: ClassVar[str] = "pretrain"
    steps_hold_states: ClassVar[bool] = True
    data: CacheUsed
    parameters: int  # of the model


@dataclass(frozen=True, kw_only=True)
class TuningMetadata(Metadata):
    """Of a run of `tacit.tune`, whose trials are runs below it."""

    kind: ClassVar[str] = "tune"


def metadata_class(kind: object) -> type[Metadata] | None:
    """What a run of that kind records of itself; None for what is no kind."""
    found = KINDS.get(kind) if isinstance(kind, str) else None
    return None if found is None else loaded(found.metadata)
