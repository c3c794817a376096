"""The form of a file of vectors, and of a case."""

from collections.abc import Sequence
from typing import Any

PROTOCOL = "docs/protocol.md"
VERSION = 1
Case = dict[str, Any]


def case(name: str, rule: str, **said: Any) -> Case:
    """rule: a section of the protocol's page, `#documents` say, or of another page with its path before it."""
    return {"name": name, "rule": rule if rule.startswith("docs/") else PROTOCOL + rule, **said}


def file_of(about: str, cases: Sequence[Case], **shared: Any) -> dict[str, Any]:
    """about: what a reader has to do with a case. shared: what all cases have in common."""
    names = [each["name"] for each in cases]
    assert len(set(names)) == len(names), sorted(each for each in names if names.count(each) > 1)
    return {"schema": "tacit.vectors", "version": VERSION, "about": about, **shared, "cases": list(cases)}
