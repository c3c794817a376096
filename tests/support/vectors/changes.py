"""What a hostile operator changes of a document: the form of a change, and those of each place in it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.support.vectors.case import Case, case

CHECKS, DOCUMENTS, LOG = "#what-a-device-checks", "#documents", "#the-log"
TOO_CHEAP, OWN, SHAPE = "it costs more than it says", "it contradicts its own recipe", "the text is no such document"
Said = dict[str, Any]
Change = tuple[str, str, dict[str, Any]]  # the case's name, why no device follows it, what is changed
WRONG: Mapping[str, Any] = {"a text": "x", "a number": 7, "a list": [], "an object": {}, "a truth": True}


def paths(said: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Each place in a document, and what stands there."""
    for name, value in said.items():
        path = f"{before}{name}"
        yield path, value
        if isinstance(value, dict):
            yield from paths(value, f"{path}.")


def of_each_place(said: Said) -> Iterator[Change]:
    """Each place missing, empty, of a wrong type, and each number beyond what anybody means."""
    for path, value in paths(said):
        yield f"is without {path}", "each key is required", {"remove": [path]}
        if value is None:
            continue
        yield f"has null as {path}", "it may not be null", {"set": {path: None}}
        for name, wrong in WRONG.items():
            if (not isinstance(wrong, bool) and isinstance(wrong, type(value))) or (
                name == "a number" and isinstance(value, float)
            ):
                continue
            yield f"has {name} as {path}", "it is of another type", {"set": {path: wrong}}
        if isinstance(value, int | float):
            for number in (-1, 1e300, 0.5 if isinstance(value, int) else -1e-9):
                yield f"has {number} as {path}", "the number is out of bounds", {"set": {path: number}}


def made(base: str, what: str, rule: str, changes: Iterable[Change], *, outcome: str = "refused") -> list[Case]:
    return [
        case(f"{base}: the {what} {name}", rule, base=base, **{"in": what}, reason=reason, **change, what=outcome)
        for name, reason, change in changes
    ]
