"""Which noise does a mechanism cost at equal privacy, also where it is used otherwise than it was designed for?"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
from paper_panels import Tell, drawn, panel

from tacit.design.banded import design_banded
from tacit.design.blt import design_blt
from tacit.design.dense import full_tree
from tacit.design.losses import losses, prefix_errors
from tacit.design.objective import Objective
from tacit.design.toeplitz import banded_square_root, design_banded_toeplitz
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity import sensitivity, sensitivity_bound_squared
from tacit.privacy.strategy import PUBLISHED_BLT, Banded, Strategy, Tree
from tacit.reports.figure import Figure, Line, Panel, traced

N = 2000  # rounds, as in the paper
LOSS = "loss (error at equal privacy)"
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
    yield _over_the_separation("blt-figure-2", "rms", tell, banded)


def blt_figure_12(tell: Tell, banded: Banded | None = None) -> Iterator[Figure]:
    """Figure 2 by the max loss."""
    yield _over_the_separation("blt-figure-12", "max", tell, banded)


def _over_the_separation(name: str, objective: Objective, tell: Tell, banded: Banded | None) -> Figure:
    """Mechanisms by one loss; BLTs designed for it, and for the other one."""
    other: Objective = "max" if objective == "rms" else "rms"

    def designed(by: Objective) -> Loss:
        return lambda served: _loss(blt_for(served, objective=by), served, objective)

    lines = [
        Compared("tree, as released", _of(Tree(), objective), TREE, 1),
        Compared("tree, Honaker's estimate", _of(Tree(variance_reduced=True), objective), TREE),
        Compared("tree, optimal estimate (TreeAgg-Full)", _full_tree(objective), FULL),
        Compared("BLT, designed for b = 400", _of(blt_for(_few(400, 5), objective=objective), objective), BLT, 1),
        Compared("BLT, designed for each", designed(objective), BLT),
        Compared(f"BLT, designed for each by the {other} loss", designed(other), BLT, 2),
        Compared("banded Toeplitz, 400 bands", _of(_toeplitz(_few(400, 5), objective), objective), TOEPLITZ),
        *_matrix(banded, objective),
    ]
    panels = []
    for most, longest in ((3, 999), (6, 399)):
        at = [int(b) for b in np.unique(np.geomspace(30, longest, 25).astype(int))]

        def served(b: float, most: int = most) -> Participation:
            return _few(int(b), most)

        curves = _traced(lines, at, served, tell, f"{name}: {most} participations")
        panels.append(_losses_over(f"{most} participations, {N} rounds", BETWEEN, curves, objective=objective))
    return drawn(
        name=name,
        title=f"Mechanisms over the min separation, by the {objective} loss",
        source=f"arXiv:2408.08868, Figure {2 if objective == 'rms' else 12}",
        says="BLTs cost less than any tree at every separation, and little more than banded matrices at theirs.",
        panels=tuple(panels),
    )


def blt_figure_10(tell: Tell) -> Iterator[Figure]:
    """The coefficients of the production BLTs and of their inverses."""
    rounds = np.unique(np.geomspace(1, N, 120).astype(int))
    above: list[Line] = []
    below: list[Line] = []
    for stroke, (name, blt) in enumerate(sorted(PUBLISHED_BLT.items(), key=lambda item: int(item[0][1:]))):
        column, inverse = blt.column(N), blt.inverse_column(N)
        label = f"BLT for b = {name[1:]}"
        above.append(Line(label=label, x=rounds, y=column[rounds - 1], hue=stroke, stroke=stroke, dots=False))
        later = rounds[1:]
        below.append(Line(label=label, x=later, y=-inverse[later - 1], hue=stroke, stroke=stroke, dots=False))
        tell(f"blt-figure-10: {label}")
    yield drawn(
        name="blt-figure-10",
        title="The production BLTs, coefficient by coefficient",
        source="arXiv:2408.08868, Figure 10",
        says="The BLT for b = 100 falls faster than those for 400 and 1000; noise is taken back over many rounds.",
        panels=(
            panel(
                title="C: what the sensitivity sees",
                x_label="coefficient, counted from 1",
                y_label="coefficient",
                curves=tuple(above),
                log_x=True,
                log_y=True,
                y_limits=(1e-6, 2),
            ),
            panel(
                title="C inverse, minus its coefficients: noise taken back",
                x_label="coefficient, counted from 1; the first is 1",
                y_label="minus the coefficient",
                curves=tuple(below),
                log_x=True,
                log_y=True,
                y_limits=(1e-6, 1),
            ),
        ),
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
        Compared(f"BLT, designed for {n} rounds", _of(blt_for(Participation.worst_case(n, 400))), BLT, stroke)
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
    few = Compared("BLT, 2 buffers", lambda served: _rms(blt_for(served, 2), served), BLT, 1)
    blt = Compared("BLT, 4 buffers", lambda served: _rms(blt_for(served), served), BLT)
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


@cache
def bandmf() -> Banded:
    """The BandMF of the figures: 400 bands, 2000 rounds. Takes some ten seconds."""
    return design_banded(_few(400, 5), bands=400, objective="rms")


def _few(separation: int, most: int) -> Participation:
    return Participation(rounds=N, min_separation=separation, max_participations=most).effective


def _designed(most: int | None) -> list[Compared]:
    """BLTs and banded Toeplitz matrices for three separations."""
    lines = []
    for stroke, b in enumerate((100, 400, 1000)):
        served = Participation.worst_case(N, b) if most is None else _few(b, most)
        lines.append(Compared(f"BLT, designed for b = {b}", _of(blt_for(served)), BLT, stroke))
        lines.append(Compared(f"banded Toeplitz, {b} bands", _of(_toeplitz(served)), TOEPLITZ, stroke))
    return sorted(lines, key=lambda line: line.hue)


def _matrix(banded: Banded | None, objective: Objective = "rms") -> list[Compared]:
    """A BandMF, where there is one; for clients that come sooner than half its bands by a proved bound."""
    if banded is None:
        return []
    error = lru_cache(maxsize=64)(lambda rounds: prefix_errors(banded, rounds)[1 if objective == "rms" else 0])

    def loss(served: Participation) -> float:
        return math.sqrt(sensitivity_bound_squared(banded, served)[0]) * error(served.rounds)

    return [Compared(f"BandMF, {banded.bands} bands", loss, MF)]


@lru_cache(maxsize=2048)
def blt_for(served: Participation, buffers: int = BUFFERS, objective: Objective = "rms") -> Strategy:
    """The BLT of least loss there."""
    return design_blt(served, buffers=buffers, objective=objective)


@lru_cache(maxsize=256)
def _toeplitz(served: Participation, objective: Objective = "rms") -> Strategy:
    return design_banded_toeplitz(served, bands=served.min_separation, objective=objective)


def _loss(strategy: Strategy, served: Participation, objective: Objective) -> float:
    return losses(strategy, served).of(objective)


def _rms(strategy: Strategy, served: Participation) -> float:
    return _loss(strategy, served, "rms")


def _of(strategy: Strategy, objective: Objective = "rms") -> Loss:
    return lambda served: _loss(strategy, served, objective)


@lru_cache(maxsize=8)
def _full_tree_errors(rounds: int) -> dict[Objective, float]:
    largest, mean = prefix_errors(full_tree(rounds), rounds)
    return {"max": largest, "rms": mean}


def _full_tree(objective: Objective) -> Loss:
    """Errors of the optimal estimate from the tree's nodes, exact sensitivity of the tree."""
    return lambda served: _full_tree_errors(served.rounds)[objective] * sensitivity(Tree(), served)


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
        return _rms(blt_for(served(x)), served(x))

    return tuple(
        replace(curve, y=tuple(y / best(x) for x, y in zip(curve.x, curve.y, strict=True))) for curve in curves
    )


def _losses_over(
    title: str,
    x_label: str,
    curves: tuple[Line, ...],
    *,
    objective: Objective = "rms",
    log_y: bool = False,
    y_limits: tuple[float, float] | None = None,
) -> Panel:
    return panel(
        title=title,
        x_label=x_label,
        y_label=f"{objective} {LOSS}",
        curves=curves,
        log_x=x_label == BETWEEN,
        log_y=log_y,
        y_limits=y_limits,
    )
