"""Adaptive clipping finds a clip norm that works, unless it begins far too high: then it fails, and the run says so.

Paper 1 (arXiv:2305.18465), section 2.1 and Figure 3: started low, adaptive clipping (Algorithm 1: a tree with
restarts) catches up with the best fixed clip norm; with noise in proportion to a clip norm that is too large,
"catastrophic failure and [...] no progress in the first 1000 rounds". Here, on real text, paired by seed: adaptive
clipping from a low start against fixed clip norms that are too low, right and too high under the same noise
multiplier, and the catastrophe. Of every run: what `tacit train` warned of and in which round first, by
src/tacit/cli/clipping_failure.py.

    python benchmarks/utility/adaptive_clipping_on_text.py --cache caches/blogs2k --runs runs/adaptive
    ... --table, or --figure docs/results/adaptive-clipping  from finished cells
    ... --runs runs/smoke --smoke                            a few minutes: does it work
    python benchmarks/utility/adaptive_clipping_on_text.py --check runs/*/   false alarms in any run folders

The cache: `tacit data import DATA/blogs-en --out caches/blogs2k --vocabulary-size 2000 --vocabulary-from PUBLIC`.
`--check` asks every prefix of every run, not its end alone. A run with a fixed clip norm has no verdict; it is judged
as if the estimate were that clip norm, which asks the rules about its loss.
Takes about 11 minutes of CPU time. Killed at any time, the same command goes on.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cells import Cell, Played, cell, chosen, figure, options, paired, play, read, read_folder, save, small, spread

from tacit.runs.diagnostics import SHORTEST, ClippingFailure, clipping_failure

REPORT_GOAL, LARGER = 20, 6500
NOISE = 4 * 7 * REPORT_GOAL / LARGER  # four times the papers' noise on the mean; see pretraining_saves_rounds.py
RESTARTS = [16, 144]  # the papers' 128 and 1152, for an eighth of their rounds
INITIAL = 0.1  # low, as the paper advises: an eighth of what the estimate comes to
FIXED = {"too-low": 0.05, "right": 0.8, "too-high": 4.0}
CATASTROPHE = 14.0  # a start twenty times too large, under the same noise multiplier
TEST, LOOK = "test_top1_accuracy", "validation_top1_accuracy"


def main() -> None:
    if "--check" in sys.argv:
        check(sys.argv[sys.argv.index("--check") + 1 :])
        return
    parser = options(__doc__, seeds=2, rounds=260)
    asked = parser.parse_args()
    if asked.smoke:
        asked.seeds, asked.rounds = 2, 26
    cells = chosen(planned(asked), asked.only)
    runs = read(cells, asked.runs) if asked.table or asked.figure else play(cells, asked.runs, at_once=asked.at_once)
    if asked.figure:
        draw(asked, runs)
    elif asked.table:
        print(table(asked, runs))
    else:
        report(asked, runs)


def planned(asked: argparse.Namespace) -> list[Cell]:
    cells = []
    for seed in range(1, asked.seeds + 1):
        cells.append(one(asked, f"adaptive-{seed}", seed, initial=INITIAL))
        cells += [one(asked, f"{name}-{seed}", seed, fixed=norm) for name, norm in FIXED.items()]
        cells.append(one(asked, f"catastrophe-{seed}", seed, initial=CATASTROPHE))
    return cells


def one(
    asked: argparse.Namespace,
    name: str,
    seed: int,
    *,
    fixed: float | None = None,
    initial: float | None = None,
) -> Cell:
    restarts = [at for at in RESTARTS if at < asked.rounds]
    private: dict[str, Any] = {
        "mechanism": {"name": "tree-variance-reduced", "restarts": restarts},
        "noise_multiplier": NOISE,
        "extrapolate_to": LARGER,
        "clip_norm": initial if fixed is None else fixed,
    }
    sections: dict[str, Mapping[str, Any]] = {
        "rounds": {"rounds": asked.rounds, "report_goal": REPORT_GOAL, "min_separation": min(250, asked.rounds)},
        "privacy": private,
        "evaluation": {"every": 10},
    }
    if initial is not None:
        sections["clipping"] = {"initial": initial}
    return cell(name, small(sections), cache=asked.cache, seed=seed)


def alarms(measures: Sequence[Mapping[str, float]]) -> list[tuple[int, ClippingFailure]]:
    """(rounds done, verdict) whenever the judgement changes, asked after every round as `tacit train` asks."""
    found: list[tuple[int, ClippingFailure]] = []
    before = None
    for rounds in range(SHORTEST, len(measures) + 1):
        failure = clipping_failure(measures[:rounds])
        if failure is not None and failure.name != before:
            found.append((rounds, failure))
        before = None if failure is None else failure.name
    return found


def as_if_adaptive(run: Played) -> list[dict[str, float]]:
    """A fixed clip norm as an estimate that never moves."""
    norm = run.metadata.guarantee["clip_norm"]
    return [{"clip_norm": norm, "clip_estimate": norm, **each} for each in run.measures]


def report(asked: argparse.Namespace, runs: dict[str, Played]) -> None:
    for name, run in runs.items():
        last = run.measures[-1]
        figure(
            "adaptive_clipping_on_text",
            cell=name,
            test_top1=run.last(TEST),
            loss=last["loss"],
            clipped=last["clipped"],
            clip_norm=last.get("clip_norm", run.metadata.guarantee["clip_norm"]),
            clip_estimate=last.get("clip_estimate"),
            alarms=[{"after_rounds": rounds, "name": failure.name} for rounds, failure in alarms(run.measures)],
            says=[failure.advice for _, failure in alarms(run.measures)][:1],
        )
    for name in FIXED:
        both = [(runs.get(f"{name}-{seed}"), runs.get(f"adaptive-{seed}")) for seed in range(1, asked.seeds + 1)]
        values = [(fixed.last(TEST), adaptive.last(TEST)) for fixed, adaptive in both if fixed and adaptive]
        if len(values) > 1:
            apart = paired(*zip(*values, strict=True))
            figure("adaptive_above_fixed", fixed=name, clip_norm=FIXED[name], test_top1=apart._asdict())


def check(folders: Sequence[str]) -> None:
    """A line for each run folder among `folders` and right below them, and one for all."""
    counted = {"runs": 0, "adaptive": 0, "with_alarms": 0}
    for folder in sorted({found.parent for each in folders for found in run_files(Path(each))}):
        run = read_folder(folder)
        if len(run.measures) < SHORTEST:
            continue
        adaptive = "clip_estimate" in run.measures[0]
        found = alarms(run.measures if adaptive else as_if_adaptive(run))
        counted["runs"] += 1
        counted["adaptive"] += adaptive
        counted["with_alarms"] += bool(found)
        said = [{"after_rounds": rounds, "name": failure.name} for rounds, failure in found]
        figure("alarms", run=folder.name, rounds=len(run.measures), adaptive=adaptive, alarms=said)
    figure("alarms_in_all", **counted)


def run_files(folder: Path) -> list[Path]:
    return [*folder.glob("run.db"), *folder.glob("*/run.db")]


def table(asked: argparse.Namespace, runs: dict[str, Played]) -> str:
    """Markdown: one row a kind of run, then what the failed ones said."""
    lines = [
        "| clip norm | z | in force, first and last | estimate at the end | clipped at the end | top-1, test | alarm |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    said = {}
    for kind in ("adaptive", *FIXED, "catastrophe"):
        among = [runs[name] for name in runs if name.rsplit("-", 1)[0] == kind]
        if not among:
            continue
        active = [[each.get("clip_norm", FIXED.get(kind, math.nan)) for each in run.measures] for run in among]
        begun, ended = (shown([norms[at] for norms in active], ".3g") for at in (0, -1))
        estimates = [run.measures[-1]["clip_estimate"] for run in among if "clip_estimate" in run.measures[-1]]
        first = [next(iter(alarms(run.measures)), None) for run in among]
        if words := [each[1].advice for each in first if each]:
            said[kind] = words[0]
        told = ", ".join(f"{each[1].name}, after {each[0]} rounds" if each else "none" for each in first)
        lines.append(
            f"| {kind} | {among[0].metadata.guarantee['noise_multiplier']:.3g} | {begun}; {ended} "
            f"| {shown(estimates, '.3g') if estimates else 'fixed'} "
            f"| {shown([run.measures[-1]['clipped'] for run in among], '.0%')} "
            f"| {shown([run.last(TEST) for run in among], '.2%')} | {told} |"
        )
    lines += ["", *(f"{kind}: {words}" for kind, words in said.items())]
    return "\n".join(lines)


def shown(values: Sequence[float], form: str) -> str:
    """Mean and standard deviation; one value where they are all the same."""
    if len(set(values)) == 1:
        return f"{values[0]:{form}}"
    return f"{statistics.mean(values):{form}} ± {spread(values).deviation:{form}}"


def draw(asked: argparse.Namespace, runs: dict[str, Played]) -> None:
    """Clip norm and accuracy over rounds, of adaptive, fixed and failed runs; a line for every seed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import PercentFormatter

    drawing, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    colours = {
        "adaptive": "#1f6feb",
        "too-low": "#8c959f",
        "right": "#1a7f37",
        "too-high": "#bc4c00",
        "catastrophe": "#cf222e",
    }
    labels = {
        "adaptive": f"adaptive, from {INITIAL:g}",
        **{name: f"fixed at {norm:g}, {name.replace('-', ' ')}" for name, norm in FIXED.items()},
        "catastrophe": f"adaptive, from {CATASTROPHE:g}",
    }
    for name, run in runs.items():
        kind, number = name.rsplit("-", 1)
        label = labels[kind] if number == "1" else None
        if "clip_norm" in run.measures[0]:
            rounds = range(1, len(run.measures) + 1)
            left.plot(rounds, [each["clip_norm"] for each in run.measures], color=colours[kind], label=label)
            left.plot(rounds, [each["clip_estimate"] for each in run.measures], ":", color=colours[kind])
            for at, _ in alarms(run.measures)[:1]:
                estimate = run.measures[at - 1]["clip_estimate"]
                said = {"label": "first alarm"} if number == "1" else {}
                left.plot(at, estimate, "X", color=colours[kind], markersize=9, **said)
        else:
            left.axhline(FIXED[kind], color=colours[kind], linestyle="--", label=label)
        curve = sorted(run.curves[LOOK].items())
        right.plot(*zip(*curve, strict=True), color=colours[kind], label=label)
    left.set(yscale="log", xlabel="round", title="clip norm in force; its estimate dotted")
    right.set(xlabel="round", title="top-1 accuracy, validation clients")
    right.yaxis.set_major_formatter(PercentFormatter(1))
    for axes in (left, right):
        axes.grid(color="#eaeef2")
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, fontsize=8)
    save(drawing, asked.figure)


if __name__ == "__main__":
    main()
