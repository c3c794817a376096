"""Pages and words of prose: `python -m tests.count_prose` lists the pages in front, then sums up all.

The reference, which is made from the program and not read from end to end, is counted apart.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from tests.conftest import REPOSITORY
from tests.support.sentences import sentences, words

DOCS = REPOSITORY / "docs"
MADE = {"cli.md", "api.md"}
LONG = 40  # words, from which on a sentence is counted as long


class Prose(NamedTuple):
    """What a page has of it."""

    words: int
    sentences: int
    long: int

    def __add__(self, other: object) -> "Prose":
        """Both together."""
        assert isinstance(other, Prose)
        return Prose(*(mine + its for mine, its in zip(self, other, strict=True)))

    def __str__(self) -> str:
        mean = self.words / self.sentences if self.sentences else 0.0
        return f"{self.words:7,} words {mean:5.1f} a sentence {self.long:4} of more than {LONG}"


def prose(text: str) -> Prose:
    """Of Markdown."""
    lengths = [words(each) for each in sentences(text)]
    return Prose(sum(lengths), len(lengths), sum(length > LONG for length in lengths))


def front_pages() -> list[Path]:
    """The first page, and those that its lists name."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    return [
        DOCS / "index.md",
        *(DOCS / name for name in re.findall(r"^\| \[[^\]]+\]\(([^)#\s]+)\)", text, re.MULTILINE)),
    ]


def table() -> list[str]:
    """A line for each page in front, then one for those and one for the rest."""
    front = front_pages()
    of = {page: prose(page.read_text(encoding="utf-8")) for page in DOCS.rglob("*.md")}
    lines = [
        f"{page.relative_to(DOCS).as_posix():34}{of[page]}{'  made' if page.name in MADE else ''}" for page in front
    ]
    read = [of[page] for page in front if page.name not in MADE]
    behind = [each for page, each in of.items() if page not in front]
    for name, counted in ((f"{len(read)} pages in front, not made", read), (f"{len(behind)} pages behind", behind)):
        lines.append(f"{name:34}{sum(counted, Prose(0, 0, 0))}")
    return lines


def main() -> None:
    """Print it."""
    sys.stdout.write("\n".join([*table(), ""]))


if __name__ == "__main__":
    main()
