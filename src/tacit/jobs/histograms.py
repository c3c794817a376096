"""The run folder of an evaluation on devices, resumable at every line.

    RUN/settings.toml                   what was asked
    RUN/simulation/*.jsonl              each device's report, EXACT: only a simulation has it, without any promise
    RUN/steps/release-000000.json       the noised histograms of a step, and in run.db the ledger row that names them
    RUN/report/                         for people; what of it may be published is in files called released

A killed process leaves whole lines, and at most one torn one that is computed again. The noise of a step follows from
the run's key, so a step that is done again before its row is committed gives the same release.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import RunError
from tacit.evaluation.histograms import Histogram
from tacit.evaluation.release import HistogramQuery, cells_of, guarantee_for, release, release_locally
from tacit.files import write_whole
from tacit.jobs.evaluation_promise import Promise
from tacit.keyboard.model_folder import WEIGHTS
from tacit.mechanisms import standard_normal_seeds
from tacit.mechanisms.seeds import SeedSource
from tacit.randomizers import SubsetSelection
from tacit.records import to_plain
from tacit.runs import Run, Step
from tacit.statements.ledger import Release

CENTRAL, LOCAL = "evaluation histogram", "local reports"  # what randomness of the noise key is drawn for


def weights_digest(model: Path) -> str:
    """SHA-256 of the weights of a finished run or of a model folder."""
    inside = model / "model" / WEIGHTS
    return hashlib.sha256((inside if inside.is_file() else model / WEIGHTS).read_bytes()).hexdigest()


# -- lines -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lines:
    """A file of JSON lines that only grows; each line is whole or computed again."""

    path: Path

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each line, none of a file that is not there. Raises: RunError for a damaged one."""
        if self.path.exists():
            for number, line in enumerate(self.path.read_bytes().splitlines(), start=1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise RunError(
                        f"line {number} of '{self.path}' is damaged ({error}); remove it to compute it again."
                    ) from error

    def drop_torn_line(self) -> None:
        """Remove what a killed process wrote after its last whole line."""
        if self.path.exists():
            content = self.path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if whole != content:
                write_whole(self.path, whole)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows; they are on disk when this returns."""
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("ab") as file:
            file.write(b"".join((json.dumps(row) + "\n").encode() for row in rows))
            file.flush()
            os.fsync(file.fileno())


# -- releases ----------------------------------------------------------------------------------------------------------


def released_step(
    run: Run,
    promise: Promise,
    queries: Sequence[HistogramQuery],
    *,
    step: int,
    steps: int,
    clients: NDArray[np.int64],
) -> Mapping[str, Histogram]:
    """The step's release: the one on disk, or a new one, on disk before its ledger row is.

    clients: numbers of those asked in this step. Hold the run's lock while the run is not finished. Raises: RunError
    where what is on disk is not what was released.
    """
    path = run.path / "steps" / f"release-{step:06d}.json"
    done = run.steps()
    if step < len(done):
        return _read_release(path, {each.name: each for each in queries}, done[step].digest)
    histograms, releases = _release(run, promise, queries, step, steps)
    content = _release_file(histograms)
    write_whole(path, content)
    digest = hashlib.sha256(content).hexdigest()
    run.commit(Step(step=step, file=path.name, digest=digest, releases=to_plain(releases)), clients=np.sort(clients))
    return histograms


def _release(
    run: Run, promise: Promise, queries: Sequence[HistogramQuery], step: int, steps: int
) -> tuple[dict[str, Histogram], tuple[Release, ...]]:
    """The histograms of a step and its rows of the ledger: functions of the run's key, the step and the answers."""
    if promise.kind == "local":
        return release_locally(
            queries,
            lambda cells: SubsetSelection(domain=cells, epsilon=promise.epsilon),
            step=step,
            first_user=len(run.participations()[0]),
            generator=SeedSource(run.noise_key, LOCAL, step).block(0),
        )
    guarantee = guarantee_for(len(queries), zcdp=promise.zcdp, steps=steps)
    seeds = standard_normal_seeds(run.noise_key, CENTRAL, step, 1, cells_of(queries))[0]
    histograms, row = release(queries, guarantee, step=step, seeds=seeds)
    return histograms, (row,)


def _release_file(histograms: Mapping[str, Histogram]) -> bytes:
    rows = {
        name: {
            "counts": [*each.counts.ravel().tolist(), each.silent],
            "variance": [*each.variance.ravel().tolist(), each.silent_variance],
            "asked": each.asked,
        }
        for name, each in histograms.items()
    }
    return json.dumps(rows).encode()


def _read_release(path: Path, queries: Mapping[str, HistogramQuery], digest: str) -> dict[str, Histogram]:
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise RunError(
                f"'{path}' is not what was released (its SHA-256 is not {digest[:16]}..., which the run recorded); "
                "restore it."
            )
        rows = json.loads(content)
        return {
            name: Histogram.of(each.cells, rows[name]["counts"], rows[name]["variance"], rows[name]["asked"])
            for name, each in queries.items()
        }
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"'{path}' does not hold what the ledger says was released ({error}); restore it.") from error
