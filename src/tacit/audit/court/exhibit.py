"""An exhibit: a promise, code that breaks it, code that keeps it, and how its scores are judged."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.audit.finding import Measure
from tacit.privacy.empirical.error_rates import rate_at_most
from tacit.privacy.empirical.normal_scores import mu_of_normal_samples
from tacit.privacy.empirical.sequential import evidence_against_mu, evidence_by_threshold, first_alarm
from tacit.privacy.empirical.thresholds import epsilon_by_threshold, mu_by_threshold

Scores = NDArray[np.float64]
Draw = Callable[[bool, int, np.random.Generator], Scores]
Law = Literal["any", "normal", "rate", "exact"]

PILOT = 200  # pairs that choose the threshold of the sequential test, and are not judged by it
LARGEST = {"mu": 15.0, "epsilon": 700.0, "rate": 0.0}  # claims that no test of error rates refutes in floats
SAMPLES_OF = {"any": "pairs of runs", "normal": "pairs of runs", "rate": "audits", "exact": "computed"}


@dataclass(frozen=True)
class Version:
    """One implementation: what it claims, and the scores of its runs.

    draw: (canary there, runs, generator) to (runs,), larger the likelier the canary. Of the law "rate" the scores say
    by 1 and 0 whether each run failed, and of "exact" they are the true value.
    """

    claim: float
    draw: Draw


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A historic fault: which of the twelve, where it is told, and both versions.

    law: "normal" where both scores are normal with one deviation, "any" where nothing is known of them, "rate" where
    the promise is how often something fails, "exact" where the true value is computed. delta: at which epsilon is
    meant. runs: pairs, audits, or values drawn.
    """

    number: int
    name: str
    source: str
    threat_model: str
    measure: Measure
    law: Law
    broken: Version
    mended: Version
    delta: float | None = None
    runs: int = 2000


class Shown(NamedTuple):
    """What scores show: a lower bound, and after how many pairs a sequential test refutes the claim, if it does."""

    lower: float
    refuted_after: int | None


def judge(exhibit: Exhibit, version: Version, generator: np.random.Generator, confidence: float) -> Shown:
    """The lower bound of one version, and the sequential test beside it; each errs with 1 - confidence at most."""
    present = version.draw(True, exhibit.runs, generator)
    if exhibit.law == "exact":
        return Shown(float(present[0]), None)
    absent = version.draw(False, exhibit.runs, generator) if exhibit.law != "rate" else present[:0]
    return judge_scores(
        absent,
        present,
        measure=exhibit.measure,
        law=exhibit.law,
        claim=version.claim,
        delta=exhibit.delta,
        confidence=confidence,
    )


def judge_scores(
    absent: Scores,
    present: Scores,
    *,
    measure: Measure,
    law: Law,
    claim: float,
    delta: float | None,
    confidence: float,
) -> Shown:
    """The same of scores that are there: (n,) without the canary and (n,) with it, in pairs; of a rate (n,) alone."""
    if law == "rate":
        kept = len(present) - int(present.sum())
        return Shown(1 - float(rate_at_most(kept, len(present), 1 - confidence)), None)
    if measure == "epsilon":
        lower = epsilon_by_threshold(absent, present, delta or 0.0, confidence=confidence).lower
    elif law == "normal":
        lower = mu_of_normal_samples(absent, present, confidence=confidence).lower
    else:
        lower = mu_by_threshold(absent, present, confidence=confidence).lower
    return Shown(lower, _refuted_after(absent, present, measure, claim, delta or 0.0, confidence))


def _refuted_after(
    absent: Scores, present: Scores, measure: Measure, claim: float, delta: float, confidence: float
) -> int | None:
    """By pairs after the first PILOT, at the threshold that parted those best."""
    if len(absent) <= PILOT or claim >= LARGEST[measure]:
        return None
    tried = np.unique(np.concatenate([absent[:PILOT], present[:PILOT]]))
    apart = (present[:PILOT, None] > tried).mean(0) - (absent[:PILOT, None] > tried).mean(0)
    threshold = float(tried[int(np.argmax(np.abs(apart)))])
    if measure == "mu":
        evidence = evidence_against_mu(absent[PILOT:], present[PILOT:], threshold, claim)
    else:
        evidence = evidence_by_threshold(absent[PILOT:], present[PILOT:], threshold, epsilon=claim, delta=delta)
    return first_alarm(evidence, confidence=confidence)
