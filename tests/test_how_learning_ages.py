"""The experiment of how learning ages: whose text of which year teaches, tunes and judges, and what its table says."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import REPOSITORY

sys.path.append(str(REPOSITORY / "benchmarks/utility"))

from how_learning_ages import JUDGED, CellOfYear, table

from tacit.evaluation.comparison_models import FREE


@pytest.fixture
def clients(tmp_path: Path) -> str:
    """Three authors, each with a text of every year from 2015 on; and one without times."""
    years = [(name, year) for name in "abc" for year in range(2015, 2027)]
    times = [int(datetime(year, 12, 31, 23, 59, tzinfo=UTC).timestamp()) for _, year in years]
    text = {"client_id": [n for n, _ in years] + ["d"], "text": [str(y) for _, y in years] + ["?"]}
    for split in ("train", "validation", "test"):
        pq.write_table(
            pa.table({**text, "timestamp": pa.array([*times, None], pa.int64())}), tmp_path / f"x.{split}.parquet"
        )
    return str(tmp_path / "x")


def test_text_of_the_year_teaches_and_tunes_and_later_text_judges(clients: str, tmp_path: Path) -> None:
    cell = CellOfYear(2, 1, tmp_path, 2019)
    taught, tuned, judged = (cell.text(clients, split) for split in ("train", "validation", "test"))
    assert set(taught["text"].to_pylist()) == set(tuned["text"].to_pylist()) == {"2019"}
    assert len(set(taught["client_id"].to_pylist())) == 2 and len(set(tuned["client_id"].to_pylist())) == 3
    assert set(judged["text"].to_pylist()) == {"2025", "2026"} and JUDGED == 2025
    assert judged.equals(CellOfYear(2, 3, tmp_path, 2013).text(clients, "test")), "the same judge all years"


def test_a_table_is_of_what_is_remembered(tmp_path: Path) -> None:
    rows = [
        ("x 2013", FREE, 1, {"top3": 0.2}),
        ("x 2025", FREE, 1, {"top3": 0.2}),
        ("x 2025", "counts 1", None, {"top3_less_free": [0.02, 0.01, 0.03]}),
        (
            "x 2013",
            "counts 1",
            None,
            {"top3_less_free": [0.01, 0.0, 0.02], "top3_less_of_the_year": [0.01, 0.005, 0.015]},
        ),
        ("y 2013", "counts 1", None, {"top3_less_free": [1, 1, 1]}),
    ]
    keys, path = ("experiment", "arm", "seed", "facts"), tmp_path / "ages.jsonl"
    path.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows))
    assert table(path, "x").splitlines() == [
        "|  | 2013 | 2025 |",
        "|---|--:|--:|",
        f"| {FREE} | 20.00 | 20.00 |",
        "| counts 1 | +1.00 (+0.00 to +2.00) | +2.00 (+1.00 to +3.00) |",
    ]
    assert table(path, "x", "top3", "of_the_year").splitlines()[2:] == ["| counts 1 | +1.00 (+0.50 to +1.50) |"]
