"""The experiment of how many people: who is drawn, what an arm is where tacit refuses, and what its table says."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.conftest import REPOSITORY

sys.path.append(str(REPOSITORY / "benchmarks/utility"))

from from_how_many_people import (
    FREE,
    PUBLIC_NETWORK,
    SUMS,
    drawn,
    forecasts,
    less,
    rows_of,
    rung_of,
    table,
    values,
)

from tacit.evaluation.ladder import Ladder

TEXT = pa.table({"client_id": [f"c{n}" for n in range(20) for _ in range(3)], "text": [str(n) for n in range(60)]})


def authors(text: pa.Table) -> set[str]:
    return set(text["client_id"].to_pylist())


def test_people_are_drawn_whole_and_each_once() -> None:
    found = drawn(TEXT, 7, 1)
    assert len(authors(found)) == 7 and found.num_rows == 21
    assert authors(found) != authors(drawn(TEXT, 7, 2))
    assert drawn(TEXT, 7, 1).equals(found)
    assert authors(found) < authors(drawn(TEXT, 12, 1)), "more people are those and others"
    assert drawn(TEXT, 100, 3).num_rows == TEXT.num_rows


def test_what_is_served_where_tacit_refuses_is_free() -> None:
    rungs = dict.fromkeys(("network 8", "network 8 + public n-gram", "counts 1"))
    found = Ladder(rungs=rungs, weights={}, validation={}, parts={})  # type: ignore[arg-type]
    assert rung_of("counts 1", found) == "counts 1" and rung_of("counts 2", found) == FREE
    assert rung_of("rounds 8", found) == "network 8 + public n-gram" and rung_of("rounds 1", found) == FREE
    assert rung_of("network 8", found) == "network 8" and rung_of("network 1", found) == PUBLIC_NETWORK


def test_accuracies_are_of_all_typed_words_and_nats_of_known_ones() -> None:
    rows = np.array([[10.0, 8.0, 1.0, 3.0, 40.0], [30.0, 12.0, 4.0, 7.0, 20.0]])
    assert SUMS == ("words", "predicted", "top1", "top3", "nats")
    assert values(rows) == {"top3": 10 / 40, "top1": 5 / 40, "nats": 60 / 20}


def test_a_gain_covers_other_people_and_other_seeds() -> None:
    random = np.random.default_rng(1)
    free = random.integers(5, 20, (3, 50, 5)).astype(float)
    free[:, :, :2] = 100
    ours = free.copy()
    ours[:, :, 3] += 1 + np.array([0.0, 3.0, 6.0])[:, None]  # of three seeds
    value, low, high = less(ours, free)["top3_less_free"]
    assert value == pytest.approx(0.04) and low < 0 < high, "three seeds so far apart tell nothing"
    ours[:, :, 3] = free[:, :, 3] + 4
    value, low, high = less(ours, free)["top3_less_free"]
    assert value == pytest.approx(0.04) and 0.03 < low <= high < 0.05


def test_tables_are_of_what_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    gained = {"top3_less_free": [0.0123, 0.01, 0.0146]}
    foreseen = {"prospect": "works", "foreseen": [0.001, 0.02, 0.3], "came": [0.025, 0.01, 0.04]}
    rows = [
        ("x 5000", FREE, 1, {"top3": 0.2}),
        ("x 500", FREE, 1, {"top3": 0.2}),
        ("x 500", "counts 1", None, gained),
        ("x 500 foreseen", "network 8", None, foreseen),
        ("x 500 foreseen", "network 1", None, {"prospect": "no noise", "came": [0.0, -0.01, 0.01]}),
        ("y 500", "counts 1", None, {"top3_less_free": [1, 1, 1]}),
    ]
    keys = ("experiment", "arm", "seed", "facts")
    path.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows))
    assert list(rows_of(path, "x")) == [500, 5000]
    assert table(path, "x").splitlines() == [
        "|  | 500 people | 5,000 people |",
        "|---|--:|--:|",
        f"| {FREE} | 20.00 | 20.00 |",
        "| counts 1 | +1.23 (+1.00 to +1.46) |  |",
    ]
    assert forecasts(path, "x").splitlines()[2:] == [
        "| 500 | 1 | no noise | - | - | - | +0.0% (-1.0 to +1.0) |",
        "| 500 | 8 | works | +0.1% | +2.0% | +30.0% | +2.5% (+1.0 to +4.0) |",
    ]
