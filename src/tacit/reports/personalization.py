"""The report of a personalization run: what was released and what that promises, then what only a simulation knows.

Two parts that are never mixed: RELEASED numbers carry the guarantee of the ledger, SIMULATION ONLY numbers are exact.
What was released is also in files of its own (released.md, released.json and the figures called released), and these
are all of the folder that may be published.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tacit.cli.console import plain
from tacit.evaluation.deltas import Summary, summarise
from tacit.evaluation.fairness import QUANTILES
from tacit.evaluation.gate import Policy, PolicyOutcome, difference, judged
from tacit.evaluation.histograms import Histogram, mean_from, quantile_from, share_from
from tacit.evaluation.intervals import UNKNOWN, Estimate, mean_of, quantile_of, worst_share_of
from tacit.evaluation.queries import Answers
from tacit.files import write_whole
from tacit.jobs.evaluation_promise import promise_of
from tacit.jobs.personalize import Evaluated, Work
from tacit.reports.drawing import render
from tacit.reports.personalization_figures import figures as figures_of
from tacit.reports.personalization_figures import policies as policies_figure
from tacit.reports.personalization_page import EXACT, GAIN, markdown_page, released_page
from tacit.runs import Run

EXACT_KEYS = ("run", "simulation_only")  # of the record: what is not in released.json


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was written, and the record of it."""

    markdown: Path
    json: Path
    figures: tuple[Path, ...]
    record: Mapping[str, Any]


def write_report(work: Work, run: Run, found: Evaluated) -> Report:
    """Write RUN/report: report.md, report.json and the figures; of a release also released.md and released.json."""
    outcomes = tuple(judged(policy, found.fresh) for policy in found.exact.policies)
    record = _record(work, run, found, outcomes)
    drawings = list(
        figures_of(found.exact, work.strategies, record["simulation_only"]["by_slice"], source="simulation")
    )
    if outcomes:
        drawings.append(policies_figure(outcomes))
    if found.released is not None:
        drawings += figures_of(found.released, work.strategies, record["released"]["by_slice"], source="released")
    folder = run.path / "report"
    files, names = {f"{each.name}.png": render(each, "png") for each in drawings}, [each.name for each in drawings]
    pages = {"report.json": _json(record), "report.md": markdown_page(work, record, names).encode()}
    if found.released is not None:
        public = {name: value for name, value in record.items() if name not in EXACT_KEYS}
        pages |= {"released.json": _json(public), "released.md": released_page(work, public, names).encode()}
    for name, content in {**files, **pages}.items():
        write_whole(folder / name, content)
    return Report(
        markdown=folder / "report.md",
        json=folder / "report.json",
        figures=tuple(folder / name for name in files),
        record=record,
    )


def _json(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(plain(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _record(work: Work, run: Run, found: Evaluated, outcomes: Sequence[PolicyOutcome]) -> dict[str, Any]:
    exact: dict[str, Any] = {
        "what": EXACT,
        "evaluated": len(found.deltas),
        "skipped": dict(found.skipped),
        "undated_sentences": found.undated,
        "baseline": _baseline_exact(found),
        "strategies": {
            str(strategy): {
                metric: _exact(found, metric, column).as_row() for metric in ("top1", "top3", "cross_entropy")
            }
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
    accuracy = found.deltas.baseline["top1"]
    return {
        "mean": mean_of(accuracy),
        "quantiles": {q: quantile_of(accuracy, q) for q in QUANTILES},
        "worst_decile": worst_share_of(accuracy),
    }


def _by_slice_exact(found: Evaluated, work: Work) -> dict[str, Any]:
    """Mean change of top-1 accuracy and how many users, in each slice; no mean of fewer than two."""
    tables: dict[str, Any] = {}
    asked, deltas = work.questionnaire, found.deltas
    for which in asked.slices:
        labels, mine = asked.labels(which), asked.slice_of(which, deltas)
        members = [mine == number for number in range(len(labels))]
        tables[which] = {
            "slices": list(labels),
            "strategies": {
                str(strategy): [
                    {
                        "users": int(each.sum()),
                        "mean": mean_of(deltas.change["top1"][each, column]) if each.sum() > 1 else UNKNOWN,
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
    for which in answers.questionnaire.slices:
        labels = answers.questionnaire.labels(which)
        rows = {}
        for strategy in work.strategies:
            histogram = answers.change("top1", str(strategy), which)
            parts = [histogram.slice(number) for number in range(len(labels))]
            share = asked / histogram.asked  # of a local release each question was put to some of the devices
            rows[str(strategy)] = [{"users": share * part.reporting, "mean": mean_from(part)} for part in parts]
        found[which] = {"slices": list(labels), "strategies": rows}
    return found


def _histograms(answers: Answers, work: Work) -> dict[str, Any]:
    """The joint counts of slice and change, with the noise of each."""
    asked = answers.questionnaire
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
                metric: _read(answers.change_of_all(metric, str(strategy))) for metric in answers.questionnaire.metrics
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
        "losing": {x: _rest(share_from(histogram, -x)) for x in (0.0, GAIN) if -x in cuts},
        "asked": histogram.asked,
        "no_report": histogram.silent,  # of these
    }


def _rest(share: Estimate) -> Estimate:
    return Estimate(1 - share.value, 1 - share.high, 1 - share.low)
