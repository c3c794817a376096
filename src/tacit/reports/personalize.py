"""The report of a personalization run: what was released and what that promises, then what only a simulation knows.

Two parts that are never mixed: RELEASED numbers carry the guarantee of the ledger, SIMULATION ONLY numbers are exact.
The page that may be published has the former alone. The figures are paper 5's Figures 2 and 3 from our run, and what
each policy does to users; the error bars of what was released hold the noise.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.counts.answers import Answers
from tacit.evaluation.counts.histograms import UNCHANGED, Histogram, representatives
from tacit.evaluation.counts.queries import Queries
from tacit.evaluation.intervals import NORMAL
from tacit.evaluation.personalize.fine_tuning import PAPER_TOKENS, FineTuning
from tacit.evaluation.personalize.gate import OPEN
from tacit.networks.metrics import METRICS
from tacit.reports.blocks import Block, FigureOf, Paragraph, Table
from tacit.reports.figure import HUES, MARKS, Axis, ErrorBars, Figure, Mark, Panel, Rule, Steps
from tacit.reports.page import Page
from tacit.reports.record_files import content_of
from tacit.reports.release import Interval, participants_text, promise_blocks, said, simulation_blocks

PUBLISHED_KEYS = (
    "model",
    "data",
    "split_name",
    "population",
    "split",
    "gate_share",
    "asked",
    "strategies",
    "harm_weight",
    "promise",
    "released",
)
BESIDE = ("drawn", "statement")  # of a record, what report.json does not repeat
EXACT_POLICIES = (
    "policy",
    "rule",
    "uses its own model",
    "mean change",
    "accuracy fell",
    "by more than 0.02",
    "surely (5%)",
    "mean harm",
    "regret: gate, grid oracle",
    "mean change less the first's",
)
GAIN = 0.02  # what paper 5 calls a significant improvement
TITLE = "Does a model of one's own help?"
WIDEST = 0.3  # of an interval that is drawn: as wide as the changes that histograms hold by default


def page(record: Mapping[str, Any]) -> Page:
    """Everything, with the exact numbers of the simulation.

    record: what was found, `released` beside `simulation_only`, never mixed; `drawn` has what figures need besides (see
    `drawn_from`).
    """
    simulated, rule = record["simulation_only"], _rules(record)
    before = {metric: row["mean"] for metric, row in simulated["baseline"].items()}
    blocks: list[Block] = [*_released(record), *simulation_blocks(simulated["what"])]
    blocks += [*_answer(next(iter(before)), simulated["strategies"]), Paragraph(_who(record))]
    blocks += _table_1(before, simulated["strategies"])
    blocks += [part for which in ("tokens", "baseline") for part in _slices(which, simulated["by_slice"].get(which))]
    blocks += _exact_policies("Policies on users that did not design them", simulated["policies"], rule)
    chosen = simulated.get("policies_chosen_from_the_release", [])
    blocks += _exact_policies("The policies that the released histograms chose, on the same users", chosen, rule)
    blocks += map(FigureOf, figures(record, "exact", simulated["by_slice"], source="simulation"))
    blocks += [FigureOf(policies(simulated["policies"]))] if simulated["policies"] else []
    said = content_of(record, *BESIDE)
    return Page(kind="report of a personalization", title=TITLE, blocks=tuple(blocks), record=said)


def released_page(record: Mapping[str, Any]) -> Page:
    """What may be published; the record has nothing else."""
    said = content_of(record, *BESIDE)
    return Page(kind="report of a personalization, released", title=TITLE, blocks=tuple(_released(record)), record=said)


def published(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of the record of everything may be published."""
    drawn = {name: value for name, value in record["drawn"].items() if name != "exact"}
    public = {name: record[name] for name in PUBLISHED_KEYS if name in record}
    return {**public, "drawn": drawn, "statement": record["statement"]}


def drawn_from(queries: Queries, *, released: Answers | None, exact: Answers | None) -> dict[str, Any]:
    """What figures are drawn from, beside the report's record: each strategy's histogram of changes, exact and
    released, the metric that they count, and the buckets of train tokens that policies go by.
    """

    def changes(answers: Answers | None) -> dict[str, Any] | None:
        if answers is None:
            return None
        return {name: answers.change_of_all(queries.metric, name).to_record() for name in queries.strategies}

    return {
        "metric": queries.metric,
        "tokens": list(queries.tokens.labels()),
        "released": changes(released),
        "exact": changes(exact),
    }


