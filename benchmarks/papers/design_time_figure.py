"""How long does it take to design a mechanism, by the number of rounds?"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from paper_panels import Tell, drawn, panel

from tacit.design.banded import design_banded
from tacit.design.blt import design_blt
from tacit.design.toeplitz import design_banded_toeplitz
from tacit.privacy.participation import Participation
from tacit.reports.figure import Figure, Line

VISITS = 5  # participations: the separation and the bands are a fifth of the rounds
BUFFERS = 4
TIMES, LONG = 3, 1.0  # the median of three, or one alone where it takes more seconds

Design = Callable[[Participation], object]


def _blt(served: Participation) -> object:
    return design_blt(served, buffers=BUFFERS, objective="rms")


def _toeplitz(served: Participation) -> object:
    return design_banded_toeplitz(served, bands=served.min_separation, objective="rms")


def _banded(served: Participation) -> object:
    return design_banded(served, bands=served.min_separation, objective="rms")


DESIGNS: tuple[tuple[str, Design, int, tuple[int, ...]], ...] = (
    ("BLT, 4 buffers", _blt, 0, (100, 200, 500, 1000, 2000, 5000, 10**4, 10**5, 10**6)),
    ("banded Toeplitz, b bands", _toeplitz, 2, (100, 200, 500, 1000, 2000, 5000, 10**4, 2 * 10**4)),
    ("BandMF, b bands", _banded, 5, (100, 200, 500, 1000, 2000)),
)


def seconds_of(design: Callable[[], object]) -> float:
    """CPU seconds of this process, all its threads: the median of a few, for a short one."""
    taken: list[float] = []
    while len(taken) < TIMES and (not taken or taken[0] < LONG):
        begin = time.process_time()
        design()
        taken.append(time.process_time() - begin)
    return median(taken)


def blt_figure_1(tell: Tell) -> Iterator[Figure]:
    """A stopwatch's figure: another machine's, and another run's, is another one."""
    curves = []
    for label, design, hue, rounds in DESIGNS:
        design(Participation.worst_case(50, 10))  # what is loaded and compiled once does not count
        seconds = [seconds_of(partial(design, Participation.worst_case(n, n // VISITS))) for n in rounds]
        curves.append(Line(label=label, x=rounds, y=seconds, hue=hue))
        tell(f"blt-figure-1: {label}")
    yield drawn(
        name="blt-figure-1",
        title="CPU seconds to design a mechanism",
        source="arXiv:2408.08868, Figure 1",
        says="A BLT takes as long for a million rounds as for a hundred; a BandMF takes seconds from 1000 on.",
        panels=(
            panel(
                title=f"{VISITS} participations, b = rounds / {VISITS}, rms loss",
                x_label="rounds",
                y_label="CPU seconds",
                curves=tuple(curves),
                log_x=True,
                log_y=True,
            ),
        ),
    )
