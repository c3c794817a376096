"""Scores of many runs with a canary and without: the best threshold between them, and what it shows.

The test answers "it was there" for scores above the threshold. A threshold that was chosen by the scores that judge it
looks better than it is, which two ways mend:

- "split": the first half of each sample chooses, the second judges. Both are independent, so Clopper and Pearson's
  bounds hold as they are, with half the error for each rate.
- "corrected": the thresholds are order statistics of the scores without the canary, at `_ranks` that depend on their
  number alone. The probability to exceed the k-th of n is a Beta number, or less where scores are tied, and given the
  threshold the scores with the canary are as independent as before. Each rate at each rank has its share of the error.

Nothing but the order of scores is used: a rising function of all of them changes no bound.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError
from tacit.privacy.empirical.error_rates import epsilon_shown, mu_shown, rate_at_most
from tacit.privacy.empirical.samples import Scores, check_delta, error_of, sample

How = Literal["split", "corrected"]
Numbers = NDArray[np.float64]
Shown = Callable[[Numbers, Numbers], Numbers]

RANKS = 12  # 24 and 48 gave smaller bounds of normal samples of 200 to 20,000 scores: each costs a share of the error
CANDIDATES = 100  # thresholds that the first half of a split is tried with
SORTED = 20  # distinct scores in rising or falling order: by chance less often than in 1e18 samples


@dataclass(frozen=True)
class ThresholdBound:
    """`lower` holds with the confidence asked for; the two rates at the threshold are upper bounds, jointly with it."""

    lower: float
    threshold: float
    false_positive: float
    false_negative: float


def epsilon_by_threshold(
    absent: ArrayLike, present: ArrayLike, delta: float, *, confidence: float = 0.95, how: How = "corrected"
) -> ThresholdBound:
    """A lower bound on epsilon at `delta`, from independent scores of runs without the canary and with it.

    absent, present: (n,) and (m,), higher where the canary is likelier; infinities are allowed. Add-or-remove or
    replace-one adjacency, whichever the runs were made by. Raises: InputError for no scores, NaN, delta, confidence.
    """
    check_delta(delta)
    return _best(absent, present, lambda fpr, fnr: epsilon_shown(fpr, fnr, delta), confidence, how)


def mu_by_threshold(
    absent: ArrayLike, present: ArrayLike, *, confidence: float = 0.95, how: How = "corrected"
) -> ThresholdBound:
    """A lower bound on the mu of Gaussian differential privacy; the arguments are those of `epsilon_by_threshold`."""
    return _best(absent, present, mu_shown, confidence, how)


def _best(absent: ArrayLike, present: ArrayLike, shown: Shown, confidence: float, how: How) -> ThresholdBound:
    error = error_of(confidence)
    least = 2 if how == "split" else 1
    without = sample("absent", absent, least=least, finite=False)
    within = sample("present", present, least=least, finite=False)
    if how == "split":
        return _split(without, within, shown, error)
    if how == "corrected":
        return _corrected(without, within, shown, error)
    raise InputError(f"how={how!r} corrects for no chosen threshold; give 'split' or 'corrected'.")


def _split(absent: Scores, present: Scores, shown: Shown, error: float) -> ThresholdBound:
    for name, scores in ("absent", absent), ("present", present):
        steps = np.sign(np.diff(scores[np.isfinite(scores)]))
        if len(np.unique(scores)) > SORTED and abs(steps.sum()) == np.abs(steps).sum():
            raise InputError(f"{name} are sorted, so that halves differ; give them as they came, or how='corrected'.")
    one, other = len(absent) // 2, len(present) // 2
    seen = np.unique(np.concatenate([absent[:one], present[:other]]))
    tried = seen[np.unique(np.linspace(0, len(seen) - 1, CANDIDATES).round().astype(int))]
    guessed = shown(*_rates(absent[:one], present[:other], tried, error / 2))
    chosen = tried[[int(np.argmax(guessed))]]
    return _bound(shown, chosen, *_rates(absent[one:], present[other:], chosen, error / 2))


def _corrected(absent: Scores, present: Scores, shown: Shown, error: float) -> ThresholdBound:
    ranks = _ranks(len(absent))
    thresholds, each = np.sort(absent)[ranks - 1], error / (2 * len(ranks))
    missed = np.searchsorted(np.sort(present), thresholds, side="right")
    # The rank says how many lie above, even if tied scores do not: the threshold was chosen by it.
    above = rate_at_most(len(absent) - ranks, len(absent), each)
    return _bound(shown, thresholds, above, rate_at_most(missed, len(present), each))


def _ranks(number: int) -> NDArray[np.int64]:
    """The ranks, from 1 to `number`, that are as far from one another as those of normal scores are."""
    far = np.log1p(number)
    # Evenly spaced logits: close at both ends, where the rates are small and epsilon is found.
    shares = 1 / (1 + np.exp(-np.linspace(-far, far, RANKS)))
    return np.unique(np.clip(np.ceil(shares * number), 1, number).astype(np.int64))


def _rates(absent: Scores, present: Scores, thresholds: Scores, error: float) -> tuple[Numbers, Numbers]:
    """Upper bounds on both rates at each threshold, each too small with a probability of at most `error`."""
    above = len(absent) - np.searchsorted(np.sort(absent), thresholds, side="right")
    missed = np.searchsorted(np.sort(present), thresholds, side="right")
    return rate_at_most(above, len(absent), error), rate_at_most(missed, len(present), error)


def _bound(shown: Shown, thresholds: Scores, fpr: Numbers, fnr: Numbers) -> ThresholdBound:
    lower = shown(fpr, fnr)
    best = int(np.argmax(lower))
    return ThresholdBound(float(lower[best]), float(thresholds[best]), float(fpr[best]), float(fnr[best]))
