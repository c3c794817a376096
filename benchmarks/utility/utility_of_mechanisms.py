"""At equal privacy a model is better the less noise its mechanism leaves in the prefix sums: BLT(multi) beside banded,
both above the tree that production ran.

The experiment of arXiv:2408.08868, Table 3, at its proportions: k = 6 participations, b rounds apart, 6 b rounds. Runs
of one recipe that differ in privacy.mechanism alone, at equal rho, each with the server rate that suits it. Runs of one
seed are paired: the same first model, the same clients in the same rounds; the first lines say whether it is so.

A level is an epsilon (at delta = 1e-10) that a production cohort would have: the run of 20 clients gets the noise per
coordinate of the mean that such a cohort's run would have (privacy.extrapolate_to), so its own rho is larger by the
squared ratio of the cohorts.

    tacit data import BLOGS --out caches/blogs2k --vocabulary-size 2000 --vocabulary-from PUBLIC.parquet
    python benchmarks/utility/utility_of_mechanisms.py --cache caches/blogs2k --runs runs/utility
    ... --tune  # the table of rates
    python benchmarks/utility/utility_of_mechanisms.py ... --table            # Markdown, from the finished cells
    python benchmarks/utility/utility_of_mechanisms.py ... --figure utility   # utility.png and utility.svg
    ... --cache caches/blogs10k --runs runs/utility-papers --papers  # 2.4 M
    ... --remembered benchmarks/utility/remembered/utility-blogs2k.jsonl  # add seeds
    ... --crossed mechanisms.jsonl  # pairs over seeds and clients, of run folders that are there
    ... --quiet  # the same server rates without noise, then how right the noise forecast was that `tacit
                 # train` gives (foretold_table)

--tune has a seed of its own and looks at validation clients; what is compared are test clients. Prints one JSON line a
cell, one for each mechanism and level, and one for each pair that is compared (Student's t over seeds). Killed at any
time, the same command continues.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
from cells import (
    Cell,
    Ended,
    Played,
    Spread,
    cell,
    chosen,
    figure,
    options,
    play,
    read,
    remember,
    remembered,
    save,
    spread,
)
from crossed_pairs import remember_pair
from federated_against_central import figures, held_out, words_seen
from many_comparisons import differs_by_chance, holm, in_digits
from remembered_rows import remember_row

import tacit
from tacit.compute.precision import Precision
from tacit.data import Cache
from tacit.design.blt import design_blt
from tacit.design.losses import losses, workload_errors
from tacit.design.objective import Losses
from tacit.design.toeplitz import banded_inverse_square_root
from tacit.design.workload import PREFIX, Workload
from tacit.evaluation.trigram import BackedOffTrigram
from tacit.planning.noise_forecast import PULL
from tacit.privacy import Guarantee, Participation
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.privacy.strategy import Strategy
from tacit.recipe.sections import PrivacySection, ServerSection
from tacit.runs import Run

DELTA = 1e-10  # the papers'
GOAL = 20
ROUNDS = 252
TIMES = 6  # participations of a client, as in the paper
CLIP_NORM = 1.0
SENTENCES = 16  # of a client in a round
SMALL = {"embedding": 32, "units": 64, "tied": True}
PAPERS = {"embedding": 96, "units": 670}  # 2.4 M parameters with 10,000 words
SECTIONS: dict[str, dict[str, Any]] = {
    "client": {"batch_size": 4, "learning_rate": 4.0, "sentences": SENTENCES},  # four local steps
    "server": {"method": "nesterov", "cooldown": 0.3},
}
FASTER = "lambda-cgd-faster"  # DP-λCGD at a rate that was found later; its cells at the earlier one are remembered
NONE, TREE, FULL, ONCE, BLT, BANDED = "none", "tree-variance-reduced", "tree-full", "blt-1", "blt-6", "banded"
FACTS = {"top1": "top1_accuracy", "nats": "cross_entropy"}  # of remembered rows, and what they are in curves
ACCURACY, MEASURES = "top1_accuracy", {"top1_accuracy": "top-1 accuracy", "cross_entropy": "cross-entropy"}
TUNING_SEED = 101
ONE_RATE = 1.4  # the server's, of most mechanisms
TRIED = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # server rates of --tune
# (this, less that): the paper's comparisons, and each mechanism beside what production ran before.
PAIRS: tuple[tuple[str, str], ...] = (
    (BANDED, BLT),
    (BLT, ONCE),
    (BLT, FULL),
    (BLT, "blt-one"),
    (BLT, "lambda-cgd"),
    (BANDED, "banded-toeplitz"),
)
PAIRS += (  # all designed for rms; noise kept: BandMF's 41 rounds, BISR's 21, the BLT's 3, nothing
    (BANDED, "blt-6-rms"),
    (BANDED, "lambda-cgd-rms"),
    (BANDED, "inverse-square-root"),
    ("blt-6-rms", "lambda-cgd-rms"),
    ("blt-6-rms", "inverse-square-root"),
    ("blt-6-rms", FASTER),
    ("blt-6-rms", BLT),
    ("lambda-cgd-rms", "lambda-cgd"),
)
PAIRS += tuple((f"{name}-server", name) for name in ("lambda-cgd", BLT, BANDED))  # who designs for momentum


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


def stable(number: float) -> float:
    """To 12 digits: the last ones differ between machines, and a remembered cell is found by its recipe."""
    return float(f"{number:.12g}")


LEVELS = (Level(2, 1000), Level(8, 1000))
LARGE = Level(2, 6500)  # for the papers' network, at the papers' report goal


@dataclass(frozen=True)
class Mechanism:
    """How it is shown, what was tuned for it, and what the paper's Table 3 prints of it."""

    label: str
    colour: str
    rates: tuple[float, ...] = ()  # the server's, at each level: what --tune found, where no seed diverged with it
    large: float | None = None  # with the papers' network, where all are played at one; None: it is not
    paper: tuple[float, float, float, float] | None = None  # accuracy (%) at epsilon 2 and 8, max and rms loss


