"""From the settings of `tacit personalize` to what was found, resumable at every client (`evaluation_folder`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.accuracy import first_asked
from tacit.evaluation.deltas import Deltas, Summary, summarise
from tacit.evaluation.fairness import QUANTILES, shared_vocabulary
from tacit.evaluation.gate import Policy, PolicyOutcome, difference, judged
from tacit.evaluation.histograms import Histogram, mean_from, quantile_from, share_from
from tacit.evaluation.intervals import UNKNOWN, complement, mean_of, quantile_of, worst_share_of
from tacit.evaluation.personalization import (
    ClientOutcome,
    FineTuning,
    SkippedClient,
    TemporalSplit,
    personalize_clients,
)
from tacit.evaluation.queries import Answers, Queries
from tacit.evaluation.release import HistogramQuery, exactly
from tacit.jobs.begin import begin, key_for, of_this_process
from tacit.jobs.evaluation_promise import Promise, promise_of
from tacit.jobs.histograms import Lines, released_step, weights_digest
from tacit.keyboard.metrics import TOP1, changing
from tacit.keyboard.model_folder import load_model
from tacit.reports import personalization as report
from tacit.reports.page import ReportFiles, write
from tacit.reports.personalization import GAIN
from tacit.runs import Run
from tacit.runs.metadata import PersonalizationMetadata

FEWEST = 2  # clients of a group that have a spread, hence an interval
EXACT = (
    "SIMULATION ONLY: exact numbers of simulated users; no server would have them, and nothing is promised for them."
)
OUTCOMES = Path("simulation") / "outcomes.jsonl"


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """All that a run has found: exact numbers, and what was released of them, if anything."""

    asked: NDArray[np.int64]
    deltas: Deltas  # of the asked clients that could be measured, in the order of asking
    fresh: Deltas  # of these, the clients that no policy was designed on; all without a gate
    skipped: Mapping[str, int]
    undated: int  # sentences of the evaluated clients that are in no part because their time is unknown
    exact: Answers
    released: Answers | None


@dataclass(frozen=True, kw_only=True)
class Work:
    """One evaluation to be done: every setting that changes its result."""

    model: Path
    data: Path
    split_name: str
    clients: int  # asked at most; 0: all of the split
    strategies: tuple[FineTuning, ...]  # one or more, with the same stopping rule
    split: TemporalSplit
    queries: Queries
    harm_weight: float
    promise: Promise
    seed: int | None = None

    def to_toml(self, model_digest: str, data_digest: str) -> str:
        """The settings as the run folder keeps them; a resume compares them."""
        asked = self.queries
        return tomli_w.dumps(
            {
                "model": {"path": str(self.model.resolve()), "sha256": model_digest},
                "data": {"path": str(self.data.resolve()), "sha256": data_digest, "split": self.split_name},
                "clients": self.clients,
                "strategies": [str(each) for each in self.strategies],
                "stop": {"max_tokens": self.strategies[0].max_tokens, "epochs": self.strategies[0].epochs},
                "split": asdict(self.split),
                "gate": {"levels": list(asked.levels), "harm_weight": self.harm_weight},
                "histograms": {
                    "metrics": list(asked.metrics),
                    "slices": list(asked.slices),
                    "tokens": list(asked.tokens.cuts),
                    "baseline": list(asked.baseline.cuts),
                    "changes": {metric: list(asked.changes[metric].cuts) for metric in asked.metrics},
                },
                "promise": asdict(self.promise),
                **({} if self.seed is None else {"seed": self.seed}),
            }
        )


def open_or_begin(work: Work, out: Path) -> Run:
    """A new run folder, or the one at `out` where it has the same settings.

    Raises: InputError for a model and a cache of different vocabularies, a split without clients, or too few for a
    gate; RunError where `out` was begun with other settings, naming the first that differs.
    """
    cache = Cache.open(work.data)
    settings = work.to_toml(_check_model(work, cache), cache.manifest.digest)
    asked = asked_clients(work, cache)
    metadata = PersonalizationMetadata(
        **of_this_process(work.seed), source=cache.manifest.source, asked=len(asked), delta=work.promise.delta
    )
    return begin(out, settings, metadata, key_for(work.seed))


def asked_clients(work: Work, cache: Cache) -> NDArray[np.int64]:
    """Who is asked, in a public random order. With a gate the first half designs it, the other half judges it."""
    asked = first_asked(cache.clients(work.split_name), work.clients)
    least = 2 * FEWEST if work.queries.gated else FEWEST
    if len(asked) < least:
        raise InputError(
            f"{len(asked)} clients of the {work.split_name} split were asked for, and {least} are the fewest that say "
            "anything; ask more, or import more clients."
        )
    return asked


def evaluate_clients(work: Work, run: Run, hardware: Hardware, told: Callable[[int, int], None]) -> None:
    """Every asked client that has no line in the run folder yet; `told(done, of)` after each.

    Hold the run's lock. What is written is the same whoever was interrupted when.
    """
    cache, cores = Cache.open(work.data), Cores(hardware)
    model = load_model(work.model)
    asked = asked_clients(work, cache)
    lines = Lines(run.path / OUTCOMES)
    lines.drop_torn_line()
    done = {row["client"] for row in lines.rows()}
    missing = [int(client) for client in asked if int(client) not in done]
    told(len(done), len(asked))

    def keep(each: ClientOutcome | SkippedClient) -> None:
        lines.append([each.as_row()])
        done.add(each.client)
        told(len(done), len(asked))

    if missing:
        personalize_clients(
            model.network, model.parameters, cache, missing, work.strategies, work.split, cores=cores, progress=keep
        )


def findings(work: Work, run: Run) -> Evaluated:
    """What the devices' reports say, exactly, and released as promised; releases what is not released yet.

    Hold the run's lock while the run is not finished.
    """
    asked = asked_clients(work, Cache.open(work.data))
    rows = {row["client"]: row for row in Lines(run.path / OUTCOMES).rows()}
    reports = [rows[int(client)] for client in asked]
    skipped: dict[str, int] = {}
    for row in reports:
        if "skipped" in row:
            skipped[row["skipped"]] = skipped.get(row["skipped"], 0) + 1
    groups = np.array_split(np.arange(len(asked)), 2) if work.queries.gated else [np.arange(len(asked))]
    for group in groups:
        if sum("skipped" not in reports[at] for at in group) < FEWEST:
            reasons = "; ".join(f"{count}: {reason}" for reason, count in sorted(skipped.items()))
            raise InputError(
                f"of {len(group)} clients too few could be evaluated to say anything (of all {len(asked)}, left out "
                f"{reasons}); ask more clients, or split otherwise (--split, --gate-share, --undated)."
            )
    parts = [_measured([reports[at] for at in group]) for group in groups]
    silent = [len(group) - len(part) for group, part in zip(groups, parts, strict=True)]
    if unmeasured := sum(part.unmeasured for part in parts):
        skipped["no test word is in the vocabulary"] = unmeasured

    def answered(answer: Callable[[int, list[HistogramQuery]], Mapping[str, Histogram]]) -> Answers:
        return _answers(work, parts, silent, answer)

    exact = answered(lambda step, queries: exactly(queries))
    released = None
    if work.promise.kind != "nothing":
        released = answered(
            lambda step, queries: released_step(
                run, work.promise, queries, step=step, steps=len(groups), clients=asked[groups[step]]
            )
        )
    everybody = _measured(reports)
    return Evaluated(
        asked=asked,
        deltas=everybody,
        fresh=parts[-1],
        skipped=dict(sorted(skipped.items())),
        undated=sum(row["undated"] for row in reports if "skipped" not in row),
        exact=exact,
        released=released,
    )


def _answers(
    work: Work,
    parts: list[Deltas],
    silent: list[int],
    answer: Callable[[int, list[HistogramQuery]], Mapping[str, Histogram]],
) -> Answers:
    """Ask the first group, choose policies by what it answered, ask the second group about them."""
    asked = work.queries
    first = asked.about_strategies(parts[0], silent[0])
    if not asked.gated:
        return Answers(queries=asked, steps=(answer(0, first),), policies=())
    designed = answer(0, [*first, *asked.about_rules(parts[0], silent[0])])
    policies = asked.policies(designed, work.harm_weight)
    second = asked.about_strategies(parts[1], silent[1])
    judged = answer(1, [*second, *asked.about_policies(policies, parts[1], silent[1])])
    return Answers(queries=asked, steps=(designed, judged), policies=policies)


def _check_model(work: Work, cache: Cache) -> str:
    """The digest of the weights. InputError where the cache's ids are not this model's words."""
    words = load_model(work.model).vocabulary
    shared_vocabulary({str(work.model): words.sha256, str(work.data): cache.manifest.vocabulary.sha256})
    return weights_digest(work.model)


def _measured(reports: list[dict[str, Any]]) -> Deltas:
    return Deltas.of([ClientOutcome.from_row(row) for row in reports if "skipped" not in row])


def write_report(work: Work, run: Run, found: Evaluated) -> tuple[dict[str, Any], ReportFiles]:
    """Write RUN/report: the page, the record and the figures; of a release also those called released. The record, and
    where the files are.
    """
    outcomes = tuple(judged(policy, found.fresh) for policy in found.exact.policies)
    record = _record(work, run, found, outcomes)
    page, public = report.pages(record, work.strategies, found.exact, outcomes, found.released)
    return record, write(run.path / "report", page, beside={} if public is None else {"released": public})


def _record(work: Work, run: Run, found: Evaluated, outcomes: Sequence[PolicyOutcome]) -> dict[str, Any]:
    exact: dict[str, Any] = {
        "what": EXACT,
        "evaluated": len(found.deltas),
        "skipped": dict(found.skipped),
        "undated_sentences": found.undated,
        "baseline": _baseline_exact(found),
        "strategies": {
            str(strategy): {metric: _exact(found, metric, column).as_row() for metric in changing()}
            for column, strategy in enumerate(work.strategies)
        },
        "by_slice": _by_slice_exact(found, work),
        "policies": _policies_exact(found, found.exact.policies, outcomes),
        "joint_counts": _histograms(found.exact, work),
    }
    if found.released is not None and found.released.policies:
        chosen = found.released.policies
        exact["policies_chosen_from_the_release"] = _policies_exact(
            found, chosen, [judged(p, found.fresh) for p in chosen]
        )
    record = {
        "run": str(run.path),
        "model": str(work.model),
        "data": str(work.data),
        "split_name": work.split_name,
        "split": str(work.split),
        "gate_share": work.split.gate,
        "asked": len(found.asked),
        "strategies": [asdict(each) for each in work.strategies],
        "harm_weight": work.harm_weight,
        "promise": promise_of(run),
        "simulation_only": exact,
        "released": None if found.released is None else _released(found.released, work, len(found.asked)),
    }
    return record


def _exact(found: Evaluated, metric: str, column: int) -> Summary:
    return summarise(found.deltas.change[metric][:, column], found.deltas.baseline[metric], thresholds=(0.0, GAIN))


def _baseline_exact(found: Evaluated) -> dict[str, Any]:
    accuracy = found.deltas.baseline[TOP1]
    return {
        "mean": mean_of(accuracy),
        "quantiles": {q: quantile_of(accuracy, q) for q in QUANTILES},
        "worst_decile": worst_share_of(accuracy),
    }


def _by_slice_exact(found: Evaluated, work: Work) -> dict[str, Any]:
    """Mean change of top-1 accuracy and how many users, in each slice; no mean of fewer than two."""
    tables: dict[str, Any] = {}
    asked, deltas = work.queries, found.deltas
    for which in asked.slices:
        labels, mine = asked.labels(which), asked.slice_of(which, deltas)
        members = [mine == number for number in range(len(labels))]
        tables[which] = {
            "slices": list(labels),
            "strategies": {
                str(strategy): [
                    {
                        "users": int(each.sum()),
                        "mean": mean_of(deltas.change[TOP1][each, column]) if each.sum() > 1 else UNKNOWN,
                    }
                    for each in members
                ]
                for column, strategy in enumerate(work.strategies)
            },
        }
    return tables


def _by_slice(answers: Answers, work: Work, asked: int) -> dict[str, Any]:
    """Mean change of top-1 accuracy and about how many of the asked users are in each slice."""
    found: dict[str, Any] = {}
    for which in answers.queries.slices:
        labels = answers.queries.labels(which)
        rows = {}
        for strategy in work.strategies:
            histogram = answers.change(TOP1, str(strategy), which)
            parts = [histogram.slice(number) for number in range(len(labels))]
            share = asked / histogram.asked  # of a local release each question was put to some of the devices
            rows[str(strategy)] = [{"users": share * part.reporting, "mean": mean_from(part)} for part in parts]
        found[which] = {"slices": list(labels), "strategies": rows}
    return found


def _histograms(answers: Answers, work: Work) -> dict[str, Any]:
    """The joint counts of slice and change, with the noise of each."""
    asked = answers.queries
    return {
        f"{metric}, {which}, {strategy}": answers.change(metric, str(strategy), which).as_row()
        for metric in asked.metrics
        for which in asked.slices or ("everybody",)
        for strategy in work.strategies
    }


def _policies_exact(
    found: Evaluated, policies: Sequence[Policy], outcomes: Sequence[PolicyOutcome]
) -> list[dict[str, Any]]:
    first = policies[0] if policies else None
    return [
        {
            **policy.as_row(),
            **asdict(outcome),
            "gain_less_that_of_the_first": first and difference(policy, first, found.fresh),
        }
        for policy, outcome in zip(policies, outcomes, strict=True)
    ]


def _released(answers: Answers, work: Work, asked: int) -> dict[str, Any]:
    return {
        "baseline_mean": mean_from(answers.baseline),
        "baseline_quantiles": {q: quantile_from(answers.baseline, q) for q in QUANTILES},
        "strategies": {
            str(strategy): {
                metric: _read(answers.change_of_all(metric, str(strategy))) for metric in answers.queries.metrics
            }
            for strategy in work.strategies
        },
        "by_slice": _by_slice(answers, work, asked),
        "policies": [{**each.as_row(), **_read(answers.policy(each.name))} for each in answers.policies],
        "joint_counts": _histograms(answers, work),
    }


def _read(histogram: Histogram) -> dict[str, Any]:
    """What a histogram of changes says, gains positive; shares only where the cuts allow."""
    cuts = histogram.cells.bins.cuts
    return {
        "mean": mean_from(histogram),
        "quantiles": {q: quantile_from(histogram, q) for q in (0.1, 0.25, 0.5, 0.75, 0.9)},
        "gaining": {x: share_from(histogram, x) for x in (GAIN,) if x in cuts},
        "losing": {x: complement(share_from(histogram, -x)) for x in (0.0, GAIN) if -x in cuts},
        "asked": histogram.asked,
        "no_report": histogram.silent,  # of these
    }
