"""Which figures of a job's events follow from what it released, so that whoever reads a log may see them.

The others are exact: a training loss, a share of clipped updates, an accuracy of validation clients, how many clients a
second. They tell of the clients' text, the guarantee does not cover them, and the report that may be published does
not have them (`tacit.reports.train_published`). A stage that is not named here has no figure for readers.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tacit.progress import Advanced, Evaluated, Event

PUBLISHED: Mapping[str, frozenset[str]] = {
    # The price follows from the plan and the log of participations, public by assumption; the others were noised.
    "training": frozenset({"zcdp", "epsilon", "delta", "clip_norm", "clip_estimate", "private_loss"}),
    # The text is nobody's.
    "pre-training": frozenset({"training_loss", "held_out", "best"}),
    # What devices randomised themselves, and what follows from it.
    "asking layers": frozenset({"pass", "layer", "prefixes", "users", "words"}),
}
_REFUSED = re.compile(r"[^\w./ -]")  # by the tracking servers that are strictest


class PublishedNumber(NamedTuple):
    """A number that is told: `training/epsilon`, its value, after how many steps of its stage."""

    name: str
    value: float
    step: int


def told(event: Event, *, exact: bool) -> Iterator[PublishedNumber]:
    """The finite numbers of an event: those that follow from what was released, or all of them.

    Numbers that are not finite (the price of rounds without noise) are left out: few tools can draw them.
    """
    match event:
        case Advanced():
            stage, step, figures = event.stage, event.done, event.figures
            if not exact:
                figures = {name: figures[name] for name in figures if name in PUBLISHED.get(stage, ())}
        case Evaluated() if exact:
            stage, step, figures = event.split, event.rounds, event.metrics
        case _:
            return
    for name, value in figures.items():
        if math.isfinite(value):
            yield PublishedNumber(_REFUSED.sub("_", f"{stage}/{name}"), float(value), step)
