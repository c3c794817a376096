"""How the results of planning are shown: their blocks as text, their figures as files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from tacit.cli.blocks import Shown, print_blocks, say_blocks
from tacit.cli.display import display
from tacit.errors import InputError
from tacit.files import check_file, check_folder
from tacit.progress import Progress

FigureFile = Annotated[
    Path | None, typer.Option(help="A file for a figure of these numbers: its name ends in .png or .svg.")
]
ReportFolder = Annotated[
    Path | None, typer.Option("--report", help="A folder for a page of the answer, its figures and its numbers.")
]
FORMS = (".png", ".svg")


class ReportedPlan(Shown, Protocol):
    """A result that people read, and that has a page."""

    def write_report(self, folder: Path) -> Any:
        """Write its page into a folder."""
        ...


class DrawablePlan(ReportedPlan, Protocol):
    """The same that can be drawn."""

    def save_figure(self, path: Path) -> None:
        """Draw its numbers into a file."""
        ...


@contextmanager
def listening(quiet: bool, figure: Path | None, report: Path | None) -> Iterator[Progress]:
    """Whoever listens to a job. InputError before it begins where its figure or its page could not be written."""
    if figure is not None and figure.suffix not in FORMS:
        raise InputError(f"--figure {figure} ends in neither {' nor '.join(FORMS)}; give it one of these.")
    if figure is not None:
        check_file("--figure", figure)
    if report is not None:
        check_folder("--report", report)
    with display(quiet) as progress:
        yield progress


def show(result: DrawablePlan, figure: Path | None, report: Path | None, as_json: bool) -> None:
    """Print a result, and write its figure and its page where they were asked for."""
    if figure is not None:
        result.save_figure(figure)
    show_reported(result, report, as_json)


def show_reported(result: ReportedPlan, report: Path | None, as_json: bool) -> None:
    """Print a result, and write its page where one was asked for."""
    written = None if report is None else result.write_report(report)
    say_blocks(result, as_json)
    if written is not None and not as_json:
        print_blocks(written.where())
