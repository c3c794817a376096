"""At equal privacy a model is better the less noise its mechanism leaves in the prefix sums: BLT(multi) beside banded,
both above the tree.

The experiment of arXiv:2408.08868, Table 3, at its proportions: k = 6 participations, b rounds apart, 6 b rounds. Runs
of one recipe that differ in privacy.mechanism alone, at equal rho. Runs of one seed are paired: the same first model,
the same clients in the same rounds; the first lines say whether it is so.

A level is an epsilon (at delta = 1e-10) that a production cohort would have: the run of 20 clients gets the noise per
coordinate of the mean that such a cohort's run would have (privacy.stands_in_for), so its own rho is larger by the
squared ratio of the cohorts. Two levels, epsilon 8 and 2 at 1,000 reports, tell mechanisms apart. A third, epsilon 2 at
6,500 reports, is the noise of production itself: so little in a network this small that nothing should differ there;
it is played with the tree and the BLT, on the first text.

    tacit data import FORUM_BLOGS --out caches/blogs2k --vocabulary-size 2000 --vocabulary-from PUBLIC.parquet
    tacit data import CHAT --out caches/chat2k --vocabulary caches/blogs2k/vocabulary.json
    python benchmarks/utility_of_mechanisms.py --cache caches/blogs2k --second caches/chat2k --runs runs/utility
    python benchmarks/utility_of_mechanisms.py ... --table            # Markdown, from the finished cells
    python benchmarks/utility_of_mechanisms.py ... --figure utility   # utility.png and utility.svg

Prints one JSON line a cell, and one for each mechanism, text and level with its mean, deviation and paired difference
from the tree (Student's t). About 70 CPU-minutes; killed at any time, the same command continues.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cells import Cell, Played, Spread, cell, chosen, figure, options, paired, play, read, spread

from tacit.design.blt import design_blt
from tacit.design.losses import losses
from tacit.design.objective import Losses
from tacit.privacy import Participation
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.recipe.sections import PrivacySection
from tacit.runs import Run

DELTA = 1e-10  # the papers'
GOAL = 20
TIMES = 6  # participations of a client, as in the paper
CLIP_NORM = 1.0
# Found without noise on seed 1: nearly all updates are clipped, so that the noise is a fixed share of every step.
SECTIONS: dict[str, dict[str, Any]] = {
    "model": {"embedding": 32, "units": 64, "tied": True},
    "client": {"batch_size": 16, "learning_rate": 4.0, "sentences": 16},
    "server": {"learning_rate": 1.0},
}
TREE, BLT, BANDED = "tree", "blt-6", "banded"
MEASURES = {"top1_accuracy": "top-1 accuracy", "cross_entropy": "cross-entropy"}


@dataclass(frozen=True)
class Level:
    """The epsilon of a production run of so many reports a round, whose noise per mean coordinate is taken."""

    epsilon: float
    reports: int

    @property
    def name(self) -> str:
        return f"e{self.epsilon:g}-{self.reports}"

    @property
    def says(self) -> str:
        return f"epsilon {self.epsilon:g} at {self.reports:,} reports"

    @property
    def zcdp(self) -> float:
        """Of the run of GOAL clients: noise multipliers scale with the cohort, rho with the square of its inverse."""
        return zcdp_for_epsilon(self.epsilon, DELTA) * (self.reports / GOAL) ** 2


LEVELS = (Level(8, 1000), Level(2, 1000))
PRODUCTION = Level(2, 6500)


@dataclass(frozen=True)
class Mechanism:
    """How it is shown, and what the paper's Table 3 prints of it."""

    label: str
    colour: str
    paper: tuple[float, float, float, float] | None = None  # accuracy (%) at epsilon 2 and 8, max and rms loss


MECHANISMS = {
    "none": Mechanism("no noise", "black"),
    "independent": Mechanism("independent", "#999999"),
    TREE: Mechanism("tree", "#d55e00"),
    "tree-variance-reduced": Mechanism("tree, variance-reduced", "#e69f00"),
    "tree-full": Mechanism("TreeAgg-Full", "#cc79a7", (22.54, 24.47, 14.98, 12.47)),
    "blt-1": Mechanism("BLT(k=1)", "#56b4e9", (22.37, 24.64, 11.80, 11.15)),  # the paper's with two buffers
    BLT: Mechanism("BLT(k=6)", "#0072b2", (23.13, 24.87, 10.79, 9.33)),  # the paper's with three
    "banded-toeplitz": Mechanism("BandToep", "#882255"),
    BANDED: Mechanism("BandMF", "#009e73", (23.21, 24.86, 10.21, 8.60)),
}
SMOKED = ("none", TREE, "tree-full", BLT, BANDED)