MECHANISMS = {
    NONE: Mechanism("no noise", "black", (2.0, 2.0), 1.4),
    TREE: Mechanism("tree, variance-reduced", "#e69f00", (0.7, 2.0), 1.4),
    "lambda-cgd": Mechanism("DP-λCGD", "#999999", (1.4,)),
    FULL: Mechanism("TreeAgg-Full", "#cc79a7", (1.0,), paper=(22.54, 24.47, 14.98, 12.47)),
    ONCE: Mechanism("BLT(k=1)", "#56b4e9", (1.4,), paper=(22.37, 24.64, 11.80, 11.15)),  # the paper's with two buffers
    "blt-one": Mechanism("BLT(k=6), one buffer", "#d55e00", (1.4,)),
    BLT: Mechanism("BLT(k=6)", "#0072b2", (1.4, 2.0), 1.4, (23.13, 24.87, 10.79, 9.33)),  # the paper's with three
    "lambda-cgd-server": Mechanism("DP-λCGD, for the server's workload", "#555555", (1.4,)),
    "blt-6-server": Mechanism("BLT(k=6), for the server's workload", "#004080", (1.4,)),
    "banded-server": Mechanism("BandMF, for the server's workload", "#004d38", (1.4,)),
    FASTER: Mechanism("DP-λCGD, faster", "#777777", (2.0,)),
    "lambda-cgd-rms": Mechanism("DP-λCGD, for rms", "#bbbbbb", (1.4,)),
    "blt-6-rms": Mechanism("BLT(k=6), for rms", "#66c2ff", (1.4,)),  # 2 ties with it; cross-entropy decided
    "inverse-square-root": Mechanism("BISR", "#aa4499", (1.0,)),
    "banded-toeplitz": Mechanism("BandToep", "#882255", (1.0,)),
    BANDED: Mechanism("BandMF", "#009e73", (1.4, 2.0), 1.4, (23.21, 24.86, 10.21, 8.60)),
}
SMOKED = (NONE, TREE, FULL, BLT, BANDED)
FEWER = 5  # seeds of the second level
COMPARED = 3  # seeds from which on a difference is worth a line


