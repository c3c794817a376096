"""What the papers' figures share: a figure with its source, and curves on a pair of axes."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from tacit.reports.figure import Axis, Figure, Mark, Panel

Tell: TypeAlias = Callable[[str], None]  # is told which curve was computed
Builder: TypeAlias = Callable[[Tell], Iterator[Figure]]


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
    curves: tuple[Mark, ...],
    log_x: bool = False,
    log_y: bool = False,
    y_limits: tuple[float, float] | None = None,
) -> Panel:
    """Curves on one pair of axes."""
    low, high = y_limits or (None if log_y else 0, None)
    return Panel(title=title, marks=curves, x=Axis(x_label, log=log_x), y=Axis(y_label, log=log_y, low=low, high=high))
