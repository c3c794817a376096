"""What a device asks a server, request by request, without I/O.

Each function is a conversation: it yields an `Ask`, is sent the `Answer`, and returns the document that it brought.

Whoever drives one of these sends what it asks over any network, and bounds what comes: an answer in JSON by the bytes
and the seconds of the ask, a file by its size. Raises ServerError for what the protocol does not
allow, and passes on the one that its driver throws where no answer came.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeVar

from pydantic import TypeAdapter

from tacit.errors import InputError, ServerError, TaskRefused
from tacit.protocol import messages
from tacit.protocol.fields import MOST_CONTROL, read_json
from tacit.protocol.messages import (
    Assignment,
    BlindSignatures,
    CheckIn,
    ComeBack,
    ShownLog,
    Signed,
    SignedKeyRotation,
    SignedPlan,
    TokenRequest,
)
from tacit.protocol.problem_kinds import is_final, known_problem

T = TypeVar("T")
MOST_LOG = 1 << 24  # bytes of the log: MOST_ENTRIES of 112 and the head
SECONDS = 60.0  # for a whole answer in JSON
BYTES_PER_SECOND = 10_000.0  # slower than that, a large body is given up for now
JSON: Mapping[str, str] = {"Content-Type": "application/json"}
_ANSWER: TypeAdapter[ComeBack | Assignment] = TypeAdapter(messages.Answer)


@dataclass(frozen=True, kw_only=True)
class NamedFile:
    """A file by its digest."""

    what: str  # in sentences: "model"
    sha256: str
    size: int  # bytes


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request. The answer to one that names a file is that file, whose SHA-256 the driver has checked."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = SECONDS  # for all of the answer
    most: int = MOST_CONTROL  # bytes of an answer that is no file
    file: NamedFile | None = None  # where it is cut off, the rest is asked for


class Answer(NamedTuple):
    """What a server answers."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


Conversation: TypeAlias = Generator[Ask, Answer, T]


def check_in(said: CheckIn) -> Conversation[ComeBack | Assignment]:
    """What there is to do, or when to come back."""
    answer = yield Ask(method="POST", path="/v1/check-in", body=said.to_json().encode(), headers=JSON)
    return _parsed(_ANSWER.validate_json, answer, "the answer to a check-in")


def plan(digest: str) -> Conversation[SignedPlan]:
    """The plan that goes by this digest; whether it is that one, the caller sees."""
    return _parsed(SignedPlan.model_validate_json, (yield Ask(method="GET", path=f"/v1/plans/{digest}")), "the plan")


def named_file(path: str, file: NamedFile) -> Conversation[bytes]:
    """The file with this digest. Raises: TaskRefused for a path that is not its digest."""
    if path != f"/v1/models/{file.sha256}":  # one that a single device is shown would tell it apart
        raise TaskRefused(f"the path of a {file.what}, {path!r}, is not its SHA-256.")
    seconds = SECONDS + file.size / BYTES_PER_SECOND
    answer = yield Ask(method="GET", path=path, seconds=seconds, file=file)
    return answer.body


def report(assignment: str, secret: str, body: bytes, sha256: str) -> Conversation[Signed]:
    """Send a report with this digest; the same bytes may be sent again."""
    headers = {
        "Authorization": f"Bearer {secret}",
        "Content-Type": "application/octet-stream",
        "X-Content-SHA256": sha256,
    }
    seconds = SECONDS + len(body) / BYTES_PER_SECOND
    path = f"/v1/reports/{assignment}"
    return _parsed(
        Signed.model_validate_json,
        (yield Ask(method="POST", path=path, body=body, headers=headers, seconds=seconds)),
        "the receipt",
    )


def give_back(assignment: str, secret: str) -> Conversation[None]:
    """Say that no report will come, so that another device gets the place."""
    headers = {"Authorization": f"Bearer {secret}"}
    checked((yield Ask(method="DELETE", path=f"/v1/reports/{assignment}", headers=headers)), 204)


def key_rotation() -> Conversation[SignedKeyRotation]:
    """To which key the operator changed last; ServerError also where it never did."""
    return _parsed(
        SignedKeyRotation.model_validate_json,
        (yield Ask(method="GET", path="/v1/key/hand-over")),
        "the hand-over of the operator's key",
    )


def whole_log() -> Conversation[ShownLog]:
    """The operator's log; whether its head is signed, and the head of these entries, the caller sees."""
    answer = yield Ask(method="GET", path="/v1/log", seconds=4 * SECONDS, most=MOST_LOG)
    return _parsed(ShownLog.model_validate_json, answer, "the log")


def token_key() -> Conversation[Signed]:
    """By which this epoch's tokens are signed."""
    return _parsed(Signed.model_validate_json, (yield Ask(method="GET", path="/v1/tokens/key")), "the key of tokens")


def blind_signatures(request: TokenRequest) -> Conversation[BlindSignatures]:
    """The tokens of an epoch, blinded. The code in the request says who this is: no token follows in this turn."""
    body = request.to_json().encode()
    answer = yield Ask(method="POST", path="/v1/tokens", body=body, headers=JSON)
    return _parsed(BlindSignatures.model_validate_json, answer, "the tokens")


def checked(answer: Answer, *allowed: int) -> bytes:
    """The body of an answer with an allowed status. Raises: ServerError with what the server says of itself, made
    visible by whoever shows it; final where that is a known problem, and no other answer is.
    """
    if answer.status in allowed:
        return answer.body
    if 300 <= answer.status < 400:
        raise ServerError(f"the server sends on to another place ({answer.status}), where no device follows.")
    problem = known_problem(answer.status, answer.body)
    if problem is None:
        raise ServerError(
            f"the server answers {answer.status}: no reason in the protocol's form, so this may be another program "
            "that listens at its address, or a proxy before it."
        )
    raise ServerError(
        f"the server answers {answer.status}: {problem.detail}", final=is_final(problem), kind=problem.type
    )


def _parsed(reader: Callable[[str | bytes], T], answer: Answer, what: str) -> T:
    """Raises: ServerError naming the first thing that is wrong."""
    try:
        return read_json(reader, checked(answer, 200))
    except InputError as error:
        raise ServerError(f"{what} is none of the protocol's: {error}") from None
