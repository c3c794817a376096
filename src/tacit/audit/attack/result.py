"""What the attack found, view by view, with defences off and on, beside guessing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.audit.attack.public_text import FREQUENT
from tacit.audit.attack.scores import SentenceScores, WordScores, shown
from tacit.audit.attack.settings import AttackSettings
from tacit.audit.finding import Findings
from tacit.evaluation.intervals import Estimate
from tacit.jobs.result import JobResult
from tacit.privacy.empirical.error_rates import rate_at_most
from tacit.records import json_ready, to_plain
from tacit.reports.blocks import Block, Heading, Paragraph, Table
from tacit.version import __version__

PUBLISHED = (
    "Beside the paper (arXiv:2210.16947, read off its authors' plots; the output bias of Gboard's own network): F1 of "
    "words 0.85 to 0.96, of 256 to 16 sentences in one epoch; sentences of one step have a Levenshtein ratio of 57% to "
    "69%, by characters and not, as here, by words."
)
MEANING = (
    "Guessing names as many words, the most frequent ones of public text; it makes sentences of those and of noise. "
    "Where gains are 0 for certain, what was seen moved no guess. "
    "Under noise the attacker names as many words as people type, those that frequency and what was seen make "
    "likeliest. Ranks of 50% are chance; what everybody typed is above it, for that is what a model learns. An "
    "outsider took no part, and is ranked by the same evidence: what is left is of the one person. Intervals are of "
    "95% over people, each by itself; yes stands where a gain is above 0 with 95% confidence in all rows together."
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

    def better(self, view: ViewResult) -> bool:
        """Whether the attack on all words is better than guessing, with 95% confidence of all views together."""
        return shown(view.words.advantage, view.words.people, len(self.views))

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
            "views": [{**_record(each), "better_than_guessing": self.better(each)} for each in self.views],
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
        threats: dict[str, list[str]] = {}
        for each in self.views:
            threats.setdefault(each.threat_model, []).append(each.says)
        return [
            Heading("Attack: words and sentences that people typed"),
            Paragraph(f"{told} {clip}"),
            *map(Paragraph, self.verdict()),
            Paragraph("All words, percent"),
            _words([(each.says, each.words) for each in self.views]),
            Paragraph(f"Rare words, which are not in the {FREQUENT:.0%} most frequent ones of public text, percent"),
            _words([(each.says, each.rare) for each in self.views]),
            Paragraph("The one person: how often what they typed ranks above what they did not, percent"),
            self._ranks(),
            *self._sentences(),
            Paragraph(MEANING),
            Paragraph(PUBLISHED),
            *(Paragraph(f"Seen, {', '.join(said)}: {threat}") for threat, said in threats.items()),
            *self.findings.blocks(),
        ]

    def verdict(self) -> list[str]:
        """What a newspaper could print: of one upload, and of what is released."""
        said = []
        for each in self.views:
            found, name = each.words, each.says[0].upper() + each.says[1:]
            if each.view == "upload":
                least = 1 - float(rate_at_most(found.people - found.exhausted, found.people, 0.05))
                said.append(
                    f"{name}, without defence: {found.recall.value:.1%} of somebody's words are read, and "
                    f"{found.precision.value:.1%} of the named ones were typed; as many guesses find "
                    f"{found.guess_recall.value:.1%}. Every word was read of {found.exhausted} of {found.people} "
                    f"people, so of at least {least:.0%} of people with 95% confidence."
                )
            if each.view == "upload-bias":
                said.append(
                    f"By {each.says}, as the paper: {found.recall.value:.1%} of the words, F1 {found.f1.value:.2f}."
                )
            if each.view.startswith("release"):
                better = "better than guessing" if self.better(each) else "not better than guessing"
                said.append(
                    f"{name}: {found.recall.value:.1%} of the words, {better} by public text: "
                    f"{_signed(found.advantage)} percent. Of the one person: {_signed(found.individual)} of rank."
                )
        return said

    def _ranks(self) -> Table:
        rows = [
            (
                each.says,
                _percent(each.words.rank),
                *_judged(each.words.individual, each.words.people, len(self.views)),
                _percent(each.rare.rank),
                *_judged(each.rare.individual, each.rare.people, len(self.views)),
            )
            for each in self.views
        ]
        less = ("less outsider's", "of the one")
        return Table(tuple(rows), head=("seen", "words", *less, "rare words", *less))

    def _sentences(self) -> list[Block]:
        rows = tuple(
            (
                each.says,
                *map(_percent, (found.exact, found.similarity, found.guess_exact, found.guess_similarity)),
                *_judged(found.advantage, found.people, len(self.views)),
            )
            for each in self.views
            if (found := each.sentences) is not None
        )
        if not rows:
            return []
        head = ("seen", "exact", "similar", "guess's exact", "guess's similar", "gain", "better")
        return [Paragraph("Sentences, percent"), Table(rows, head=head)]


def _words(rows: Sequence[tuple[str, WordScores]]) -> Table:
    head = ("seen", "named", "precision", "recall", "guess's recall", "gain", "better")
    return Table(
        tuple(
            (
                says,
                f"{found.named:,.0f}",
                *map(_percent, (found.precision, found.recall, found.guess_recall)),
                *_judged(found.advantage, found.people, len(rows)),
            )
            for says, found in rows
        ),
        head=head,
    )


def _percent(found: Estimate) -> str:
    if math.isnan(found.value):
        return "-"
    return f"{found.value * 100:.1f} ({max(found.low, 0) * 100:.1f} to {min(found.high, 1) * 100:.1f})"


def _signed(found: Estimate) -> str:
    return f"{found.value * 100:+.1f} ({found.low * 100:+.1f} to {found.high * 100:+.1f})"


def _judged(gain: Estimate, people: int, comparisons: int) -> tuple[str, str]:
    """The gain, and whether it is one for certain, all rows of the column together."""
    return _signed(gain), "yes" if shown(gain, people, comparisons) else "no"


def _record(each: ViewResult) -> Mapping[str, Any]:
    plain: dict[str, Any] = json_ready(to_plain(each))
    for name, found in (("words", each.words), ("rare", each.rare)):
        plain[name]["everything_named_of_at_least"] = 1 - float(
            rate_at_most(found.people - found.exhausted, found.people, 0.05)
        )
    return plain
