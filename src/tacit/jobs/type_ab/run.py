"""Every user's typing on A and on B, kept line by line in a run folder, and what is released and reported of it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.errors import RunError
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.histograms import Histogram
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.type_ab.measures import Tally
from tacit.evaluation.type_ab.release import histograms_about, queries_about
from tacit.evaluation.type_ab.replay import Both
from tacit.evaluation.type_ab.settings import Variant, variants
from tacit.federation.collector import Collector
from tacit.files import PathLike
from tacit.jobs.analytics_run import AnalyticsRun, Ask, carry_out
from tacit.jobs.count_steps import Lines, simulated
from tacit.jobs.type_ab.record import Typed, about, exact_record, released_record
from tacit.jobs.type_ab.setup import TypingTest, model_record
from tacit.jobs.type_ab.workers import Typing, typing_workers
from tacit.progress import DECODER, Advanced, Progress, StageBegan, StageEnded
from tacit.reports.page import ReportFiles
from tacit.runs import Run
from tacit.runs.metadata import TypingMetadata

T = TypeVar("T")
TALLIES = Path("simulation") / "tallies.jsonl"
VARIED = Path("simulation") / "sensitivity.jsonl"
READY = "getting the keyboards ready"
TYPING, VARYING = "typing", "typing with each parameter changed"  # stages: a step a user, a step a variant


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a simulation knows: what its users did, and did again with the typist changed."""

    typed: Typed
    varied: Mapping[Variant, Typed]


@dataclass(frozen=True, kw_only=True)
class TypingRun(AnalyticsRun[Known, Mapping[str, Histogram]]):
    """What is typed, opened: two keyboards, whose text, and the price of a release."""

    metadata = TypingMetadata
    test: TypingTest
    release: ReleaseCost | None
    seed: int  # of users and their slips

    @property
    def varied(self) -> list[Variant]:
        """Typists with one parameter changed; none where no user types again."""
        return list(variants(self.test.settings.typist)) if self.test.settings.sensitivity else []

    @property
    def lines(self) -> tuple[Path, ...]:
        """See AnalyticsRun."""
        return (TALLIES, VARIED) if self.varied else (TALLIES,)

    @property
    def count(self) -> int:
        """See AnalyticsRun."""
        return len(self.test.typed.users)

    def settings_record(self, seed: int | None) -> dict[str, Any]:
        """See AnalyticsRun."""
        test = self.test
        plain = test.settings.to_plain()
        return {
            "models": [model_record(test.a.model), model_record(test.b.model)],
            **plain,
            "data": {"split": plain["share"]["split"]},
            "typed_sha256": test.typed.sha256,
            **({} if test.search is None else {"searched_with": model_record(test.search)}),
            **({} if test.more is None else {"more_words_sha256": test.more.sha256}),
            **({} if self.release is None else {"release": self.release.to_plain()}),
            "seed": self.seed,
            **({} if seed is None else {"noise_seed": seed}),
        }

    def about_clients(self) -> dict[str, Any]:
        """See AnalyticsRun."""
        return {"source": self.test.typed.description, "data": self.test.place}

    def every_client(self, run: Run, hardware: Hardware, progress: Progress) -> Known:
        """See AnalyticsRun."""
        progress(StageBegan(READY, opening=DECODER))
        with typing_workers(self.test, self.seed, hardware) as typing:
            progress(StageEnded(READY))
            typed = _every_user(self.test, run, typing, progress)
            varied = _every_variant(self.test, run, self.varied, typing, progress) if self.varied else {}
        return Known(typed=typed, varied=varied)

    def simulated(self, run: Run, known: Known) -> Collector:
        """See AnalyticsRun."""
        assert self.release is not None  # or nobody would be asked
        queries = queries_about(known.typed.a, known.typed.b)
        numbers: NDArray[np.int64] = np.array([user.number for user in self.test.typed.users], np.int64)
        return simulated(run, self.release, lambda task: queries, lambda task: numbers)

    def answers(self, ask: Ask) -> Mapping[str, Histogram]:
        """See AnalyticsRun."""
        assert self.release is not None  # or nobody would be asked
        return ask(
            CountQuestion(
                step=0,
                steps=1,
                devices=self.count,
                histograms=histograms_about(),
                computation=None,
                local_epsilon=self.release.local_epsilon,
            )
        )

    def record(
        self, promise: Mapping[str, Any], known: Known | None, released: Mapping[str, Histogram] | None
    ) -> dict[str, Any]:
        """See AnalyticsRun."""
        assert known is not None  # users are simulated
        return {
            **about(self.test, self.seed),
            "promise": promise,
            "released": None if released is None else released_record(released),
            "simulation_only": exact_record(self.test, known.typed, known.varied),
        }


def typed_both(
    test: TypingTest,
    cost: ReleaseCost | None,
    out: Path,
    *,
    population: PathLike | None,
    seed: int,
    noise_seed: int | None,
    hardware: Hardware,
    progress: Progress,
) -> tuple[dict[str, Any], ReportFiles]:
    """See `tacit.type_ab`: the record of the report, and where it was written."""
    release = None if cost is None else cost.asking(len(test.typed.users))
    found = carry_out(
        TypingRun(test=test, release=release, seed=seed),
        out,
        population=population,
        seed=noise_seed,
        collector=None,
        hardware=hardware,
        progress=progress,
    )
    return found.record, found.report


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
        own = {} if both.opened is None else {"own_model": both.opened}
        lines.append([{"user": user.number, "a": both.a._asdict(), "b": both.b._asdict(), **own}])
        done[user.number] = both
        progress(Advanced(TYPING, len(done)))
    progress(StageEnded(TYPING))
    pairs = [done[user.number] for user in users]
    opened = tuple(each.opened for each in pairs if each.opened is not None)
    return Typed(a=tuple(each.a for each in pairs), b=tuple(each.b for each in pairs), opened=opened)


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
        done[name] = Typed(a=tuple(each.a for each in pairs), b=tuple(each.b for each in pairs))
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


def typed_once(row: dict[str, Any]) -> tuple[int, Both]:
    """A user's number, and what it did on A and on B."""
    number, a, b = int(row["user"]), _tally(row["a"]), _tally(row["b"])
    opened = row.get("own_model")
    if opened is not None and not isinstance(opened, bool):
        raise ValueError("whether its model was its user's own is neither true nor false")
    return number, Both(a, b, opened)


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
