"""What each part of a predictor adds on held-out clients: arm after arm, each against the one before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tacit.evaluation.accuracy import Evaluation
from tacit.evaluation.type_ab.measures import Measure
from tacit.evaluation.type_ab.paired_bootstrap import changes_of
from tacit.evaluation.verdict import NATS, SHOWN, Change, Verdict, verdict_of


class Row(NamedTuple):
    """Sums over the words of one client."""

    predicted: float
    top1_accuracy: float
    top3_accuracy: float
    cross_entropy: float


MEASURES = {
    name: Measure(name, "predicted", "less" if name == NATS else "more", name, "paper 1", unit="") for name in SHOWN
}


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One predictor: its means over known words, and what it adds to another."""

    name: str
    values: Mapping[str, float]  # of SHOWN
    change: Change | None  # from the other
    verdict: Verdict | None  # None where it is the first


def arms_of(evaluations: Mapping[str, Evaluation]) -> tuple[Arm, ...]:
    """Each predictor against the one before it; of three or more also the last against the first, named "all".

    evaluations: of the same clients. A mean is over all known words of all clients. Intervals are of the paired
    bootstrap over clients. Raises: InputError for fewer than two clients.
    """
    rows = {name: _rows(each) for name, each in evaluations.items()}
    names = list(rows)
    arms = [Arm(name=names[0], values=_values(rows[names[0]]), change=None, verdict=None)]
    arms += [_against(name, rows[before], rows[name]) for before, name in pairwise(names)]
    return (*arms, _against("all", rows[names[0]], rows[names[-1]])) if len(names) > 2 else tuple(arms)


def _rows(evaluation: Evaluation) -> list[Row]:
    return [Row(each.predicted, *(float(each.sums.get(name, 0)) for name in SHOWN)) for each in evaluation.clients]


def _values(rows: Sequence[Row]) -> dict[str, float]:
    predicted = sum(each.predicted for each in rows)
    return {
        name: sum(getattr(each, name) for each in rows) / predicted if predicted else float("nan") for name in SHOWN
    }


def _against(name: str, before: Sequence[Row], rows: Sequence[Row]) -> Arm:
    found = {each: change.difference for each, change in changes_of(before, rows, measures=MEASURES).items()}
    change: Change = {each: (one.value, one.low, one.high) for each, one in found.items()}
    return Arm(name=name, values=_values(rows), change=change, verdict=verdict_of(change))
