"""What a live page of a personalization shows beside its report: who fares worst, beside what a gate does about it."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.networks.metrics import METRICS
from tacit.reports.blocks import Block, Heading, Paragraph, Table
from tacit.reports.release import said
from tacit.runs import Run

FEWEST = "0.1"  # of users: the tenth that fares worst
EXACT = "exact, simulation only"
MEANING = (
    "The worst decile: a tenth of the users fares no better. A policy says for whom a model of their own is used; a "
    "gate judges that on the user's own text. What was released holds its noise."
)


def blocks(run: Run | None, record: Mapping[str, Any], *, simulation: bool) -> list[Block]:
    """Of a run that released something, or of which exact numbers may be shown; else nothing.

    record: the released one has no exact number, and without `simulation` none is looked for.
    """
    known = {"released": record.get("released"), EXACT: record.get("simulation_only") if simulation else None}
    sources = {name: found for name, found in known.items() if found}
    if not sources:
        return []
    metric = str(record["drawn"]["metric"])
    rows = []
    for strategy in next(iter(sources.values()))["strategies"]:
        found = [_row(each["strategies"].get(strategy), metric) for each in sources.values()]
        cells = [
            (said(_at(each, "quantiles", FEWEST), form="+.4f"), _share(_at(each, "losing", "0.0"))) for each in found
        ]
        rows.append((strategy, *(cell for pair in cells for cell in pair)))
    for policy in dict.fromkeys(each["name"] for found in sources.values() for each in found["policies"]):
        own = [next((e for e in found["policies"] if e["name"] == policy), None) for found in sources.values()]
        rows.append((f"policy: {policy}", *(cell for each in own for cell in ("–", _share(_falls(each))))))
    head = [
        f"{what} ({name})" for name in sources for what in ("worst decile changes by at most", "accuracy falls for")
    ]
    before = [f"{said(_before(name, found, metric))} ({name})" for name, found in sources.items()]
    worst = [said(found["baseline"][metric]["worst_decile"]) for name, found in sources.items() if name == EXACT]
    return [
        Heading("Who fares worst"),
        Paragraph(
            f"Before, the worst decile has {METRICS[metric].title} of at most {', '.join(before)}."
            + "".join(f" Its mean is {each} ({EXACT})." for each in worst)
        ),
        Table(tuple(rows), ("", *head)),
        Paragraph(MEANING, soft=True),
    ]


def _before(name: str, found: Mapping[str, Any], metric: str) -> Any:
    """The decile of accuracies."""
    quantiles = found["baseline_quantiles"] if name == "released" else found["baseline"][metric]["quantiles"]
    return quantiles.get(FEWEST)


def _falls(policy: Mapping[str, Any] | None) -> Any:
    """The share of users that a policy harms."""
    if policy is None:
        return None
    return policy["harmed"] if "harmed" in policy else _at(policy, "losing", "0.0")


def _row(strategy: Mapping[str, Any] | None, metric: str) -> Mapping[str, Any]:
    return (strategy or {}).get(metric) or {}


def _at(found: Mapping[str, Any], name: str, at: str) -> Any:
    return (found.get(name) or {}).get(at)


def _share(found: Sequence[Any] | None) -> str:
    return said(found, form=".1%")
