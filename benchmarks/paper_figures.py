"""The figures of both papers with our mechanisms on them, as PNG, SVG and CSV (panel, curve, x, y).

What a configuration buys at equal utility: arXiv:2305.18465, Figure 4, and arXiv:2408.08868, Figures 8 and 9. What a
mechanism costs where it is used otherwise than it was designed for: arXiv:2408.08868, Figures 2 to 6. All of it is
accounting under the signal-to-noise hypothesis (docs/planning.md); nothing is trained. What the text of the papers
leaves open (which participations, which designs) is chosen here and written on the axes.

    python benchmarks/paper_figures.py --out FOLDER                         all, in about a minute
    python benchmarks/paper_figures.py --out FOLDER --only blt-figure-9     some
    python benchmarks/paper_figures.py --out FOLDER --bandmf                with a BandMF: some minutes more
    python benchmarks/paper_figures.py --smoke                              seconds: the quickest one

Prints one JSON line per figure.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tacit.design.banded import design_banded
from tacit.design.blt import design_blt
from tacit.design.catalogue import MECHANISMS
from tacit.design.dense import full_tree
from tacit.design.losses import losses, prefix_errors
from tacit.design.mechanism import Mechanism
from tacit.design.toeplitz import banded_square_root, design_banded_toeplitz
from tacit.planning import Clients, Plan, Scenario, Utility
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity import sensitivity, sensitivity_bound_squared
from tacit.privacy.strategy import Banded, Strategy, Tree
from tacit.reports.drawing import write_figure
from tacit.reports.figure import Axis, Figure, Line, Panel, traced

Tell: TypeAlias = Callable[[str], None]  # is told which curve was computed
Builder: TypeAlias = Callable[[Tell], Iterator[Figure]]


def builders(banded: Banded | None = None) -> dict[str, tuple[Builder, int]]:
    """Each family of figures by name, and how many curves it computes."""
    more = int(banded is not None)
    return {
        "gboard-figure-4": (gboard_figure_4, 24),
        "blt-figure-2": (lambda tell: blt_figure_2(tell, banded), 2 * (6 + more)),
        "blt-figure-3": (lambda tell: blt_figure_3(tell, banded), 6 + more),
        "blt-figure-4": (lambda tell: blt_figure_4(tell, banded), 7 + more),
        "blt-figure-5": (lambda tell: blt_figure_5(tell, banded), 7 + more),
        "blt-figure-6": (blt_figure_6, 8),
        "blt-figure-8": (blt_figure_8, 8),
        "blt-figure-9": (blt_figure_9, 2),
    }


def drawn(*, name: str, title: str, source: str, says: str, panels: tuple[Panel, ...]) -> Figure:
    """The figure that stands for `source`, a figure of a paper; `says` what to see in it."""
    return Figure(
        name=name,
        title=title,
        alt=f"{says} ({source})",
        panels=panels,
        headed=True,
        across=True,
        height=3.9,
        legend="below",
    )


def panel(
    *,
    title: str,
    x_label: str,
    y_label: str,
    curves: tuple[Line, ...],
    log_x: bool = False,
    log_y: bool = False,
    y_limits: tuple[float, float] | None = None,
) -> Panel:
    """Curves on one pair of axes."""
    low, high = y_limits or (None if log_y else 0, None)
    return Panel(title=title, marks=curves, x=Axis(x_label, log=log_x), y=Axis(y_label, log=log_y, low=low, high=high))


# -- what a configuration buys at equal utility ------------------------------------------------------------------------

ABUNDANT = 10**9  # devices enough for any separation: where the separation itself is what varies
REPORT_GOAL = 6500  # of both papers' runs
ROUNDS = (500, 1000, 2000, 4000)
DELTA = 1e-10
# What ran in production (arXiv:2408.08868, Table 4), noise multipliers at report goal 6500: b100 ran with 3.12 at 3000.
PRODUCED = (("tree", 7.0, 1, 0), ("blt-b100", 6.76, 0, 1), ("blt-b400", 7.379, 0, 0), ("blt-b1000", 8.681, 0, 2))
SHOWN = {
    "tree": "tree",
    "tree-variance-reduced": "tree",
    "blt": "BLT, designed for each",
    "blt-b100": "BLT, published for b = 100",
    "blt-b400": "BLT, published for b = 400",
    "blt-b1000": "BLT, published for b = 1000",
    "banded-toeplitz": "banded Toeplitz, designed for each",
}


def gboard_figure_4(tell: Tell) -> Iterator[Figure]:
    """Report goal, population, rounds and MinS against zCDP; trees as there, and BLTs at the same utility."""
    for letter, devices, name in (("a", 10**6, "1M"), ("b", 3 * 10**6, "3M")):
        goals = [int(goal) for goal in np.geomspace(100, 20_000, 19)]
        yield drawn(
            name=f"gboard-figure-4{letter}",
            title=f"Report goal against zCDP, population {name}",
            source=f"arXiv:2305.18465, Figure 4{letter}",
            says="At equal utility a larger report goal is more private, although clients must come more often.",
            panels=(
                panel(
                    title=f"population {name}",
                    x_label="report goal (noise in proportion, MinS as large as it can be)",
                    y_label="zCDP",
                    curves=_trees_and_blts(
                        goals, _goals_of(Clients(devices=devices)), tell, f"gboard-figure-4{letter}"
                    ),
                    log_x=True,
                    log_y=True,
                ),
            ),
        )
    separations = [int(each) for each in np.geomspace(20, 1000, 19)]
    yield drawn(
        name="gboard-figure-4c",
        title="MinS against zCDP, report goal 6500",
        source="arXiv:2305.18465, Figure 4c",
        says="Clients that come less often are protected better; MaxP is what MinS allows.",
        panels=(
            panel(
                title="report goal 6500",
                x_label="MinS (rounds between two participations of a client)",
                y_label="zCDP",
                curves=_trees_and_blts(separations, _separations_of, tell, "gboard-figure-4c"),
                log_x=True,
                log_y=True,
            ),
        ),
    )


def blt_figure_8(tell: Tell) -> Iterator[Figure]:
    """Extrapolation: mechanisms against report goal, and report goals against rounds, at equal utility."""
    goals = [int(goal) for goal in np.geomspace(1000, 40_000, 17)]
    compared = []
    for name, hue, stroke in (
        ("tree-variance-reduced", 1, 0),
        ("blt-b400", 0, 1),
        ("blt", 0, 0),
        ("banded-toeplitz", 2, 0),
    ):
        of = _goals_of(Clients(devices=4_210_000))(2000, MECHANISMS[name])
        at = goals[::2] if name == "banded-toeplitz" else goals
        compared.append(traced(SHOWN[name], at, _epsilon(of), hue=hue, stroke=stroke))
        tell(f"blt-figure-8: {name}")
    rounds = [int(each) for each in np.linspace(200, 4000, 20)]
    longer = []
    for hue, goal in enumerate((3000, 6500, 12_000, 24_000)):
        clients = Clients(devices=16_600_000)
        label = f"report goal {goal}, MinS up to {clients.longest_separation(goal) - 1}"
        longer.append(traced(label, rounds, _epsilon(_rounds_of(clients, MECHANISMS["blt"], goal)), hue=hue))
        tell(f"blt-figure-8: report goal {goal}")
    epsilon = f"epsilon at delta {DELTA:g}"
    yield drawn(
        name="blt-figure-8",
        title="Extrapolation at equal utility",
        source="arXiv:2408.08868, Figure 8",
        says="BLTs are more private at any report goal; where MinS is large, more rounds cost little.",
        panels=(
            panel(
                title="population 4.21M, 2000 rounds",
                x_label="report goal",
                y_label=epsilon,
                curves=tuple(compared),
                log_x=True,
                log_y=True,
            ),
            panel(
                title="population 16.6M, BLT designed for each",
                x_label="rounds",
                y_label=epsilon,
                curves=tuple(longer),
            ),
        ),
    )


def blt_figure_9(tell: Tell) -> Iterator[Figure]:
    """The production mechanisms at their noise multipliers, run on and on: zCDP over rounds, at two separations.

    The banded Toeplitz matrix has the noise of equal rms error over the 2000 rounds that it is designed for.
    """
    participation = Participation(rounds=2000, min_separation=400, max_participations=5)
    toeplitz = Mechanism.fixed("", design_banded_toeplitz(participation, bands=400, objective="rms"))
    equal = _scenario(Clients(devices=ABUNDANT, min_separation=400), 2000).plan(toeplitz, REPORT_GOAL)
    noise = equal.guarantee.noise_multiplier
    shown = [(SHOWN[name], MECHANISMS[name], z, hue, stroke) for name, z, hue, stroke in PRODUCED]
    shown.append(("banded Toeplitz, 400 bands", toeplitz, noise, 2, 0))
    rounds = [int(each) for each in np.linspace(50, 4000, 80)]
    panels = []
    for rounds_between in (400, 1000):
        clients = Clients(devices=ABUNDANT, min_separation=rounds_between + 1)
        curves = []
        for label, mechanism, z, hue, stroke in shown:
            of = _rounds_of(clients, mechanism, REPORT_GOAL, z)
            curves.append(traced(f"{label}, z = {z:.4g}", rounds, _zcdp(of), hue=hue, stroke=stroke))
        tell(f"blt-figure-9: MinS {rounds_between}")
        title = f"MinS {rounds_between}, report goal {REPORT_GOAL}"
        panels.append(panel(title=title, x_label="rounds", y_label="zCDP", curves=tuple(curves), log_y=True))
    yield drawn(
        name="blt-figure-9",
        title="Production mechanisms over rounds",
        source="arXiv:2408.08868, Figure 9",
        says="Any BLT stays below the tree however long the run goes on; a step is one participation more.",
        panels=tuple(panels),
    )


Planned = Callable[[float], Plan]


def _scenario(clients: Clients, rounds: int) -> Scenario:
    return Scenario(clients=clients, rounds=rounds, utility=Utility())


def _goals_of(clients: Clients) -> Callable[[int, Mechanism], Planned]:
    """The plan as a function of the report goal."""
    return lambda rounds, mechanism: lambda goal: _scenario(clients, rounds).plan(mechanism, int(goal))


def _separations_of(rounds: int, mechanism: Mechanism) -> Planned:
    """The plan as a function of MinS."""

    def of(rounds_between: float) -> Plan:
        clients = Clients(devices=ABUNDANT, min_separation=int(rounds_between) + 1)
        return _scenario(clients, rounds).plan(mechanism, REPORT_GOAL)

    return of


def _rounds_of(clients: Clients, mechanism: Mechanism, report_goal: int, noise: float | None = None) -> Planned:
    """The plan as a function of the rounds."""
    return lambda rounds: _scenario(clients, int(rounds)).plan(mechanism, report_goal, noise_multiplier=noise)


def _trees_and_blts(
    xs: Sequence[int], plan_of: Callable[[int, Mechanism], Planned], tell: Tell, name: str
) -> tuple[Line, ...]:
    """zCDP for each number of rounds, with trees (whole lines) and with BLTs designed for each point (dashed)."""
    curves = []
    for stroke, mechanism in enumerate(("tree-variance-reduced", "blt")):
        for hue, rounds in enumerate(ROUNDS):
            of = _zcdp(plan_of(rounds, MECHANISMS[mechanism]))
            label = f"{'tree' if stroke == 0 else 'BLT'}, {rounds} rounds"
            curves.append(traced(label, xs, of, hue=hue, stroke=stroke))
            tell(f"{name}: {label}")
    return tuple(curves)


def _zcdp(planned: Planned) -> Callable[[float], float]:
    return lambda x: planned(x).zcdp


def _epsilon(planned: Planned) -> Callable[[float], float]:
    return lambda x: planned(x).guarantee.epsilon(DELTA)


# -- what a mechanism costs where it is used otherwise than it was designed for ---------------------------------------

N = 2000  # rounds, as in the paper
RMS = "rms loss (error at equal privacy)"
RATIO = "rms loss over that of the BLT designed for it"
BETWEEN = "min separation b"
BUFFERS = 4
TREE, BLT, TOEPLITZ, ROOT, FULL, MF = 1, 0, 2, 3, 4, 5  # hues

Loss = Callable[[Participation], float]


@dataclass(frozen=True)
class Compared:
    """A mechanism in a figure: its loss as a function of the participation."""

    label: str
    loss: Loss
    hue: int
    stroke: int = 0


def blt_figure_2(tell: Tell, banded: Banded | None = None) -> Iterator[Figure]:
    """Mechanisms against the separation, for 3 and for 6 participations."""
    lines = [
        Compared("tree, as released", _of(Tree()), TREE, 1),
        Compared("tree, Honaker's estimate", _of(Tree(variance_reduced=True)), TREE),
        Compared("tree, optimal estimate (TreeAgg-Full)", _full_tree, FULL),
        Compared("BLT, designed for b = 400", _of(_blt(_few(400, 5))), BLT, 1),
        Compared("BLT, designed for each", lambda served: _rms(_blt(served), served), BLT),
        Compared("banded Toeplitz, 400 bands", _of(_toeplitz(_few(400, 5))), TOEPLITZ),
        *_matrix(banded),
    ]
    panels = []
    for most, longest in ((3, 999), (6, 399)):
        at = [int(b) for b in np.unique(np.geomspace(30, longest, 25).astype(int))]

        def served(b: float, most: int = most) -> Participation:
            return _few(int(b), most)

        curves = _traced(lines, at, served, tell, f"blt-figure-2: {most} participations")
        panels.append(_losses_over(f"{most} participations, {N} rounds", BETWEEN, curves))
    yield drawn(
        name="blt-figure-2",
        title="Mechanisms over the min separation",
        source="arXiv:2408.08868, Figure 2",
        says="BLTs cost less than any tree at every separation, and little more than banded matrices at theirs.",
        panels=tuple(panels),
    )


def blt_figure_3(tell: Tell, banded: Banded | None = None) -> Iterator[Figure]:
    """Designs for one separation used at another, three participations."""
    at = [int(b) for b in np.unique(np.geomspace(20, 999, 33).astype(int))]
    curves = _traced([*_designed(3), *_matrix(banded)], at, lambda b: _few(int(b), 3), tell, "blt-figure-3")
    yield drawn(
        name="blt-figure-3",
        title="Designed for one separation, used at another",
        source="arXiv:2408.08868, Figure 3",
        says="Where clients come sooner than a banded matrix has bands it loses ground; BLTs bend less.",
        panels=(_losses_over(f"3 participations, {N} rounds", BETWEEN, curves, y_limits=(4.5, 11.5)),),
    )


def blt_figure_4(tell: Tell, banded: Banded | None = None) -> Iterator[Figure]:
    """The same where clients come as often as the separation lets them."""
    at = [b for b in range(10, N + 1) if N % b == 0]
    tree = Compared("tree, Honaker's estimate", _of(Tree(variance_reduced=True)), TREE)
    lines = [*_designed(None), *_matrix(banded), tree]

    def served(b: float) -> Participation:
        return Participation.worst_case(N, int(b))

    curves = _traced(lines, at, served, tell, "blt-figure-4")
    yield drawn(
        name="blt-figure-4",
        title="Clients that come as often as they may",
        source="arXiv:2408.08868, Figure 4",
        says="Each design costs least near its own separation; banded matrices have the sharper bend there.",
        panels=(
            _losses_over(f"{N} rounds, {N}/b participations", BETWEEN, curves, log_y=True),
            panel(
                title="the same, over the BLT designed for each b",
                x_label=BETWEEN,
                y_label=RATIO,
                curves=_over_best(curves, served),
                log_x=True,
                y_limits=(0.9, 2.1),
            ),
        ),
    )


def blt_figure_5(tell: Tell, banded: Banded | None = None) -> Iterator[Figure]:
    """Designs for one number of rounds, run for another."""
    at = [int(n) for n in np.linspace(100, 4000, 40)]
    lines = [
        Compared(f"BLT, designed for {n} rounds", _of(_blt(Participation.worst_case(n, 400))), BLT, stroke)
        for stroke, n in enumerate((1000, 2000, 4000))
    ]
    lines += [
        Compared(
            f"banded Toeplitz, designed for {n} rounds",
            _of(_toeplitz(Participation.worst_case(n, 400))),
            TOEPLITZ,
            stroke,
        )
        for stroke, n in enumerate((1000, 2000, 4000))
    ]
    lines += [Compared("tree, Honaker's estimate", _of(Tree(variance_reduced=True)), TREE), *_matrix(banded)]

    def served(n: float) -> Participation:
        return Participation.worst_case(int(n), 400)

    curves = _traced(lines, at, served, tell, "blt-figure-5", within=N)
    yield drawn(
        name="blt-figure-5",
        title="Designed for one number of rounds, run for another",
        source="arXiv:2408.08868, Figure 5",
        says="A BLT hardly notices for how many rounds it was designed; steps are one participation more.",
        panels=(
            panel(
                title="over the BLT designed for just these rounds (b = 400)",
                x_label="rounds",
                y_label=RATIO,
                curves=_over_best(curves, served),
                y_limits=(0.9, 1.15),
            ),
            _losses_over("b = 400, as often as that allows", "rounds", curves),
        ),
    )


def blt_figure_6(tell: Tell) -> Iterator[Figure]:
    """BLTs beside banded Toeplitz matrices and the banded square root, each made for its separation."""
    few = Compared("BLT, 2 buffers", lambda served: _rms(_blt(served, 2), served), BLT, 1)
    blt = Compared("BLT, 4 buffers", lambda served: _rms(_blt(served), served), BLT)
    toeplitz = Compared("banded Toeplitz, b bands", lambda served: _rms(_toeplitz(served), served), TOEPLITZ)
    root = Compared("banded square root, b bands", _square_root, ROOT)
    at = [int(b) for b in np.geomspace(N // 50, N // 2, 9)]
    curves = _traced(
        (few, blt, toeplitz, root), at, lambda b: Participation.worst_case(N, int(b)), tell, "blt-figure-6"
    )
    visits = (2, 5, 10, 20, 50)
    ratios: list[Line] = []
    for stroke, rounds in enumerate((N, 5 * N)):

        def served(most: float, n: int = rounds) -> Participation:
            return Participation.worst_case(n, n // int(most))

        lines = [replace(each, label=f"{each.label}, {rounds} rounds", stroke=stroke) for each in (toeplitz, root)]
        ratios += _over_best(_traced(lines, visits, served, tell, "blt-figure-6"), served)
    yield drawn(
        name="blt-figure-6",
        title="BLTs beside banded Toeplitz matrices",
        source="arXiv:2408.08868, Figure 6",
        says="A BLT with a few buffers costs within a tenth of what matrices with hundreds of bands cost.",
        panels=(
            _losses_over(f"{N} rounds, {N}/b participations", BETWEEN, curves, log_y=True),
            panel(
                title="over the BLT with 4 buffers",
                x_label="participations (rounds / b)",
                y_label=RATIO,
                curves=tuple(ratios),
                log_x=True,
                y_limits=(0.85, 1.2),
            ),
        ),
    )


def bandmf(progress: Callable[[int, float], None] | None = None) -> Banded:
    """The BandMF of the figures: 400 bands, 2000 rounds. Takes minutes."""
    return design_banded(_few(400, 5), bands=400, objective="rms", progress=progress)


def _few(separation: int, most: int) -> Participation:
    return Participation(rounds=N, min_separation=separation, max_participations=most).effective


def _designed(most: int | None) -> list[Compared]:
    """BLTs and banded Toeplitz matrices for three separations."""
    lines = []
    for stroke, b in enumerate((100, 400, 1000)):
        served = Participation.worst_case(N, b) if most is None else _few(b, most)
        lines.append(Compared(f"BLT, designed for b = {b}", _of(_blt(served)), BLT, stroke))
        lines.append(Compared(f"banded Toeplitz, {b} bands", _of(_toeplitz(served)), TOEPLITZ, stroke))
    return sorted(lines, key=lambda line: line.hue)


def _matrix(banded: Banded | None) -> list[Compared]:
    """A BandMF, where there is one; for clients that come sooner than half its bands by a proved bound."""
    if banded is None:
        return []
    error = lru_cache(maxsize=64)(lambda rounds: prefix_errors(banded, rounds)[1])

    def loss(served: Participation) -> float:
        return math.sqrt(sensitivity_bound_squared(banded, served)[0]) * error(served.rounds)

    return [Compared(f"BandMF, {banded.bands} bands", loss, MF)]


@lru_cache(maxsize=2048)
def _blt(served: Participation, buffers: int = BUFFERS) -> Strategy:
    return design_blt(served, buffers=buffers, objective="rms")


@lru_cache(maxsize=256)
def _toeplitz(served: Participation) -> Strategy:
    return design_banded_toeplitz(served, bands=served.min_separation, objective="rms")


def _rms(strategy: Strategy, served: Participation) -> float:
    return losses(strategy, served).rms_loss


def _of(strategy: Strategy) -> Loss:
    return lambda served: _rms(strategy, served)


@lru_cache(maxsize=8)
def _full_tree_error(rounds: int) -> float:
    return prefix_errors(full_tree(rounds), rounds)[1]


def _full_tree(served: Participation) -> float:
    """Errors of the optimal estimate from the tree's nodes, exact sensitivity of the tree."""
    return _full_tree_error(served.rounds) * sensitivity(Tree(), served)


