"""What crosses the wire, document by document: JSON with strict types and a bound on every value.

Times are Unix seconds, durations seconds, bytes lower-case hexadecimal digits; names of keys are units where one could
ask (`after_s`). Every key is always there, null where it has no value. What is signed crosses as the text that its
signer wrote, inside a `Signed`. docs/protocol.md specifies each document.
"""

import math
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, TypeAlias, TypeVar, Union

from pydantic import Field, StringConstraints, model_validator

from tacit.federation.kinds import FEDERATED, loaded
from tacit.protocol.fields import (
    MOST_CONTROL,
    MOST_ENTRIES,
    MOST_KINDS,
    MOST_MATRIX,
    MOST_PARAMETERS,
    MOST_PROOF,
    MOST_RECIPE,
    BoxKey,
    Count,
    Digest,
    Document,
    Duration,
    Entry,
    Evidence,
    Identifier,
    KindName,
    Name,
    Positive,
    PublicKey,
    Purpose,
    QuestionDocument,
    Real,
    Secret,
    Several,
    Share,
    Signature,
    SignedDocument,
    Time,
    Two,
    Yes,
)

D = TypeVar("D", bound=SignedDocument)
Q = TypeVar("Q", bound=QuestionDocument)
if TYPE_CHECKING:
    AnyQuestion: TypeAlias = QuestionDocument
else:  # the document of each kind, by `kind`
    AnyQuestion = Annotated[
        Union[tuple(loaded(each.question) for each in FEDERATED.values())],  # noqa: UP007
        Field(discriminator="kind"),
    ]

VERSION: Final = 2  # of the protocol, by which these documents say what they do


class Signed(Document):
    """A document as its operator signed it: what is verified, hashed and read is the text that came."""

    document: Annotated[str, StringConstraints(min_length=2, max_length=MOST_CONTROL)]  # JSON
    signature: Signature  # of the text, for the document's purpose

    def read(self, kind: type[D]) -> D:
        """The document; whether it is signed, `signing.is_signed` says. Raises: InputError."""
        return kind.from_json(self.document)


# -- the plan: what a run asks of a device, once and for all -----------------------------------------------------------


class MatrixFile(Document):
    """A strategy matrix number by number, which is too many for a recipe, and where they are fetched."""

    kind: Literal["banded", "dense"]
    rounds: Annotated[int, Field(ge=1, le=MOST_MATRIX)]  # rows of the file
    bands: Annotated[int, Field(ge=1, le=MOST_MATRIX)]  # numbers of a row; of a dense matrix as many as rounds
    sha256: Digest  # of the file
    bytes: Annotated[int, Field(ge=1, le=8 * MOST_MATRIX + (1 << 13))]  # of the file
    path: Annotated[str, StringConstraints(pattern=r"^/v1/models/[0-9a-f]{64}$")]


class Privacy(Document):
    """What a run promises whoever takes part in it, and the settings that it follows from: what all kinds have."""

    zcdp: Real | None  # of a whole run; null where nothing is promised
    report_goal: Several  # the fewest reports of a round
    rounds: Several
    max_participations: Several | None  # of one device; null where only `Separation.timer_seconds` bounds them

    def deviation(self, round: int) -> float | None:
        """Standard deviation of the noise that is accounted in each cell of a round's counts; None: they are none."""
        return None


class TrainingPrivacy(Privacy):
    """Of clipped updates whose sums get noise."""

    kind: Literal["training"]
    epsilon: Real | None  # at `delta`
    delta: Share
    clip_norm: Positive  # of the first round; a later one has its own in its task
    noise_multiplier: Real
    mechanism: Annotated[str, StringConstraints(min_length=1, max_length=100)]  # its name
    matrix: MatrixFile | None  # null: the recipe has the mechanism's numbers


class LocalPrivacy(Privacy):
    """Of reports that each device randomises itself: this holds against everybody, the server included."""

    kind: Literal["local"]
    local_epsilon: Positive  # of everything that a device sends in the run, at delta 0


class HistogramPrivacy(Privacy):
    """Of one unit in one cell of each histogram, in one step of the run; each cell of a sum gets noise."""

    kind: Literal["histograms"]
    epsilon: Real  # at `delta`
    delta: Share
    histograms: Annotated[tuple[Several, ...], Field(min_length=1, max_length=100)]  # of each step: its clip norm^2
    noise_multiplier: Positive  # times a step's clip norm: the standard deviation in every cell

    def deviation(self, round: int) -> float | None:
        """See Privacy."""
        return self.noise_multiplier * math.sqrt(self.histograms[round])


