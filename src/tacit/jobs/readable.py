"""What all results of jobs have in common: people read the same of them in a terminal, a notebook and a program."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError
from tacit.records import json_ready

if TYPE_CHECKING:  # an account needs no runs and no pages
    from tacit.jobs.account_run import RunAccount
    from tacit.reports.page import Block, ReportFiles
    from tacit.runs import Run


class Readable(ABC):
    """A result that `print` and a notebook show as the command does; `repr` is what it is made of."""

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


def known_exactly(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a report's record what only a simulation knows. Raises: InputError where real devices were asked."""
    part: Mapping[str, Any] | None = record["simulation_only"]
    if part is None:
        raise InputError("real devices were asked, and nobody knows exact numbers of them; look at what was released.")
    return part


@dataclass(frozen=True, kw_only=True)
class ExactAndReleased(Readable):
    """What a run found: exactly, which only a simulation can know, and as it was released; never mixed."""

    run: "Run"
    report: "ReportFiles"
    record: Mapping[str, Any] = field(repr=False)  # of the report; numbers with their intervals are `Estimate`s

    @property
    def exact(self) -> Mapping[str, Any]:
        """What was found, without noise: nothing is promised for it. Raises: InputError where real devices were asked,
        of whom nobody has it.
        """
        return known_exactly(self.record)

    @property
    def released(self) -> Mapping[str, Any] | None:
        """What follows from the released histograms alone; None where nothing was released."""
        part: Mapping[str, Any] | None = self.record["released"]
        return part

    @property
    def account(self) -> "RunAccount":
        """What the release promises to each client, by the run's ledger."""
        from tacit.jobs.account_run import account_run

        return account_run(self.run)

    def plain(self) -> dict[str, Any]:
        """The record as plain values for JSON, with where its pages are."""
        apart = self.report.simulation
        pages = {"report": str(self.report.markdown), **({} if apart is None else {"simulation": str(apart.markdown)})}
        values: dict[str, Any] = json_ready({**self.record, **pages})
        return values
