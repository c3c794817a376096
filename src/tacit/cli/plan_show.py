"""How the results of planning are shown: their blocks as text, their figures as files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Protocol

import typer

from tacit.cli.blocks import Shown, say_blocks
from tacit.cli.display import display
from tacit.errors import InputError
from tacit.files import check_file
from tacit.progress import Progress

FigureFile = Annotated[
    Path | None, typer.Option(help="A file for a figure of these numbers: its name ends in .png or .svg.")
]
FORMS = (".png", ".svg")


class DrawableResult(Shown, Protocol):
    """A result that people read, and that can be drawn."""

    def save_figure(self, path: Path) -> None:
        """Draw its numbers into a file."""
        ...


@contextmanager
def listening(quiet: bool, figure: Path | None) -> Iterator[Progress]:
    """Whoever listens to a job. InputError before it begins where its figure could not be written."""
    if figure is not None and figure.suffix not in FORMS:
        raise InputError(f"--figure {figure} ends in neither {' nor '.join(FORMS)}; give it one of these.")
    if figure is not None:
        check_file("--figure", figure)
    with display(quiet) as progress:
        yield progress


def show(result: DrawableResult, figure: Path | None, as_json: bool) -> None:
    """Print a result, and write its figure where one was asked for."""
    if figure is not None:
        result.save_figure(figure)
    say_blocks(result, as_json)
