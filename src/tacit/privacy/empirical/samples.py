"""What an auditor's figures must be: scores that are numbers, a confidence, a delta."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError

Scores = NDArray[np.float64]


def sample(name: str, values: ArrayLike, *, least: int = 1, finite: bool = True) -> Scores:
    """The scores as float64, (n,), in the order given.

    Raises: InputError for fewer than `least` of them, more than one axis, what is not a number, and infinities unless
    `finite` is False: thresholds only compare.
    """
    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are no numbers ({error}); give one score for each run or canary.") from error
    if scores.ndim != 1:
        raise InputError(f"{name} have the shape {scores.shape}; give one axis, a score for each run or canary.")
    if len(scores) < least:
        raise InputError(f"{name} has {len(scores)} scores, and a bound needs at least {least}; measure more.")
    wrong = ~np.isfinite(scores) if finite else np.isnan(scores)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{name}[{at}]={scores[at]} is no score; leave no run out, find out why it gave none.")
    return scores


def error_of(confidence: float) -> float:
    """1 - confidence: how often a bound may be wrong. Raises: InputError unless it is from 1/2 to below 1."""
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence={confidence} must be at least 0.5 and below 1; give for example 0.95.")
    return 1 - confidence


def check_delta(delta: float) -> None:
    """Raises: InputError unless delta is a probability below 1; 0 asks for pure differential privacy."""
    if not 0 <= delta < 1:
        raise InputError(f"delta={delta} must be at least 0 and below 1; give for example 1e-5.")


def positive(name: str, value: float) -> None:
    """Raises: InputError unless the number is finite and above 0."""
    if not 0 < value < float("inf"):
        raise InputError(f"{name}={value} must be finite and above 0.")
