"""Text found on every machine that runs this, as private typing: docstrings.

A module of this Python (standard library and site-packages) is a client and its docstrings are what it
typed: real English by thousands of hands, with the long tail of real populations, and no download. The
files are read, never imported. Public text is what else is installed (`manuals.py`).
"""

import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from tacit.data.clients import ClientText, paragraphs
from tacit.data.formats.docstring_scanner import docstrings_of

# Left out: they say little for their size, or are copies of what is installed elsewhere.
SKIPPED_FOLDERS = frozenset({"test", "tests", "_vendor", "site-packages", "dist-packages"})
LARGEST_FILE = 1_000_000  # bytes; larger modules are tables that a program wrote

_RULER = re.compile(r"^\W+$")


class Docstrings:
    """A Source over the docstrings of this Python's modules; a module without any is no client."""

    name: ClassVar[str] = "docstrings"
    takes: ClassVar[str] = ""
    says: ClassVar[str] = "the docstrings of this Python's modules: a module is a client"
    description = "docstrings of the installed Python modules, a module is a client"

    def __init__(self, roots: list[Path] | None = None) -> None:
        """`roots`: folders of packages; by default the standard library and site-packages."""
        paths = sysconfig.get_paths()
        self._roots = roots or [Path(paths[name]) for name in ("stdlib", "purelib", "platlib")]
        self._modules = sorted(dict(sorted(self._find(), reverse=True)).items())  # a name once
        self.expected_clients: int | None = len(self._modules)
        self.left_out: dict[str, int] = {}

    @classmethod
    def open(cls, place: str) -> "Docstrings":
        """Those of this Python; there is no place to name."""
        return cls()

    def _find(self) -> Iterator[tuple[str, Path]]:
        for root in self._roots:
            for path in root.rglob("*.py"):
                parts = path.relative_to(root).with_suffix("").parts
                if not SKIPPED_FOLDERS.intersection(parts) and path.stat().st_size <= LARGEST_FILE:
                    yield ".".join(parts).removesuffix(".__init__"), path

    def clients(self) -> Iterator[ClientText]:
        """Modules in the order of their names; one that cannot be read as Python is counted in `left_out`."""
        self.left_out.clear()
        for name, path in self._modules:
            try:
                source = path.read_text(encoding="utf-8-sig")
                documents = list(docstrings_of(source))
            except (SyntaxError, ValueError):
                self.left_out["files that are not Python"] = self.left_out.get("files that are not Python", 0) + 1
                continue
            if texts := [prose(document) for document in documents]:
                yield ClientText(client_id=name, texts=texts)


def prose(document: str) -> str:
    """The sentences of a document: one line per paragraph, without code, tables and rulers."""
    kept = []
    for paragraph in document.split("\n\n"):
        lines = paragraph.split("\n")
        if lines[0].lstrip().startswith((">>>", "..", "|", "```")) or "```" in paragraph:
            continue
        kept.append("\n".join(line for line in lines if not _RULER.match(line)))
    return paragraphs("\n\n".join(kept))
