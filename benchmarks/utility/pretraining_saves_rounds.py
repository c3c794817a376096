"""Pre-training on public text saves most of the private rounds, and the privacy that they cost.

Paper 1 (arXiv:2305.18465), Figure 3(a) and section 2.3: the pre-trained model reaches a utility target about 1,000
rounds earlier under the same noise, and so at a smaller zCDP; models with tied embeddings are hard to fine-tune; the
accuracy may fall in the first rounds. Here: `tacit pretrain` on public text, then DP-FTRL (variance-reduced tree) from
the pre-trained and from a random model, separate and tied embeddings, paired by seed: rounds to targets as ratios, and
the zCDP of stopping there. Cells `first-*` look at every one of the first 20 rounds, with noise and without.

    python benchmarks/utility/pretraining_saves_rounds.py --cache caches/blogs2k --public caches/public2k \
        --runs runs/pretraining
    ... --only 'separate-*' 'first-separate-*'             separate embeddings alone
    ... --table, or --figure docs/results/pretraining      from finished cells
    ... --runs runs/smoke --smoke                          a few minutes: does it work

The caches: `tacit data import DATA/blogs-en --out caches/blogs2k --vocabulary-size 2000 --vocabulary-from PUBLIC` and
`tacit data import public:PUBLIC,... --out caches/public2k --vocabulary caches/blogs2k/vocabulary.json`.
Takes about 25 minutes of CPU time. Killed at any time, the same command goes on.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cells import SMALL, TACIT, Cell, Played, cell, chosen, figure, options, play, read, save, small, spread

from tacit.privacy import Participation
from tacit.recipe import Recipe

REPORT_GOAL, LARGER = 40, 6500  # what is simulated, and the papers' report goal, for which zCDP is given
# Four times the papers' noise on the mean (7 / 6500): with an eighth of their parameters its norm is 1.5 times theirs.
NOISE = 4 * 7 * REPORT_GOAL / LARGER
MIN_SEPARATION = 120  # 40 clients a round keep 4,800 of about 6,100 busy
TARGETS = (0.8, 0.9, 0.95, 0.98, 1.0)  # of the accuracy that the random model with separate embeddings ends with
KINDS, STARTS = ("separate", "tied"), ("pretrained", "random")
FIRST = 20  # rounds that are looked at one by one
TOP1 = "validation_top1_accuracy"


def main() -> None:
    parser = options(__doc__, seeds=2, rounds=400)
    parser.add_argument("--public", type=Path, required=True, help="a cache of public text with the same vocabulary")
    parser.add_argument("--sentences", type=int, default=200_000, help="of public text, at most")
    asked = parser.parse_args()
    if asked.smoke:
        asked.seeds, asked.rounds, asked.sentences = 2, 12, 2_000
    cells = chosen(planned(asked), asked.only)
    if asked.table or asked.figure:
        runs = read(cells, asked.runs)
    else:
        for kind in KINDS:
            if any(each.recipe.model.init == public(asked, kind) for each in cells):
                pretrain(asked, kind)
        runs = play(cells, asked.runs, at_once=asked.at_once)
    if asked.figure:
        draw(asked, runs)
    elif asked.table:
        print(table(asked, runs))
    else:
        report(asked, runs)


def public(asked: argparse.Namespace, kind: str) -> Path:
    return asked.runs / f"public-{kind}"


def pretrain(asked: argparse.Namespace, kind: str) -> None:
    """`tacit pretrain`, which does nothing where it has ended already."""
    asked.runs.mkdir(parents=True, exist_ok=True)
    size = [f"--{name}={value}" for name, value in SMALL["model"].items()] + ["--tied"] * (kind == "tied")
    amount = [f"--sentences={asked.sentences}", f"--every={max(asked.sentences // 12, 1)}"]
    command = [*TACIT, "pretrain", str(asked.public), "--out", str(public(asked, kind)), *size, *amount]
    subprocess.run(command, check=True, stdout=sys.stderr)


def planned(asked: argparse.Namespace) -> list[Cell]:
    """Whole runs first; then the first rounds one by one."""
    cells = []
    for seed in range(1, asked.seeds + 1):
        for kind in KINDS:
            for start in STARTS:
                cells.append(one(asked, f"{kind}-{start}-{seed}", kind, start, seed, rounds=asked.rounds))
        for kind in KINDS:
            cells.append(one(asked, f"first-{kind}-{seed}", kind, "pretrained", seed, rounds=FIRST, every=1))
        quiet = f"first-noiseless-{seed}"
        cells.append(one(asked, quiet, "separate", "pretrained", seed, rounds=FIRST, every=1, noise=False))
    return cells


def one(
    asked: argparse.Namespace,
    name: str,
    kind: str,
    start: str,
    seed: int,
    *,
    rounds: int,
    every: int = 10,
    noise: bool = True,
) -> Cell:
    private = {"mechanism": {"name": "tree-variance-reduced"}, "noise_multiplier": NOISE, "extrapolate_to": LARGER}
    begins = {"init": str(public(asked, kind))} if start == "pretrained" else {}
    sections: dict[str, dict[str, Any]] = {
        "model": {"tied": kind == "tied", **begins},
        "rounds": {"rounds": rounds, "report_goal": REPORT_GOAL, "min_separation": min(MIN_SEPARATION, rounds)},
        "privacy": private if noise else {"mechanism": {"name": "none"}},
        "evaluation": {"every": every},
    }
    return cell(name, small(sections), cache=asked.cache, seed=seed)


class Reached(NamedTuple):
    """What a run had paid when it first was as good as a target; None: it never was."""

    rounds: int | None
    zcdp: float | None


def reached(run: Played, target: float) -> Reached:
    """The first look at which the accuracy is at least the target, and the zCDP of stopping there at LARGER reports."""
    rounds = next((at for at, value in sorted(run.curves[TOP1].items()) if value >= target), None)
    return Reached(rounds, None if rounds is None else cost(run, rounds))


def cost(run: Played, rounds: int) -> float:
    """zCDP of the first rounds alone under the planned separation, at LARGER reports and as much noise on the mean."""
    if not rounds:
        return 0.0
    recipe = Recipe.from_toml(run.metadata.recipe)
    prefix = Participation.worst_case(rounds=rounds, min_separation=recipe.rounds.min_separation)
    whole = recipe.guarantee()
    scale = LARGER / recipe.rounds.report_goal
    return replace(whole, participation=prefix, noise_multiplier=whole.noise_multiplier * scale).zcdp


def pairs(asked: argparse.Namespace, runs: dict[str, Played], kind: str) -> list[tuple[Played, Played]]:
    """(pre-trained, random) of each seed of which both have ended."""
    found = [[runs.get(f"{kind}-{start}-{seed}") for start in STARTS] for seed in range(1, asked.seeds + 1)]
    return [(first, second) for first, second in found if first and second]


def target_of(asked: argparse.Namespace, runs: dict[str, Played], share: float) -> float:
    return share * statistics.mean(last(second) for _, second in pairs(asked, runs, "separate"))


def last(run: Played) -> float:
    """Mean accuracy of the last three looks: one look varies."""
    curve = run.curves[TOP1]
    return statistics.mean(curve[at] for at in sorted(curve)[-3:])


def report(asked: argparse.Namespace, runs: dict[str, Played]) -> None:
    for kind in KINDS:
        both = pairs(asked, runs, kind)
        if len(both) < 2:
            continue
        for start, among in zip(STARTS, zip(*both, strict=True), strict=True):
            figure(
                "accuracy",
                embeddings=kind,
                start=start,
                parameters=among[0].metadata.parameters,
                seeds=len(among),
                first=[run.curves[TOP1][0] for run in among],
                last=spread([last(run) for run in among])._asdict(),
            )
        for share in TARGETS:
            target = target_of(asked, runs, share)
            found = [(reached(first, target), reached(second, target)) for first, second in both]
            figure(
                "pretraining_saves_rounds",
                embeddings=kind,
                target=target,
                share_of_the_last=share,
                rounds_pretrained=[first.rounds for first, _ in found],
                rounds_random=[second.rounds for _, second in found],
                ratios=[ratio(first.rounds, second.rounds) for first, second in found],
                zcdp_pretrained=[first.zcdp for first, _ in found],
                zcdp_random=[second.zcdp for _, second in found],
                zcdp_ratios=[ratio(first.zcdp, second.zcdp) for first, second in found],
                zcdp_at_report_goal=LARGER,
            )
        worth = [(reached(second, before(first)), before(first)) for first, second in both]
        figure(
            "rounds_that_pretraining_is_worth",  # until the random model is as good as the other before its first round
            embeddings=kind,
            accuracy=[accuracy for _, accuracy in worth],
            rounds=[found.rounds for found, _ in worth],
            zcdp=[found.zcdp for found, _ in worth],
        )
    for name, run in runs.items():
        if name.startswith("first-"):
            lowest, back = dip(run)
            figure("first_rounds", cell=name, start=run.curves[TOP1][0], lowest_at=lowest, back_at=back, **depth(run))


def ratio(less: float | None, more: float | None) -> float | None:
    """How many times `more` is `less`; None where either is missing or nothing."""
    return more / less if less and more else None


def dip(run: Played) -> tuple[int, int | None]:
    """(the round with the lowest accuracy, the first one after it that is as good as the first model again)."""
    curve = run.curves[TOP1]
    lowest = min(curve, key=lambda at: (curve[at], at))
    return lowest, next((at for at in sorted(curve) if at >= lowest and curve[at] >= curve[0]), None)


def depth(run: Played) -> dict[str, float]:
    curve = run.curves[TOP1]
    return {"lowest": min(curve.values()), "fall": curve[0] - min(curve.values())}


def table(asked: argparse.Namespace, runs: dict[str, Played]) -> str:
    """Markdown: accuracies, rounds to targets, first rounds."""
    lines = [
        "| embeddings | parameters | start | top-1 before the first round | at the end, mean ± sd over seeds |",
        "|---|--:|---|--:|--:|",
    ]
    for kind in KINDS:
        for start, among in zip(STARTS, zip(*pairs(asked, runs, kind), strict=True), strict=False):
            begun, ended = (percent([value(run) for run in among]) for value in (before, last))
            lines.append(f"| {kind} | {among[0].metadata.parameters:,} | {start} | {begun} | {ended} |")
    lines += [
        "",
        f"| embeddings | target, top-1 | rounds, pre-trained | rounds, random | ratio | zCDP at {LARGER:,} reports, "
        "pre-trained | random | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    shown = [kind for kind in KINDS if pairs(asked, runs, kind)]
    for kind in shown:
        for share in TARGETS:
            target = target_of(asked, runs, share)
            found = [(reached(a, target), reached(b, target)) for a, b in pairs(asked, runs, kind)]
            columns = [
                each([first.rounds for first, _ in found], "{:d}"),
                each([second.rounds for _, second in found], "{:d}"),
                each([ratio(first.rounds, second.rounds) for first, second in found], "{:.1f}"),
                each([first.zcdp for first, _ in found], "{:.3g}"),
                each([second.zcdp for _, second in found], "{:.3g}"),
                each([ratio(first.zcdp, second.zcdp) for first, second in found], "{:.1f}"),
            ]
            lines.append(f"| {kind} | {target:.2%} ({share:.0%}) | {' | '.join(columns)} |")
    for kind in shown:
        worth = [reached(second, before(first)).rounds for first, second in pairs(asked, runs, kind)]
        words = "rounds until the random model is as good as the pre-trained one before its first round"
        lines += ["", f"{kind.capitalize()} embeddings, {words}: {each(worth, '{:d}')}."]
    lines += ["", "| first 20 rounds | before | lowest | in round | as good again in round |", "|---|--:|--:|--:|--:|"]
    for name, run in runs.items():
        if name.startswith("first-"):
            lowest, back = dip(run)
            low = run.curves[TOP1][lowest]
            again = "not within these" if back is None else back
            lines.append(f"| {name.removeprefix('first-')} | {before(run):.2%} | {low:.2%} | {lowest} | {again} |")
    return "\n".join(lines)


def before(run: Played) -> float:
    return run.curves[TOP1][0]


def percent(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.2%} ± {statistics.stdev(values):.2%}" if len(values) > 1 else f"{values[0]:.2%}"


def each(values: Sequence[float | None], form: str) -> str:
    """One value a seed."""
    return ", ".join("-" if value is None else form.format(value) for value in values)


def draw(asked: argparse.Namespace, runs: dict[str, Played]) -> None:
    """Accuracy over rounds with the range over seeds; and the first rounds, one by one."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import PercentFormatter

    drawing, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(3, 2), layout="constrained")
    colours, lines = {"pretrained": "#1f6feb", "random": "#d9730d"}, {"separate": "-", "tied": "--"}
    for kind in KINDS:
        for start, among in zip(STARTS, zip(*pairs(asked, runs, kind), strict=True), strict=False):
            at = sorted(among[0].curves[TOP1])
            values = [[run.curves[TOP1][each] for run in among] for each in at]
            label = f"{'pre-trained' if start == 'pretrained' else 'random'}, {kind} embeddings"
            left.plot(at, [statistics.mean(v) for v in values], lines[kind], color=colours[start], label=label)
            left.fill_between(at, [min(v) for v in values], [max(v) for v in values], color=colours[start], alpha=0.2)
    left.set(xlabel="private rounds", ylabel="top-1 accuracy, validation clients", title="whole runs; range over seeds")
    shown = {
        "separate": ("separate, private", "#1f6feb", "-"),
        "tied": ("tied, private", "#1f6feb", "--"),
        "noiseless": ("separate, no noise", "#57606a", ":"),
    }
    for what, (label, colour, line) in shown.items():
        for number, run in enumerate(runs[name] for name in runs if name.startswith(f"first-{what}-")):
            curve = sorted(run.curves[TOP1].items())
            right.plot(*zip(*curve, strict=True), line, color=colour, label=label if not number else None)
    right.set(xlabel="private rounds", title="first rounds from the pre-trained model")
    bottom, top = right.get_ylim()
    right.set_ylim(bottom - 0.25 * (top - bottom), top)  # room for the legend
    for axes in (left, right):
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=None))
        axes.grid(color="#eaeef2")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower right")
    save(drawing, asked.figure)


if __name__ == "__main__":
    main()