@dataclass(frozen=True)
class Plan:
    """Which cells there are."""

    texts: tuple[Path, ...]
    seeds: int
    rounds: int
    smoke: bool

    @property
    def served(self) -> Participation:
        return Participation(rounds=self.rounds, min_separation=self.rounds // TIMES, max_participations=TIMES)

    @property
    def levels(self) -> tuple[Level, ...]:
        return LEVELS[1:] if self.smoke else LEVELS

    def cells(self) -> Iterator[Cell]:
        """Seed by seed: an experiment that is stopped early has all mechanisms of the seeds it finished."""
        for seed in range(1, self.seeds + 1):
            for text in self.texts:
                for level in self.levels_of(text):
                    for mechanism in self.mechanisms(level):
                        if mechanism != "none" or level == self.levels[0]:  # without noise there are no levels
                            yield self.cell(text, mechanism, level, seed)

    def levels_of(self, text: Path) -> tuple[Level, ...]:
        return self.levels if self.smoke or text != self.texts[0] else (*self.levels, PRODUCTION)

    def mechanisms(self, level: Level) -> list[str]:
        few = SMOKED if self.smoke else ("none", TREE, BLT) if level == PRODUCTION else MECHANISMS
        return [name for name in MECHANISMS if name in few]

    def name(self, text: Path, mechanism: str, level: Level, seed: int) -> str:
        noise = "none" if mechanism == "none" else f"{mechanism}-{level.name}"
        return f"{text.name}-{noise}-{seed}"

    def cell(self, text: Path, mechanism: str, level: Level, seed: int) -> Cell:
        served = self.served
        privacy: dict[str, Any] = {"clip_norm": CLIP_NORM, **asked(mechanism, served)}
        if mechanism != "none":
            privacy |= {"zcdp": level.zcdp, "delta": DELTA, "stands_in_for": level.reports}
        clients = 20 if self.smoke else 200
        sections = {
            **SECTIONS,
            "rounds": {
                "rounds": served.rounds,
                "report_goal": GOAL,
                "min_separation": served.min_separation,
                "max_participations": served.max_participations,
            },
            "privacy": privacy,
            "evaluation": {
                "every": max(served.rounds // 12, 1),
                "clients": clients // 2,
                "test_clients": clients,
                "sentences": 32,
            },
        }
        return cell(self.name(text, mechanism, level, seed), sections, cache=text, seed=seed)


@cache
def asked(mechanism: str, served: Participation) -> Mapping[str, Any]:
    """The keys of [privacy] that choose the strategy."""
    match mechanism:
        case "blt-1":  # designed for one participation, accounted for six, as the paper's
            once = Participation(rounds=served.rounds, min_separation=served.rounds, max_participations=1)
            found = design_blt(once, buffers=3)
            return {"mechanism": {"name": "blt", "theta": found.theta, "omega": found.omega}}
        case "blt-6":
            return {"mechanism": {"name": "blt", "buffers": 3}}
        case "banded" | "banded-toeplitz":  # for rms, as the paper's
            return {"mechanism": {"name": mechanism, "bands": served.min_separation}, "objective": "rms"}
        case _:
            return {"mechanism": {"name": mechanism}}


@cache
def cost(mechanism: str, served: Participation) -> Losses:
    """What the design promises."""
    privacy = PrivacySection(noise_multiplier=1.0, **asked(mechanism, served)).designed(served)
    strategy = privacy.strategy(served, privacy.matrix(served))
    assert strategy is not None
    return losses(strategy, served)


def predicted(mechanism: str, level: Level, served: Participation) -> tuple[float, float]:
    """(rms, max) over the rounds of the deviation of the noise in a coordinate of the summed mean updates: error x z x
    clip norm / reports = loss / sqrt(2 rho) x clip norm / reports, of a design whose loss is error x sensitivity.
    """
    found = cost(mechanism, served)
    unit = CLIP_NORM / GOAL / math.sqrt(2 * level.zcdp)
    return found.rms_loss * unit, found.max_loss * unit


@dataclass(frozen=True)
class Found:
    """A mechanism on a text at a level: its runs by seed, as far as they are finished, and the tree's."""

    text: str
    level: Level
    mechanism: str
    played: Mapping[int, Played]
    tree: Mapping[int, Played]

    def values(self, measure: str) -> list[float]:
        return [each.last(f"test_{measure}") for _, each in sorted(self.played.items())]

    def against(self, other: Mapping[int, Played], measure: str) -> Spread | None:
        """This less the other, seed by seed; None where fewer than two seeds have both."""
        both = sorted(self.played.keys() & other.keys())
        if len(both) < 2:
            return None
        return paired(*([runs[seed].last(f"test_{measure}") for seed in both] for runs in (other, self.played)))


def found(plan: Plan, done: Mapping[str, Played]) -> list[Found]:
    """All of which anything is finished, in the order of the cells."""

    def seeds(text: Path, mechanism: str, level: Level) -> dict[int, Played]:
        names = {seed: plan.name(text, mechanism, level, seed) for seed in range(1, plan.seeds + 1)}
        return {seed: done[name] for seed, name in names.items() if name in done}

    return [
        Found(text.name, level, mechanism, mine, seeds(text, TREE, level))
        for text in plan.texts
        for level in plan.levels_of(text)
        for mechanism in plan.mechanisms(level)
        if (mine := seeds(text, mechanism, level))
    ]


def check_pairs(plan: Plan, done: Mapping[str, Played]) -> None:
    """Whether runs of one text and seed began with one model and met the same clients in the same rounds."""
    for text in plan.texts:
        for seed in range(1, plan.seeds + 1):
            mine = [
                each for name, each in done.items() if name.startswith(f"{text.name}-") and name.endswith(f"-{seed}")
            ]
            starts = {each.curves["validation_cross_entropy"][0] for each in mine}
            cohorts = {participations(each.folder) for each in mine}
            if mine:
                figure("paired", text=text.name, seed=seed, runs=len(mine), first_models=len(starts), logs=len(cohorts))
            if len(starts) > 1 or len(cohorts) > 1:
                raise SystemExit(
                    f"the runs of {text.name} with seed {seed} are no pairs; start anew in another --runs."
                )


def participations(folder: Path) -> bytes:
    with Run.open(folder) as run:
        return b"".join(column.tobytes() for column in run.participations())


def say(plan: Plan, done: Mapping[str, Played]) -> None:
    """The JSON lines."""
    check_pairs(plan, done)
    for name, each in done.items():
        finals = {measure: round(each.last(f"test_{measure}"), 6) for measure in MEASURES}
        figure("cell", run=name, **finals, client_seconds=round(each.client_seconds, 1))
    everything = found(plan, done)
    for each in everything:
        facts: dict[str, Any] = {}
        if each.mechanism != "none":
            rms, largest = predicted(each.mechanism, each.level, plan.served)
            facts = {"predicted_rms_noise": float(f"{rms:.4g}"), "predicted_max_noise": float(f"{largest:.4g}")}
        for measure in MEASURES:
            values = each.values(measure)
            facts[measure] = shorter(spread(values)) if len(values) > 1 else values
            facts[f"{measure}_less_the_trees"] = shorter(each.against(each.tree, measure))
        figure(
            "mechanism",
            text=each.text,
            level=each.level.name,
            mechanism=each.mechanism,
            seeds=len(each.played),
            **facts,
        )
    for blt in [each for each in everything if each.mechanism == BLT]:
        beside = [
            each for each in everything if (each.text, each.level, each.mechanism) == (blt.text, blt.level, BANDED)
        ]
        for measure in MEASURES if beside else ():
            apart = blt.against(beside[0].played, measure)
            within = None if apart is None else apart.low <= 0 <= apart.high
            figure(
                "blt_less_banded",
                text=blt.text,
                level=blt.level.name,
                measure=measure,
                difference=shorter(apart),
                may_be_zero=within,
            )


def shorter(value: Spread | None) -> dict[str, float] | None:
    return None if value is None else {name: round(number, 6) for name, number in value._asdict().items()}


def table(plan: Plan, done: Mapping[str, Played]) -> str:
    """Markdown: for each text and level what was predicted, measured and printed in the paper."""
    lines: list[str] = []
    everything = found(plan, done)
    for text in plan.texts:
        for level in plan.levels_of(text):
            rows = [each for each in everything if (each.text, each.level) == (text.name, level)]
            if not any(each.mechanism != "none" for each in rows):
                continue
            lines += [
                f"### {text.name}, {level.says}",
                "",
                "| mechanism | max / rms loss | rms noise | top-1 accuracy, % | less the tree's | cross-entropy "
                "| less the tree's | paper: max / rms loss | paper: accuracy, % |",
                "|---" * 9 + "|",
                *(row(plan, each) for each in rows),
                "",
            ]
    return "\n".join(lines).rstrip()


def row(plan: Plan, each: Found) -> str:
    shown = MECHANISMS[each.mechanism]
    promised = noise = printed = accuracy = ""
    if each.mechanism != "none":
        price = cost(each.mechanism, plan.served)
        promised = f"{price.max_loss:.2f} / {price.rms_loss:.2f}"
        noise = f"{predicted(each.mechanism, each.level, plan.served)[0]:.4f}"
    if shown.paper is not None:
        at_two, at_eight, largest, rms = shown.paper
        printed, accuracy = f"{largest:.2f} / {rms:.2f}", f"{at_two if each.level.epsilon == 2 else at_eight:.2f}"
    cells = [shown.label, promised, noise]
    for measure, scale in (("top1_accuracy", 100.0), ("cross_entropy", 1.0)):
        digits = 2 if scale > 1 else 3
        values = [scale * value for value in each.values(measure)]
        middle = f"{sum(values) / len(values):.{digits}f}"
        cells.append(f"{middle} ± {spread(values).deviation:.{digits}f}" if len(values) > 1 else f"{middle} (one seed)")
        apart = None if each.mechanism == TREE else each.against(each.tree, measure)
        cells.append(
            ""
            if apart is None
            else f"{scale * apart.mean:+.{digits}f} [{scale * apart.low:+.{digits}f}, {scale * apart.high:+.{digits}f}]"
        )
    return "| " + " | ".join([*cells, printed, accuracy]) + " |"


def draw(plan: Plan, done: Mapping[str, Played], path: Path) -> None:
    """A row a text: accuracy over the rounds at each level (mean, and the extremes over seeds), and what the last model
    has against the noise that was predicted.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    everything, columns = found(plan, done), len(plan.levels) + 1
    size = (5.2 * columns, 4.0 * len(plan.texts))
    drawn, axes = pyplot.subplots(len(plan.texts), columns, figsize=size, squeeze=False, layout="constrained")
    for across, text in zip(axes, plan.texts, strict=True):
        mine = [each for each in everything if each.text == text.name]
        for axis, level in zip(across, plan.levels, strict=False):
            for each in [each for each in mine if each.level == level]:
                curve(axis, each)
            axis.set(title=f"{text.name}, {level.says}", xlabel="rounds", ylabel="top-1 accuracy, validation (%)")
        last = across[-1]
        for each in mine:
            if each.mechanism != "none":
                noise = predicted(each.mechanism, each.level, plan.served)[0]
                values = [100 * value for value in each.values("top1_accuracy")]
                last.plot([noise] * len(values), values, "o", color=MECHANISMS[each.mechanism].colour, markersize=4)
        for each in [each for each in mine if each.mechanism == "none"][:1]:
            values = [100 * value for value in each.values("top1_accuracy")]
            last.axhspan(min(values), max(values), color="black", alpha=0.15, linewidth=0)
        title = f"{text.name}, last model"
        last.set(
            title=title, xlabel="predicted rms noise of a coordinate", ylabel="top-1 accuracy, test (%)", xscale="log"
        )
    handles, labels = axes[0][0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in (".png", ".svg"):
        drawn.savefig(path.with_suffix(ending), dpi=120)


def curve(axis: Any, each: Found) -> None:
    shown = MECHANISMS[each.mechanism]
    curves = [played.curves["validation_top1_accuracy"] for played in each.played.values()]
    rounds = sorted(set.intersection(*(set(one) for one in curves)))
    values = [[100 * one[at] for one in curves] for at in rounds]
    axis.plot(rounds, [sum(at) / len(at) for at in values], color=shown.colour, label=shown.label, linewidth=1.4)
    axis.fill_between(rounds, [min(at) for at in values], [max(at) for at in values], color=shown.colour, alpha=0.15)


def main() -> None:
    parser = options(__doc__ or "", seeds=3, rounds=402)
    parser.add_argument("--second", type=Path, help="a second cache, of another text with the same vocabulary")
    given: argparse.Namespace = parser.parse_args()
    rounds = 24 if given.smoke else given.rounds
    if rounds % TIMES:
        raise SystemExit(f"--rounds {rounds}: give a multiple of {TIMES}, so that a client comes {TIMES} times.")
    texts = tuple(path for path in (given.cache, given.second) if path is not None)
    plan = Plan(texts, 2 if given.smoke else given.seeds, rounds, given.smoke)
    cells: Sequence[Cell] = list(plan.cells())
    if given.table or given.figure:
        done = read(cells, given.runs)
        if not done:
            raise SystemExit(f"no cell is finished in '{given.runs}'; run the experiment first.")
        if given.table:
            print(table(plan, done))
        if given.figure:
            draw(plan, done, given.figure)
        return
    wanted = chosen(cells, given.only)
    print(json.dumps({"figure": "cells", "all": len(cells), "chosen": len(wanted)}), file=sys.stderr)
    play(wanted, given.runs, at_once=given.at_once)
    say(plan, read(cells, given.runs))


if __name__ == "__main__":
    main()