class SumPrivacy(Privacy):
    """Of whole numbers in many cells, in the one step of the run; each cell of a sum gets noise."""

    kind: Literal["sums"]
    epsilon: Real  # at `delta`
    delta: Share
    clip_norm: Positive  # L2, of everything in one report
    noise_multiplier: Positive  # times the clip norm: the standard deviation in every cell

    def deviation(self, round: int) -> float | None:
        """See Privacy."""
        return self.noise_multiplier * self.clip_norm


class Separation(Document):
    """How far apart two participations of a device in this run are; each device sees to it itself."""

    rounds: Several | None  # round indices i < j need j - i >= this
    timer_seconds: Duration | None
    clock: Literal["start", "finish"]  # of a participation, from which the timer runs


class AggregationSettings(Document):
    """How reports are summed, with the public settings that a device checks."""

    kind: Literal["plain", "encoded", "sealed"]
    threshold: Several  # no sum of fewer reports is opened
    keepers: Annotated[tuple[PublicKey, ...], Field(max_length=100)]  # sealed: their identities, else none
    boxes: Annotated[tuple[BoxKey, ...], Field(max_length=100)]  # sealed: their keys for boxes, in the same order
    # sealed: so many decryptors may work with the server and learn nothing
    corrupt: Annotated[int, Field(ge=0, le=100)]
    contributors: Annotated[tuple[PublicKey, ...], Field(max_length=100)]  # sealed: who adds noise to every sum
    honest: Annotated[int, Field(ge=1, le=100)]  # contributors whose noise together is what is accounted


class Attested(Document):
    """By what the other side may know what runs, as `attestation.Attestation` names it; "none": nothing says."""

    devices: Name  # what a device shows when it asks for tokens
    server: Name  # what is beside a plan, and each device checks before it accepts it


UNATTESTED = Attested(devices="none", server="none")


class Plan(SignedDocument):
    """Everything about a run that does not change; one for each run, and its digest is its name to devices."""

    purpose: ClassVar[Purpose] = "plan"
    version: Two
    kind: KindName
    population: Name
    run: Name
    recipe: Annotated[str, StringConstraints(max_length=MOST_RECIPE)]  # the resolved recipe, TOML
    code: Digest  # of what devices run, as the operator knew it when the run began: `code_digest.py`
    privacy: Annotated[TrainingPrivacy | LocalPrivacy | HistogramPrivacy | SumPrivacy, Field(discriminator="kind")]
    separation: Separation
    aggregation: AggregationSettings
    vocabulary: Digest
    attestation: Attested
    enrolment: Literal["none", "tokens"]  # tokens: a device shows a single-use token for every task


class SignedPlan(Signed):
    """A plan as a device receives it."""

    evidence: Evidence | None  # for the plan's digest: that the server runs what it should; null where nothing says


# -- the task: one attempt of one round --------------------------------------------------------------------------------


class Content(Document):
    """What a round begins with, a model or a list of words, and where it is fetched."""

    sha256: Digest  # of the file
    bytes: Annotated[int, Field(ge=1, le=8 * MOST_PARAMETERS)]  # of the file
    path: Annotated[str, StringConstraints(pattern=r"^/v1/models/[0-9a-f]{64}$")]


class RoundTask(SignedDocument):
    """The task of the devices in one attempt at a round: what all kinds have, and `asks`, the question of its kind."""

    purpose: ClassVar[Purpose] = "task"
    run: Name
    plan: Digest  # of its text
    round: Count
    attempt: Annotated[int, Field(ge=0, le=1_000_000)]
    task: Identifier
    content: Content
    asks: AnyQuestion
    sealed: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}){1,20000}$")] | None  # bytes of a OneMessageRound
    opens: Time
    deadline: Time

    @model_validator(mode="after")
    def _consistent(self) -> "RoundTask":
        if self.opens >= self.deadline:
            raise ValueError("a task ends after it opens")
        if self.sealed is not None and not self.asks.whole:
            raise ValueError("what is sealed is encoded")
        return self

    @property
    def kind(self) -> str:
        """Of what it asks."""
        return self.asks.kind

    def question(self, kind: type[Q]) -> Q:
        """What it asks, of a task of that kind."""
        assert isinstance(self.asks, kind)  # the caller's to know
        return self.asks


