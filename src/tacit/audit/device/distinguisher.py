"""Which of two texts was it? Told from transcripts, by what was learnt of others.

Half of the transcripts of each text train it, the other half are judged. A transcript becomes features: each observable
as a whole, and each time between two requests. Of each feature the logarithm of how much more often it was seen with
one text than with the other is added up (naive Bayes), with one of each added, so that nothing is impossible. Numbers
are cut in two where that tells most.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tacit.audit.device.transcript import OBSERVABLES, Transcript
from tacit.errors import InputError
from tacit.privacy.empirical.thresholds import epsilon_by_threshold

MOST = 10_000  # transcripts of each text


def epsilon_between(one: Sequence[Transcript], other: Sequence[Transcript], *, confidence: float) -> float:
    """A lower bound on epsilon at delta 0 between what is seen of two texts: 0 where nothing was shown.

    From independent transcripts of either text, as many of each, in the order in which they came.
    """
    half = len(one) // 2
    scores = _scores(one[:half], other[:half], [*one[half:], *other[half:]])
    judged = len(one) - half
    return epsilon_by_threshold(scores[:judged], scores[judged:], 0.0, confidence=confidence).lower


def check_enough(runs: int, confidence: float) -> None:
    """Raises: InputError where so many transcripts of each text show nothing, even if each tells its text."""
    if _shows(runs, confidence):
        return
    least = next((each for each in range(max(runs, 1), MOST) if _shows(each, confidence)), MOST)
    raise InputError(
        f"runs={runs} of each text can show nothing at a confidence of {confidence:.5g} in each finding, so that all "
        f"of them hold together; give {least} or more."
    )


def _shows(runs: int, confidence: float) -> bool:
    judged = runs - runs // 2
    return runs >= 2 and epsilon_by_threshold(np.zeros(judged), np.ones(judged), 0.0, confidence=confidence).lower > 0


def _scores(
    one: Sequence[Transcript], other: Sequence[Transcript], judged: Sequence[Transcript]
) -> NDArray[np.float64]:
    """(judged,), higher where it was rather the other text."""
    total = np.zeros(len(judged))
    for name in OBSERVABLES:
        total += _of_values(*([getattr(each, name) for each in part] for part in (one, other, judged)))
    for nth in range(max(len(each.times) for each in (*one, *other)) - 1):
        total += _of_numbers(*(np.array([_gap(each, nth) for each in part]) for part in (one, other, judged)))
    return total


def _of_values(one: Sequence[object], other: Sequence[object], judged: Sequence[object]) -> NDArray[np.float64]:
    seen, with_other = Counter(one), Counter(other)
    return np.array([math.log((with_other[each] + 1) / (seen[each] + 1)) for each in judged])


def _of_numbers(
    one: NDArray[np.float64], other: NDArray[np.float64], judged: NDArray[np.float64]
) -> NDArray[np.float64]:
    """By the cut between two numbers at which both texts lie furthest apart."""
    both = np.unique(np.concatenate([one, other]))
    if len(both) < 2:
        return np.zeros(len(judged))
    cuts = (both[1:] + both[:-1]) / 2
    apart = [abs(float((one > cut).mean() - (other > cut).mean())) for cut in cuts]
    cut = cuts[int(np.argmax(apart))]
    return _of_values(*((part > cut).tolist() for part in (one, other, judged)))


def _gap(transcript: Transcript, nth: int) -> float:
    """Seconds between two requests; below 0 where there are not so many."""
    gaps = [later - earlier for earlier, later in pairwise(transcript.times)]
    return gaps[nth] if nth < len(gaps) else -1.0
