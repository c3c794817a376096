"""The kinds of errors of the protocol, and which of them a device takes as final.

An error carries no signature: whoever answers at the server's address can send one. So a device believes none that is
not in the protocol's own form. Another program on that port, or a proxy before the server, has no such form; what it
answers is asked again. Who imitates the form can end a turn, as who drops its packets can, and no more.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tacit.errors import InputError
from tacit.protocol.messages import Problem


class Kind(NamedTuple):
    """A kind of error: its status and its title; the type in a Problem is its name."""

    status: int
    title: str


KINDS: Mapping[str, Kind] = {
    "malformed": Kind(400, "The request does not say what the protocol asks for."),
    "credential": Kind(401, "The credential is missing or not the right one."),
    "token": Kind(401, "There is work, for an enrolled device that shows a token."),
    "forbidden": Kind(403, "Nobody may do this here."),
    "origin": Kind(403, "No page of this origin may ask here."),
    "not-found": Kind(404, "There is no such thing here."),
    "method": Kind(405, "This path does not take the method."),
    "too-slow": Kind(408, "The body did not come in time."),
    "other-report": Kind(409, "Another report was received for this assignment."),
    "late": Kind(410, "The round takes no more reports."),
    "length": Kind(411, "The body's length must be said before it."),
    "too-large": Kind(413, "The body is larger than it may be."),
    "encoding": Kind(415, "The body's media type or encoding is unknown."),
    "range": Kind(416, "There are no such bytes."),
    "misdirected": Kind(421, "This server does not go by the name that was asked for."),
    "refused": Kind(422, "What was said breaks the task."),
    "version": Kind(400, "The version of the protocol is not spoken here."),
    "busy": Kind(503, "The server cannot do this now; try again later."),
    "failed": Kind(500, "The server failed."),
}

PREFIX = "tacit:"
PASSING = frozenset({"too-slow", "busy", "failed"})  # the same request may be answered otherwise later


def known_problem(status: int, body: bytes) -> Problem | None:
    """The Problem in an answer that is in the protocol's form: of a known kind, and of its status, twice.

    status: of the answer's head. None for whatever else came, which says nothing of the server.
    """
    try:
        found = Problem.from_json(body)
    except InputError:
        return None
    kind = KINDS.get(found.type.removeprefix(PREFIX))
    return found if kind is not None and kind.status == status == found.status else None


def is_final(problem: Problem) -> bool:
    """Whether the same request would be answered the same."""
    return problem.type.removeprefix(PREFIX) not in PASSING
