"""Whether anything that leaves a device, but for what its report says, depends on what its owner typed."""

import hashlib
import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from tacit.audit.device.distinguisher import MOST, check_enough, epsilon_between
from tacit.audit.device.questions import QUESTIONS, Asked
from tacit.audit.device.strategies import STRATEGIES, Strategy
from tacit.audit.device.texts import Pair, cache_of
from tacit.audit.device.transcript import OBSERVABLES, Transcript
from tacit.audit.device.virtual_clock import NOON
from tacit.audit.device.watched import WILLING, TimedSession, handlers_of, watched
from tacit.audit.finding import Finding, Findings
from tacit.device.policy import Policy
from tacit.device.task_handler import PreparedTask
from tacit.errors import InputError, conceivable, of_type
from tacit.privacy.empirical.samples import error_of
from tacit.privacy.empirical.thresholds import epsilon_by_threshold
from tacit.progress import Progress, counted, silent
from tacit.reports.blocks import Block, Heading, Paragraph, Table

STAGE, READING = "turns of a device, seen by its operator", "what reading text takes"
ALIKE = 2  # runs of both texts by the same randomness
USUAL = "nothing unusual"  # the strategy of an honest operator
EXTREMES = ("one word", "3,000 sentences")  # texts that take the least and the most to read
PROCESSOR = "processor time of reading"
THREAT = (
    "an operator that chooses models, tasks, logs, answers and the device's clock sees every request, its bytes but for "
    "what the report says, and its time; it knows both texts and has to tell which was typed"
)
SEEN = "transcripts"


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
                f"Retries come at times drawn anew, so that chance may be the reason: {random} pairs were judged by many runs."
            ),
            Paragraph(f"Threat model: {THREAT}."),
            Heading("What reports are held back for", depth=3),
            Table(hidden, head=("what is asked", *(f"ms for {each}" for each in EXTREMES), "would show, at least")),
            Paragraph(f"Again: {self.command}"),
        ]


def audit_device(
    *,
    strategies: Sequence[str] | None = None,
    questions: Sequence[str] | None = None,
    runs: int = 40,
    confidence: float = 0.95,
    seed: int = 1,
    progress: Progress = silent,
) -> DeviceFindings:
    """Try to learn from a device which of two texts its owner typed, by all that leaves it but what its reports say.

    The shipped device answers each question of each strategy with both texts, by the same randomness and clock. What
    is seen of it has to be the same. Where it differs, many runs by randomness of their own say whether a distinguisher,
    learnt on half of them, tells the others apart.

    strategies, questions: names in `audit.device.strategies` and `audit.device.questions`; all when None. runs: with
    each of two texts, where what is seen of them differs. confidence: that all bounds hold together. seed: of the device's private randomness. Raises: InputError for unknown names, and
    for fewer runs than can show anything.
    """
    for name, value, kind in (("runs", runs, Integral), ("seed", seed, Integral), ("confidence", confidence, Real)):
        of_type(name, value, kind)
    conceivable("seed", seed)
    conceivable("runs", runs)
    if not 1 <= runs <= MOST:
        raise InputError(f"runs={runs} must be from 1 to {MOST:,}.")
    tried = {name: STRATEGIES[name] for name in _chosen("strategies", strategies, STRATEGIES)}
    asked = _chosen("questions", questions, QUESTIONS)
    ways = [(name, each, question) for name, each in tried.items() for question in each.questions if question in asked]
    if not ways:
        raise InputError("none of these strategies asks any of these questions; leave one of the two out.")
    comparisons = sum(len(each.pairs) for _, each, _ in ways) + len(asked)
    chosen = [f"--strategy {each!r}" for each in strategies or ()] + [
        f"--question {each!r}" for each in questions or ()
    ]
    each_confidence = 1 - error_of(confidence) / comparisons
    check_enough(runs, each_confidence)
    with tempfile.TemporaryDirectory() as folder:
        auditor = Auditor(Path(folder), seed=seed, runs=runs, confidence=each_confidence)
        findings = [
            auditor.finding(name, each, question)
            for name, each, question in counted(ways, STAGE, progress, total=len(ways))
        ]
        findings += [
            auditor.processor_time(question) for question in counted(asked, READING, progress, total=len(asked))
        ]
    return DeviceFindings(
        audit="does text decide anything but what a report says?",
        findings=findings,
        command=" ".join(["tacit audit device", *chosen, f"--runs {runs} --confidence {confidence:g} --seed {seed}"]),
    )


