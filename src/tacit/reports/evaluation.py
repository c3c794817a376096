"""What `tacit evaluate` found: what was released and what that promises, then what only a simulation knows.

Two parts that are never mixed, as in a personalization's report; what was released is also in files of its own, which
are all of the folder that may be published.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tacit.cli.console import plain
from tacit.evaluation.fairness import (
    QUANTILES,
    accuracy_question,
    advantage_of,
    change_question,
    questions_about,
    spread_of,
)
from tacit.evaluation.histograms import UNCHANGED, Histogram, mean_from, quantile_from, share_from, worst_share_from
from tacit.evaluation.intervals import Estimate
from tacit.evaluation.release import exactly
from tacit.files import write_whole
from tacit.jobs.evaluate import Asked, Counted, Work
from tacit.jobs.evaluation_promise import promise_lines, promise_of
from tacit.jobs.histograms import released_step
from tacit.reports.drawing import render
from tacit.reports.evaluation_figures import figures
from tacit.runs import Run

EXACT = "SIMULATION ONLY: exact numbers; no server would have them"
SHOWN = {"5%": 0.05, "median": 0.5, "95%": 0.95}


def found_without_folder(work: Work, asked: Asked, counted: Counted) -> dict[str, Any]:
    """The record of an evaluation that is kept nowhere and releases nothing."""
    return {**_asked(work, asked), "promise": {"kind": "nothing"}, "released": None, "simulation_only": _exact(counted)}


def release_and_report(work: Work, asked: Asked, run: Run, counted: Counted) -> dict[str, Any]:
    """Release as promised what is not released yet, and write RUN/report; the record of both.

    Hold the run's lock. Raises: InputError before anything is released where too few clients can be counted.
    """
    exact, questions = _exact(counted), questions_about(list(counted.values()))
    histograms = {"simulation": exactly(questions)}
    if work.promise.kind != "nothing":
        histograms["released"] = dict(
            released_step(run, work.promise, questions, step=0, steps=1, clients=asked.clients)
        )
    released = _released(work.names, histograms["released"]) if "released" in histograms else None
    public = {**_asked(work, asked), "promise": promise_of(run), "released": released}
    record = {"run": str(run.path), **public, "simulation_only": exact}
    drawings = [each for source, found in histograms.items() for each in figures(work.names, found, source=source)]
    files = {f"{each.name}.png": render(each, "png") for each in drawings}
    files |= {"report.json": _json(record), "report.md": _page(record, [each.name for each in drawings])}
    if released is not None:
        files |= {"released.json": _json(public), "released.md": _page(public, [each.name for each in drawings])}
    for name, content in files.items():
        write_whole(run.path / "report" / name, content)
    return record


def _asked(work: Work, asked: Asked) -> dict[str, Any]:
    return {
        "models": list(work.names),
        "data": str(work.data),
        "split_name": work.split_name,
        "sentences": work.sentences,
        "words": work.words,
        "asked": len(asked.clients),
    }


def _exact(counted: Counted) -> dict[str, Any]:
    first, *others = counted
    return {
        "what": EXACT,
        "models": {name: asdict(spread_of(each)) for name, each in counted.items()},
        "against_the_first": {name: asdict(advantage_of(counted[name], counted[first])) for name in others},
    }


def _released(names: Sequence[str], histograms: Mapping[str, Histogram]) -> dict[str, Any]:
    """All of it computed from the noised counts alone."""
    models, against = {}, {}
    for at, name in enumerate(names):
        accuracy = histograms[accuracy_question(at)]
        models[name] = {
            "mean": mean_from(accuracy),
            "worst_decile": worst_share_from(accuracy, 0.1),
            "quantiles": {q: quantile_from(accuracy, q) for q in QUANTILES},
            "histogram": accuracy.as_row(),
        }
        if at:
            change = histograms[change_question(at)]
            against[name] = {
                "mean": mean_from(change),
                "better": share_from(change, UNCHANGED),
                "worse": _rest(share_from(change, 0.0)),
                "histogram": change.as_row(),
            }
    return {"models": models, "against_the_first": against}


def _page(record: Mapping[str, Any], figures: Sequence[str]) -> bytes:
    """The page in Markdown; without the part that is exact where the record has none."""
    lines = [
        "# How models do on clients' text",
        "",
        f"{record['asked']:,} clients of the {record['split_name']} split were asked, each with at most "
        f"{record['sentences']:,} sentences of at most {record['words']:,} words. Accuracy is top-1 of in-vocabulary "
        "words. Intervals are 95%; those of released numbers cover the noise, too.",
        "",
        "## RELEASED",
        "",
        *promise_lines(record["promise"]),
        "",
        *([] if record["released"] is None else _tables(record["released"])),
        *(f"![{name}]({name}.png)\n" for name in figures if name.endswith("-released")),
    ]
    if "simulation_only" in record:
        exact = record["simulation_only"]
        lines += ["## SIMULATION ONLY", "", f"**{EXACT}**", "", *_tables(exact)]
        lines += [f"![{name}]({name}.png)\n" for name in figures if name.endswith("-simulation")]
    return ("\n".join(lines).rstrip() + "\n").encode()


def _tables(found: Mapping[str, Any]) -> list[str]:
    lines = [f"| model | mean | worst decile | {' | '.join(SHOWN)} |", "|---" * (len(SHOWN) + 3) + "|"]
    for name, row in found["models"].items():
        cells = [row["mean"], row["worst_decile"], *(row["quantiles"][q] for q in SHOWN.values())]
        lines.append(f"| {name} | {' | '.join(map(said, cells))} |")
    if found["against_the_first"]:
        first = next(iter(found["models"]))
        lines += ["", f"| against {first} | accuracy | better for | worse for |", "|---|---|---|---|"]
    for name, row in found["against_the_first"].items():
        shares = [said(row[which], form=".1%") for which in ("better", "worse")]
        lines.append(f"| {name} | {said(row['mean'], form='+.4f')} | {' | '.join(shares)} |")
    return [*lines, ""]


def said(found: Estimate, *, form: str = ".4f") -> str:
    """A number and its interval; a dash where nothing is known."""
    if math.isnan(found.value):
        return "–"
    return f"{found.value:{form}} ({found.low:{form}} to {found.high:{form}})"


def _rest(share: Estimate) -> Estimate:
    return Estimate(1 - share.value, 1 - share.high, 1 - share.low)


def _json(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(plain(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
