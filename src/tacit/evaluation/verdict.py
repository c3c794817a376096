"""In what a change of a predictor is for the better, and in what for the worse, as far as an interval tells."""

from collections.abc import Mapping
from typing import Literal

from tacit.networks.metrics import METRICS, TOP1

NATS = "cross_entropy"
SHOWN = (TOP1, "top3_accuracy", NATS)
Verdict = Literal["helps", "first suggestion only", "hurts", "probabilities only", "hurts probabilities", "not shown"]
Change = Mapping[str, tuple[float, float, float]]  # by name of SHOWN: the difference, and its 95% interval over clients


def sides_of(change: Change) -> dict[str, int]:
    """By name of SHOWN: 1 where the change is for the better, -1 for the worse, 0 where its interval does not tell."""
    return {name: METRICS[name].better * (int(low > 0) - int(high < 0)) for name, (_, low, high) in change.items()}


def verdict_of(change: Change) -> Verdict:
    """By the first suggestion, which a user sees, and by the probabilities; `sides_of` says what is different in what.

    "not shown": the interval tells of neither.
    """
    sides = sides_of(change)
    match sides[TOP1], sides[NATS]:
        case 1, -1:
            return "first suggestion only"
        case 1, _:
            return "helps"
        case -1, _:
            return "hurts"
        case _, 1:
            return "probabilities only"
        case _, -1:
            return "hurts probabilities"
    return "not shown"
