"""Where public vectors are: a folder of clones that the environment names (README.md says which)."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "TACIT_VECTORS"
READ: dict[str, int] = {}  # cases by file, for the line at the end


@pytest.fixture
def vectors() -> Callable[[str], Path]:
    """The path of a file or folder of vectors; the test is skipped where it is not there."""

    def at(place: str) -> Path:
        folder = os.environ.get(VARIABLE)
        if not folder:
            pytest.skip(f"needs {place}; {VARIABLE} names no folder of public vectors (tests/conformance/README.md)")
        path = Path(folder, place)
        if not path.exists():
            pytest.skip(f"needs {place}, which is not in {VARIABLE}={folder} (tests/conformance/README.md)")
        return path

    return at


@pytest.fixture
def wycheproof(vectors: Callable[[str], Path]) -> Callable[..., list[dict[str, Any]]]:
    """The cases of a file of Wycheproof whose groups are as said; a case has what its group says, too."""

    def cases(name: str, **group: object) -> list[dict[str, Any]]:
        file = vectors(f"wycheproof/testvectors_v1/{name}_test.json")
        found = [
            {**each, **case}
            for each in json.loads(file.read_text(encoding="utf-8"))["testGroups"]
            if all(each[key] == value for key, value in group.items())
            for case in each["tests"]
        ]
        assert found, f"{file} has no case with {group}"
        count(f"wycheproof {name}", len(found))
        return found

    return cases


def count(file: str, cases: int) -> None:
    """Say at the end how many cases of a file were read."""
    READ[file] = cases


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line for each file."""
    for file, cases in READ.items():
        terminalreporter.write_line(f"public vectors: {cases:,} cases of {file}")
