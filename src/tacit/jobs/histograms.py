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
from tacit.evaluation.release import Question, guarantee_for, release, release_locally
from tacit.files import write_whole
from tacit.jobs.evaluation_promise import Promise
from tacit.keyboard.model_folder import WEIGHTS
from tacit.randomizers import SubsetSelection
from tacit.records import to_plain
from tacit.runs import Run, Step
from tacit.training import generator_for

LOCAL = "released_locally"  # the note that has the digests of releases which no ledger row names


def weights_digest(model: Path) -> str:
    """SHA-256 of the weights of a finished run or of a model folder."""
    inside = model / "model" / WEIGHTS
    return hashlib.sha256((inside if inside.is_file() else model / WEIGHTS).read_bytes()).hexdigest()


# -- the folder --------------------------------------------------------------------------------------------------------


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
    questions: Sequence[Question],
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
    digest = _digest_of(run, step, path.name)
    if digest is not None:
        return _read_release(path, {each.name: each for each in questions}, digest)
    generator = generator_for(run.noise_key, "evaluation histogram", step)
    if promise.kind == "local":
        histograms = release_locally(
            questions, lambda cells: SubsetSelection(domain=cells, epsilon=promise.epsilon), generator=generator
        )
        content = _release_file(histograms)
        write_whole(path, content)
        run.note(LOCAL, {**run.notes.get(LOCAL, {}), path.name: hashlib.sha256(content).hexdigest()})
        return histograms
    guarantee = guarantee_for(len(questions), zcdp=promise.zcdp, steps=steps)
    histograms, row = release(questions, guarantee, step=step, generator=generator)
    content = _release_file(histograms)
    write_whole(path, content)
    done = Step(step=step, file=path.name, digest=hashlib.sha256(content).hexdigest(), releases=(to_plain(row),))
    run.commit(done, clients=np.sort(clients))
    return histograms


def _digest_of(run: Run, step: int, name: str) -> str | None:
    """SHA-256 of the file that the step released; None where it has released nothing yet."""
    done = {row.step: row.digest for row in run.steps()}
    locally: Mapping[str, str] = run.notes.get(LOCAL, {})
    return done.get(step, locally.get(name))


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


def _read_release(path: Path, questions: Mapping[str, Question], digest: str) -> dict[str, Histogram]:
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
            for name, each in questions.items()
        }
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"'{path}' does not hold what the ledger says was released ({error}); restore it.") from error
