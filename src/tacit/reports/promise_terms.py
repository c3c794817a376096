"""The words of a promise, a line each, with the numbers of the run that is shown."""

import math

from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, Heading, Table
from tacit.reports.summary import RunSummary


def promise_terms(summary: RunSummary) -> list[Block]:
    """What epsilon, delta, zCDP, MinS and MaxP mean; nothing where nothing is promised."""
    promised = summary.realised or summary.planned
    if not summary.private:
        return []
    epsilon = promised["epsilon"]
    rows = (
        (
            "epsilon",
            rounded_up(epsilon),
            "whether one client took part changes the probability of whatever one may see of the model by a factor of "
            f"e^epsilon at most, here {_factor(epsilon)}; up to 1 is strong, up to 10 reasonable",
        ),
        (
            "delta",
            f"{summary.delta:g}",
            f"but for events of this probability; it should be far below one client in {summary.metadata.population:,}",
        ),
        (
            "zCDP",
            rounded_up(promised["zcdp"]),
            "the same price in a unit that adds up over rounds and runs; the epsilon of every delta follows from it",
        ),
        (
            "MinS",
            f"{promised['rounds_between']:,}",
            "rounds between two participations of a client, at least; more cost less",
        ),
        ("MaxP", f"{promised['max_participations']:,}", "participations of a client, at most; fewer cost less"),
    )
    return [Heading("What these words mean"), Table(rows, ("", "here", "meaning"))]


def _factor(epsilon: float) -> str:
    return "more than a million" if epsilon > math.log(1e6) else f"{math.exp(epsilon):,.3g}"
