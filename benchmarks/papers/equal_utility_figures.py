"""Which privacy does a configuration buy, the noise that the model bears being the same?"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from paper_panels import Tell, drawn, panel

from tacit.design.catalogue import MECHANISMS
from tacit.design.mechanism import Mechanism
from tacit.design.toeplitz import design_banded_toeplitz
from tacit.planning import AccountedPlan, Clients, Scenario, Utility
from tacit.privacy.participation import Participation
from tacit.reports.figure import Figure, Line, traced

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


Planned = Callable[[float], AccountedPlan]


def _scenario(clients: Clients, rounds: int) -> Scenario:
    return Scenario(clients=clients, rounds=rounds, utility=Utility())


def _goals_of(clients: Clients) -> Callable[[int, Mechanism], Planned]:
    """The plan as a function of the report goal."""
    return lambda rounds, mechanism: lambda goal: _scenario(clients, rounds).plan(mechanism, int(goal))


def _separations_of(rounds: int, mechanism: Mechanism) -> Planned:
    """The plan as a function of MinS."""

    def of(rounds_between: float) -> AccountedPlan:
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
