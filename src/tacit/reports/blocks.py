"""What a page is made of, and what a terminal and a notebook show of a result: blocks in their order, as data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tacit.reports.figure import Figure

if TYPE_CHECKING:  # the mathematics of promises comes with them
    from tacit.statements import Statement
    from tacit.statements.statement import Label


@dataclass(frozen=True)
class Heading:
    """Of what follows; the deeper, the smaller."""

    text: str
    depth: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Text; with blank lines between, several paragraphs, lists ("- ") and code (four spaces); `like this` inside."""

    text: str
    soft: bool = False  # smaller, beside what matters
    answer: bool = False  # what a list of runs says of the page, where its first sentence says something else


@dataclass(frozen=True)
class Labels:
    """Warnings that stand out: a name in capitals and what it means."""

    labels: "tuple[Label, ...]"


@dataclass(frozen=True)
class Tiles:
    """The figures that one wants to see first, each a large number over its name."""

    tiles: tuple[tuple[str, str], ...]  # (name, value)


@dataclass(frozen=True)
class Table:
    """Rows of cells, the first of each names the row; `head` names the columns."""

    rows: tuple[tuple[str, ...], ...]
    head: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureOf:
    """A figure where it belongs in the text."""

    figure: Figure


@dataclass(frozen=True)
class StatementOf:
    """A statement as a section of its own, under its title."""

    statement: "Statement"


Block: TypeAlias = Heading | Paragraph | Labels | Tiles | Table | FigureOf | StatementOf
