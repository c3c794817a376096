"""What the documents of the protocol are made of: their base, and values with a bound on each."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tacit.federation.kinds import FEDERATED

if TYPE_CHECKING:
    from tacit.federation.report_shape import ReportShape

MOST_CLIENTS = 10**9
MOST_PARAMETERS = 10**9
MOST_RECIPE = 1 << 18  # characters
MOST_LISTED = 100_000  # prefixes or words that a question names
MOST_LETTERS = 1_000  # of a word: discovery.settings.DEEPEST
MOST_WORDS = 10**7  # that one report is trained on, epochs and padding counted: half an hour of a core, 40 MB
MOST_MATRIX = 1 << 22  # numbers of a strategy matrix: 32 MiB
MOST_ENTRIES = 1 << 17  # of the log, which a device reads whole: 10 MB
MOST_PROOF = 17  # hashes: a log of so many entries has no longer one

if TYPE_CHECKING:
    KindName: TypeAlias = str
else:
    KindName = Literal[tuple(FEDERATED)]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Text: TypeAlias = Annotated[str, StringConstraints(max_length=MOST_LETTERS)]
Digest: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]  # SHA-256
PublicKey: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]  # Ed25519 or X25519
Signature: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]  # Ed25519
Identifier: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]  # random
Secret: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]  # random
Entry: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z-]{0,30}( [0-9]{1,10})? [0-9a-f]{64}$")
]  # of the log
Evidence: TypeAlias = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}){1,20000}$")]  # of an attestation
Count: TypeAlias = Annotated[int, Field(ge=0, le=MOST_CLIENTS)]
Several: TypeAlias = Annotated[int, Field(ge=1, le=MOST_CLIENTS)]
Time: TypeAlias = Annotated[float, Field(ge=0, le=1e11)]
Duration: TypeAlias = Annotated[float, Field(ge=0, le=1e9)]
Positive: TypeAlias = Annotated[float, Field(gt=0, le=1e50)]
Real: TypeAlias = Annotated[float, Field(ge=0, le=1e50)]
Share: TypeAlias = Annotated[float, Field(gt=0, lt=1)]


class Document(BaseModel):
    """One JSON object. `model_validate_json` parses it; a key too many, a value of another type are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class QuestionDocument(Document):
    """What a round asks of devices, of one kind; each kind is a subclass, whose `kind` is a field with its name."""

    if TYPE_CHECKING:
        kind: str  # a field of the subclasses, at its place among theirs

    @property
    def whole(self) -> bool:
        """Whether reports are whole numbers, which alone may be sealed."""
        return True

    def shape(self) -> "ReportShape":
        """What the question lets a report be; of one whose reports are sealed, what is in them.

        Raises: InputError for a question that contradicts itself.
        """
        raise TypeError(f"{type(self).__name__} is the question of no kind.")
