"""What a mechanism costs where it is used otherwise than it was designed for: arXiv:2408.08868, Figures 2 to 6.

Losses (error of the prefix sums times sensitivity) compare mechanisms at equal privacy; nothing is trained. What the
text of the paper leaves open (which participations, which designs) is chosen here and written on the axes.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tacit.design.banded import design_banded
from tacit.design.blt import design_blt
from tacit.design.dense import full_tree
from tacit.design.losses import losses, prefix_errors
from tacit.design.toeplitz import banded_square_root, design_banded_toeplitz
from tacit.planning.panels import Curve, Panel, PlannedFigure, Told, traced
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity import sensitivity, sensitivity_bound_squared
from tacit.privacy.strategy import Banded, Strategy, Tree
from tacit.progress import Progress, silent

N = 2000  # rounds, as in the paper
RMS = "rms loss (error at equal privacy)"
RATIO = "rms loss over that of the BLT designed for it"
BETWEEN = "min separation b"
BUFFERS = 4
TREE, BLT, TOEPLITZ, ROOT, FULL, MF = 1, 0, 2, 3, 4, 5  # hues

Loss = Callable[[Participation], float]


@dataclass(frozen=True)
class Line:
    """A mechanism in a figure: its loss as a function of the participation."""

    label: str
    loss: Loss
    hue: int
    stroke: int = 0


def blt_figure_2(tell: Told, banded: Banded | None = None) -> Iterator[PlannedFigure]:
    """Mechanisms against the separation, for 3 and for 6 participations."""
    lines = [
        Line("tree, as released", _of(Tree()), TREE, 1),
        Line("tree, Honaker's estimate", _of(Tree(variance_reduced=True)), TREE),
        Line("tree, optimal estimate (TreeAgg-Full)", _full_tree, FULL),
        Line("BLT, designed for b = 400", _of(_blt(_few(400, 5))), BLT, 1),
        Line("BLT, designed for each", lambda served: _rms(_blt(served), served), BLT),
        Line("banded Toeplitz, 400 bands", _of(_toeplitz(_few(400, 5))), TOEPLITZ),
        *_matrix(banded),
    ]
    panels = []
    for most, longest in ((3, 999), (6, 399)):
        at = [int(b) for b in np.unique(np.geomspace(30, longest, 25).astype(int))]

        def served(b: float, most: int = most) -> Participation:
            return _few(int(b), most)

        curves = _traced(lines, at, served, tell, f"blt-figure-2: {most} participations")
        panels.append(_panel(f"{most} participations, {N} rounds", BETWEEN, curves))
    yield PlannedFigure(
        name="blt-figure-2",
        title="Mechanisms over the min separation",
        source="arXiv:2408.08868, Figure 2",
        says="BLTs cost less than any tree at every separation, and little more than banded matrices at theirs.",
        panels=tuple(panels),
    )


def blt_figure_3(tell: Told, banded: Banded | None = None) -> Iterator[PlannedFigure]:
    """Designs for one separation used at another, three participations."""
    at = [int(b) for b in np.unique(np.geomspace(20, 999, 33).astype(int))]
    curves = _traced([*_designed(3), *_matrix(banded)], at, lambda b: _few(int(b), 3), tell, "blt-figure-3")
    yield PlannedFigure(
        name="blt-figure-3",
        title="Designed for one separation, used at another",
        source="arXiv:2408.08868, Figure 3",
        says="Where clients come sooner than a banded matrix has bands it loses ground; BLTs bend less.",
        panels=(replace(_panel(f"3 participations, {N} rounds", BETWEEN, curves), y_limits=(4.5, 11.5)),),
    )


def blt_figure_4(tell: Told, banded: Banded | None = None) -> Iterator[PlannedFigure]:
    """The same where clients come as often as the separation lets them."""
    at = [b for b in range(10, N + 1) if N % b == 0]
    tree = Line("tree, Honaker's estimate", _of(Tree(variance_reduced=True)), TREE)
    lines = [*_designed(None), *_matrix(banded), tree]

    def served(b: float) -> Participation:
        return Participation.worst_case(N, int(b))

    curves = _traced(lines, at, served, tell, "blt-figure-4")
    yield PlannedFigure(
        name="blt-figure-4",
        title="Clients that come as often as they may",
        source="arXiv:2408.08868, Figure 4",
        says="Each design costs least near its own separation; banded matrices have the sharper bend there.",
        panels=(
            _panel(f"{N} rounds, {N}/b participations", BETWEEN, curves, log_y=True),
            Panel(
                title="the same, over the BLT designed for each b",
                x_label=BETWEEN,
                y_label=RATIO,
                curves=_over_best(curves, served),
                log_x=True,
                y_limits=(0.9, 2.1),
            ),
        ),
    )


def blt_figure_5(tell: Told, banded: Banded | None = None) -> Iterator[PlannedFigure]:
    """Designs for one number of rounds, run for another."""
    at = [int(n) for n in np.linspace(100, 4000, 40)]
    lines = [
        Line(f"BLT, designed for {n} rounds", _of(_blt(Participation.worst_case(n, 400))), BLT, stroke)
        for stroke, n in enumerate((1000, 2000, 4000))
    ]
    lines += [
        Line(
            f"banded Toeplitz, designed for {n} rounds",
            _of(_toeplitz(Participation.worst_case(n, 400))),
            TOEPLITZ,
            stroke,
        )
        for stroke, n in enumerate((1000, 2000, 4000))
    ]
    lines += [Line("tree, Honaker's estimate", _of(Tree(variance_reduced=True)), TREE), *_matrix(banded)]

    def served(n: float) -> Participation:
        return Participation.worst_case(int(n), 400)

    curves = _traced(lines, at, served, tell, "blt-figure-5", within=N)
    yield PlannedFigure(
        name="blt-figure-5",
        title="Designed for one number of rounds, run for another",
        source="arXiv:2408.08868, Figure 5",
        says="A BLT hardly notices for how many rounds it was designed; steps are one participation more.",
        panels=(
            Panel(
                title="over the BLT designed for just these rounds (b = 400)",
                x_label="rounds",
                y_label=RATIO,
                curves=_over_best(curves, served),
                y_limits=(0.9, 1.15),
            ),
            _panel("b = 400, as often as that allows", "rounds", curves),
        ),
    )


def blt_figure_6(tell: Told) -> Iterator[PlannedFigure]:
    """BLTs beside banded Toeplitz matrices and the banded square root, each made for its separation."""
    few = Line("BLT, 2 buffers", lambda served: _rms(_blt(served, 2), served), BLT, 1)
    blt = Line("BLT, 4 buffers", lambda served: _rms(_blt(served), served), BLT)
    toeplitz = Line("banded Toeplitz, b bands", lambda served: _rms(_toeplitz(served), served), TOEPLITZ)
    root = Line("banded square root, b bands", _square_root, ROOT)
    at = [int(b) for b in np.geomspace(N // 50, N // 2, 9)]
    curves = _traced(
        (few, blt, toeplitz, root), at, lambda b: Participation.worst_case(N, int(b)), tell, "blt-figure-6"
    )
    visits = (2, 5, 10, 20, 50)
    ratios: list[Curve] = []
    for stroke, rounds in enumerate((N, 5 * N)):

        def served(most: float, n: int = rounds) -> Participation:
            return Participation.worst_case(n, n // int(most))

        lines = [replace(each, label=f"{each.label}, {rounds} rounds", stroke=stroke) for each in (toeplitz, root)]
        ratios += _over_best(_traced(lines, visits, served, tell, "blt-figure-6"), served)
    yield PlannedFigure(
        name="blt-figure-6",
        title="BLTs beside banded Toeplitz matrices",
        source="arXiv:2408.08868, Figure 6",
        says="A BLT with a few buffers costs within a tenth of what matrices with hundreds of bands cost.",
        panels=(
            _panel(f"{N} rounds, {N}/b participations", BETWEEN, curves, log_y=True),
            Panel(
                title="over the BLT with 4 buffers",
                x_label="participations (rounds / b)",
                y_label=RATIO,
                curves=tuple(ratios),
                log_x=True,
                y_limits=(0.85, 1.2),
            ),
        ),
    )


def bandmf(progress: Progress = silent) -> Banded:
    """The BandMF of the figures: 400 bands, 2000 rounds. Takes minutes."""
    return design_banded(_few(400, 5), bands=400, objective="rms", progress=progress)


def _few(separation: int, most: int) -> Participation:
    return Participation(rounds=N, min_separation=separation, max_participations=most).effective


def _designed(most: int | None) -> list[Line]:
    """BLTs and banded Toeplitz matrices for three separations."""
    lines = []
    for stroke, b in enumerate((100, 400, 1000)):
        served = Participation.worst_case(N, b) if most is None else _few(b, most)
        lines.append(Line(f"BLT, designed for b = {b}", _of(_blt(served)), BLT, stroke))
        lines.append(Line(f"banded Toeplitz, {b} bands", _of(_toeplitz(served)), TOEPLITZ, stroke))
    return sorted(lines, key=lambda line: line.hue)


def _matrix(banded: Banded | None) -> list[Line]:
    """A BandMF, where there is one; for clients that come sooner than half its bands by a proved bound."""
    if banded is None:
        return []
    error = lru_cache(maxsize=64)(lambda rounds: prefix_errors(banded, rounds)[1])

    def loss(served: Participation) -> float:
        return math.sqrt(sensitivity_bound_squared(banded, served)[0]) * error(served.rounds)

    return [Line(f"BandMF, {banded.bands} bands", loss, MF)]


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
    lines: Sequence[Line],
    xs: Sequence[int],
    served: Callable[[float], Participation],
    tell: Told,
    name: str,
    *,
    within: int | None = None,
) -> tuple[Curve, ...]:
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


def _over_best(curves: Sequence[Curve], served: Callable[[float], Participation]) -> tuple[Curve, ...]:
    """The same curves, divided by the loss of a BLT designed for each point."""

    def best(x: float) -> float:
        return _rms(_blt(served(x)), served(x))

    return tuple(
        replace(curve, y=tuple(y / best(x) for x, y in zip(curve.x, curve.y, strict=True))) for curve in curves
    )


def _panel(title: str, x_label: str, curves: tuple[Curve, ...], *, log_y: bool = False) -> Panel:
    return Panel(title=title, x_label=x_label, y_label=RMS, curves=curves, log_x=x_label == BETWEEN, log_y=log_y)
