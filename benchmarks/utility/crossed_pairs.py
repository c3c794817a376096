"""Pairs of trainings, seed by seed, judged by the same test clients: how far they are apart, over seeds and clients.

Both vary: another seed trains another model, other clients judge it otherwise. Intervals are of both, crossed
(`tacit.evaluation.crossed`). The p value of a difference is that of the widest such interval without zero in it. A
table has Holm's, for all that it compares.

An experiment reads its finished run folders here, remembers the differences, and its page has their table:

    <!-- remembered: crossed_pairs.table mechanisms.jsonl EXPERIMENT -->
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from many_comparisons import holm, in_digits
from numpy.typing import NDArray
from remembered_rows import interval, markdown, measure_of, remember_row, remembered_rows
from scipy.optimize import brentq

from tacit.evaluation.crossed import ENOUGH, crossed_interval

MEASURES = {
    "top1": "top1_accuracy",
    "top3": "top3_accuracy",
    "nats": "cross_entropy",
}  # a fact, and what records call it
LEAST = 1e-12  # p values below are not told apart

Table = NDArray[np.float64]  # (seeds, clients)


class Apart(NamedTuple):
    """A difference, its 95% interval over seeds and clients, and how likely chance alone is so far from nothing."""

    value: float
    low: float
    high: float
    p_value: float


def tested(folder: Path, measure: str) -> tuple[Table, Table]:
    """(sums of a measure, words) of each test client (clients,) of a finished run of one seed."""
    said = json.loads((folder / "simulation" / "record.json").read_text(encoding="utf-8"))["tested"]
    return np.array(said["sums"]["model"][MEASURES[measure]], np.float64), np.array(said["predicted"], np.float64)


def apart(these: Sequence[Path], those: Sequence[Path], measure: str) -> Apart:
    """These runs less those, folder by folder: each pair is of one seed.

    Raises: ValueError where two runs were not judged by the same words of the same clients.
    """
    one, other = ([tested(folder, measure) for folder in folders] for folders in (these, those))
    words = one[0][1]
    for folder, (_, own) in zip([*these, *those], [*one, *other], strict=True):
        if not np.array_equal(own, words):
            raise ValueError(f"'{folder}' was judged by other words than '{these[0]}'; compare runs of one recipe.")
    differences = np.array([first - second for (first, _), (second, _) in zip(one, other, strict=True)])
    return crossed(differences, words)


def crossed(differences: Table, words: Table) -> Apart:
    """Of (seeds, clients) sums of differences and (clients,) words. Raises: ValueError for fewer than ENOUGH seeds."""
    if len(differences) < ENOUGH:
        raise ValueError(f"{len(differences)} seeds say nothing of other seeds; play at least {ENOUGH}.")
    value, low, high = crossed_interval(differences, words).interval

    def misses(p_value: float) -> float:
        """By how much the interval of 1 - p misses zero; below nothing where it does not."""
        _, low, high = crossed_interval(differences, words, confidence=1 - p_value).interval
        return max(low, -high)

    if misses(1 - LEAST) <= 0:
        return Apart(value, low, high, 1.0)
    if misses(LEAST) >= 0:
        return Apart(value, low, high, LEAST)
    return Apart(value, low, high, float(brentq(misses, LEAST, 1 - LEAST, xtol=LEAST)))


def remember_pair(
    file: str, experiment: str, named: str, these: Sequence[Path], those: Sequence[Path], measures: Sequence[str]
) -> None:
    """A row of the differences of two arms, over as many seeds as there are folders."""
    facts: dict[str, float | str | Sequence[float]] = {"seeds": len(these)}
    for measure in measures:
        *found, p_value = apart(these, those, measure)
        facts |= {measure: found, f"p_{measure}": p_value}
    remember_row(file, experiment, named, None, facts)


def table(path: Path, experiment: str) -> str:
    """Markdown: a line a pair; p values are Holm's for all that the table compares."""
    rows = remembered_rows(path, experiment)
    measures = [name for name in MEASURES if name in rows[0].facts]
    p_values = iter(holm([float(str(row.facts[f"p_{measure}"])) for row in rows for measure in measures]))
    among = f"p among {len(rows) * len(measures)}"
    units = [measure_of(measure).title + ("" if measure == "nats" else ", points") for measure in measures]
    lines = [["", "seeds", *(head for unit in units for head in (unit, among))]]
    for row in rows:
        cells = [row.arm, f"{row.facts['seeds']:g}"]
        for measure in measures:
            difference = row.facts[measure]
            assert isinstance(difference, list), measure
            cells += [interval(measure, difference), in_digits(next(p_values))]
        lines.append(cells)
    return markdown(lines, numbers=len(lines[0]) - 1)
