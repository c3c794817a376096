"""What was seen of a device, as people read it: by what is asked, and by what is seen."""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.audit.device.transcript import OBSERVABLES
from tacit.audit.finding import Finding, Findings
from tacit.reports.blocks import Block, Heading, Paragraph, Table

SEEN, READ = "transcripts", "readings"  # what findings are made of
EXTREMES = ("one word", "3,000 sentences")  # texts that take the least and the most to read
THREAT = (
    "an operator that chooses models, tasks, logs, answers and the device's clock sees each request, its bytes but for "
    "what the report says, and its time; it knows both texts and has to tell which was typed"
)


@dataclass(frozen=True, kw_only=True)
class DeviceFindings(Findings):
    """What was tried against a device; people read of it by what is asked and by what is seen."""

    def blocks(self) -> list[Block]:
        """See Findings: a row for each kind of question, a column for each observable."""
        head = ("what is asked", "strategies", "transcripts", *OBSERVABLES, "shown, at least", "kept")
        seen = [each for each in self.findings if each.samples_of == SEEN]
        by_question: dict[str, list[Finding]] = {}
        for each in seen:
            by_question.setdefault(each.figures["question"], []).append(each)
        rows = tuple(_row(name, found) for name, found in by_question.items())
        hidden = tuple(_hidden(each) for each in self.findings if each.samples_of != SEEN)
        told = tuple(
            Paragraph(f"BROKEN: {each.subject}: {', '.join(each.figures['differs'])} show the text.")
            for each in self.broken
        )
        verdict = told or (Paragraph(f"{len(seen)} ways were tried, and none showed a text."),)
        random = sum(each.figures["repeated"] for each in seen)
        return [
            Heading(f"Audit: {self.audit}"),
            *verdict,
            Table(rows, head=head),
            Paragraph(
                "A number says in how many ways an observable differed between two texts by the same randomness. "
                f"Retries come at times drawn anew, and so differ by chance: {random} pairs were judged by many runs."
            ),
            Paragraph(f"Threat model: {THREAT}."),
            Heading("What reports are held back for", depth=3),
            Table(hidden, head=("what is asked", *(f"ms for {each}" for each in EXTREMES), "would show, at least")),
            Paragraph(f"Again: {self.command}"),
        ]


def _row(question: str, found: Sequence[Finding]) -> tuple[str, ...]:
    differing = [sum(name in each.figures["differs"] for each in found) for name in OBSERVABLES]
    return (
        question,
        str(len(found)),
        f"{sum(each.samples for each in found):,}",
        *("same" if not many else str(many) for many in differing),
        f"{max(each.lower for each in found):.4g}",
        "NO" if any(each.broken for each in found) else "yes",
    )


def _hidden(found: Finding) -> tuple[str, ...]:
    return (
        found.figures["question"],
        *(f"{1e3 * each:.3g}" for each in found.figures["median_s"]),
        f"{found.lower:.4g}",
    )
