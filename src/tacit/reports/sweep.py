"""The page of a sweep: each run's accuracy and price, what all of them cost together, and the runs side by side."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.networks.metrics import OF_KNOWN
from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, Paragraph, Table
from tacit.reports.page import Page
from tacit.reports.release import number_from, simulation_blocks

EXACT = "SIMULATION ONLY: exact accuracies on held-out clients; no guarantee covers them"
HEAD = ("run", f"top-1 {OF_KNOWN}", "epsilon", "zCDP")


def page(record: Mapping[str, Any], compared: Sequence[Block] = (), *, folder: str) -> Page:
    """Everything; nothing of it may be published. record: of the sweep. compared: the runs as `tacit compare` says.

    folder: of the runs.
    """
    left = left_to_do([f"{folder}/{name}" for name in record["unfinished"]])
    return Page(
        kind="comparison of a sweep",
        title=f"{len(record['runs'])} runs, side by side",
        blocks=(*simulation_blocks(EXACT), *summary(record), *left, *compared),
        record=record,
    )


def summary(record: Mapping[str, Any]) -> list[Block]:
    """A row for each run, then what they cost together."""
    rows = tuple(
        (each["run"], _share(each["top1"]), _price(each["epsilon"]), _price(each["zcdp"])) for each in record["runs"]
    )
    return [Table(rows, HEAD), Paragraph(cost(record["together"]))]


def left_to_do(runs: Sequence[str]) -> list[Block]:
    """That these stopped before their last round, and the commands that release each one's model, or go on."""
    if not runs:
        return []
    stopped = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    ends = "\n".join(f"    tacit finish {shlex.quote(each)}" for each in runs)
    return [
        Paragraph(f"{stopped} stopped before the last round, without a released model. These commands release it:"),
        Paragraph(ends),
        Paragraph("`tacit resume` in the place of `tacit finish` goes on to the last round."),
    ]


def cost(together: Mapping[str, Any]) -> str:
    """What must stand beside the statement of any one of the runs."""
    count = together["released"]
    if not count:
        return "Nothing is released yet, and nothing was spent."
    if together["epsilon"] is None:
        paid = f"At least one of the {count} runs adds no noise, so no figure bounds what they tell together"
    else:
        paid = (
            f"The {count} runs are {count} releases on the clients' text: together they cost zCDP "
            f"{rounded_up(number_from(together['zcdp']))} (epsilon {rounded_up(number_from(together['epsilon']))} at "
            f"delta {together['delta']:g}) to a client that trained in all of them"
        )
    return (
        f"{paid}. The statement of each counts that run alone. Whoever publishes the best one has chosen it by exact "
        "accuracies of held-out clients, who have no guarantee. To choose at no price, sweep on public text."
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2%}"


def _price(value: Any) -> str:
    return "–" if value is None else rounded_up(number_from(value))
