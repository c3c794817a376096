"""Figures as data: what is drawn, on which axes, with which labels.

    Figure(name, title, alt, panels)       what a file or a page shows; `alt` says it in words
    Panel(marks, x, y)                     marks on one pair of axes
    Axis(label, log, percent, whole, ...)  how numbers are written along one of them
    Line, Steps, Points, ErrorBars, Bars, Rule        what is drawn

A figure knows no colour and no library: a mark has a `hue`, the number of a colour. `drawing.render` makes PNG or SVG
of it. By default panels stand in one column, so that a phone shows them too.
"""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLUE, ORANGE, GREEN, PURPLE, GREY, RED, INK = range(7)  # hues
HUES = 5  # that tell curves apart; red is for what failed, ink for what is no curve
HEIGHT = 3.6  # inches of a panel
MARKS = "os^Dv*"  # that tell points apart

Numbers: TypeAlias = "Sequence[float] | NDArray[Any]"


@dataclass(frozen=True, kw_only=True)
class _FigureSeries:
    """Points (x, y), of one hue; a label stands in the legend, where none is given nothing does."""

    x: Numbers
    y: Numbers
    label: str = ""
    hue: int = BLUE

    def __post_init__(self) -> None:
        for name in ("x", "y", "low", "high", "x_low", "x_high"):  # arrays too become plain numbers
            if hasattr(self, name):
                object.__setattr__(self, name, tuple(float(number) for number in getattr(self, name)))


@dataclass(frozen=True, kw_only=True)
class Line(_FigureSeries):
    """A line through the points, with a dot at each where they are few."""

    stroke: int = 0  # 0 to 3: whole, dashed, dotted, both
    width: float = 1.5
    faint: bool = False
    dots: bool | None = None  # None: where the points are few


@dataclass(frozen=True, kw_only=True)
class Steps(_FigureSeries):
    """A line that is level around each point."""


@dataclass(frozen=True, kw_only=True)
class Points(_FigureSeries):
    """A mark at each point. At the foot: `y` does not count, the marks stand on the lower end of the panel."""

    mark: str = "o"
    size: float = 6
    hollow: bool = False
    at_foot: bool = False


@dataclass(frozen=True, kw_only=True)
class ErrorBars(_FigureSeries):
    """Intervals from `low` to `high` around the points, upright; `x_low`, `x_high` also across."""

    low: Numbers
    high: Numbers
    x_low: Numbers = ()
    x_high: Numbers = ()
    mark: str = ""
    size: float = 4
    joined: bool = False  # by a line
    faint: bool = False


@dataclass(frozen=True, kw_only=True)
class Bars(_FigureSeries):
    """A bar from zero to each point; `width` 1 leaves nothing between bars at whole numbers."""

    width: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A line across the whole panel at one value of x, or of y."""

    at: float
    along: Literal["x", "y"] = "y"  # the axis on which `at` is
    label: str = ""
    hue: int = INK
    stroke: int = 0
    width: float = 0.8


Mark: TypeAlias = Line | Steps | Points | ErrorBars | Bars | Rule


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and how its numbers are written."""

    label: str = ""
    _: KW_ONLY
    log: bool = False  # with plain numbers as ticks
    percent: bool = False  # shares of 1
    whole: bool = False  # whole numbers only
    low: float | None = None  # where it begins; None: where the marks do
    high: float | None = None
    ticks: tuple[tuple[float, str], ...] = ()  # in place of those that fit
    margin: float | None = None  # share of the axis that stays free at each end


@dataclass(frozen=True)
class Above:
    """A second axis above the panel, in another unit: where its ticks stand on the axis below, and what they say."""

    label: str
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Marks on one pair of axes."""

    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    title: str = ""
    above: Above | None = None


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What is shown: `name` is that of its file, `alt` says in words what there is to see."""

    name: str
    title: str
    alt: str
    panels: tuple[Panel, ...]
    headed: bool = False  # with the title above the panels, for a file that stands alone
    across: bool = False  # panels side by side, not one below the other
    same_x: bool = False  # panels share the axis below the last
    height: float = HEIGHT  # inches of a panel
    legend: Literal["inside", "below"] = "inside"

    def rows(self) -> Iterator[tuple[str, str, float, float]]:
        """(panel, label, x, y) of every point of every labelled mark."""
        for panel in self.panels:
            for mark in panel.marks:
                if not isinstance(mark, Rule) and mark.label:
                    for x, y in zip(mark.x, mark.y, strict=True):
                        yield panel.title, mark.label, x, y

    def csv(self) -> str:
        """The rows under their heads, for whoever draws them otherwise."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(("panel", "curve", "x", "y"))
        table.writerows((panel, curve, f"{x:.10g}", f"{y:.10g}") for panel, curve, x, y in self.rows())
        return text.getvalue()


def traced(label: str, xs: Numbers, of: Callable[[float], float], *, hue: int = BLUE, stroke: int = 0) -> Line:
    """The line of a function at `xs`."""
    return Line(label=label, x=xs, y=tuple(of(x) for x in xs), hue=hue, stroke=stroke)
