"""What all results of jobs have in common: people read the same of them in a terminal, a notebook and a program."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.files import PathLike, as_path, check_folder
from tacit.records import visible

if TYPE_CHECKING:  # an account needs no pages
    from tacit.reports.blocks import Block
    from tacit.reports.figure import Figure
    from tacit.reports.page import Page, ReportFiles


class JobResult(ABC):
    """A result that `print` and a notebook show as the command does; `repr` is what it is made of."""

    @abstractmethod
    def to_record(self) -> Mapping[str, Any]:
        """What `--json` prints, as plain values: first its `schema` and `version`."""

    @abstractmethod
    def blocks(self) -> "Sequence[Block]":
        """What people read of it."""

    def __str__(self) -> str:
        """Its blocks as plain text, in lines of a terminal."""
        from tacit.reports.text import to_text  # only where it is read: an account needs no pages

        return to_text(self.blocks())

    def _repr_html_(self) -> str:
        """The same as a notebook shows it."""
        from tacit.reports.page import to_html_fragment

        return to_html_fragment(self.blocks())


class ReportedResult(JobResult):
    """A result that has a page: what it answers in a sentence, its figures, and all that people read of it."""

    KIND: ClassVar[str]  # of the page
    TITLE: ClassVar[str]

    @abstractmethod
    def answer(self) -> str:
        """What was asked for, in a sentence or two."""

    def figures(self) -> "tuple[Figure, ...]":
        """What is drawn; none of a result that is a table alone."""
        return ()

    def details(self) -> "Sequence[Block]":
        """What stands on the page below its figures."""
        return self.blocks()

    def page(self) -> "Page":
        """The report."""
        from tacit.reports.blocks import FigureOf, Paragraph
        from tacit.reports.page import Page

        blocks = (Paragraph(self.answer()), *map(FigureOf, self.figures()), *self.details())
        return Page(
            kind=self.KIND,
            title=self.TITLE,
            blocks=tuple(  # names of texts are others' words
                replace(each, text=visible(each.text)) if isinstance(each, Paragraph) else each for each in blocks
            ),
            record=self.to_record(),
        )

    def write_report(self, folder: PathLike) -> "ReportFiles":
        """Write report.html, report.md, report.json and the figures into a folder, which is made if it is not there.

        Raises: InputError where the folder is a file.
        """
        from tacit.reports.page import write

        place = as_path("folder", folder)
        check_folder("folder", place)
        return write(place, self.page())
