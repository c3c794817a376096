"""Public text found on every machine that runs this: what Python and its packages ship beside their modules.

The help topics that `help()` shows, the packages' descriptions and pages, the comments of their C headers, and the
comments and docstrings of their test suites. None of it is a file whose docstrings are a client's (`docstrings.py`), so
the two are apart as files; they are near each other all the same, since the same hands wrote both, and a few sentences
stand in both (docs/results/demo.md counts them). A keyboard's public text is farther from what is typed on it.
"""

import importlib.metadata
import os
import re
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

from tacit.data.clients import ClientText
from tacit.data.formats.docstring_scanner import docstrings_of
from tacit.data.formats.docstrings import LARGEST_FILE, prose
from tacit.data.manifest import PUBLIC

TEST_FOLDERS = frozenset({"test", "tests"})  # of modules that are no clients
PAGES = frozenset({".md", ".rst"})
HEADERS = frozenset({".h", ".hpp"})
DOCUMENTS = 100  # of a passage
FEWEST = 3  # words of a comment that says something

_HEADER_COMMENT = re.compile(r"/\*(.*?)\*/|((?:^[ \t]*//[^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"(?:^[ \t]*#[^\n]*\n)+", re.MULTILINE)
_FRAME = re.compile(r"^[ \t]*(?:\*+|//+!?|#+)[ \t]?", re.MULTILINE)


class Manuals:
    """A Source of public text; DOCUMENTS consecutive documents are one passage, for pre-training."""

    name: ClassVar[str] = "manuals"
    takes: ClassVar[str] = ""
    says: ClassVar[str] = "nobody's text: manuals, headers and tests that this Python's packages ship"
    description = f"{PUBLIC} that this Python and its packages ship (manuals, headers, test suites)"

    def __init__(self) -> None:
        self.expected_clients: int | None = None
        self.left_out: dict[str, int] = {}

    @classmethod
    def open(cls, place: str) -> "Manuals":
        """Those of this Python; there is no place to name."""
        return cls()

    def clients(self) -> Iterator[ClientText]:
        """The passages in order."""
        for number, passage in enumerate(_passages(manuals())):
            yield ClientText(client_id=f"manuals {number:06d}", texts=passage)


@cache
def manuals() -> tuple[str, ...]:
    """The documents, each once, in an order that depends on what is installed alone. Read once in a process."""
    paths = sysconfig.get_paths()
    roots = dict.fromkeys(Path(paths[name]) for name in ("stdlib", "include", "purelib", "platlib"))
    texts = [*_described(), *(text for root in roots for path in _files(root) for text in _of_file(path))]
    return tuple(dict.fromkeys(text for text in texts if len(text.split()) >= FEWEST))


def _passages(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(texts), DOCUMENTS):
        yield texts[begin : begin + DOCUMENTS]


def _described() -> Iterator[str]:
    from pydoc_data.topics import topics  # half a megabyte, which an import alone reads

    for _, topic in sorted(topics.items()):
        yield prose(topic)
    described = [distribution.read_text("METADATA") or "" for distribution in importlib.metadata.distributions()]
    for metadata in sorted(described):
        yield prose(metadata.partition("\n\n")[2])  # what follows the headers


def _files(root: Path) -> list[Path]:
    """The files below a root that are read, in order; packages of a standard library are under a root of their own."""
    found = []
    for folder, inside, names in os.walk(root):
        inside[:] = [name for name in inside if name not in ("site-packages", "dist-packages", "__pycache__")]
        tests = bool(TEST_FOLDERS.intersection(Path(folder).relative_to(root).parts))
        for name in names:
            ending = os.path.splitext(name)[1]
            if ending in PAGES or ending in HEADERS or (tests and ending == ".py"):
                found.append(Path(folder, name))
    return sorted(path for path in found if path.stat().st_size <= LARGEST_FILE)


def _of_file(path: Path) -> list[str]:
    """The prose of one file; of a test that is no text on purpose, what of it is."""
    text = path.read_text(encoding="utf-8", errors="ignore")
    if path.suffix in PAGES:
        return [prose(text)]
    if path.suffix in HEADERS:
        return [prose(_FRAME.sub("", found[1] or found[2])) for found in _HEADER_COMMENT.finditer(text)]
    comments = [prose(_FRAME.sub("", found[0])) for found in _COMMENT.finditer(text)]
    try:
        return [*map(prose, docstrings_of(text)), *comments]
    except (SyntaxError, ValueError):  # a test of what is not Python
        return comments
