"""A case is played many times, and what its scores show is a lower bound on mu.

Two scores judge each run. One is known beforehand to tell most if the noise is what is promised. The other is learned
from runs that are then left out: the mean that the canary moves, through the inverse of the covariance that was seen.
So noise that is used twice, or hidden under a decoder, is found although nobody said where. Half the error that the
confidence leaves goes to each.
"""

import hashlib
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit.audit.finding import Finding
from tacit.audit.mechanism.case import Case, Numbers
from tacit.errors import InputError
from tacit.privacy.empirical.normal_scores import mu_of_normal_samples
from tacit.privacy.empirical.samples import error_of
from tacit.privacy.empirical.sequential import evidence_of_less_noise, first_alarm
from tacit.privacy.empirical.thresholds import mu_by_threshold
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

Law = Literal["normal", "any"]

CELLS = 1 << 22  # numbers of what is released that a batch of runs holds: 16 MB in float32
FEWEST = 1 << 14  # runs of a batch, however many rows: noise is drawn for so many at a time
LEARNING = 1 << 16  # runs that the second score is learned from
LEARNED = 256  # rows up to which it is
TOLD_APART = 0.1  # relative: a fault of this size must be within reach of the runs asked for
FAR = 30.0  # of mu, beyond which no scores are normal for certain: the bound by a threshold is taken
SEQUENTIAL = 20_000  # scores that the sequential test looks at
ALARM = 0.99  # its confidence
UNLIKELY = 1e-9  # of a dependence between runs that is seen where there is none


def runs_needed(claim: float, *, confidence: float) -> int:
    """How many runs tell a promise of mu from one that is TOLD_APART more: the margin of the bound is as large.

    Of n runs, half with the canary, the estimate of mu has variance (4 + mu^2 / 2) / n, nearly.
    """
    margin = -float(ndtri(error_of(confidence) / 2)) / (TOLD_APART * claim)
    return math.ceil(margin**2 * (4 + claim**2 / 2))


def check_runs(case: Case, runs: int, *, confidence: float) -> None:
    """Raises: InputError for a claim that is none, and for fewer runs than the confidence needs."""
    if not 0 < case.claim < math.inf:
        raise InputError(
            f"{case.subject} claims mu={case.claim}, and without noise every sum shows what a client sent; "
            "an audit is of a finite claim above 0."
        )
    needed = runs_needed(case.claim, confidence=confidence)
    if runs < needed:
        raise InputError(
            f"runs={runs} cannot tell {case.subject}'s mu={case.claim:.4g} from one that is {TOLD_APART:.0%} larger at "
            f"confidence {confidence:.6g}; give at least {needed:,}."
        )


def audit(
    case: Case, *, runs: int, confidence: float, seed: int, law: Law = "normal", progress: Progress = silent
) -> Finding:
    """What so many runs, half of them with the canary, show of a case. The same arguments, the same finding.

    law: of the scores; with "any" only their order is used. Raises: InputError for too few runs, for what is released
    in another shape than was said, and for runs that depend on one another.
    """
    check_runs(case, runs, confidence=confidence)
    weights = [] if case.known is None else [case.known.weights]
    if case.rows <= LEARNED:
        weights.append(_learned(case, runs, seed))
    absent, present = scores_of(case, np.array(weights), runs, seed, progress)
    check_independent(case.subject, absent)
    each = 1 - error_of(confidence) / len(weights)
    bounds = [_bound(without, within, each, law) for without, within in zip(absent, present, strict=True)]
    best = max(bounds, key=lambda bound: bound.lower)
    return Finding(
        subject=case.subject,
        measure="mu",
        claim=case.claim,
        lower=best.lower,
        estimate=best.estimate,
        confidence=confidence,
        samples=absent.shape[1] + present.shape[1],
        samples_of="runs",
        threat_model=case.threat_model,
        seed=seed,
        figures={**case.figures, "alarm_after": _alarm(case, absent[0], present[0])},
    )


def check_independent(subject: str, scores: Numbers) -> None:
    """That no two runs far or near look alike; scores: (scores, runs) without the canary, in their order.

    Raises: InputError where those a power of two apart are correlated, which by chance happens in one of 1e9 audits.
    """
    count = scores.shape[1]
    lags = [1 << power for power in range(max(count.bit_length() - 2, 1))]
    allowed = -float(ndtri(UNLIKELY / (2 * len(lags) * len(scores))))
    for row in scores[np.isfinite(scores).all(axis=1)]:
        deviation = float(row.std())
        centred = row - row.mean()
        for lag in lags:
            correlation = float(centred[lag:] @ centred[:-lag]) / (count - lag) / deviation**2 if deviation else 0.0
            if abs(correlation) * math.sqrt(count - lag) > allowed:
                raise InputError(
                    f"{subject}: runs that are {lag} apart have correlation {correlation:.3g}, so they are not "
                    "independent, and no bound holds. If runs are coordinates of one vector, its noise is shared "
                    "between coordinates, which their difference shows; else give each run a seed of its own."
                )


