"""What the attack found, view by view, with defences off and on, beside guessing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.audit.attack.scores import RARE, SentenceScores, WordScores
from tacit.audit.attack.settings import AttackSettings
from tacit.audit.finding import Findings
from tacit.evaluation.intervals import Estimate
from tacit.jobs.result import JobResult
from tacit.privacy.empirical.error_rates import rate_at_most
from tacit.records import to_plain
from tacit.reports.blocks import Block, Heading, Paragraph, Table
from tacit.version import __version__

PUBLISHED = (
    "Beside the paper (arXiv:2210.16947, read off its authors' plots: the output bias of Gboard's own network, untouched "
    "by clipping): F1 of words 0.85 to 0.96 of 256 to 16 sentences in one epoch; sentences of one step have a "
    "Levenshtein ratio of 57% to 69%, by characters and not, as here, by words."
)
MEANING = (
    "Guessing names as many words, the most frequent of public text. What is better than guessing may be what everybody "
    "typed, which a model is for. What a view says of the one person is the recall less that of the same guesses about "
    "somebody who took no part. Intervals are of 95% over people."
)


@dataclass(frozen=True, kw_only=True)
class ViewResult:
    """One view: what came of the attack on all words, on rare ones, and on sentences where they were looked for."""

    view: str
    says: str
    threat_model: str
    people: int
    words: WordScores
    rare: WordScores
    sentences: SentenceScores | None


@dataclass(frozen=True, kw_only=True)
class AttackResult(JobResult):
    """The attack through every view; `findings` are the promises that were put to the test on the way."""

    views: Sequence[ViewResult]
    findings: Findings
    settings: AttackSettings
    seed: int
    source: str
    clip_norm: float
    parameters: int
    SCHEMA: ClassVar[str] = "tacit.audit.attack"

    def view(self, name: str) -> ViewResult:
        """One of them. Raises: KeyError."""
        return {each.view: each for each in self.views}[name]

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit audit attack --json` prints."""
        return {
            "schema": self.SCHEMA,
            "version": 1,
            "tacit": __version__,
            "source": self.source,
            "seed": self.seed,
            "settings": to_plain(self.settings),
            "clip_norm": self.clip_norm,
            "parameters": self.parameters,
            "confidence": 0.95,
            "views": [_record(each) for each in self.views],
            "audit": self.findings.to_record(),
        }

    def blocks(self) -> list[Block]:
        """A table of words, of rare words and of sentences; then the promises."""
        asked = self.settings
        told = (
            f"{asked.clients} people of {self.source} are attacked. Each trains one step on at most {asked.sentences} "
            f"sentences, with a network of {self.parameters:,} numbers that learnt public text."
        )
        clip = f"The clip norm is {self.clip_norm:.3g}; noise is {asked.noise_multiplier:g} clip norms on a sum."
        threats = dict.fromkeys(f"{each.says}: {each.threat_model}" for each in self.views)
        return [
            Heading("Attack: words and sentences that people typed"),
            Paragraph(f"{told} {clip}"),
            Paragraph("Words"),
            _words([(each.says, each.words) for each in self.views]),
            Paragraph(f"Rare words, beyond the {RARE:,} most frequent ones of public text"),
            _words([(each.says, each.rare) for each in self.views]),
            *self._sentences(),
            Paragraph(MEANING),
            Paragraph(PUBLISHED),
            *(Paragraph(threat) for threat in threats),
            *self.findings.blocks(),
        ]

    def _sentences(self) -> list[Block]:
        rows = tuple(
            (
                each.says,
                *map(_percent, (found.exact, found.similarity, found.likely_exact, found.likely_similarity)),
                "yes" if found.advantage.low > 0 else "no",
            )
            for each in self.views
            if (found := each.sentences) is not None
        )
        if not rows:
            return []
        head = ("seen", "exact", "similar", "guess exact", "guess similar", "better than guessing")
        return [Paragraph("Sentences, and the likeliest by the public network"), Table(rows, head=head)]


def _words(rows: Sequence[tuple[str, WordScores]]) -> Table:
    head = ("seen", "named", "precision", "recall", "guess precision", "guess recall", "better than guessing")
    return Table(
        tuple(
            (
                says,
                f"{found.named:,.0f}",
                *map(_percent, (found.precision, found.recall, found.guess_precision, found.guess_recall)),
                f"{'yes' if found.better else 'no'}: {_signed(found.advantage)}",
                f"{'yes' if found.individual.low > 0 else 'no'}: {_signed(found.individual)}",
            )
            for says, found in rows
        ),
        head=(*head, "of the one person"),
    )


def _percent(found: Estimate) -> str:
    return f"{found.value:.1%} ({max(found.low, 0):.1%} to {min(found.high, 1):.1%})"


def _signed(found: Estimate) -> str:
    return f"{found.value:+.1%} ({found.low:+.1%} to {found.high:+.1%})"


def _record(each: ViewResult) -> Mapping[str, Any]:
    plain: dict[str, Any] = to_plain(each)
    for name, found in (("words", each.words), ("rare", each.rare)):
        missed = found.people - found.exhausted
        plain[name]["better_than_guessing"] = found.better
        plain[name]["everything_named_of_at_least"] = 1 - float(rate_at_most(missed, found.people, 0.05))
    return plain