@dataclass(frozen=True)
class Plan:
    """Which cells there are."""

    text: Path
    seeds: int
    rounds: int
    smoke: bool = False
    papers: bool = False  # their network and report goal
    precision: str = "bfloat16"  # of their network
    rate: float | None = None  # the server's of all mechanisms, in the place of the tuned ones

    @property
    def served(self) -> Participation:
        return Participation(rounds=self.rounds, min_separation=self.rounds // TIMES, max_participations=TIMES)

    @property
    def levels(self) -> tuple[Level, ...]:
        if self.papers:
            return (LARGE,)
        return LEVELS[:1] if self.smoke else LEVELS

    @property
    def mechanisms(self) -> tuple[str, ...]:
        if self.papers:
            return tuple(name for name, each in MECHANISMS.items() if each.large is not None)
        return SMOKED if self.smoke else tuple(MECHANISMS)

    def rate_of(self, mechanism: str, level: Level) -> float:
        return tuned(mechanism, level) if self.rate is None else self.rate

    def settings(self) -> Iterator[tuple[str, Level]]:
        """(mechanism, level): all at the first level, where they differ, and three at the second."""
        for level in self.levels:
            for mechanism in self.mechanisms:
                if level == self.levels[0] or mechanism in (TREE, BLT, BANDED):
                    yield mechanism, level

    def cells(self) -> Iterator[Cell]:
        """Seed by seed: an experiment that is stopped early has all mechanisms of the seeds it finished."""
        for seed in range(1, self.seeds + 1):
            for mechanism, level in self.settings():
                if seed <= FEWER or level == self.levels[0]:
                    rate = self.rate_of(mechanism, level)
                    yield self.cell(self.name(mechanism, level, seed), mechanism, level, rate, seed)

    def tuning(self) -> Iterator[Cell]:
        for mechanism, level in self.settings():
            for rate in TRIED if mechanism != FASTER else ():
                yield self.cell(self.trial(mechanism, level, rate), mechanism, level, rate, TUNING_SEED)

    def quiet(self) -> Iterator[Cell]:
        """Runs without noise at the server rates of those with it, seed by seed, where that of no noise is another."""
        there = {self.rate_of(mechanism, level) for mechanism, level in self.settings() if mechanism != NONE}
        for seed in range(1, self.seeds + 1):
            for rate in sorted(there - {self.rate_of(NONE, self.levels[0])}):
                yield self.cell(self.quiet_name(rate, seed), NONE, self.levels[0], rate, seed)

    def quiet_name(self, rate: float, seed: int) -> str:
        """Of the run without noise at this rate."""
        mine = rate == self.rate_of(NONE, self.levels[0])
        return self.name(NONE, self.levels[0], seed) if mine else f"{NONE}-at-{rate:g}-{seed}"

    def name(self, mechanism: str, level: Level, seed: int) -> str:
        return f"{mechanism}-{seed}" if mechanism == NONE else f"{mechanism}-{level.name}-{seed}"

    def trial(self, mechanism: str, level: Level, rate: float) -> str:
        return f"tune-{mechanism}-{level.name}-{rate:g}"

    def cell(
        self, name: str, mechanism: str, level: Level, rate: float, seed: int, keys: Mapping[str, Any] | None = None
    ) -> Cell:
        """keys: of [privacy] that choose the strategy, in the place of the mechanism's own."""
        served = self.served
        privacy: dict[str, Any] = {"clip_norm": CLIP_NORM, **(asked(mechanism, served) if keys is None else keys)}
        if mechanism != NONE:
            privacy |= {"zcdp": stable(level.zcdp), "delta": DELTA, "extrapolate_to": level.reports}
        clients = 20 if self.smoke else 400
        sections = {
            **SECTIONS,
            "model": PAPERS if self.papers else SMALL,
            "client": SECTIONS["client"] | ({"precision": self.precision} if self.papers else {}),
            "server": {**SECTIONS["server"], "learning_rate": rate},
            "rounds": {
                "rounds": served.rounds,
                "report_goal": GOAL,
                "min_separation": served.min_separation,
                "max_participations": served.max_participations,
            },
            "privacy": privacy,
            "evaluation": {
                "every": max(served.rounds // 6, 1),
                "clients": clients // 2,
                "test_clients": clients,
                "sentences": 16,
            },
        }
        return cell(name, sections, cache=self.text, seed=seed)


def tuned(mechanism: str, level: Level) -> float:
    shown = MECHANISMS[mechanism]
    rate = shown.large if level == LARGE else shown.rates[LEVELS.index(level)]
    assert rate is not None, mechanism
    return rate


@cache
def asked(mechanism: str, served: Participation) -> Mapping[str, Any]:
    """The keys of [privacy] that choose the strategy."""
    if mechanism == FASTER:
        return asked("lambda-cgd", served)
    if mechanism.endswith("-server"):  # designed for what this momentum and cooldown make of the means
        return {**asked(mechanism.removesuffix("-server"), served), "workload": "server"}
    if mechanism.endswith("-rms"):
        return {**asked(mechanism.removesuffix("-rms"), served), "objective": "rms"}
    match mechanism:
        case "inverse-square-root":  # a closed form: its number of bands is what can be chosen for rms
            bands = min(range(1, served.rounds // 2), key=lambda bands: inverse_root_loss(bands, served))
            return {"mechanism": {"name": mechanism, "bands": bands}, "objective": "rms"}
        case "blt-1":  # designed for one participation, accounted for six, as the paper's
            once = Participation(rounds=served.rounds, min_separation=served.rounds, max_participations=1)
            found = design_blt(once, buffers=3)
            theta, omega = ([stable(number) for number in numbers] for numbers in (found.theta, found.omega))
            return {"mechanism": {"name": "blt", "theta": theta, "omega": omega}}
        case "blt-one" | "blt-6":
            return {"mechanism": {"name": "blt", "buffers": 1 if mechanism == "blt-one" else 3}}
        case "banded" | "banded-toeplitz":  # for rms, as the paper's
            return {"mechanism": {"name": mechanism, "bands": served.min_separation}, "objective": "rms"}
        case _:
            return {"mechanism": {"name": mechanism}}


def inverse_root_loss(bands: int, served: Participation) -> float:
    return losses(banded_inverse_square_root(bands), served).rms_loss


SERVER = ServerSection(**SECTIONS["server"]).workload()  # what momentum and cooldown make of the means, at rate 1


@cache
def strategy_of(mechanism: str, served: Participation) -> Strategy:
    """What the recipe of a mechanism that adds noise comes to."""
    section = PrivacySection(noise_multiplier=1.0, **asked(mechanism, served))
    made_for = SERVER if section.workload == "server" else PREFIX
    privacy = section.designed(served, workload=made_for)
    strategy = privacy.strategy(served, privacy.matrix(served, workload=made_for))
    assert strategy is not None
    return strategy


@cache
def cost(mechanism: str, served: Participation, of: Workload = PREFIX) -> Losses:
    """What the design promises for prefix sums, or for the models (SERVER)."""
    return losses(strategy_of(mechanism, served), served, of)


def left_in_models(mechanism: str, level: Level, served: Participation) -> float:
    """The deviation of the noise in a weight of the models at ONE_RATE, rms over the rounds, less what training takes
    back: what the noise forecast reckons with.
    """
    return left_by(strategy_of(mechanism, served), level, served)


def left_by(strategy: Strategy, level: Level, served: Participation) -> float:
    """The same of a strategy, whomever it was designed for."""
    guarantee = Guarantee.for_zcdp(level.zcdp, participation=served, strategy=strategy, clip_norm=CLIP_NORM)
    error = workload_errors(strategy, SERVER, served.rounds, PULL * ONE_RATE).rms
    return ONE_RATE * guarantee.noise_multiplier * error / GOAL


def predicted(mechanism: str, level: Level, served: Participation) -> tuple[float, float]:
    """(rms, max) over the rounds of the deviation of the noise in a coordinate of the summed mean updates: error x z x
    clip norm / reports = loss / sqrt(2 rho) x clip norm / reports, of a design whose loss is error x sensitivity.
    """
    found = cost(mechanism, served)
    unit = CLIP_NORM / GOAL / math.sqrt(2 * level.zcdp)
    return found.rms_loss * unit, found.max_loss * unit


@dataclass(frozen=True)
class Found:
    """A mechanism at a level: its runs by seed, as far as they are finished."""

    level: Level
    mechanism: str
    played: Mapping[int, Ended]

    def values(self, measure: str) -> list[float]:
        return [each.last(f"test_{measure}") for _, each in sorted(self.played.items())]

    def less(self, other: "Found | None", measure: str) -> Spread | None:
        """This less the other, seed by seed; None where fewer than two seeds have both."""
        apart = [] if other is None else self.differences(other, measure)
        return spread(apart) if len(apart) > 1 else None

    def differences(self, other: "Found", measure: str) -> list[float]:
        """This less the other, of each seed that both have."""
        both = sorted(self.played.keys() & other.played.keys())
        mine, theirs = ([runs[seed].last(f"test_{measure}") for seed in both] for runs in (self.played, other.played))
        return [one - two for one, two in zip(mine, theirs, strict=True)]


Everything = Mapping[tuple[str, Level], Found]


def found(plan: Plan, done: Mapping[str, Ended]) -> Everything:
    """All of which anything is finished, in the order of the cells; no noise is found at every level."""
    everything = {}
    for level in plan.levels:
        for mechanism in plan.mechanisms:
            names = {seed: plan.name(mechanism, level, seed) for seed in range(1, plan.seeds + 1)}
            if mine := {seed: done[name] for seed, name in names.items() if name in done}:
                everything[mechanism, level] = Found(level, mechanism, mine)
    return everything


def pairs(plan: Plan, everything: Everything) -> Iterator[tuple[Found, Found]]:
    """What is compared: PAIRS, and every mechanism with the tree that production ran."""
    for level in plan.levels:
        others = [(each, TREE) for each in plan.mechanisms if each != TREE]
        for one, other in [*PAIRS, *others]:
            if (one, level) in everything and (other, level) in everything:
                yield everything[one, level], everything[other, level]


def check_pairs(plan: Plan, done: Mapping[str, Ended]) -> None:
    """Whether runs of one seed began with one model and met the same clients; of remembered cells nobody can see it."""
    for seed in range(1, plan.seeds + 1):
        mine = [
            each
            for name, each in done.items()
            if isinstance(each, Played) and name.endswith(f"-{seed}") and not name.startswith("tune-")
        ]
        starts = {each.curves["validation_cross_entropy"][0] for each in mine}
        cohorts = {participations(each.folder) for each in mine}
        if mine:
            figure("paired", seed=seed, runs=len(mine), first_models=len(starts), logs=len(cohorts))
        if len(starts) > 1 or len(cohorts) > 1:
            raise SystemExit(f"the runs with seed {seed} are no pairs; start anew in another --runs.")


def participations(folder: Path) -> bytes:
    with Run.open(folder) as run:
        return b"".join(column.tobytes() for column in run.participations())


def trigram(plan: Plan) -> Mapping[str, float]:
    """A trigram of as many sentences as a run reads, pooled, on the clients that the runs are tested on."""
    text, recipe = Cache.open(plan.text), next(plan.cells()).recipe
    drawn = np.random.default_rng(1).permutation(text.clients("train"))
    words = words_seen(text, drawn, plan.rounds * GOAL * SENTENCES, recipe.client.words)
    trained = BackedOffTrigram.train(text, drawn, vocabulary=text.manifest.vocabulary.size, words=words)
    return figures(trained.evaluate(held_out(text, recipe)["test"]).total)


def say(plan: Plan, done: Mapping[str, Ended]) -> None:
    """The JSON lines."""
    check_pairs(plan, done)
    for name, run in done.items():
        finals = {measure: round(run.last(f"test_{measure}"), 6) for measure in MEASURES}
        figure("cell", run=name, **finals, client_seconds=round(run.client_seconds, 1))
    everything = found(plan, done)
    for (mechanism, level), each in everything.items():
        facts: dict[str, Any] = {}
        if mechanism != NONE:
            rms, largest = predicted(mechanism, level, plan.served)
            facts = {"predicted_rms_noise": float(f"{rms:.4g}"), "predicted_max_noise": float(f"{largest:.4g}")}
        for measure in MEASURES:
            values = each.values(measure)
            facts[measure] = shorter(spread(values)) if len(values) > 1 else values
        figure("mechanism", level=level.name, mechanism=mechanism, seeds=len(each.played), **facts)
    for one, other in pairs(plan, everything):
        apart = {measure: shorter(one.less(other, measure)) for measure in MEASURES}
        figure("pair", level=one.level.name, this=one.mechanism, less=other.mechanism, **apart)


def remember_crossed(plan: Plan, done: Mapping[str, Played], file: str) -> None:
    """Rows of every arm and seed whose folder is here, and of each pair of them over seeds and clients."""
    everything = found(plan, done)
    for (mechanism, level), each in everything.items():
        experiment, label = f"{plan.text.name}, {level.name}", MECHANISMS[mechanism].label
        for seed, run in each.played.items():
            facts = {fact: run.last(f"test_{name}") for fact, name in FACTS.items()}
            remember_row(file, experiment, label, seed, facts)
        remember_row(file, experiment, label, None, {"rate": f"{plan.rate_of(mechanism, level):g}"})
    for one, other in pairs(plan, everything):
        if both := sorted(one.played.keys() & other.played.keys()):
            these, those = (
                [done[plan.name(of.mechanism, of.level, seed)].folder for seed in both] for of in (one, other)
            )
            named = f"{MECHANISMS[one.mechanism].label} - {MECHANISMS[other.mechanism].label}"
            remember_pair(file, f"{plan.text.name}, {one.level.name}, pairs", named, these, those, tuple(FACTS))


def shorter(value: Spread | None) -> dict[str, float] | None:
    return None if value is None else {name: round(number, 6) for name, number in value._asdict().items()}


def table(plan: Plan, done: Mapping[str, Ended]) -> str:
    """Markdown: at each level what was predicted, measured and printed in the paper; then the pairs."""
    everything, lines = found(plan, done), []
    for level in plan.levels:
        if any(at == level and mechanism != NONE for mechanism, at in everything):
            lines += [f"### {plan.text.name}, {level.says}", "", mechanisms_at(plan, everything, level), ""]
            lines += [pairs_at(plan, everything, level), ""]
    return "\n".join(lines).rstrip()


def mechanisms_at(plan: Plan, everything: Everything, level: Level) -> str:
    """Markdown: a line a mechanism."""
    head = (
        "| mechanism | server rate | max / rms loss | models' rms loss | rms noise | seeds "
        "| top-1 accuracy, % | less the tree's | cross-entropy | less the tree's "
        "| paper: max / rms loss | paper: accuracy, % |"
    )
    rows = [row(plan, each, everything) for (_, at), each in everything.items() if at == level]
    return "\n".join([head, "|---" * 12 + "|", *rows])


def pairs_at(plan: Plan, everything: Everything, level: Level) -> str:
    """Markdown: a line a comparison of COMPARED seeds and more; p values are Holm's for all that the table compares."""
    compared = [
        (one, other)
        for one, other in pairs(plan, everything)
        if one.level == level and len(one.played.keys() & other.played.keys()) >= COMPARED
    ]
    p_values = holm([differs_by_chance(one.differences(other, each)) for one, other in compared for each in MEASURES])
    among = f"p among {len(p_values)}"
    lines = [f"| | seeds | top-1 accuracy, points | {among} | cross-entropy, nats | {among} |", "|---" * 6 + "|"]
    for at, (one, other) in enumerate(compared):
        named = f"{MECHANISMS[one.mechanism].label} - {MECHANISMS[other.mechanism].label}"
        cells = [named, str(len(one.played.keys() & other.played.keys()))]
        for measure, p_value in zip(MEASURES, p_values[at * len(MEASURES) :], strict=False):
            cells += [interval(one.less(other, measure), measure), in_digits(p_value)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def remembered_mechanisms(path: Path, level: str, seeds: str) -> str:
    """What `mechanisms_at` says of remembered cells, for a page: utility-TEXT.jsonl, "e2-1000", "8"."""
    return mechanisms_at(*_remembered(path, level, int(seeds)))


def remembered_pairs(path: Path, level: str, seeds: str) -> str:
    """What `pairs_at` says of them."""
    return pairs_at(*_remembered(path, level, int(seeds)))


def designs(path: Path, level: str, *mechanisms: str) -> str:
    """Markdown: what mechanisms promise before any training, all at one server rate; nothing is drawn."""
    plan, _, mine = _remembered(path, level, 0)
    lines = [
        "| mechanism | vectors kept | max / rms loss | models' rms loss | noise left in a weight |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in mechanisms:
        price, models = (cost(name, plan.served, of) for of in (PREFIX, SERVER))
        vectors = strategy_of(name, plan.served).memory(plan.rounds)
        cells = [MECHANISMS[name].label, str(vectors), f"{price.max_loss:.2f} / {price.rms_loss:.2f}"]
        cells += [f"{models.rms_loss:.1f}", f"{left_in_models(name, mine, plan.served):.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def remembered_rates(path: Path) -> str:
    """What `rates` says of them."""
    plan = Plan(Path(path.stem.removeprefix("utility-")), 0, ROUNDS)
    return rates(plan, remembered(list(plan.tuning()), path))


def _remembered(path: Path, level: str, seeds: int) -> tuple[Plan, Everything, Level]:
    plan = Plan(Path(path.stem.removeprefix("utility-")), seeds, ROUNDS)
    (mine,) = (each for each in plan.levels if each.name == level)
    return plan, found(plan, remembered(list(plan.cells()), path)), mine


def row(plan: Plan, each: Found, everything: Everything) -> str:
    shown = MECHANISMS[each.mechanism]
    promised = models = noise = printed = accuracy = ""
    if each.mechanism != NONE:
        price = cost(each.mechanism, plan.served)
        promised = f"{price.max_loss:.2f} / {price.rms_loss:.2f}"
        models = f"{cost(each.mechanism, plan.served, SERVER).rms_loss:.1f}"
        noise = f"{predicted(each.mechanism, each.level, plan.served)[0]:.4f}"
    if shown.paper is not None:
        at_two, at_eight, largest, rms = shown.paper
        printed, accuracy = f"{largest:.2f} / {rms:.2f}", f"{at_two if each.level.epsilon == 2 else at_eight:.2f}"
    cells = [
        shown.label,
        f"{plan.rate_of(each.mechanism, each.level):g}",
        promised,
        models,
        noise,
        str(len(each.played)),
    ]
    tree = None if each.mechanism == TREE else everything.get((TREE, each.level))
    for measure in MEASURES:
        cells += [middle(each.values(measure), measure), interval(each.less(tree, measure), measure)]
    return "| " + " | ".join([*cells, printed, accuracy]) + " |"


def foretold_table(plan: Plan, done: Mapping[str, Ended]) -> str:
    """Markdown: of the accuracy of the same recipe without noise, what was foretold to be kept, and what was."""
    lines = [
        "| mechanism | level | server rate | ratio | foretold | interval | seeds | kept (95%) |",
        "|---" * 8 + "|",
    ]
    for (mechanism, level), each in found(plan, done).items():
        rate = plan.rate_of(mechanism, level)
        pairs = [(run, done.get(plan.quiet_name(rate, seed))) for seed, run in each.played.items()]
        shares = [run.last(f"test_{ACCURACY}") / twin.last(f"test_{ACCURACY}") for run, twin in pairs if twin]
        if mechanism == NONE or len(shares) < 2:
            continue
        noise_forecast = tacit.noise_forecast(
            plan.cell("foretold", mechanism, level, rate, seed=1).recipe
        ).noise_forecast
        assert noise_forecast is not None, mechanism  # Nesterov's momentum and the built-in network were measured
        low, high = noise_forecast.interval
        kept = spread(shares)
        cells = [
            MECHANISMS[mechanism].label,
            level.says,
            f"{rate:g}",
            f"{noise_forecast.ratio:.2f}",
            f"{noise_forecast.share_kept:.1%}",
        ]
        cells += [f"{low:.1%} to {high:.1%}", str(len(shares))]
        lines.append("| " + " | ".join([*cells, f"{kept.mean:.1%} ({kept.low:.1%} to {kept.high:.1%})"]) + " |")
    return "\n".join(lines)


def shown_as(measure: str) -> tuple[float, int]:
    """(what a value is multiplied by, digits)."""
    return (100.0, 2) if measure == ACCURACY else (1.0, 3)


def middle(values: Sequence[float], measure: str) -> str:
    scale, digits = shown_as(measure)
    if len(values) < 2:
        return f"{scale * values[0]:.{digits}f}"
    return f"{scale * spread(values).mean:.{digits}f} ± {scale * spread(values).deviation:.{digits}f}"


def interval(apart: Spread | None, measure: str) -> str:
    if apart is None:
        return ""
    scale, digits = shown_as(measure)
    return f"{scale * apart.mean:+.{digits}f} ({scale * apart.low:+.{digits}f} to {scale * apart.high:+.{digits}f})"


def known(cells: Sequence[Cell], given: argparse.Namespace) -> dict[str, Ended]:
    """What is remembered of these cells, and what their folders say."""
    before = remembered(cells, given.remembered) if given.remembered and given.remembered.is_file() else {}
    return {**before, **read(cells, given.runs)}


def told(given: argparse.Namespace, plan: Plan, done: Mapping[str, Ended]) -> str:
    """The Markdown that is asked for."""
    if given.tune:
        return rates(plan, done)
    if given.quiet:
        return foretold_table(plan, {**known(list(plan.cells()), given), **done})
    return table(plan, done)


def rates(plan: Plan, done: Mapping[str, Ended]) -> str:
    """Markdown: what each rate reached on the validation clients, the best of several in bold.

    Where nothing higher, or nothing lower, than the best was tried, it says so: a better one may be beyond.
    """
    lines = [
        "| mechanism | level | " + " | ".join(f"rate {rate:g}" for rate in TRIED) + " |",
        "|---" * (2 + len(TRIED)) + "|",
    ]
    for mechanism, level in plan.settings():
        trials = [done.get(plan.trial(mechanism, level, rate)) for rate in TRIED]
        reached = {at: 100 * each.last(f"validation_{ACCURACY}") for at, each in enumerate(trials) if each is not None}
        if not reached:
            continue
        said = [f"{reached[at]:.2f}" if at in reached else "" for at in range(len(TRIED))]
        if len(reached) > 1:
            best = max(reached, key=lambda at: reached[at])
            said[best] = f"**{said[best]}**" + (", edge" if best in (min(reached), max(reached)) else "")
        where = "" if mechanism == NONE else level.says
        lines.append(f"| {MECHANISMS[mechanism].label} | {where} | " + " | ".join(said) + " |")
    return "\n".join(lines)


def draw(plan: Plan, done: Mapping[str, Ended], path: Path) -> None:
    """Accuracy over the rounds at each level, and each mechanism's lead over the tree against the noise predicted."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    everything, levels = found(plan, done), list(plan.levels)
    drawn, axes = pyplot.subplots(1, len(levels) + 1, figsize=(5.2 * (len(levels) + 1), 4.4), layout="constrained")
    for axis, level in zip(axes, levels, strict=False):
        for each in everything.values():
            if each.level == level:
                curve(axis, each)
        axis.set(title=level.says, xlabel="rounds", ylabel="top-1 accuracy, validation (%)")
        low = min(min(each.values(ACCURACY)) for each in everything.values() if each.level == level)
        axis.set_ylim(bottom=100 * low - 4)
    for (mechanism, level), each in everything.items():
        apart = each.less(everything.get((TREE, level)), ACCURACY) if mechanism not in (NONE, TREE) else None
        if apart is not None:
            noise = predicted(mechanism, level, plan.served)[0]
            reach = [[100 * (apart.mean - apart.low)], [100 * (apart.high - apart.mean)]]
            marker, colour = "os"[levels.index(level)], MECHANISMS[mechanism].colour
            axes[-1].errorbar([noise], [100 * apart.mean], reach, fmt=marker, color=colour, capsize=3)
    axes[-1].axhline(0, color="#888888", linewidth=0.8)
    axes[-1].set(
        title="last model, less the tree's (95%, test clients)",
        xlabel="predicted rms noise of a coordinate",
        ylabel="top-1 accuracy, points",
        xscale="log",
    )
    axes[-1].xaxis.set_minor_formatter("")  # beside the marks' own the labels of a short log axis overlap
    axes[-1].set_xticks(ticks := (0.006, 0.01, 0.02, 0.03), [f"{tick:g}" for tick in ticks])
    handles, labels = axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    save(drawn, path)


def curve(axis: Any, each: Found) -> None:
    """The mean over seeds, and a band of its 95% interval."""
    shown = MECHANISMS[each.mechanism]
    curves = [played.curves[f"validation_{ACCURACY}"] for played in each.played.values()]
    rounds = sorted(set.intersection(*(set(one) for one in curves)))
    values = [[100 * one[at] for one in curves] for at in rounds]
    axis.plot(rounds, [sum(at) / len(at) for at in values], color=shown.colour, label=shown.label, linewidth=1.4)
    if len(curves) > 1:
        bands = [spread(at) for at in values]
        low, high = [band.low for band in bands], [band.high for band in bands]
        axis.fill_between(rounds, low, high, color=shown.colour, alpha=0.2, linewidth=0)


def main() -> None:
    parser = options(__doc__ or "", seeds=15, rounds=ROUNDS)
    parser.add_argument("--papers", action="store_true", help="the papers' network and report goal; wants 10,000 words")
    parser.add_argument("--precision", choices=get_args(Precision), default="bfloat16", help="of the papers' network")
    parser.add_argument("--tune", action="store_true", help="the server rate of each mechanism, on validation clients")
    parser.add_argument(
        "--quiet", action="store_true", help="play the rates of runs with noise without it, and compare"
    )
    parser.add_argument("--remembered", type=Path, help="a file of what cells came to; these need not be played again")
    parser.add_argument(
        "--crossed", metavar="FILE", help="remember cells and pairs, over seeds and clients, in this file"
    )
    parser.add_argument("--rate", type=float, help="the server's, of all mechanisms, in the place of the tuned ones")
    given: argparse.Namespace = parser.parse_args()
    rounds = 24 if given.smoke else given.rounds
    if rounds % TIMES:
        raise SystemExit(f"--rounds {rounds}: give a multiple of {TIMES}, so that a client comes {TIMES} times.")
    seeds = 2 if given.smoke else given.seeds
    plan = Plan(given.cache, seeds, rounds, given.smoke, given.papers, given.precision, given.rate)
    cells: Sequence[Cell] = list(plan.tuning() if given.tune else plan.quiet() if given.quiet else plan.cells())
    if given.table or given.figure:
        done = known(cells, given)
        if not done:
            raise SystemExit(f"no cell is finished in '{given.runs}'; run the experiment first.")
        if given.table:
            print(told(given, plan, done))
        if given.figure:
            draw(plan, done, given.figure)
        return
    wanted = chosen(cells, given.only)
    print(json.dumps({"figure": "cells", "all": len(cells), "chosen": len(wanted)}), file=sys.stderr)
    there = known(cells, given)
    play([each for each in wanted if each.name not in there], given.runs, at_once=given.at_once)
    if given.crossed:
        remember_crossed(plan, read(wanted, given.runs), given.crossed)
    if given.remembered:
        remember(cells, read(cells, given.runs), given.remembered, tuple(MEASURES))
    done = known(cells, given)
    if given.tune or given.quiet:
        print(told(given, plan, done))
        return
    say(plan, done)
    figure("trigram", **{name: round(value, 6) for name, value in trigram(plan).items()})


if __name__ == "__main__":
    main()
