"""Tables of the experiments on best models and on phrases over rounds: they are of what is remembered."""

import json
import sys
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY

sys.path.append(str(REPOSITORY / "benchmarks/utility"))
sys.path.append(str(REPOSITORY / "benchmarks/keyboard"))

import best_models
import compose_over_rounds
from from_how_many_people import WEIGHTS, weights

from tacit.evaluation.comparison_models import FREE


def remembered(path: Path, rows: list[tuple[str, str, int | None, dict[str, object]]]) -> Path:
    keys = ("experiment", "arm", "seed", "facts")
    path.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows))
    return path


def test_a_model_stands_beside_what_is_free(tmp_path: Path) -> None:
    level, gain = {"top3": 0.2, "top1": 0.1, "nats": 5.0}, {"top3_less_free": [0.02, 0.01, 0.03]}
    more = {**gain, "top1_less_free": [0.01, 0.0, 0.02], "nats_less_free": [-0.1, -0.2, -0.05]}
    rows = [("x", FREE, 1, level), ("x", "pooled", 1, level), ("x", "pooled", None, more), ("y", "pooled", 1, level)]
    assert best_models.table(remembered(tmp_path / "best.jsonl", rows), "x").splitlines()[2:] == [
        f"| {FREE} | 20.00 |  | 10.00 |  | 5.000 |  |",
        "| pooled | 20.00 | +2.00 (+1.00 to +3.00) | 10.00 | +1.00 (+0.00 to +2.00)"
        " | 5.000 | -0.100 (-0.200 to -0.050) |",
    ]


def test_each_number_of_rounds_is_a_line(tmp_path: Path) -> None:
    start = {"top3": 0.2, "top1": 0.1, "nats": 5.0}
    facts = {f"{name}_less_start": [0.01, 0.0, 0.02] for name in start}
    facts |= {f"{name} changes": [0.05, 0.01, 0.09] for name in compose_over_rounds.TYPED}
    rows = [("x", "0", 1, start), ("x", "0", 2, start), ("x", "30", 1, start), ("x", "30", None, facts)]
    table = compose_over_rounds.table(remembered(tmp_path / "compose.jsonl", rows), "x").splitlines()
    assert table[2] == "| 0 | 20.00 | 10.00 | 5.000 |  |  |  |"
    assert table[3].startswith("| 30 | +1.00 (+0.00 to +2.00) | +1.00") and table[3].count("+5.0 (+1.0 to +9.0)") == 3


@pytest.mark.parametrize("best", ["0.4", "0.8"])
def test_a_weight_is_held_against_the_best(best: str, tmp_path: Path) -> None:
    tried = {f"{weight:g}": 0.2 for weight in WEIGHTS}
    rows = [
        ("far 500 weights", "beside counts", 1, tried),
        ("far 500 weights", "beside counts", 2, {**tried, best: 0.21}),
        ("far 500 weights", "beside n-grams", 2, {**tried, "0.3": 0.9}),
        ("far 500", "beside counts", 1, {}),
    ]
    (line,) = weights(remembered(tmp_path / "people.jsonl", rows), "beside counts", "far").splitlines()[2:]
    assert line.startswith("| far | 500 |") and line.count("-0.50") == len(WEIGHTS) - 1 and line.count(" 0.00 ") == 1
