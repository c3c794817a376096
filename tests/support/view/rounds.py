"""One more round of a run, as whoever trains it commits one: also `python -m tests.support.view.rounds RUN`."""

import sys
import time
from pathlib import Path

import numpy as np
from tests.support.made_runs import release

from tacit.privacy import Tree
from tacit.privacy.strategy import Strategy
from tacit.records import to_plain
from tacit.runs import Run, StepEntry


def a_round(path: Path, strategy: Strategy | None = None) -> float:
    """When it was committed, by `time.perf_counter`. strategy: of the run; left out, the tree."""
    with Run.open(path) as run, run.locked():
        at = run.steps_done
        row = StepEntry(
            step=at,
            file=f"round-{at}",
            digest="0" * 64,
            measures={"loss": 5.0, "clipped": 0.5},
            releases=(to_plain(release(at, strategy or Tree(), 6.0)),),
        )
        run.commit(row, clients=np.arange(4) + 4 * (at % 5), finished=1.79e9 + at, seconds=0.5)
        return time.perf_counter()


if __name__ == "__main__":
    a_round(Path(sys.argv[1]))