@dataclass(frozen=True)
class _Bound:
    lower: float
    estimate: float


def _bound(absent: Numbers, present: Numbers, confidence: float, law: Law) -> _Bound:
    """By the normal law where that can be: not of scores whose noise is gone but for its rounding, or no numbers."""
    finite = bool(np.isfinite(absent).all() and np.isfinite(present).all())
    spread = max(float(absent.std()), float(present.std())) if finite else 0.0
    if law == "normal" and finite and abs(float(present.mean() - absent.mean())) < FAR * spread:
        found = mu_of_normal_samples(absent, present, confidence=confidence)
        return _Bound(found.lower, found.estimate)
    lower = mu_by_threshold(absent, present, confidence=confidence).lower
    return _Bound(lower, lower)


def _alarm(case: Case, absent: Numbers, present: Numbers) -> int | None:
    """After how many runs, one without the canary after one with it, a sequential test had refuted the noise."""
    if case.known is None:
        return None
    each = min(SEQUENTIAL // 2, len(absent), len(present))
    if not (np.isfinite(absent).all() and np.isfinite(present).all()):
        return None
    noise = np.column_stack([absent[:each], present[:each] - case.known.moved]).ravel()
    return first_alarm(evidence_of_less_noise(noise), confidence=ALARM)


def _learned(case: Case, runs: int, seed: int) -> Numbers:
    """The weights (rows,) of the score that tells most, by LEARNING runs, or fewer, that are not used again."""
    halves: tuple[list[NDArray[Any]], list[NDArray[Any]]] = ([], [])
    for rows, there in _batches(case, min(LEARNING, runs), seed, "learning"):
        halves[0].append(rows[:, ~there])
        halves[1].append(rows[:, there])
    absent, present = (np.concatenate(half, axis=1).astype(np.float64) for half in halves)
    if not (np.isfinite(absent).all() and np.isfinite(present).all()):
        return np.ones(case.rows)
    moved = present.mean(axis=1) - absent.mean(axis=1)
    covariance = (np.cov(absent) + np.cov(present)) / 2
    values, vectors = np.linalg.eigh(np.atleast_2d(covariance))
    # A direction without noise counts as one with hardly any, so that it is looked along.
    inverse = 1 / np.maximum(values, 1e-10 * max(values[-1], 1e-300))
    weights: Numbers = vectors @ (inverse * (vectors.T @ moved))
    length = float(np.linalg.norm(weights))
    return weights / length if length else np.ones(case.rows)


def scores_of(
    case: Case, weights: Numbers, runs: int, seed: int, progress: Progress = silent
) -> tuple[Numbers, Numbers]:
    """(without the canary, with it), each (scores, runs), of weights (scores, rows)."""
    stage = f"auditing {case.subject}"
    progress(StageBegan(stage, runs, part=True))
    absent, present, done = [], [], 0
    for rows, there in _batches(case, runs, seed, "scores"):
        scores = weights @ rows
        scores[~np.isfinite(scores)] = np.inf  # a release that is no number tells as much as one can
        absent.append(scores[:, ~there])
        present.append(scores[:, there])
        done += rows.shape[1]
        progress(Advanced(stage, done))
    progress(StageEnded(stage))
    return np.concatenate(absent, axis=1), np.concatenate(present, axis=1)


def _batches(case: Case, runs: int, seed: int, use: str) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
    """(what is released (rows, runs), which runs have the canary), batch by batch: each has a seed of its own."""
    size = max(FEWEST, CELLS // case.rows)
    sizes = [min(size, runs - begin) for begin in range(0, runs, size)]

    def play(batch: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        present = np.arange(sizes[batch]) % 2 == 1
        rows = np.asarray(case.play(present, _seed_of(seed, use, batch)))
        if rows.shape != (case.rows, sizes[batch]):
            raise InputError(
                f"{case.subject}: {rows.shape} numbers came back for {sizes[batch]:,} runs, and {case.rows} rows were "
                "announced; release an array with a row for each round and a column for each run."
            )
        return rows, present

    with ThreadPoolExecutor(2) as pool:  # loops over noise compute without the interpreter's lock
        yield from pool.map(play, range(len(sizes)))


def _seed_of(seed: int, use: str, batch: int) -> int:
    return int.from_bytes(hashlib.sha256(f"tacit audit {seed} {use} {batch}".encode()).digest()[:8], "little")
