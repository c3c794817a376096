"""What the documents of the protocol are made of: their base, and values with a bound on each."""

from collections.abc import Callable
from functools import partial
from operator import not_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tacit.errors import InputError
from tacit.parsing import strict_json
from tacit.secure_aggregation.small_order import anybody_agrees, anybody_signs

if TYPE_CHECKING:
    from tacit.federation.report_shape import ReportShape

T = TypeVar("T")

MOST_CLIENTS = 10**9
MOST_PARAMETERS = 10**9
MOST_RECIPE = 1 << 18  # characters
MOST_LISTED = 100_000  # prefixes or words that a question names
MOST_LETTERS = 1_000  # of a word: discovery.settings.DEEPEST
MOST_WORDS = 10**7  # that one report is trained on, epochs and padding counted: half an hour of a core, 40 MB
MOST_MATRIX = 1 << 22  # numbers of a strategy matrix: 32 MiB
MOST_ENTRIES = 1 << 17  # of the log, which a device reads whole: 10 MB
MOST_PROOF = 17  # hashes: a log of so many entries has no longer one
MOST_CONTROL = 1 << 21  # bytes of an answer in JSON: a plan with its recipe, or a task with its settings
MOST_KINDS = 64  # that a device says that it can do
MOST_CRITICAL = 32  # keys of one object
UNKNOWN = "this version of tacit does not know it; a later one may"  # of a refusal


def somebodys(key: str, anybody: Callable[[bytes], bool]) -> str:
    """A key of 64 hexadecimal digits; refused where anybody has it (`small_order`)."""
    if anybody(bytes.fromhex(key)):
        raise PydanticCustomError("small_order", "the key is a point of small order, which anybody has")
    return key


def exactly(value: object, kind: type) -> object:
    """A constant's value; refused where it is of another type that compares as equal: 1 is True, and 2.0 is 2."""
    if type(value) is not kind:
        raise PydanticCustomError("literal_error", "Input should be of the type {kind}", {"kind": kind.__name__})
    return value


KindName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]  # of any version's table
Key: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Purpose: TypeAlias = Literal["plan", "task", "receipt", "head", "token-key", "hand-over"]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Text: TypeAlias = Annotated[str, StringConstraints(max_length=MOST_LETTERS)]
Digest: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]  # SHA-256
PublicKey: TypeAlias = Annotated[Digest, AfterValidator(partial(somebodys, anybody=anybody_signs))]  # Ed25519
BoxKey: TypeAlias = Annotated[Digest, AfterValidator(partial(somebodys, anybody=anybody_agrees))]  # X25519
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
Yes: TypeAlias = Annotated[Literal[True], BeforeValidator(partial(exactly, kind=bool))]
Two: TypeAlias = Annotated[Literal[2], BeforeValidator(partial(exactly, kind=int))]


class Document(BaseModel):
    """One JSON object, which `from_json` reads; values have strict types and bounds.

    A key that this version does not know is ignored, unless the object lists it in `critical` (as RFC 7515, section
    4.1.11, has it of JOSE). What a known key means follows from known keys alone. A field with a default is a key that
    came after version 2: documents before it do not have it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False, defer_build=True)

    critical: tuple[Key, ...] = Field(default=(), max_length=MOST_CRITICAL, exclude_if=not_, repr=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """That of a text. Raises: InputError naming the first thing that is wrong, and not its value."""
        return read_json(cls.model_validate_json, text)

    def to_json(self) -> str:
        """As it is sent and, once, signed: nobody writes again what came."""
        return self.model_dump_json()

    @model_validator(mode="after")
    def _knows_what_is_critical(self) -> Self:
        if len(set(self.critical)) < len(self.critical):
            raise PydanticCustomError("critical", "a key is critical twice")
        for key in self.critical:
            field, named = type(self).model_fields.get(key), {"key": repr(key)}
            if field is None:
                raise PydanticCustomError("critical", "its key {key} is critical, and " + UNKNOWN, named)
            if key == "critical" or field.is_required():
                raise PydanticCustomError("critical", "{key} is a key of version 2, and so never critical", named)
            if key not in self.model_fields_set:
                raise PydanticCustomError("critical", "its key {key} is critical, and is not there", named)
        return self


class SignedDocument(Document):
    """One that its operator signs, for this purpose and no other."""

    purpose: ClassVar[Purpose]


class QuestionDocument(Document):
    """What a round asks of devices, of one kind; each kind is a subclass, whose `kind` is a field with its name."""

    if TYPE_CHECKING:
        kind: str  # a field of the subclasses, at its place among theirs

    @property
    def whole(self) -> bool:
        """Whether reports are whole numbers, which alone may be sealed."""
        return True

    @property
    def margin(self) -> int:
        """The largest magnitude of one contributor's noise in a cell of the sum, where there are contributors."""
        return 0

    @property
    def signs(self) -> bytes:
        """What a sealed sum is rotated by, 32 bytes; nothing where it is not."""
        return b""

    def shape(self) -> "ReportShape":
        """What the question lets a report be; of one whose reports are sealed, what is in them.

        Raises: InputError for a question that contradicts itself.
        """
        raise TypeError(f"{type(self).__name__} is the question of no kind.")


def read_json(reader: Callable[[str | bytes], T], text: str | bytes) -> T:
    """What a reader of pydantic's makes of a text in JSON that no two programs read differently.

    Raises: InputError naming the first thing that is wrong, by its path, and not its value.
    """
    try:
        strict_json(text)
        return reader(text)
    except ValidationError as error:
        raise InputError(_complaint(error)) from None
    except ValueError as error:
        raise InputError(f"the document: {error}.") from None


def _complaint(error: ValidationError) -> str:
    first: Any = error.errors(include_url=False, include_input=False)[0]
    where, said = ".".join(map(str, first["loc"]))[:200] or "the document", first["msg"].removeprefix("Value error, ")
    if first["type"] == "union_tag_invalid":
        said = f"it is of the kind {first['ctx']['tag'][:40]!r}, and {UNKNOWN}"
    more = f" ({error.error_count()} errors)" if error.error_count() > 1 else ""
    return f"{where}: {said}{more}."
