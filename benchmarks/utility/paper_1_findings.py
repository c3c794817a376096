"""Large goals learn faster, public text pays by amount, and adaptive clipping fails by the noise on the mean.

Three remarks of paper 1 (arXiv:2305.18465) on real text, with paired seeds and four local steps a client:

goals (section 2.2): "using a larger report goal speeds up learning at the beginning of training", said of 500 reports
with noise multiplier 0.54 against 6,500 with 7. Here 12 against 156, thirteen times as many as well, with the same
noise on the mean; and the same goals at equal zCDP, each with the largest separation that the clients allow.

clipping (section 2.1): a fixed clip norm "is more robust in experiments with large report goal"; adaptive clipping
"experiences catastrophic failure and makes no progress in the first 1000 rounds". Algorithm 1 written in means knows no
report goal, only nu = noise multiplier / report goal (docs/results/paper-1-findings.md). So the prediction is that what
fails at one goal fails at the other with the same noise on the mean, and that with the same noise *multiplier* the
small goal fails first. Adaptive clipping from a low and from a high start, and from the low one with loud noise beside
a clip norm that stays there, each at 12 and at 156 reports.

pretraining (section 2.3): "pretraining helps with diminishing marginal returns". `tacit pretrain` on amounts of public
text that grow fourfold, then the same private rounds from each with five seeds.

    python benchmarks/utility/paper_1_findings.py --cache caches/blogs2k --public caches/public2k --runs runs/paper-1
    ... --only 'same-noise-*' 'equal-zcdp-*'            one of the three
    ... --table, or --figure docs/results/paper-1-findings  from finished cells
    ... --runs runs/smoke --smoke                       a few minutes: does it work

The caches: see pretraining_saves_rounds.py. Takes about 12 minutes of CPU time.
Killed at any time, the same command goes on.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from math import log2, sqrt
from pathlib import Path
from typing import Any

from cells import TACIT, Cell, Played, Spread, cell, chosen, figure, options, paired, play, read, save, spread

from tacit.recipe import Recipe
from tacit.runs.diagnostics import clipping_failure

GOALS = (12, 48, 156)  # 156 = 13 x 12, as the paper's 6,500 = 13 x 500
NETWORK = {"embedding": 32, "units": 64}  # 80,528 parameters with tied embeddings
# Noise multiplier for each report with which the noise on the mean is as long, in clip norms, as the papers' is,
# (7 / 6,500), in their network of 2.4 million parameters.
NOISE = 7 / 6500 * sqrt(2_400_000 / 80_528)
CLIENTS = 6_000  # of the 6,131 for training: the largest separation is so many / report goal
FIXED = 0.8  # about the estimate of a working run
LOW, HIGH = 0.2, 6.4  # where adaptive clipping begins: a quarter of that, and eight times
LOUD = 8  # times NOISE
RESTARTS, FAILING = (8, 16), 32  # rounds: what a clip norm taken over leads to is seen right away
AMOUNTS = (0, 12_500, 50_000, 200_000)  # sentences of public text
PRIVATE = 64  # rounds after pre-training
LOOK, TEST = "validation_top1_accuracy", "test_top1_accuracy"


def main() -> None:
    parser = options(__doc__, seeds=5, rounds=40)
    parser.add_argument("--public", type=Path, required=True, help="a cache of public text with the same vocabulary")
    asked = parser.parse_args()
    asked.goals, asked.amounts, asked.private = GOALS, AMOUNTS, PRIVATE
    if asked.smoke:
        asked.seeds, asked.rounds, asked.goals, asked.amounts, asked.private = 2, 20, (2, 4, 8), (0, 500, 2_000), 10
    cells = chosen(planned(asked), asked.only)
    if asked.table or asked.figure:
        runs = read(cells, asked.runs)
    else:
        pretrain(asked, cells)
        runs = play(cells, asked.runs, at_once=asked.at_once)
    if asked.figure:
        draw(asked, runs)
    elif asked.table:
        print(table(asked, runs))
    else:
        report(asked, runs)


def planned(asked: argparse.Namespace) -> list[Cell]:
    """Seed by seed, so that an experiment that was stopped has whole pairs."""
    parts = (of_goals, of_clipping, of_amounts)
    return [each for seed in range(1, asked.seeds + 1) for part in parts for each in part(asked, seed)]


def of_goals(asked: argparse.Namespace, seed: int) -> list[Cell]:
    """Every goal with the same noise on the mean; and the outer ones at the zCDP of the middle one."""

    def with_noise(kind: str, goal: int, noise: float) -> Cell:
        return one(asked, f"{kind}-{goal}-{seed}", seed, goal=goal, noise=noise, rounds=asked.rounds)

    cells = [with_noise("same-noise", goal, NOISE) for goal in asked.goals]
    least, middle, most = (each.recipe.guarantee().zcdp for each in cells)
    for goal, zcdp in ((asked.goals[0], least), (asked.goals[-1], most)):
        cells.append(with_noise("equal-zcdp", goal, NOISE * sqrt(zcdp / middle)))
    return cells


def of_clipping(asked: argparse.Namespace, seed: int) -> list[Cell]:
    """The smallest and the largest goal from a low start, from a high one, and from a low one with loud noise."""

    def failing(kind: str, goal: int, noise: float, clip: float) -> Cell:
        return one(
            asked,
            f"{kind}-{goal}-{seed}",
            seed,
            goal=goal,
            noise=noise,
            rounds=FAILING,
            clip=clip,
            restarts=RESTARTS,
            adaptive=kind != "loud-fixed",
        )

    cells = []
    small, large = asked.goals[0], asked.goals[-1]
    for goal in (small, large):
        cells += [failing("low", goal, NOISE, LOW), failing("high", goal, NOISE, HIGH)]
        cells += [failing("loud", goal, LOUD * NOISE, LOW), failing("loud-fixed", goal, LOUD * NOISE, LOW)]
    return [*cells, failing("same-multiplier", small, NOISE * large / small, LOW)]


def of_amounts(asked: argparse.Namespace, seed: int) -> list[Cell]:
    """Embeddings are separate: tied ones fine-tune badly (docs/results/pretraining.md)."""
    cells = []
    for amount in asked.amounts:
        begins = {"init": str(public(asked, amount))} if amount else {}
        name, model = f"public-{amount}-{seed}", {"tied": False, **begins}
        cells.append(one(asked, name, seed, goal=asked.goals[0], rounds=asked.private, model=model))
    return cells


def one(
    asked: argparse.Namespace,
    name: str,
    seed: int,
    *,
    goal: int,
    rounds: int,
    noise: float = NOISE,
    clip: float = FIXED,
    restarts: Sequence[int] = (),
    adaptive: bool = False,
    model: Mapping[str, Any] = {"tied": True},
) -> Cell:
    """noise: multiplier for each report, before the counts of adaptive clipping have their part of it."""
    tree: dict[str, Any] = {"name": "tree-variance-reduced"}
    sections: dict[str, Mapping[str, Any]] = {
        "model": {**NETWORK, **model},
        "client": {"batch_size": 2, "sentences": 8, "learning_rate": 1.0, "precision": "float32"},
        "server": {"method": "nesterov", "learning_rate": 2.0},
        "rounds": {"rounds": rounds, "report_goal": goal, "min_separation": min(rounds, CLIENTS // goal)},
        "privacy": {
            "mechanism": tree | ({"restarts": list(restarts)} if restarts else {}),
            "noise_multiplier": noise * goal,
            "clip_norm": clip,
        },
        "evaluation": {"every": 8, "clients": 60, "test_clients": 200, "sentences": 16},
    }
    if adaptive:
        sections["clipping"] = {"initial": clip}
    return cell(name, sections, cache=asked.cache, seed=seed)


def public(asked: argparse.Namespace, amount: int) -> Path:
    return asked.runs / f"on-public-{amount}"


def pretrain(asked: argparse.Namespace, cells: Sequence[Cell]) -> None:
    """`tacit pretrain` for what the cells begin from, which does nothing where it has ended already."""
    asked.runs.mkdir(parents=True, exist_ok=True)
    size = [f"--{name}={value}" for name, value in NETWORK.items()]
    for amount in asked.amounts:
        if any(each.recipe.model.init == public(asked, amount) for each in cells):
            command = [*TACIT, "pretrain", str(asked.public), "--out", str(public(asked, amount)), *size]
            subprocess.run([*command, f"--sentences={amount}", f"--every={amount}"], check=True, stdout=sys.stderr)


def values(runs: Mapping[str, Played], kind: str, of: Callable[[Played], float]) -> dict[int, float]:
    """{seed: of(run)} of the finished runs of a kind, as "same-noise-12"."""
    found = {int(name.rpartition("-")[2]): of(run) for name, run in runs.items() if name.rpartition("-")[0] == kind}
    return dict(sorted(found.items()))


def mean_of(runs: Mapping[str, Played], kind: str, of: Callable[[Played], float]) -> Spread | None:
    """None where fewer than two seeds have ended, here and below."""
    found = list(values(runs, kind, of).values())
    return spread(found) if len(found) > 1 else None


def apart(runs: Mapping[str, Played], first: str, second: str, of: Callable[[Played], float]) -> Spread | None:
    """second - first, of the seeds that both have."""
    a, b = values(runs, first, of), values(runs, second, of)
    both = sorted(a.keys() & b.keys())
    return paired([a[seed] for seed in both], [b[seed] for seed in both]) if len(both) > 1 else None


def at(rounds: int) -> Callable[[Played], float]:
    return lambda run: run.curves[LOOK][rounds]


def test(run: Played) -> float:
    return run.last(TEST)


def doublings(run: Played) -> float:
    """Of the estimate, from the start to the end: Algorithm 1 moves it geometrically."""
    return log2(run.measures[-1]["clip_estimate"] / run.measures[0]["clip_norm"])


def exploded(run: Played) -> bool:
    """Whether `tacit train` would say at the end that the clip norm explodes; of a fixed one it never does."""
    failure = clipping_failure(run.measures)
    return failure is not None and failure.name == "clip norm exploding"


def looks(runs: Mapping[str, Played], kind: str) -> list[int]:
    """The rounds after which every run of a kind was looked at."""
    found = [set(run.curves[LOOK]) for name, run in runs.items() if name.rpartition("-")[0] == kind]
    return sorted(set.intersection(*found)) if found else []


def report(asked: argparse.Namespace, runs: Mapping[str, Played]) -> None:
    small, _, large = asked.goals
    for kind in kinds(runs):
        facts: dict[str, object] = {
            "seeds": len(values(runs, kind, test)),
            "test_top1": said(mean_of(runs, kind, test)),
        }
        facts |= {f"top1_after_{rounds}": said(mean_of(runs, kind, at(rounds))) for rounds in looks(runs, kind)}
        if "clip_estimate" in of_kind(runs, kind)[0].measures[0]:
            facts["doublings_of_the_estimate"] = said(mean_of(runs, kind, doublings))
        figure(kind, **facts, exploded=sum(map(exploded, of_kind(runs, kind))))
    for kind in ("same-noise", "equal-zcdp"):
        first, second = f"{kind}-{small}", f"{kind}-{large}"
        for rounds in sorted(set(looks(runs, first)) & set(looks(runs, second))):
            difference = said(apart(runs, first, second, at(rounds)))
            figure(f"{kind}: {large} less {small} reports", after=rounds, top1=difference)
    for kind in ("low", "high", "loud"):
        difference = said(apart(runs, f"{kind}-{small}", f"{kind}-{large}", doublings))
        figure(f"{kind}: {large} less {small} reports", doublings_of_the_estimate=difference)
    for less, more in zip(asked.amounts, asked.amounts[1:], strict=False):
        figure(
            f"public-{more} less public-{less}", test_top1=said(apart(runs, f"public-{less}", f"public-{more}", test))
        )


def kinds(runs: Mapping[str, Played]) -> list[str]:
    return list(dict.fromkeys(name.rpartition("-")[0] for name in runs))


def of_kind(runs: Mapping[str, Played], kind: str) -> list[Played]:
    return [run for name, run in runs.items() if name.rpartition("-")[0] == kind]


def said(of: Spread | None) -> dict[str, float] | None:
    return None if of is None else of._asdict()


def table(asked: argparse.Namespace, runs: Mapping[str, Played]) -> str:
    """Markdown: report goals, clip norms, amounts of public text."""
    return "\n".join([*goals_table(asked, runs), "", *clipping_table(asked, runs), "", *amounts_table(asked, runs)])


def goals_table(asked: argparse.Namespace, runs: Mapping[str, Played]) -> list[str]:
    small, middle, large = asked.goals
    rounds = [each for each in looks(runs, f"same-noise-{large}") if each]
    head = " | ".join(f"after {each}" for each in rounds)
    lines = [f"| noise | report goal | z | zCDP | {head} | test |", "|---|--:|--:|--:|" + "--:|" * (len(rounds) + 1)]
    for kind, goals in (("same-noise", asked.goals), ("equal-zcdp", asked.goals)):
        for goal in goals:
            name = f"{kind if goal != middle else 'same-noise'}-{goal}"
            if (among := of_kind(runs, name)) and (last := mean_of(runs, name, test)):
                guarantee = Recipe.from_toml(among[0].metadata.recipe).guarantee()
                curve = " | ".join(percent(mean_of(runs, name, at(each))) for each in rounds)
                cost = f"{guarantee.noise_multiplier:.3g} | {guarantee.zcdp:.3g}"
                lines.append(f"| {kind} | {goal} | {cost} | {curve} | {percent(last)} |")
        first, second = f"{kind}-{small}", f"{kind}-{large}"
        measures = [*map(at, rounds), test]
        differences = " | ".join(points(apart(runs, first, second, of)) for of in measures)
        lines.append(f"| {kind} | {large} - {small}, pairs | | | {differences} |")
    return lines


def clipping_table(asked: argparse.Namespace, runs: Mapping[str, Played]) -> list[str]:
    small, _, large = asked.goals
    lines = [
        "| run | report goal | z / goal | begins | in force at the end | doublings of the estimate | exploded | test |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for kind in ("low", "high", "loud", "loud-fixed", "same-multiplier"):
        for goal in (small, large):
            name = f"{kind}-{goal}"
            if not (among := of_kind(runs, name)):
                continue
            begins = Recipe.from_toml(among[0].metadata.recipe).privacy
            ends = [run.measures[-1].get("clip_norm", begins.clip_norm) for run in among]
            moved = "fixed" if kind == "loud-fixed" else plain(mean_of(runs, name, doublings))
            lines.append(
                f"| {kind} | {goal} | {(begins.noise_multiplier or 0) / goal:.4f} | {begins.clip_norm:g} "
                f"| {statistics.median(ends):.3g} | {moved} "
                f"| {sum(map(exploded, among))} of {len(among)} | {percent(mean_of(runs, name, test))} |"
            )
        if difference := apart(runs, f"{kind}-{small}", f"{kind}-{large}", test if kind == "loud-fixed" else doublings):
            shown = ("fixed", points(difference)) if kind == "loud-fixed" else (plain(difference), "")
            lines.append(f"| {kind} | {large} - {small}, pairs | | | | {shown[0]} | | {shown[1]} |")
    return lines


def amounts_table(asked: argparse.Namespace, runs: Mapping[str, Played]) -> list[str]:
    lines = [
        "| public sentences | before | lowest look | after the last round | test | more than the row above, pairs |"
    ]
    lines.append("|--:|--:|--:|--:|--:|--:|")
    for less, amount in zip((None, *asked.amounts), asked.amounts, strict=False):
        name = f"public-{amount}"
        if not (rounds := looks(runs, name)):
            continue
        more = "" if less is None else points(apart(runs, f"public-{less}", name, test))
        columns = [percent(mean_of(runs, name, of)) for of in (at(0), lowest, at(rounds[-1]), test)]
        lines.append(f"| {amount:,} | {' | '.join(columns)} | {more} |")
    return lines


def lowest(run: Played) -> float:
    return min(run.curves[LOOK].values())


def percent(of: Spread | None) -> str:
    return "" if of is None else f"{of.mean:.2%} ± {of.mean - of.low:.2%}"


def points(of: Spread | None) -> str:
    return "" if of is None else f"{100 * of.mean:+.2f} ({100 * of.low:+.2f} to {100 * of.high:+.2f})"


def plain(of: Spread | None) -> str:
    return "" if of is None else f"{of.mean:+.2f} ({of.low:+.2f} to {of.high:+.2f})"


def draw(asked: argparse.Namespace, runs: Mapping[str, Played]) -> None:
    """Accuracy over rounds by goal, estimates of the clip norm, accuracy by amount; bands are 95% intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import PercentFormatter

    drawing, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    small, centre, large = asked.goals
    colours = {small: "#d9730d", centre: "#8c959f", large: "#1f6feb"}

    def band(axes: Any, kind: str, x: Sequence[float], of: Sequence[Callable[[Played], float]], **line: Any) -> None:
        found = [(each, there) for each, one in zip(x, of, strict=True) if (there := mean_of(runs, kind, one))]
        if found:
            places, spreads = zip(*found, strict=True)
            axes.plot(places, [each.mean for each in spreads], **line)
            low, high = [each.low for each in spreads], [each.high for each in spreads]
            axes.fill_between(places, low, high, color=line["color"], alpha=0.15, linewidth=0)

    for kind, style in (("same-noise", "-"), ("equal-zcdp", "--")):
        for goal in asked.goals:
            name, label = f"{kind}-{goal}", f"{goal} reports, {kind.replace('-', ' ')}"
            rounds = looks(runs, name)
            band(left, name, rounds, [at(each) for each in rounds], color=colours[goal], linestyle=style, label=label)
    left.set(xlabel="private rounds", ylabel="top-1, validation clients", title="report goals")
    for kind, style in (("low", "-"), ("high", "--"), ("loud", ":")):
        for goal in (small, large):
            estimates = [[each["clip_estimate"] for each in run.measures] for run in of_kind(runs, f"{kind}-{goal}")]
            for number, curve in enumerate(estimates):
                said = f"{kind}, {goal} reports" if not number else None
                at_rounds = range(1, len(curve) + 1)
                middle.plot(at_rounds, curve, style, color=colours[goal], linewidth=1, alpha=0.8, label=said)
    middle.set(yscale="log", xlabel="private rounds", title="estimate of the clip norm, each seed")
    places = [max(amount, asked.amounts[1] / 4) for amount in asked.amounts]
    for colour, label, of in (
        ("#8c959f", "before the first private round", at(0)),
        ("#1f6feb", f"after {asked.private}, validation", at(asked.private)),
        ("#1a7f37", f"after {asked.private}, test", test),
    ):
        found = [
            (where, mean_of(runs, f"public-{amount}", of)) for where, amount in zip(places, asked.amounts, strict=True)
        ]
        shown = [(where, there) for where, there in found if there]
        if shown:
            x, spreads = zip(*shown, strict=True)
            right.plot(x, [each.mean for each in spreads], "o-", color=colour, label=label)
            low, high = [each.low for each in spreads], [each.high for each in spreads]
            right.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    right.set(xscale="log", xlabel="sentences of public text", title="pre-training")
    right.set_xticks(places, ["none", *(f"{amount / 1000:g}k" for amount in asked.amounts[1:])])
    right.minorticks_off()
    for axes in (left, right):
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for axes in (left, middle, right):
        axes.grid(color="#eaeef2")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    save(drawing, asked.figure)


if __name__ == "__main__":
    main()