def _traced(
    lines: Sequence[Compared],
    xs: Sequence[int],
    served: Callable[[float], Participation],
    tell: Tell,
    name: str,
    *,
    within: int | None = None,
) -> tuple[Line, ...]:
    """Each line's losses at `xs`; a BandMF, which says nothing beyond its rounds, only as far as it goes."""
    curves = []
    for line in lines:
        at = [x for x in xs if within is None or line.hue != MF or x <= within]

        def of(x: float, loss: Loss = line.loss) -> float:
            return loss(served(x))

        curves.append(traced(line.label, at, of, hue=line.hue, stroke=line.stroke))
        tell(f"{name}: {line.label}")
    return tuple(curves)


def _square_root(served: Participation) -> float:
    return _rms(banded_square_root(served.min_separation), served)


def _over_best(curves: Sequence[Line], served: Callable[[float], Participation]) -> tuple[Line, ...]:
    """The same curves, divided by the loss of a BLT designed for each point."""

    def best(x: float) -> float:
        return _rms(_blt(served(x)), served(x))

    return tuple(
        replace(curve, y=tuple(y / best(x) for x, y in zip(curve.x, curve.y, strict=True))) for curve in curves
    )


def _losses_over(
    title: str,
    x_label: str,
    curves: tuple[Line, ...],
    *,
    log_y: bool = False,
    y_limits: tuple[float, float] | None = None,
) -> Panel:
    return panel(
        title=title,
        x_label=x_label,
        y_label=RMS,
        curves=curves,
        log_x=x_label == BETWEEN,
        log_y=log_y,
        y_limits=y_limits,
    )


# -- the command -------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the folder for the figures; made if it is not there")
    parser.add_argument("--only", action="append", choices=list(builders()), help="may be given several times")
    parser.add_argument("--bandmf", action="store_true", help="design a BandMF for Figures 2 to 5 as well")
    parser.add_argument("--smoke", action="store_true", help="the quickest figure, into a folder that goes away")
    options = parser.parse_args()
    if options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), ["blt-figure-9"], None)
        return
    if options.out is None:
        parser.error("give --out FOLDER")
    write(options.out, options.only, bandmf() if options.bandmf else None)


def write(out: Path, only: Sequence[str] | None, banded: Banded | None) -> None:
    """The files of each figure, one after another."""
    out.mkdir(parents=True, exist_ok=True)
    for name, (build, _) in builders(banded).items():
        if only is None or name in only:
            for figure in build(lambda curve: None):
                print(json.dumps({"figure": figure.name, "shows": figure.alt, "files": write_figure(figure, out)}))


if __name__ == "__main__":
    main()
