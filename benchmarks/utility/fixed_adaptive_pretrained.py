"""A fixed clip norm, adaptive clipping and a pre-trained start in one comparison: accuracy and clip norm over rounds.

Paper 1 (arXiv:2305.18465), Figure 3, trains its en-GB model in these three ways under one noise multiplier, for 980
rounds with MinS 226: adaptive clipping "performs similar to fixed clipping, while achieves slightly weaker guarantees",
and pre-training "significantly reduces the number of rounds to reach the utility target". Here the same on real text,
paired by seed, with rounds, separation and the restart of adaptive clipping's tree divided by 3.75, and four times the
paper's noise on the mean. Only the tree of adaptive clipping restarts.

    ... --cache caches/blogs2k --public caches/public2k --runs runs/figure-3
    ... --table, or --figure docs/results/gboard-figure-3     from finished cells
    ... --runs runs/smoke --smoke                             a minute or two: does it work
    ... --guarantees                                          what the paper's own run promises, adaptive and fixed

The caches are those of `pretraining_saves_rounds.py`. Takes about 15 minutes of CPU time. Killed at any time,
the same command goes on.
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cells import Cell, Played, cell, chosen, figure, options, paired, play, read, small
from pretraining_saves_rounds import LARGER, TOP1, Reached, cost, last, percent, pretrain, public, reached

from tacit.design.losses import prefix_errors
from tacit.privacy import Guarantee, Participation, Tree
from tacit.reports.figure import BLUE, GREEN, ORANGE, Axis, Figure, Line, Panel
from tacit.reports.figure_files import save_figure

REPORT_GOAL = 20
NOISE = 4 * 7 * REPORT_GOAL / LARGER  # four times the papers' noise on the mean; see pretraining_saves_rounds.py
SEPARATION, RESTART = 60, 34  # the paper's 227 and 128 of 980 rounds, for 260
INITIAL, FIXED = 0.1, 0.8  # as in adaptive_clipping_on_text.py: low, and what the estimate comes to
KINDS = {"fixed": ("fixed clip norm", GREEN), "adaptive": ("adaptive", ORANGE), "pretrained": ("pre-trained", BLUE)}
TARGETS = (0.9, 0.95, 1.0)  # of the accuracy that the fixed clip norm ends with, seed by seed
TEST = "test_top1_accuracy"


def main() -> None:
    parser = options(__doc__, seeds=3, rounds=260)
    parser.add_argument("--public", type=Path, required=True, help="a cache of public text with the same vocabulary")
    parser.add_argument("--sentences", type=int, default=200_000, help="of public text, at most")
    parser.add_argument("--guarantees", action="store_true", help="print them, run nothing")
    asked = parser.parse_args()
    if asked.smoke:
        asked.seeds, asked.rounds, asked.sentences = 2, 12, 2_000
    if asked.guarantees:
        guarantees()
        return
    cells = chosen(planned(asked), asked.only)
    if asked.table or asked.figure:
        runs = read(cells, asked.runs)
    else:
        if any(each.recipe.model.init == public(asked, "separate") for each in cells):
            pretrain(asked, "separate")
        runs = play(cells, asked.runs, at_once=asked.at_once)
    if asked.figure:
        drawing = drawn(asked, runs)
        for ending in (".png", ".svg"):
            save_figure(drawing, asked.figure.with_suffix(ending))
    elif asked.table:
        print(table(asked, runs))
    else:
        report(asked, runs)


def guarantees() -> None:
    """Of the paper's run (Table 1, en-GB): zCDP with a tree that never restarts and with that of Algorithm 1.

    A restart adds noise to the prefix sums; `at_equal_noise` is the zCDP if the noise multiplier made up for that.
    """
    participation = Participation.from_rounds_between(rounds=980, rounds_between=226, max_participations=4)
    least = prefix_errors(Tree(variance_reduced=True), participation.rounds)[1]
    for name, restarts in (("fixed", ()), ("adaptive", (128,))):
        tree = Tree(restarts=restarts, variance_reduced=True)
        promise = Guarantee(participation=participation, strategy=tree, clip_norm=1.0, noise_multiplier=7.0)
        more = prefix_errors(tree, participation.rounds)[1] / least
        figure(
            "guarantee_of_the_papers_run",
            kind=name,
            restarts=restarts,
            zcdp=promise.zcdp,
            rms_error_over_fixed=more,
            zcdp_at_equal_noise=promise.zcdp * more**2,
        )


def planned(asked: argparse.Namespace) -> list[Cell]:
    return [one(asked, kind, seed) for seed in range(1, asked.seeds + 1) for kind in KINDS]


def one(asked: argparse.Namespace, kind: str, seed: int) -> Cell:
    adaptive = kind == "adaptive"
    restarts = {"restarts": [RESTART]} if adaptive and asked.rounds > RESTART else {}
    sections: dict[str, dict[str, Any]] = {
        "client": {"precision": "float32"},
        "rounds": {
            "rounds": asked.rounds,
            "report_goal": REPORT_GOAL,
            "min_separation": min(SEPARATION, asked.rounds),
        },
        "privacy": {
            "mechanism": {"name": "tree-variance-reduced", **restarts},
            "noise_multiplier": NOISE,
            "extrapolate_to": LARGER,
            "clip_norm": INITIAL if adaptive else FIXED,
        },
        "evaluation": {"every": 10},
    }
    if adaptive:
        sections["clipping"] = {"initial": INITIAL}
    if kind == "pretrained":
        sections["model"] = {"init": str(public(asked, "separate"))}
    return cell(f"{kind}-{seed}", small(sections), cache=asked.cache, seed=seed)


def triples(asked: argparse.Namespace, runs: dict[str, Played]) -> list[dict[str, Played]]:
    """The runs of each seed of which all three have ended, by kind."""
    found = [{kind: runs.get(f"{kind}-{seed}") for kind in KINDS} for seed in range(1, asked.seeds + 1)]
    return [{kind: run for kind, run in each.items() if run} for each in found if all(each.values())]


def found_at(all_three: Sequence[dict[str, Played]], kind: str, share: float) -> list[Reached]:
    """Of each seed: when this kind was first as good as so much of what the fixed clip norm ended with."""
    return [reached(each[kind], share * last(each["fixed"])) for each in all_three]


def report(asked: argparse.Namespace, runs: dict[str, Played]) -> None:
    all_three = triples(asked, runs)
    for kind in KINDS:
        among = [each[kind] for each in all_three]
        figure(
            "fixed_adaptive_pretrained",
            kind=kind,
            seeds=len(among),
            test_top1=[run.last(TEST) for run in among],
            zcdp_at_report_goal={str(LARGER): cost(among[0], asked.rounds)},
            clip_norm=[run.measures[-1].get("clip_norm", FIXED) for run in among],
            clip_estimate=[run.measures[-1].get("clip_estimate") for run in among],
            reached={str(share): [at._asdict() for at in found_at(all_three, kind, share)] for share in TARGETS},
        )
        if kind != "fixed" and len(all_three) > 1:
            values = [(each["fixed"].last(TEST), each[kind].last(TEST)) for each in all_three]
            figure("above_fixed", kind=kind, test_top1=paired(*zip(*values, strict=True))._asdict())


def table(asked: argparse.Namespace, runs: dict[str, Played]) -> str:
    """Markdown: what each ended with and what it promises, then the rounds and the zCDP that a target took."""
    all_three = triples(asked, runs)
    lines = [
        f"| run | top-1, test, mean ± sd | minus fixed, 95% | clip norm at the end | estimate | zCDP at {LARGER:,} |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for kind, (label, _) in KINDS.items():
        among = [each[kind] for each in all_three]
        pairs = [(each["fixed"].last(TEST), each[kind].last(TEST)) for each in all_three]
        norms = statistics.mean(run.measures[-1].get("clip_norm", FIXED) for run in among)
        estimates = [run.measures[-1]["clip_estimate"] for run in among if "clip_estimate" in run.measures[-1]]
        lines.append(
            f"| {label} | {percent([run.last(TEST) for run in among])} "
            f"| {'' if kind == 'fixed' else difference(pairs)} "
            f"| {norms:.3g} | {f'{statistics.mean(estimates):.3g}' if estimates else ''} "
            f"| {cost(among[0], asked.rounds):.4f} |"
        )
    lines += [
        "",
        "| target, share of fixed at its end | "
        + " | ".join(f"{label}: rounds (zCDP)" for label, _ in KINDS.values())
        + " |",
        "|--:|" + "---|" * len(KINDS),
    ]
    for share in TARGETS:
        columns = []
        for kind in KINDS:
            found = found_at(all_three, kind, share)
            columns.append(", ".join("never" if at.rounds is None else f"{at.rounds} ({at.zcdp:.2g})" for at in found))
        lines.append(f"| {share:.0%} | {' | '.join(columns)} |")
    return "\n".join(lines)


def difference(pairs: Sequence[tuple[float, float]]) -> str:
    """Second minus first over seeds, with its 95% interval; one seed has none."""
    if len(pairs) < 2:
        return f"{pairs[0][1] - pairs[0][0]:+.2%}, no interval"
    apart = paired(*zip(*pairs, strict=True))
    return f"{apart.mean:+.2%}, {apart.low:+.2%} to {apart.high:+.2%}"


def drawn(asked: argparse.Namespace, runs: dict[str, Played]) -> Figure:
    """Accuracy over rounds, one line a seed; the clip norm in force, and the estimate dotted."""
    left: list[Line] = []
    right: list[Line] = []
    for number, each in enumerate(triples(asked, runs)):
        for kind, (label, hue) in KINDS.items():
            curve, measures = sorted(each[kind].curves[TOP1].items()), each[kind].measures
            said = "" if number else label
            left.append(Line(label=said, x=[at for at, _ in curve], y=[of for _, of in curve], hue=hue, dots=False))
            if kind == "pretrained":
                continue  # clipped as the fixed one is
            rounds = range(1, len(measures) + 1)
            right.append(Line(label=said, x=rounds, y=[at.get("clip_norm", FIXED) for at in measures], hue=hue))
            if kind == "adaptive":
                dotted = "" if number else "its estimate"
                right.append(
                    Line(label=dotted, x=rounds, y=[at["clip_estimate"] for at in measures], hue=hue, stroke=2)
                )
    return Figure(
        name="gboard-figure-3",
        title="Fixed, adaptive and pre-trained",
        alt="The pre-trained model leads; adaptive clipping lags behind the fixed clip norm and nears it.",
        panels=(
            Panel(
                title="accuracy on validation clients",
                marks=tuple(left),
                x=Axis("private rounds"),
                y=Axis("top-1", percent=True, low=0),
            ),
            Panel(title="clip norm", marks=tuple(right), x=Axis("private rounds"), y=Axis("clip norm in force", low=0)),
        ),
        across=True,
    )


if __name__ == "__main__":
    main()
