"""What an audit found of one promise: the claim, what was shown to leak at least, and under which threat model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from tacit.jobs.result import JobResult
from tacit.records import to_plain
from tacit.reports.blocks import Block, Heading, Paragraph, Table
from tacit.version import __version__

Measure = Literal["mu", "epsilon", "rate"]  # rate: how often at most something happens
CAUTION = (
    "Shown is a lower bound: the promise is broken where it lies above the claim. A small one does not mean that "
    "little leaks; it means that this audit found no more."
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One promise and what was shown of it. `lower` is above the true value with probability 1 - confidence at most.

    subject: what was audited. claim: what is promised; infinity where nothing is. estimate: without a promise; None
    where none is made. samples: runs, canaries or guesses, as `samples_of` says. delta: at which epsilon is meant; None
    for mu. seed: with which the audit can be repeated; None where randomness is the system's. figures: whatever else
    was measured, by name.
    """

    subject: str
    measure: Measure
    claim: float
    lower: float
    confidence: float
    samples: int
    samples_of: str
    threat_model: str
    estimate: float | None = None
    delta: float | None = None
    seed: int | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def broken(self) -> bool:
        """Whether the promise is refuted, with the confidence."""
        return self.lower > self.claim

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        claim = self.claim if math.isfinite(self.claim) else None
        return {**to_plain(self), "claim": claim, "broken": self.broken}


@dataclass(frozen=True, kw_only=True)
class Findings(JobResult):
    """All findings of one audit, and how to make them again."""

    audit: str
    findings: Sequence[Finding]
    command: str
    SCHEMA: ClassVar[str] = "tacit.audit"

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The promises that were refuted."""
        return tuple(each for each in self.findings if each.broken)

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit audit ... --json` prints."""
        return {
            "schema": self.SCHEMA,
            "version": 1,
            "audit": self.audit,
            "tacit": __version__,
            "command": self.command,
            "broken": len(self.broken),
            "findings": [each.to_record() for each in self.findings],
        }

    def blocks(self) -> list[Block]:
        """A verdict, a table of claims and what was shown, and what each threat model lets the auditor do."""
        again = Paragraph(f"Again: {self.command}")
        if not self.findings:
            return [Heading(f"Audit: {self.audit}"), Paragraph("No promise was looked at."), again]
        worst = [
            f"BROKEN: {each.subject} claims {_said(each.claim)} and leaks {_said(each.lower)}." for each in self.broken
        ]
        verdict = worst or [f"{len(self.findings)} promises looked at, none refuted."]
        head = ("what", "measure", "claim", "shown, at least", "estimate", "samples", "kept")
        rows = tuple(
            (
                each.subject,
                each.measure if each.delta is None else f"{each.measure} at {each.delta:g}",
                _said(each.claim),
                _said(each.lower),
                "" if each.estimate is None else _said(each.estimate),
                f"{each.samples:,} {each.samples_of}",
                "NO" if each.broken else "yes",
            )
            for each in self.findings
        )
        threats = dict.fromkeys(each.threat_model for each in self.findings)
        return [
            Heading(f"Audit: {self.audit}"),
            *map(Paragraph, verdict),
            Table(rows, head=head),
            Paragraph(f"{CAUTION} Each holds with {_confidences(self.findings)} confidence."),
            *(Paragraph(f"Threat model: {each}") for each in threats),
            again,
        ]


def _confidences(findings: Sequence[Finding]) -> str:
    """The lowest and the highest of them, as percentages."""
    both = sorted({min(each.confidence for each in findings), max(each.confidence for each in findings)})
    return " to ".join(f"{100 * each:.5g}%" for each in both)


def _said(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.4g}"
