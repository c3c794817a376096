"""What came of a trial: each fault found or not, each mended version kept or not, and peers that were not there."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.audit.finding import CAUTION, Finding, Findings
from tacit.reports.blocks import Block, Heading, Paragraph, Table

BROKEN, MENDED, PEER = "broken", "mended", "peer"


@dataclass(frozen=True, kw_only=True)
class CourtFindings(Findings):
    """All findings of a trial. Those of the museum say in `figures` which exhibit and version they are of.

    not_installed: peers that were asked for and are not there, each with how to get it.
    """

    not_installed: Mapping[str, str] = field(default_factory=dict)

    def of(self, version: str) -> tuple[Finding, ...]:
        """The findings of BROKEN or MENDED exhibits, or of a PEER."""
        return tuple(each for each in self.findings if each.figures["version"] == version)

    @property
    def exhibits(self) -> tuple[int, ...]:
        """The numbers of the museum's exhibits."""
        return tuple(dict.fromkeys(each.figures["exhibit"] for each in self.of(BROKEN)))

    @property
    def found(self) -> tuple[int, ...]:
        """Those whose fault was found, in every case of it."""
        missed = {each.figures["exhibit"] for each in self.of(BROKEN) if not each.broken}
        return tuple(number for number in self.exhibits if number not in missed)

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """Mended versions that were refuted, and peers' promises that were and are not known to be broken."""
        return tuple(each for each in (*self.of(MENDED), *self.of(PEER)) if each.broken and not each.figures["known"])

    @property
    def as_expected(self) -> bool:
        """Whether every fault was found, and nothing else was."""
        return self.found == self.exhibits and not self.alarms

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit audit court --json` prints."""
        return {
            **super().to_record(),
            "exhibits": len(self.exhibits),
            "found": list(self.found),
            "alarms": [each.subject for each in self.alarms],
            "not_installed": dict(self.not_installed),
        }

    def blocks(self) -> list[Block]:
        """How many faults were found, a table of the museum, one of peers, and what was not there."""
        missed = [f"MISSED: {each.subject}." for each in self.of(BROKEN) if not each.broken]
        alarms = [f"BROKEN: {each.subject} claims {each.claim:.4g} and leaks {each.lower:.4g}." for each in self.alarms]
        kept = sum(not each.broken for each in self.of(MENDED))
        counted = (
            f"{len(self.found)} of {len(self.exhibits)} historic faults found; "
            f"{kept} of {len(self.of(MENDED))} mended versions kept their promise."
        )
        made: list[Block] = [Heading("Audit: court"), Paragraph(counted), *map(Paragraph, (*missed, *alarms))]
        made.append(_museum(self.of(BROKEN), self.of(MENDED)))
        if self.of(PEER):
            made += [Heading("Peers"), _peers(self.of(PEER))]
        made += [Paragraph(f"Not installed: {name}. {how}") for name, how in self.not_installed.items()]
        return [*made, Paragraph(CAUTION), Paragraph(f"Again: {self.command}")]


def _museum(broken: Sequence[Finding], mended: Sequence[Finding]) -> Table:
    rows = tuple(
        (
            fault.figures["name"],
            _measure(fault),
            _beside(fault),
            "" if fault.figures["refuted_after"] is None else f"{fault.figures['refuted_after']:,}",
            _beside(kept),
            f"{'found' if fault.broken else 'MISSED'}, {'BROKEN' if kept.broken else 'kept'}",
        )
        for fault, kept in zip(broken, mended, strict=True)
    )
    head = ("what", "measure", "broken: claim, shown", "pairs to refute", "mended: claim, shown", "verdict")
    return Table(rows, head=head)


def _peers(findings: Sequence[Finding]) -> Table:
    rows = tuple((each.subject, _measure(each), _beside(each), _samples(each), _verdict(each)) for each in findings)
    return Table(rows, head=("what", "measure", "claim, shown", "samples", "verdict"))


def _measure(finding: Finding) -> str:
    return finding.measure if not finding.delta else f"{finding.measure} at {finding.delta:g}"


def _beside(finding: Finding) -> str:
    return f"{'none' if math.isinf(finding.claim) else f'{finding.claim:.4g}'}, {finding.lower:.4g}"


def _samples(finding: Finding) -> str:
    return f"{finding.samples:,} {finding.samples_of}"


def _verdict(finding: Finding) -> str:
    if not finding.broken:
        return "kept"
    return "broken, as known" if finding.figures["known"] else "BROKEN"
