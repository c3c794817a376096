"""How the results of planning and simulating are shown: their blocks as text, their figures as files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from tacit.cli.console import Recorded, console, say
from tacit.cli.display import display
from tacit.cli.tables import print_table
from tacit.errors import InputError
from tacit.progress import Progress
from tacit.reports.page import Heading, Paragraph, Table

FigureFile = Annotated[
    Path | None, typer.Option(help="A file for a figure of these numbers: its name ends in .png or .svg.")
]
FORMS = (".png", ".svg")


class Drawn(Recorded, Protocol):
    """A result that people read, and that can be drawn."""

    def blocks(self) -> Sequence[Any]:
        """What people read of it."""
        ...

    def save_figure(self, path: Path) -> None:
        """Draw its numbers into a file."""
        ...


@contextmanager
def listening(quiet: bool, figure: Path | None) -> Iterator[Progress]:
    """Whoever listens to a job. InputError before it begins where its figure could not be written."""
    if figure is not None and figure.suffix not in FORMS:
        raise InputError(f"--figure {figure} ends in neither {' nor '.join(FORMS)}; give it one of these.")
    with display(quiet) as progress:
        yield progress


def show(result: Drawn, figure: Path | None, as_json: bool) -> None:
    """Print a result, and write its figure where one was asked for."""
    if figure is not None:
        result.save_figure(figure)
    say(result, as_json, lambda each: show_blocks(each.blocks()))


def show_blocks(blocks: Sequence[Any]) -> None:
    """Print headings, paragraphs and tables; what stands under a heading is indented."""
    indent = ""
    for block in blocks:
        match block:
            case Heading(text=text):
                console.print(f"[bold]{text}[/]")
                indent = "   "
            case Paragraph(text=text, soft=soft):
                indent = "" if soft else indent
                for line in text.split("\n\n"):
                    console.print(indent + line, markup=False)
            case Table(rows=rows, head=head):
                print_table(head, rows)
