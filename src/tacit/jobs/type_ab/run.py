"""Every user's typing on A and on B, kept line by line in a run folder, and what is released and reported of it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tomli_w
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.errors import RunError
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.settings import ReleasePrice
from tacit.evaluation.type_ab.measures import Tally
from tacit.evaluation.type_ab.release import queries_about
from tacit.evaluation.type_ab.settings import Variant, variants
from tacit.files import PathLike
from tacit.jobs.account import budget
from tacit.jobs.count_steps import Lines, delta_of, planned_cost, released_step, simulated, statement_file
from tacit.jobs.run_start import begin, key_for, of_this_process
from tacit.jobs.type_ab.record import Typed, about, exact_record, released_record
from tacit.jobs.type_ab.setup import TypingTest, asked_of
from tacit.jobs.type_ab.workers import Typing, typing_workers
from tacit.progress import DECODER, Advanced, Progress, StageBegan, StageEnded
from tacit.reports import type_ab as report
from tacit.reports.page import FOR_READERS, ReportFiles, write_both
from tacit.runs import Run
from tacit.runs.metadata import TypingMetadata
from tacit.statements.count import promise_of

T = TypeVar("T")
TALLIES = Path("simulation") / "tallies.jsonl"
VARIED = Path("simulation") / "sensitivity.jsonl"
READY = "getting the keyboards ready"
TYPING, VARYING = "typing", "typing with each parameter changed"  # stages: a step a user, a step a variant


def typed_both(
    test: TypingTest,
    price: ReleasePrice | None,
    out: Path,
    *,
    population: PathLike | None,
    seed: int,
    noise_seed: int | None,
    hardware: Hardware,
    progress: Progress,
) -> tuple[dict[str, Any], ReportFiles]:
    """See `tacit.type_ab`: the record of the report, and where it was written."""
    release = None if price is None else price.asking(len(test.typed.users))
    varied = list(variants(test.settings.typist)) if test.settings.sensitivity else []
    with _begin(test, release, out, population, seed, noise_seed) as run, run.locked():
        if run.finished:
            for place in (str(TALLIES), *([str(VARIED)] if varied else [])):
                run.kept(place)
        progress(StageBegan(READY, opening=DECODER))
        with typing_workers(test, seed, hardware) as typing:
            progress(StageEnded(READY))
            typed = _every_user(test, run, typing, progress)
            changed = _every_variant(test, run, varied, typing, progress) if varied else {}
        record, files = _release_and_report(test, run, release, typed, changed, seed)
        run.keep_files(*FOR_READERS)
        run.finish()
        run.tidy()
    return record, files


def _begin(
    test: TypingTest,
    release: ReleasePrice | None,
    out: Path,
    population: PathLike | None,
    seed: int,
    noise_seed: int | None,
) -> Run:
    """A new run folder, or the one at `out`; RunError where that was begun with other settings."""
    plain = test.settings.to_plain()
    settings = {
        "models": [asked_of(test.a.model), asked_of(test.b.model)],
        **plain,
        "data": {"split": plain["share"]["split"]},
        "typed_sha256": test.typed.sha256,
        **({} if test.search is None else {"searched_with": asked_of(test.search)}),
        **({} if test.more is None else {"more_words_sha256": test.more.sha256}),
        **({} if release is None else {"release": release.to_plain()}),
        "seed": seed,
        **({} if noise_seed is None else {"noise_seed": noise_seed}),
    }
    metadata = TypingMetadata(
        **of_this_process(noise_seed),
        source=test.typed.description,
        asked=len(test.typed.users),
        delta=delta_of(release),
        data=test.place,
    )
    taken = budget.Asked.of(population, len(test.typed.users), planned_cost(release))
    return begin(out, tomli_w.dumps(settings), metadata, key_for(noise_seed), asked=taken)


# -- typing ------------------------------------------------------------------------------------------------------------


def _every_user(test: TypingTest, run: Run, typing: Typing, progress: Progress) -> Typed:
    """Both keyboards under every user; each is on disk as soon as it is done. Hold the run's lock."""
    lines = Lines(run.path / TALLIES)
    lines.drop_torn_line()
    done = dict(read(lines, typed_once))
    users = test.typed.users
    progress(StageBegan(TYPING, len(users), len(done)))
    left = [user for user in users if user.number not in done]
    for user, both in zip(left, typing((test.settings.typist, user) for user in left), strict=True):
        lines.append([{"user": user.number, "a": both[0]._asdict(), "b": both[1]._asdict()}])
        done[user.number] = both
        progress(Advanced(TYPING, len(done)))
    progress(StageEnded(TYPING))
    pairs = [done[user.number] for user in users]
    return Typed(a=tuple(a for a, _ in pairs), b=tuple(b for _, b in pairs))


