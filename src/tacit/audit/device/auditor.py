"""Two texts under one strategy: devices are run, and what is seen of them is compared."""

import hashlib
import math
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.audit.device.device_findings import EXTREMES, READ, SEEN, THREAT
from tacit.audit.device.distinguisher import epsilon_between
from tacit.audit.device.questions import QUESTIONS, Asked
from tacit.audit.device.strategies import STRATEGIES, Strategy
from tacit.audit.device.texts import Pair, cache_of
from tacit.audit.device.transcript import Transcript
from tacit.audit.device.virtual_clock import NOON
from tacit.audit.device.watched import WILLING, TimedSession, handlers_of, watched
from tacit.audit.finding import Finding
from tacit.device.policy import Policy
from tacit.device.task_handler import PreparedTask
from tacit.privacy.empirical.thresholds import epsilon_by_threshold

ALIKE = 2  # runs of both texts by the same randomness
USUAL = "nothing unusual"  # the strategy of an honest operator


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
            subject=f"{question}: processor time of reading",
            measure="epsilon",
            claim=math.inf,
            lower=bound.lower,
            confidence=self._confidence,
            samples=took.size,
            samples_of=READ,
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