def _released(record: Mapping[str, Any]) -> list[Block]:
    """The promise, and what was released under it."""
    found = record["released"]
    blocks: list[Block] = [] if found is None else _answer(record["drawn"]["metric"], found["strategies"])
    blocks += [Paragraph(_clients_and_limits(record)), *promise_blocks(record["promise"])]
    if found is not None:
        blocks += _table_1({record["drawn"]["metric"]: found["baseline_mean"]}, found["strategies"])
        blocks += _released_policies(found["policies"], _rules(record))
        blocks += map(FigureOf, figures(record, "released", found["by_slice"], source="released"))
    return blocks


def _answer(metric: str, strategies: Mapping[str, Mapping[str, Any]]) -> list[Block]:
    """To the title's question, by the strategy whose mean change is the largest; nothing where no mean is known."""
    known = {name: found[metric]["mean"] for name, found in strategies.items()}
    means = {name: Interval.from_plain(mean) for name, mean in known.items() if mean is not None}
    means = {name: mean for name, mean in means.items() if not math.isnan(mean.value)}
    if not means:
        return []
    best = max(means, key=lambda name: means[name].value)
    mean, title = means[best], METRICS[metric].title
    word = "Yes" if mean.low > 0 else "No" if mean.high <= 0 else "These users cannot tell"
    of = f"the best of {len(means)} ways, {best}," if len(means) > 1 else f"{best}"
    only = ", looked at as if it were the only one" if len(means) > 1 else ""
    losing = strategies[best][metric]["losing"].get(str(GAIN))
    lose = "" if losing is None else f"; {_share(losing)} of them lose more than {GAIN:g}"
    return [
        Paragraph(
            f"{word}: {of} changes {title} by {_change(known[best])} in the mean over users{only}{lose}.", answer=True
        )
    ]


def _rules(record: Mapping[str, Any]) -> "Rules":
    return Rules(_strategies(record), record["drawn"]["tokens"])


def _strategies(record: Mapping[str, Any]) -> tuple[FineTuning, ...]:
    return tuple(FineTuning(**each) for each in record["strategies"])


class Rules:
    """Policies as people read them: what each bucket of train tokens does."""

    def __init__(self, strategies: Sequence[FineTuning], tokens: Sequence[str]) -> None:
        self._strategies, self._tokens = strategies, tokens

    def __call__(self, policy: Mapping[str, Any]) -> str:
        rules = [self._said(rule) for rule in policy["rules"]]
        if len(set(rules)) == 1:
            return rules[0]
        return "; ".join(f"{label}: {rule}" for label, rule in zip(self._tokens, rules, strict=True))

    def _said(self, rule: Mapping[str, Any] | None) -> str:
        if rule is None:
            return "global model"
        gate = "" if rule["level"] >= OPEN else f", gate {rule['level']:g}"
        return f"{self._strategies[rule['strategy']]}{gate}"


def _clients_and_limits(record: Mapping[str, Any]) -> str:
    share = record["gate_share"]
    gate = f", of what comes before the latest {share:g} for the gate" if share else ""
    return (
        f"{participants_text(record)} were asked, each text cut by "
        f"{record['split']}{gate}; personalised {len(record['strategies'])} ways: B sentences a step, rate L, E epochs "
        f"(1 where none is named) or T tokens ({PAPER_TOKENS:,}), whichever is first; a cache has its weight. Top-1 "
        "accuracy is that of words of the vocabulary, which a keyboard can show; all-token accuracy counts ends of "
        "sentences and unknown words, too, as paper 5 does. Gates and policies go by the former. Intervals are 95%: "
        "Student's t for means, Wilson's for shares, order statistics for quantiles; released numbers' cover the noise "
        "too."
    )


def _who(record: Mapping[str, Any]) -> str:
    exact = record["simulation_only"]
    skipped = "; ".join(f"{count}: {reason}" for reason, count in exact["skipped"].items()) or "none"
    undated = exact["undated_sentences"]
    more = f" {undated:,} of their sentences have no time and are in no part." if undated else ""
    return f"{exact['evaluated']:,} of {record['asked']:,} clients could be evaluated; left out: {skipped}.{more}"