# -- checking in -------------------------------------------------------------------------------------------------------


class CheckIn(Document):
    """A device is there and may work.

    It says neither which models nor which plans it has: that would tell the rounds and the runs that it was in.
    """

    version: Annotated[int, Field(ge=1, le=1_000_000)]
    population: Name
    # of the kinds of tasks that it can do; a server ignores kinds that it does not know
    versions: Annotated[dict[KindName, Annotated[int, Field(ge=1, le=1_000_000)]], Field(max_length=MOST_KINDS)]
    # redeemed where enrolment is asked for
    token: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}){1,2048}$")] | None


class ComeBack(Document):
    """There is nothing to do: check in again at a time drawn uniformly between the two, from now."""

    answer: Literal["come_back"]
    after_s: Duration
    before_s: Duration


class Assignment(Document):
    """A place in a round, for this device alone. The plan is fetched by the digest in the task."""

    answer: Literal["assignment"]
    assignment: Identifier
    secret: Secret  # whoever has it may send the report, and nobody else
    signed_task: Signed  # a RoundTask


Answer: TypeAlias = Annotated[ComeBack | Assignment, Field(discriminator="answer")]


# -- the log: every plan, for anybody to see ---------------------------------------------------------------------------


class TreeHead(SignedDocument):
    """A log of so many entries; the root of their Merkle tree (RFC 9162, section 2.1) says which ones."""

    purpose: ClassVar[Purpose] = "head"
    size: Several
    root: Digest


class ShownLog(Document):
    """All of the log, the same for whoever asks; the head's root says that it is these entries, in this order."""

    head: Signed  # a TreeHead; of one size there is one
    entries: Annotated[tuple[Entry, ...], Field(max_length=MOST_ENTRIES)]


class InclusionProof(Document):
    """That an entry is in the log (RFC 9162, section 2.1.3); a run's folder keeps it."""

    index: Count
    head: Signed  # a TreeHead; of one size there is one
    path: Annotated[tuple[Digest, ...], Field(max_length=MOST_PROOF)]


# -- another key of the operator ---------------------------------------------------------------------------------------


class KeyRotation(SignedDocument):
    """From which key to which."""

    purpose: ClassVar[Purpose] = "hand-over"
    old: PublicKey
    new: PublicKey


class SignedKeyRotation(Document):
    """It as devices receive it."""

    document: Annotated[str, StringConstraints(min_length=2, max_length=MOST_CONTROL)]  # a KeyRotation, JSON
    by_old: Signature
    by_new: Signature


# -- tokens, by which an enrolled device takes part without saying which it is -----------------------------------------

Blind: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{512}$")]  # a number below an RSA modulus


class TokenKey(SignedDocument):
    """By which the tokens of an epoch are signed, blindly; everybody has the same."""

    purpose: ClassVar[Purpose] = "token-key"
    epoch: Count
    opens: Time
    ends: Time
    batch: Annotated[int, Field(ge=1, le=100)]  # tokens that a device asks for, no more and no fewer
    modulus: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{512}$")]
    exponent: Annotated[int, Field(ge=65537, lt=1 << 32)]


class TokenRequest(Document):
    """An enrolled device asks for the tokens of an epoch, once."""

    code: Annotated[str, StringConstraints(pattern=r"^[!-~]{20,200}$")]
    epoch: Count
    blinded: Annotated[tuple[Blind, ...], Field(min_length=1, max_length=100)]
    # for `token_format.bound_to`: that the device runs what it should; null where nothing says
    evidence: Evidence | None


class BlindSignatures(Document):
    """One for each blinded message, in their order."""

    epoch: Count
    signatures: Annotated[tuple[Blind, ...], Field(min_length=1, max_length=100)]


# -- reports and errors ------------------------------------------------------------------------------------------------


class Receipt(SignedDocument):
    """That a report came, in the same bytes as often as its device asks. It says nothing of whether its round will be
    released.
    """

    purpose: ClassVar[Purpose] = "receipt"
    assignment: Identifier
    sha256: Digest  # of the body
    received: Yes


class Problem(Document):
    """Every error: RFC 9457, application/problem+json. type: a word of ours that never changes, for programs."""

    type: Annotated[str, StringConstraints(pattern=r"^tacit:[a-z-]{1,40}$")]
    title: Annotated[str, StringConstraints(max_length=200)]
    status: Annotated[int, Field(ge=400, le=599)]
    detail: Annotated[str, StringConstraints(max_length=2000)]
