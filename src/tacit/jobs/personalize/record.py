"""What a run of `personalize` found: exact numbers, and those of the released histograms alone; never mixed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.counts.answers import Answers
from tacit.evaluation.counts.histograms import Histogram, mean_from, quantile_from, share_from
from tacit.evaluation.fairness import QUANTILES
from tacit.evaluation.intervals import UNKNOWN, complement, mean_of, quantile_of, worst_share_of
from tacit.evaluation.personalize.deltas import Deltas
from tacit.evaluation.personalize.gate import GatePolicy
from tacit.evaluation.personalize.policies import PolicyOutcome, difference, judged
from tacit.evaluation.personalize.summary import Summary, summarise
from tacit.evaluation.settings import PersonalizationSettings
from tacit.networks.metrics import ALL_TOKENS, TOP1, changing
from tacit.reports.personalize import GAIN

ACCURACIES = (TOP1, ALL_TOKENS)  # that exact tables have side by side
EXACT = (
    "SIMULATION ONLY: exact numbers of simulated users; no server would have them, and nothing is promised for them."
)


@dataclass(frozen=True, kw_only=True)
class FoundExactly:
    """What a simulation knows of its clients."""

    clients: NDArray[np.int64]
    deltas: Deltas  # of the asked clients that could be measured, in the order of asking
    fresh: Deltas  # of these, the clients that no policy was designed on; all without a gate
    skipped: Mapping[str, int]
    undated: int  # sentences of the evaluated clients that are in no part because their time is unknown
    answers: Answers

    @property
    def outcomes(self) -> tuple[PolicyOutcome, ...]:
        """What the policies that the exact answers chose do to the clients that did not design them."""
        return tuple(judged(policy, self.fresh) for policy in self.answers.policies)


@dataclass(frozen=True, kw_only=True)
class Found:
    """All that a run has found: exact numbers of simulated clients, and what was released, if anything."""

    exact: FoundExactly | None  # None: real devices, of which nobody has more than was released
    released: Answers | None


def exact_record(found: FoundExactly, released: Answers | None, settings: PersonalizationSettings) -> dict[str, Any]:
    """What only a simulation knows."""
    exact: dict[str, Any] = {
        "what": EXACT,
        "evaluated": len(found.deltas),
        "skipped": dict(found.skipped),
        "undated_sentences": found.undated,
        "baseline": _baseline_exact(found),
        "strategies": {
            str(strategy): {metric: _exact(found, metric, column).as_row() for metric in changing()}
            for column, strategy in enumerate(settings.strategies)
        },
        "by_slice": _by_slice_exact(found, settings),
        "policies": _policies_exact(found, found.answers.policies, found.outcomes),
        "joint_counts": _histograms(found.answers, settings),
    }
    if released is not None and released.policies:
        chosen = released.policies
        exact["policies_chosen_from_the_release"] = _policies_exact(
            found, chosen, [judged(policy, found.fresh) for policy in chosen]
        )
    return exact


def _exact(found: FoundExactly, metric: str, column: int) -> Summary:
    return summarise(found.deltas.change[metric][:, column], found.deltas.baseline[metric], thresholds=(0.0, GAIN))


def _baseline_exact(found: FoundExactly) -> dict[str, Any]:
    """By metric."""
    return {
        metric: {
            "mean": mean_of(accuracy),
            "quantiles": {q: quantile_of(accuracy, q) for q in QUANTILES},
            "worst_decile": worst_share_of(accuracy),
        }
        for metric in ACCURACIES
        for accuracy in [found.deltas.baseline[metric]]
    }


def _by_slice_exact(found: FoundExactly, settings: PersonalizationSettings) -> dict[str, Any]:
    """Mean change of each accuracy and how many users, in each slice; no mean of fewer than two."""
    tables: dict[str, Any] = {}
    queries, deltas = settings.queries, found.deltas
    for which in queries.slices:
        labels, mine = queries.labels(which), queries.slice_of(which, deltas)
        members = [mine == number for number in range(len(labels))]
        tables[which] = {
            "slices": list(labels),
            "strategies": {
                str(strategy): [
                    {
                        "users": int(each.sum()),
                        **{
                            metric: mean_of(deltas.change[metric][each, column]) if each.sum() > 1 else UNKNOWN
                            for metric in ACCURACIES
                        },
                    }
                    for each in members
                ]
                for column, strategy in enumerate(settings.strategies)
            },
        }
    return tables


def _by_slice(answers: Answers, settings: PersonalizationSettings, clients: int) -> dict[str, Any]:
    """Mean change by the first metric and about how many of the asked users are in each slice."""
    found: dict[str, Any] = {}
    metric = answers.queries.metric
    for which in answers.queries.slices:
        labels = answers.queries.labels(which)
        rows = {}
        for strategy in settings.strategies:
            histogram = answers.change(metric, str(strategy), which)
            parts = [histogram.slice(number) for number in range(len(labels))]
            share = clients / histogram.devices  # of a local release each question was put to some of the devices
            rows[str(strategy)] = [{"users": share * part.reporting, metric: mean_from(part)} for part in parts]
        found[which] = {"slices": list(labels), "strategies": rows}
    return found


def _histograms(answers: Answers, settings: PersonalizationSettings) -> dict[str, Any]:
    """The joint counts of slice and change, with the noise of each."""
    queries = answers.queries
    return {
        f"{metric}, {which}, {strategy}": answers.change(metric, str(strategy), which).as_row()
        for metric in queries.metrics
        for which in queries.slices or ("everybody",)
        for strategy in settings.strategies
    }


def _policies_exact(
    found: FoundExactly, policies: Sequence[GatePolicy], outcomes: Sequence[PolicyOutcome]
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


def released_record(answers: Answers, settings: PersonalizationSettings, clients: int) -> dict[str, Any]:
    """What the released histograms say. clients: how many were asked."""
    return {
        "baseline_mean": mean_from(answers.baseline),
        "baseline_quantiles": {q: quantile_from(answers.baseline, q) for q in QUANTILES},
        "strategies": {
            str(strategy): {
                metric: _read(answers.change_of_all(metric, str(strategy))) for metric in answers.queries.metrics
            }
            for strategy in settings.strategies
        },
        "by_slice": _by_slice(answers, settings, clients),
        "policies": [{**each.as_row(), **_read(answers.policy(each.name))} for each in answers.policies],
        "joint_counts": _histograms(answers, settings),
    }


def _read(histogram: Histogram) -> dict[str, Any]:
    """What a histogram of changes says, gains positive; shares only where the cuts allow."""
    cuts = histogram.cells.bins.cuts
    return {
        "mean": mean_from(histogram),
        "quantiles": {q: quantile_from(histogram, q) for q in (0.1, 0.25, 0.5, 0.75, 0.9)},
        "gaining": {x: share_from(histogram, x) for x in (GAIN,) if x in cuts},
        "losing": {x: complement(share_from(histogram, -x)) for x in (0.0, GAIN) if -x in cuts},
        "asked": histogram.devices,
        "no_report": histogram.silent,  # of these
    }