def _table_1(baseline: Mapping[str, Any], strategies: Mapping[str, Mapping[str, Any]]) -> list[Block]:
    """The paper's Table 1 with what its text adds; baseline: of each metric that is shown, the first in full."""
    first, *others = baseline
    head = (
        "strategy",
        f"mean change, {METRICS[first].title}",
        f"gain at least {GAIN:g}",
        f"lose more than {GAIN:g}",
        "lose anything",
        "median",
        *(f"mean change, {METRICS[each].title}" for each in others),
    )
    rows = []
    for strategy, found in strategies.items():
        row = found[first]
        shares = [row["gaining"].get(str(GAIN)), row["losing"].get(str(GAIN)), row["losing"].get("0.0")]
        more = [_change(found[each]["mean"]) for each in others]
        rows.append((strategy, _change(row["mean"]), *map(_share, shares), _change(row["quantiles"]["0.5"]), *more))
    before = "; ".join(f"{METRICS[metric].title} {said(mean)}" for metric, mean in baseline.items())
    return [Paragraph(f"Mean before: {before}"), Table(tuple(rows), head)]


def _slices(which: str, table: Mapping[str, Any] | None) -> list[Block]:
    if table is None:
        return []
    first = next(iter(table["strategies"].values()))
    heads = [f"{label} ({part['users']:,.0f} users)" for label, part in zip(table["slices"], first, strict=True)]
    blocks: list[Block] = []
    for metric in (name for name in first[0] if name != "users"):
        rows = [
            (strategy, *(_change(part[metric]) for part in parts)) for strategy, parts in table["strategies"].items()
        ]
        blocks += [
            Paragraph(f"Mean change of {METRICS[metric].title} by {which}:"),
            Table(tuple(rows), ("strategy", *heads)),
        ]
    return blocks


def _exact_policies(title: str, found: Sequence[Mapping[str, Any]], rule: Rules) -> list[Block]:
    if not found:
        return []
    rows = [
        (
            each["name"],
            rule(each),
            _share(each["deployed"]),
            _change(each["gain"]),
            *(_share(each[name]) for name in ("harmed", "harmed_much", "harmed_surely")),
            _value(each["harm"]),
            f"{_value(each['regret_to_gate_oracle'])}, {_value(each['regret_to_grid_oracle'])}",
            _change(each["gain_less_that_of_the_first"]),
        )
        for each in found
    ]
    return [Paragraph(f"{title} ({found[0]['users']:,}):"), Table(tuple(rows), EXACT_POLICIES)]


def _released_policies(found: Sequence[Mapping[str, Any]], rule: Rules) -> list[Block]:
    if not found:
        return []
    rows = [(each["name"], rule(each), _change(each["mean"]), _share(each["losing"].get("0.0"))) for each in found]
    head = ("policy", "rule", "mean change", "accuracy fell")
    return [Paragraph("Policies on users that did not design them:"), Table(tuple(rows), head)]


def _change(found: Sequence[Any]) -> str:
    return said(found, form="+.4f")


def _share(found: Sequence[Any] | None) -> str:
    return said(found, form=".1%")


def _value(found: Sequence[Any]) -> str:
    return f"{Interval.from_plain(found).value:.4f}"


# -- figures -----------------------------------------------------------------------------------------------------------


def figures(record: Mapping[str, Any], which: str, by_slice: Mapping[str, Any], *, source: str) -> tuple[Figure, ...]:
    """Figures 2 and 3 of the histograms `which` ("exact", "released"); `by_slice` is the report's. `source` (released,
    simulation) is in names and titles.
    """
    strategies, metric = _strategies(record), record["drawn"]["metric"]
    changes = {name: Histogram.from_record(each) for name, each in record["drawn"][which].items()}
    drawn = [
        Figure(
            name=f"figure-2-{source}",
            title=f"Change of accuracy over users ({source})",
            alt=f"Histograms of the users' changes of {METRICS[metric].title}, one panel per batch size, one line per "
            "strategy.",
            panels=tuple(_figure_2(name, metric, changes, ways) for name, ways in _panels(strategies).items()),
            same_x=True,
            height=2.2,
        )
    ]
    for panel, which, label in (("a", "tokens", "train tokens of the user"), ("b", "baseline", "accuracy before")):
        if which in by_slice:
            drawn.append(
                Figure(
                    name=f"figure-3{panel}-{source}",
                    title=f"Mean change of accuracy by {label} ({source})",
                    alt=f"Mean change of {METRICS[metric].title} with 95% intervals, by {label}, a line a strategy.",
                    panels=(_figure_3(strategies, by_slice[which], metric, label),),
                    legend="below",
                )
            )
    return tuple(drawn)