class Auditor:
    """Runs devices in a folder, and compares what is seen of them."""

    def __init__(
        self, folder: Path, *, seed: int, runs: int, confidence: float, session: type[TimedSession] = TimedSession
    ) -> None:
        """session: of the devices; a test's may have a fault."""
        self._folder, self._seed, self._runs, self._confidence = folder, seed, runs, confidence
        self._session = session
        self._asked: dict[tuple[str, str], Asked] = {}

    def finding(self, name: str, strategy: Strategy, question: str) -> Finding:
        """Of one strategy and one question: the largest bound of its pairs of texts."""
        compared = [self._compared(name, strategy, question, pair) for pair in strategy.pairs]
        worst = max(compared, key=lambda each: each.lower)
        return Finding(
            subject=f"{question}: {name}",
            measure="epsilon",
            claim=0.0,
            lower=worst.lower,
            confidence=self._confidence,
            samples=sum(each.transcripts for each in compared),
            samples_of=SEEN,
            threat_model=THREAT,
            delta=0.0,
            seed=self._seed,
            figures={
                "question": question,
                "strategy": name,
                "says": strategy.says,
                "pair": list(worst.pair),
                "differs": sorted({observable for each in compared for observable in each.differs}),
                "repeated": sum(bool(each.differs) for each in compared),
                "ended": [list(each) for each in worst.ended],
                "silent": list(worst.silent),
            },
        )

    def _compared(self, name: str, strategy: Strategy, question: str, pair: Pair) -> "_Compared":
        def seen(text: str, *number: object) -> Transcript:
            label = "/".join(map(str, (self._seed, name, question, *number)))
            asked = self._asked_by(name, strategy, question)
            own = self._cache(text, asked, strategy)
            private = hashlib.sha256(label.encode()).digest()
            return watched(asked, strategy, text, own, seed=private, session=self._session)

        alike = [[seen(text, number) for number in range(ALIKE)] for text in pair]
        differs = tuple(sorted({name for one, other in zip(*alike, strict=True) for name in one.differs(other)}))
        silent = tuple(each[0].silent for each in alike)
        found = _Compared(pair, 0.0, 2 * ALIKE, differs, alike[0][0].ended, silent)
        if not differs:
            return found
        many = [[seen(text, text, number) for number in range(self._runs)] for text in pair]
        lower = epsilon_between(*many, confidence=self._confidence)
        return replace(found, lower=lower, transcripts=found.transcripts + 2 * self._runs)

    def processor_time(self, question: str) -> Finding:
        """What the time of reading would show, if it were seen: nothing is promised of it, and the hold-back hides it.

        Real seconds of processors, of two texts in turn, in this process.
        """
        strategy = STRATEGIES[USUAL]
        asked = self._asked_by(USUAL, strategy, question)
        task, policy = asked.task(0, opens=NOON), Policy(**WILLING)
        readers = [
            handlers_of(self._cache(text, asked, strategy), policy)[asked.plan.kind].prepare(
                asked.plan, task, asked.content
            )
            for text in EXTREMES
        ]
        for each in readers:
            each.read(os.urandom)  # the first loads what is loaded late
        took = np.array([[_processor_time(each) for each in readers] for _ in range(self._runs)])
        bound = epsilon_by_threshold(took[:, 0], took[:, 1], 0.0, confidence=self._confidence)
        return Finding(
            subject=f"{question}: {PROCESSOR}",
            measure="epsilon",
            claim=math.inf,
            lower=bound.lower,
            confidence=self._confidence,
            samples=took.size,
            samples_of="readings",
            threat_model="somebody who sees how long processors work; no operator does, as reports are held back",
            delta=0.0,
            figures={"question": question, "pair": list(EXTREMES), "median_s": np.median(took, axis=0).tolist()},
        )

    def _cache(self, text: str, asked: Asked, strategy: Strategy) -> Path:
        """Of text that training may read, where the question or the owner's policy is about that."""
        return cache_of(self._folder, text, trains=asked.trains or "split" in strategy.policy)

    def _asked_by(self, name: str, strategy: Strategy, question: str) -> Asked:
        if (name, question) not in self._asked:
            made = QUESTIONS[question](strategy.model(), self._folder / "decryptors")
            if strategy.asks:
                made = replace(made, question=made.question.model_copy(update=dict(strategy.asks)))
            if strategy.sealed and made.sealed is not None:
                made = replace(made, sealed=replace(made.sealed, **strategy.sealed))
            self._asked[name, question] = made
        return self._asked[name, question]


def _processor_time(prepared: PreparedTask) -> float:
    began = time.process_time()
    prepared.read(os.urandom)
    return time.process_time() - began


@dataclass(frozen=True)
class _Compared:
    """Two texts under one strategy."""

    pair: Pair
    lower: float
    transcripts: int
    differs: tuple[str, ...]
    ended: tuple[tuple[str, float, float], ...]
    silent: tuple[int, ...]  # reports of either text that said nothing


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


def _chosen(name: str, given: Sequence[str] | None, known: Mapping[str, Any]) -> Sequence[str]:
    """Raises: InputError naming the first one that is unknown."""
    of_type(name, given, list, tuple, type(None))
    if given is None:
        return list(known)
    for each in given:
        if each not in known:
            raise InputError(f"{name} has {str(each)[:60]!r}, which is none of: {'; '.join(known)}.")
    return list(given)
