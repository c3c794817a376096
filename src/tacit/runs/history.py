"""What a run measured round by round, as columns for whoever draws or computes with them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.extras import of_extra
from tacit.runs.folder import Run

Column = NDArray[Any]


class History(Mapping[str, Column]):
    """Columns of equal length by name; what was not measured in a row is nan."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        rows = len(next(iter(self._columns.values()), ()))
        return f"History({rows} rows: {', '.join(self)})"

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. Raises: InputError where pandas is not installed."""
        return of_extra("pandas").DataFrame(self._columns)

    def to_arrow(self) -> Any:
        """A pyarrow.Table."""
        import pyarrow

        return pyarrow.table(self._columns)


def history_of(run: Run) -> History:
    """Of a training run, a row after each number of rounds done, 0 (the initial model) included.

    `rounds`; `seconds`, and what was kept of the round before it (`loss`, `clipped`, `clip_norm`, ...); metrics as
    `validation_top1_accuracy`.
    """
    rows = run.steps()
    columns: dict[str, Column] = {"rounds": np.arange(len(rows) + 1)}

    def put(name: str, rounds: int, value: float) -> None:
        if name not in columns:
            columns[name] = np.full(len(rows) + 1, np.nan)
        if rounds <= len(rows):
            columns[name][rounds] = value

    for round, _, seconds in run.times():
        put("seconds", round + 1, seconds)
    for row in rows:
        for name, value in row.measures.items():
            put(name, row.step + 1, value)
    for metric in run.metrics():
        put(f"{metric.split}_{metric.name}", metric.step, metric.value)
    return History(columns)