def policies(outcomes: Sequence[Mapping[str, Any]]) -> Figure:
    """Gain against harm, exact; outcomes: rows of policies."""
    return Figure(
        name="gate-simulation",
        title="What each policy does to users that did not design it (simulation)",
        alt="Mean gain over the share of users harmed, one point per policy, with 95% intervals.",
        panels=(
            Panel(
                marks=(*(_policy(number, each) for number, each in enumerate(outcomes)), Rule(at=0.0)),
                x=Axis("users whose accuracy fell", percent=True),
                y=Axis("mean change of accuracy"),
            ),
        ),
        legend="below",
    )


def _figure_2(name: str, metric: str, changes: Mapping[str, Histogram], strategies: Sequence[FineTuning]) -> Panel:
    """Share of users per bin as in the paper's Figure 2; open bins are drawn at the ends."""
    marks: list[Mark] = []
    lowest = 0.0
    for number, strategy in enumerate(strategies):
        histogram = changes[str(strategy)]
        clients = histogram.devices  # known; of a released histogram, how many reported is not
        counts, variance, centres = _even(histogram)
        shares, hue = counts / clients, number % HUES
        marks.append(Steps(x=centres, y=shares, hue=hue, label=str(strategy).removeprefix(f"{name}, ")))
        noise = NORMAL * np.sqrt(variance) / clients
        lowest = min(lowest, float(shares.min()))
        if noise.any():
            marks.append(ErrorBars(x=centres, y=shares, low=shares - noise, high=shares + noise, hue=hue, faint=True))
            lowest = min(lowest, float((shares - noise).min()))
    marks += [Rule(at=0.0, along="x"), Rule(at=0.02, along="x", stroke=2)]
    return Panel(
        title=name,
        marks=tuple(marks),
        x=Axis(f"change of {METRICS[metric].title} (dotted: 0.02)"),
        y=Axis("users asked", percent=True, low=1.05 * lowest),
    )


def _even(histogram: Histogram) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Counts, variances and middles of bins of one width: who is unchanged drawn with the smallest gains."""
    even = histogram.coarser([cut for cut in histogram.cells.bins.cuts if cut != UNCHANGED])
    return even.counts[0], even.variance[0], representatives(even.cells.bins)


def _figure_3(strategies: Sequence[FineTuning], table: Mapping[str, Any], metric: str, label: str) -> Panel:
    """Mean change in each slice with its interval; no point where that is so wide that it says nothing."""
    panels = _panels(strategies)
    width = 0.7 / max(len(strategies), 1)
    marks: list[Mark] = [Rule(at=0.0)]
    for number, strategy in enumerate(strategies):
        together = panels[strategy.batches]
        means = [Interval.from_plain(part[metric]) for part in table["strategies"][str(strategy)]]
        shown = [at for at, each in enumerate(means) if each.high - each.low < WIDEST]  # not nan, not infinite
        marks.append(
            ErrorBars(
                x=[at + (number - (len(strategies) - 1) / 2) * width for at in shown],
                y=[means[at].value for at in shown],
                low=[means[at].low for at in shown],
                high=[means[at].high for at in shown],
                mark=MARKS[[*panels].index(strategy.batches) % len(MARKS)],
                joined=True,
                hue=together.index(strategy) % HUES,
                label=str(strategy),
            )
        )
    slices = [name.replace(" to ", "\nto ").replace(" and", "\nand") for name in table["slices"]]
    return Panel(
        marks=tuple(marks),
        x=Axis(
            label, ticks=tuple((float(at), name) for at, name in enumerate(slices)), low=-0.5, high=len(slices) - 0.5
        ),
        y=Axis("mean change of accuracy"),
    )


def _policy(number: int, outcome: Mapping[str, Any]) -> ErrorBars:
    gain, harmed = (Interval.from_plain(outcome[name]) for name in ("gain", "harmed"))
    return ErrorBars(
        x=[harmed.value],
        y=[gain.value],
        low=[gain.low],
        high=[gain.high],
        x_low=[harmed.low],
        x_high=[harmed.high],
        mark=MARKS[number % len(MARKS)],
        hue=number % HUES,
        size=6,
        label=outcome["name"],
    )


def _panels(strategies: Sequence[FineTuning]) -> dict[str, list[FineTuning]]:
    """What is drawn together, in the order of the grid: strategies of one batch size, and those without SGD."""
    found: dict[str, list[FineTuning]] = {}
    for strategy in strategies:
        found.setdefault(strategy.batches, []).append(strategy)
    return found
