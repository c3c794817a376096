"""What goes wrong, in the one shape of every error: RFC 9457, application/problem+json."""

from tacit.protocol.messages import Problem
from tacit.protocol.problem_kinds import KINDS, PREFIX
from tacit.records import visible

MEDIA_TYPE = "application/problem+json"
LONGEST = 500  # characters of a detail


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
    return Problem(type=f"{PREFIX}{kind}", title=title, status=status, detail=detail).to_json().encode()
