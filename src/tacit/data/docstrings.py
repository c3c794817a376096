"""Text found on every machine that runs this: docstrings as private typing, manuals as public text.

A module of this Python (standard library and site-packages) is a client and its docstrings are what it
typed: real English by thousands of hands, with the long tail of real populations, and no download. The
files are parsed, never imported. The manuals (the language reference that `help()` shows, the
descriptions of installed packages) are other documents, and public; a demo counts its vocabulary on
them.
"""

import ast
import importlib.metadata
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import ClassVar

from tacit.data.clients import ClientText, paragraphs

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
        """Modules in the order of their names; one that cannot be parsed is counted in `left_out`."""
        self.left_out.clear()
        for name, path in self._modules:
            source = path.read_bytes()
            if b'"""' not in source and b"'''" not in source:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # about escapes in files that are not ours
                    tree = ast.parse(source)
            except (SyntaxError, ValueError):
                self.left_out["files that are not Python"] = self.left_out.get("files that are not Python", 0) + 1
                continue
            if texts := [prose(doc) for doc in _docstrings(tree)]:
                yield ClientText(client_id=name, texts=texts)


def _docstrings(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    doc = ast.get_docstring(node)
    if doc:
        yield doc
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings(child)


def prose(document: str) -> str:
    """The sentences of a document: one line per paragraph, without code, tables and rulers."""
    kept = []
    for paragraph in document.split("\n\n"):
        lines = paragraph.split("\n")
        if lines[0].lstrip().startswith((">>>", "..", "|", "```")) or "```" in paragraph:
            continue
        kept.append("\n".join(line for line in lines if not _RULER.match(line)))
    return paragraphs("\n\n".join(kept))


def manuals() -> Iterator[str]:
    """Public text: the language reference and the long descriptions of installed packages, in order."""
    for _, topic in sorted(topics.items()):
        yield prose(topic)
    described = [distribution.read_text("METADATA") or "" for distribution in importlib.metadata.distributions()]
    for metadata in sorted(described):
        yield prose(metadata.partition("\n\n")[2])  # what follows the headers
