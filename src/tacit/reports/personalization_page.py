"""The page of a personalization report in Markdown: released and simulation-only numbers under their own headings."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.evaluation.gate import OPEN
from tacit.evaluation.intervals import Estimate
from tacit.jobs.evaluation_promise import promise_lines
from tacit.jobs.personalize import Work

GAIN = 0.02  # what paper 5 calls a significant improvement
EXACT = (
    "SIMULATION ONLY: exact numbers of simulated users; no server would have them, and nothing is promised for them."
)


def markdown_page(work: Work, record: Mapping[str, Any], figures: Sequence[str]) -> str:
    """`record` is that of report.json, before it is JSON; `figures` name the files beside the page."""
    lines = [*_released_lines(work, record, figures)]
    exact = record["simulation_only"]
    rows = {name: row["top1"] for name, row in exact["strategies"].items()}
    lines += ["## SIMULATION ONLY", "", f"**{EXACT}**", "", *_who_lines(record), ""]
    lines += _table_1(exact["baseline"]["mean"], rows, work)
    lines += [line for which in ("tokens", "baseline") for line in _slice_table(which, exact["by_slice"].get(which))]
    lines += _policy_lines_exact("Policies on users that did not design them", exact["policies"], work)
    chosen = exact.get("policies_chosen_from_the_release", [])
    lines += _policy_lines_exact("The policies that the released histograms chose, on the same users", chosen, work)
    lines += [f"![{name}]({name}.png)" for name in figures if name.endswith("-simulation")]
    return "\n".join([*lines, ""])


def released_page(work: Work, record: Mapping[str, Any], figures: Sequence[str]) -> str:
    """The same with nothing exact in it; `record` is that of released.json, before it is JSON."""
    return "\n".join(_released_lines(work, record, figures))


def _released_lines(work: Work, record: Mapping[str, Any], figures: Sequence[str]) -> list[str]:
    lines = ["# Does a model of one's own help?", "", *_asked(work, record), ""]
    lines += ["## RELEASED", "", *promise_lines(record["promise"]), ""]
    if record["released"] is not None:
        released = record["released"]
        rows = {name: row["top1"] for name, row in released["strategies"].items()}
        lines += _table_1(released["baseline_mean"], rows, work)
        lines += _policy_lines_released(released["policies"], work)
        lines += [f"![{name}]({name}.png)" for name in figures if name.endswith("-released")]
        lines += [""]
    return lines


def _asked(work: Work, record: Mapping[str, Any]) -> list[str]:
    gate = f", of what comes before the latest {work.split.gate:g} for the gate" if work.split.gate else ""
    return [
        f"{record['asked']:,} clients of the {work.split_name} split were asked, each text cut by {work.split}{gate}; "
        f"fine-tuned {len(work.strategies)} ways (stop at {work.strategies[0].max_tokens:,} tokens or "
        f"{work.strategies[0].epochs} epochs). Accuracy is top-1 of in-vocabulary words. Intervals are 95%: Student's "
        "t for means, Wilson's for shares, order statistics for quantiles; released numbers' cover the noise too.",
    ]


def _who_lines(record: Mapping[str, Any]) -> list[str]:
    exact = record["simulation_only"]
    skipped = "; ".join(f"{count}: {reason}" for reason, count in exact["skipped"].items()) or "none"
    undated = exact["undated_sentences"]
    told = f" {undated:,} of their sentences have no time and are in no part." if undated else ""
    return [f"{exact['evaluated']:,} of {record['asked']:,} clients could be evaluated; left out: {skipped}.{told}"]


def _table_1(baseline: Estimate, rows: Mapping[str, Mapping[str, Any]], work: Work) -> list[str]:
    """The paper's Table 1 with what its text adds."""
    lines = [
        f"Mean accuracy before: {_level(baseline)}",
        "",
        f"| strategy | mean change | gain at least {GAIN:g} | lose more than {GAIN:g} | lose anything | median |",
        "|---|---|---|---|---|---|",
    ]
    for strategy in map(str, work.strategies):
        row = rows[strategy]
        shares = [row["gaining"].get(GAIN), row["losing"].get(GAIN), row["losing"].get(0.0)]
        cells = [_change(row["mean"]), *map(_share, shares), _change(row["quantiles"][0.5])]
        lines.append(f"| {strategy} | {' | '.join(cells)} |")
    return [*lines, ""]


def _slice_table(which: str, table: Mapping[str, Any] | None) -> list[str]:
    if table is None:
        return []
    first = next(iter(table["strategies"].values()))
    heads = [f"{label} ({part['users']:,.0f} users)" for label, part in zip(table["slices"], first, strict=True)]
    lines = [f"Mean change by {which}:", "", f"| strategy | {' | '.join(heads)} |"]
    lines.append("|---" * (len(heads) + 1) + "|")
    for strategy, parts in table["strategies"].items():
        lines.append(f"| {strategy} | {' | '.join(_change(part['mean']) for part in parts)} |")
    return [*lines, ""]


def _policy_lines_exact(title: str, policies: Sequence[Mapping[str, Any]], work: Work) -> list[str]:
    if not policies:
        return []
    lines = [
        f"{title} ({policies[0]['users']:,}):",
        "",
        "| policy | rule | uses its own model | mean change | accuracy fell | by more than 0.02 | surely (5%) "
        "| mean harm "
        "| regret: gate, grid oracle | mean change less the first's |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in policies:
        cells = [
            rule_text(each, work),
            _share(each["deployed"]),
            _change(each["gain"]),
            *(_share(each[name]) for name in ("harmed", "harmed_much", "harmed_surely")),
            f"{each['harm'].value:.4f}",
            f"{each['regret_to_gate_oracle'].value:.4f}, {each['regret_to_grid_oracle'].value:.4f}",
            _change(each["gain_less_that_of_the_first"]),
        ]
        lines.append(f"| {each['name']} | {' | '.join(cells)} |")
    return [*lines, ""]


def _policy_lines_released(policies: Sequence[Mapping[str, Any]], work: Work) -> list[str]:
    if not policies:
        return []
    lines = ["Policies on users that did not design them:", "", "| policy | rule | mean change | accuracy fell |"]
    lines.append("|---|---|---|---|")
    for each in policies:
        fell = _share(each["losing"].get(0.0))
        lines.append(f"| {each['name']} | {rule_text(each, work)} | {_change(each['mean'])} | {fell} |")
    return [*lines, ""]


def rule_text(policy: Mapping[str, Any], work: Work) -> str:
    """A policy as people read it: what each bucket of train tokens does."""

    def said(rule: Mapping[str, Any] | None) -> str:
        if rule is None:
            return "global model"
        gate = "" if rule["level"] >= OPEN else f", gate {rule['level']:g}"
        return f"{work.strategies[rule['strategy']]}{gate}"

    rules = [said(rule) for rule in policy["rules"]]
    if len(set(rules)) == 1:
        return rules[0]
    labels = work.questionnaire.tokens.labels()
    return "; ".join(f"{label}: {rule}" for label, rule in zip(labels, rules, strict=True))


def _change(found: Estimate) -> str:
    if math.isnan(found.value):
        return "–"
    return f"{found.value:+.4f} ({found.low:+.4f} to {found.high:+.4f})"


def _level(found: Estimate) -> str:
    if math.isnan(found.value):
        return "–"
    return f"{found.value:.4f} ({found.low:.4f} to {found.high:.4f})"


def _share(found: Estimate | None) -> str:
    return (
        "–" if found is None or math.isnan(found.value) else f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})"
    )
