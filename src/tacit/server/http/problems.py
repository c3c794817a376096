"""What goes wrong, in the one shape of every error: RFC 9457, application/problem+json."""

from collections.abc import Mapping
from typing import NamedTuple

from tacit.protocol.messages import Problem
from tacit.records import visible

MEDIA_TYPE = "application/problem+json"
LONGEST = 500  # characters of a detail


class Kind(NamedTuple):
    """A kind of error: its status and its title; the type in a Problem is its name."""

    status: int
    title: str


KINDS: Mapping[str, Kind] = {
    "malformed": Kind(400, "The request does not say what the protocol asks for."),
    "credential": Kind(401, "The credential is missing or not the right one."),
    "token": Kind(401, "There is work, for an enrolled device that shows a token."),
    "forbidden": Kind(403, "Nobody may do this here."),
    "not-found": Kind(404, "There is no such thing here."),
    "method": Kind(405, "This path does not take the method."),
    "too-slow": Kind(408, "The body did not come in time."),
    "other-report": Kind(409, "Another report was received for this assignment."),
    "late": Kind(410, "The round takes no more reports."),
    "length": Kind(411, "The body's length must be said before it."),
    "too-large": Kind(413, "The body is larger than it may be."),
    "encoding": Kind(415, "The body's encoding is unknown."),
    "range": Kind(416, "There are no such bytes."),
    "refused": Kind(422, "What was said breaks the task."),
    "version": Kind(400, "The version of the protocol is not spoken here."),
    "busy": Kind(503, "The server cannot do this now; try again later."),
    "failed": Kind(500, "The server failed."),
}


class Refused(Exception):
    """A request is answered with a Problem of this kind."""

    def __init__(self, kind: str, detail: str, **headers: str) -> None:
        """headers: of the answer, with _ for -."""
        super().__init__(detail)
        self.kind, self.headers = kind, {name.replace("_", "-"): value for name, value in headers.items()}

    @property
    def status(self) -> int:
        """Of the answer."""
        return KINDS[self.kind].status

    def body(self) -> bytes:
        """The Problem."""
        detail = visible(str(self))[:LONGEST]
        named = KINDS[self.kind]
        return problem(self.kind, named.title, named.status, detail)


def problem(kind: str, title: str, status: int, detail: str) -> bytes:
    """A Problem as it is sent."""
    return Problem(type=f"tacit:{kind}", title=title, status=status, detail=detail).to_json().encode()
