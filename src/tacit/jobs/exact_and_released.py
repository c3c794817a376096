"""What a run over devices found, twice: exactly, as only a simulation can know it, and as it was released."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.errors import InputError
from tacit.jobs.account.run import RunAccount, account_run
from tacit.jobs.result import JobResult
from tacit.records import json_ready
from tacit.reports.page import ReportFiles
from tacit.runs import Run


def known_exactly(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a report's record what only a simulation knows. Raises: InputError where real devices were asked."""
    part: Mapping[str, Any] | None = record["simulation_only"]
    if part is None:
        raise InputError("real devices were asked, and nobody knows exact numbers of them; look at what was released.")
    return part


@dataclass(frozen=True, kw_only=True)
class ExactAndReleased(JobResult):
    """What a run found: exactly, which only a simulation can know, and as it was released; never mixed."""

    run: Run
    report: ReportFiles
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
    def account(self) -> RunAccount:
        """What the release promises to each client, by the run's ledger."""
        return account_run(self.run)

    def plain(self) -> dict[str, Any]:
        """The record as plain values for JSON, with where its pages are."""
        apart = self.report.simulation
        pages = {"report": str(self.report.markdown), **({} if apart is None else {"simulation": str(apart.markdown)})}
        values: dict[str, Any] = json_ready({**self.record, **pages})
        return values