def _every_variant(
    test: TypingTest, run: Run, varied: Sequence[Variant], typing: Typing, progress: Progress
) -> dict[Variant, Typed]:
    """The first users type again, with one parameter of the typist changed at a time. Hold the run's lock."""
    lines = Lines(run.path / VARIED)
    lines.drop_torn_line()
    done = dict(read(lines, typed_again))
    few = test.typed.users[: test.settings.sensitivity]
    progress(StageBegan(VARYING, len(varied), len(done)))
    for each in varied:
        name = (each.parameter, each.factor)
        if name in done:
            continue
        pairs = list(typing((each.typist, user) for user in few))
        done[name] = Typed(a=tuple(a for a, _ in pairs), b=tuple(b for _, b in pairs))
        tallies = {of: [tally._asdict() for tally in getattr(done[name], of)] for of in ("a", "b")}
        lines.append([{"parameter": each.parameter, "factor": each.factor, **tallies}])
        progress(Advanced(VARYING, len(done)))
    progress(StageEnded(VARYING))
    return {each: done[each.parameter, each.factor] for each in varied}


def read(lines: Lines, entry: Callable[[dict[str, Any]], T]) -> Iterator[T]:
    """What each line says. Raises: RunError where one does not say it."""
    for number, row in enumerate(lines.rows(), start=1):
        try:
            yield entry(row)
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"line {number} of '{lines.path}' is not what this version writes there ({error}); remove it to "
                "compute it again."
            ) from error


def typed_once(row: dict[str, Any]) -> tuple[int, tuple[Tally, Tally]]:
    """A user's number, and what it did on A and on B."""
    return int(row["user"]), (_tally(row["a"]), _tally(row["b"]))


def typed_again(row: dict[str, Any]) -> tuple[tuple[str, float], Typed]:
    """A parameter and its factor, and what the users did then."""
    a, b = (tuple(map(_tally, row[side])) for side in ("a", "b"))
    return (row["parameter"], row["factor"]), Typed(a=a, b=b)


def _tally(row: dict[str, Any]) -> Tally:
    if not isinstance(row, dict) or row.keys() != set(Tally._fields):
        raise ValueError("its counts are others")
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in row.values()):
        raise ValueError("a count is no number")
    return Tally(**row)


# -- releases ----------------------------------------------------------------------------------------------------------


def _release_and_report(
    test: TypingTest,
    run: Run,
    price: ReleasePrice | None,
    typed: Typed,
    varied: Mapping[Variant, Typed],
    seed: int,
) -> tuple[dict[str, Any], ReportFiles]:
    """Release at the price what is not released yet, and write the pages of both; the record of them.

    Hold the run's lock.
    """
    released = None
    if price is not None:
        budget.confirm(run)
        numbers: NDArray[np.int64] = np.array([user.number for user in test.typed.users], np.int64)
        queries = queries_about(typed.a, typed.b)
        task = CountQuestion(
            step=0,
            steps=1,
            devices=len(numbers),
            histograms={each.name: each.cells for each in queries},
            asks=None,
            local_epsilon=price.local_epsilon,
        )
        released = released_step(run, price, task, simulated(run, price, lambda task: queries, lambda task: numbers))
        budget.settle(run)
    record = {
        "run": str(run.path),
        **about(test, seed),
        "promise": promise_of(run),
        "released": None if released is None else released_record(released),
        "simulation_only": exact_record(test, typed, varied),
    }
    published, whole = report.pages(record)
    return record, write_both(run.path, published=published, whole=whole, files=statement_file(run))
