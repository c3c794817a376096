"""Figures drawn: the only place that knows matplotlib, the palette's colours and how an axis writes its numbers."""

import io
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from tacit.reports.figure import (
    INK,
    Above,
    Axis,
    Bars,
    ErrorBars,
    Figure,
    Line,
    Mark,
    Numbers,
    Panel,
    Points,
    Rule,
    Steps,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import Formatter

PALETTE = ("#1f6feb", "#d9730d", "#1a7f37", "#8250df", "#8c959f", "#cf222e", "#24292f")  # by hue
STROKES = ("-", "--", ":", "-.")
WIDTH = 5.4  # inches of a panel: at the width of a phone the letters are still about 10 pixels high
DOTS_PER_INCH = 160
FEW = 40  # points of a line that are worth a dot each
LEGEND_ROW = 0.22  # inches
LEGEND_LETTERS = 80  # across a panel, below it
ENOUGH_TICKS = 3  # on a logarithmic axis
ROUND = [1, 2, 5, 10]  # what ticks are multiples of, times a power of ten
STYLE: Any = {
    "font.size": 11,
    "text.color": PALETTE[INK],
    "axes.edgecolor": "#c9d1d9",
    "axes.labelcolor": PALETTE[INK],
    "axes.labelsize": 10.5,
    "axes.titlesize": 10.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#eaeef2",
    "xtick.color": PALETTE[INK],
    "ytick.color": PALETTE[INK],
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.hashsalt": "tacit",  # the same figure draws the same bytes
    "svg.fonttype": "path",
}


@lru_cache(maxsize=64)  # a figure is a value, and drawing it takes a quarter of a second
def render(figure: Figure, form: Literal["png", "svg"]) -> bytes:
    """The figure drawn: the same bytes for the same figure."""
    from matplotlib import rc_context  # takes most of a second to import: only when something is drawn
    from matplotlib.figure import Figure as Canvas

    with rc_context(STYLE):
        canvas = Canvas(layout="constrained")
        _draw(canvas, figure)
        return printed(canvas, form)


def printed(canvas: "Canvas", form: Literal["png", "svg"]) -> bytes:
    """What was drawn laid out and as a file, which takes most of the time of a figure."""
    file = io.BytesIO()
    metadata = {"Software": None} if form == "png" else {"Date": None}
    canvas.savefig(file, format=form, dpi=DOTS_PER_INCH, metadata=metadata)
    return file.getvalue()


def _draw(canvas: "Canvas", figure: Figure) -> None:
    count = len(figure.panels)
    rows, columns = (1, count) if figure.across else (count, 1)
    grid = canvas.subplots(rows, columns, squeeze=False, sharex=figure.same_x).ravel()
    for number, (axes, panel) in enumerate(zip(grid, figure.panels, strict=True)):
        _paint(axes, panel, labelled=not figure.same_x or number == count - 1)
    canvas.align_ylabels()
    extra = _legends(canvas, list(grid), figure)
    if figure.headed:
        canvas.suptitle(figure.title, fontsize=12)
        extra += 0.3
    canvas.set_size_inches(WIDTH * columns, figure.height * rows + extra)


def _paint(axes: "Axes", panel: Panel, *, labelled: bool) -> None:
    for mark in panel.marks:
        _mark(axes, mark)
    if panel.title:
        axes.set_title(panel.title, loc="left")
    _scale(axes.xaxis, panel.x)
    _scale(axes.yaxis, panel.y)
    if not labelled:
        axes.set_xlabel("")
    if panel.above is not None:
        _axis_above(axes, panel.above)


def _mark(axes: "Axes", mark: Mark) -> None:
    colour = PALETTE[mark.hue]
    name = mark.label or "_"  # of what begins so, matplotlib's legends say nothing
    match mark:
        case Line():
            dots = len(mark.x) <= FEW if mark.dots is None else mark.dots
            axes.plot(
                mark.x,
                mark.y,
                color=colour,
                label=name,
                linestyle=STROKES[mark.stroke],
                linewidth=mark.width,
                marker="o" if dots else None,
                markersize=3.5,
                alpha=0.35 if mark.faint else 1.0,
            )
        case Steps():
            axes.step(mark.x, mark.y, where="mid", color=colour, linewidth=1.4, label=name)
        case Points():
            _points(axes, mark, colour, name)
        case ErrorBars():
            _error_bars(axes, mark, colour, name)
        case Bars():
            axes.bar(mark.x, mark.y, color=colour, width=mark.width, label=name)
        case Rule():
            draw = axes.axvline if mark.along == "x" else axes.axhline
            draw(mark.at, color=colour, linestyle=STROKES[mark.stroke], linewidth=mark.width, label=name)


def _points(axes: "Axes", mark: Points, colour: str, name: str) -> None:
    on_foot: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False} if mark.at_foot else {}
    axes.plot(
        mark.x,
        [0.04] * len(mark.x) if mark.at_foot else mark.y,
        mark.mark,
        color=colour,
        markerfacecolor="none" if mark.hollow else colour,
        markersize=mark.size,
        label=name,
        **on_foot,
    )


def _error_bars(axes: "Axes", mark: ErrorBars, colour: str, name: str) -> None:
    axes.errorbar(
        mark.x,
        mark.y,
        _distances(mark.y, mark.low, mark.high),
        _distances(mark.x, mark.x_low, mark.x_high) if mark.x_low else None,
        fmt=(mark.mark + ("-" if mark.joined else "")) or "none",
        color=colour,
        ecolor=colour,
        markersize=mark.size,
        linewidth=0.9,
        elinewidth=0.8,
        alpha=0.5 if mark.faint else 1.0,
        label=name,
    )


def _distances(values: Numbers, low: Numbers, high: Numbers) -> list[list[float]]:
    """How far the ends are away; 0 where a value lies beyond one, as an estimate below the least possible does."""
    below = [max(value - end, 0.0) for value, end in zip(values, low, strict=True)]
    above = [max(end - value, 0.0) for value, end in zip(values, high, strict=True)]
    return [below, above]


# -- axes --------------------------------------------------------------------------------------------------------------


def _scale(axis: "XAxis | YAxis", settings: Axis) -> None:
    """Limits, scale, ticks and label of one axis, after everything is drawn on it."""
    across = axis.axis_name == "x"
    axes = axis.axes
    (axes.set_xlabel if across else axes.set_ylabel)(settings.label)
    if settings.margin is not None:
        (axes.set_xmargin if across else axes.set_ymargin)(settings.margin)
    if settings.log:
        _logarithmic(axis)
    if settings.low is not None or settings.high is not None:
        (axes.set_xlim if across else axes.set_ylim)(settings.low, settings.high)
    if settings.log:
        _plain_ticks(axis)
    if not settings.log:
        from matplotlib.ticker import MaxNLocator

        axis.set_major_locator(MaxNLocator(nbins="auto", steps=ROUND, integer=settings.whole))
    if settings.percent:
        axis.set_major_formatter(_percent())
    if settings.ticks:
        from matplotlib.ticker import NullLocator

        axis.set_minor_locator(NullLocator())
        axis.set_ticks([at for at, _ in settings.ticks], [text for _, text in settings.ticks])


def _percent() -> "Formatter":
    """Shares of one as percentages, with as many digits as they need."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda share, _: f"{100 * share:.6g}%".replace("-", "\N{MINUS SIGN}"))


def _logarithmic(axis: "XAxis | YAxis") -> None:
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")


def _plain_ticks(axis: "XAxis | YAxis") -> None:
    """Ticks that are plain numbers: powers of ten, with 2 and 5 times or all their multiples where those are few."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, Locator, LogLocator, NullFormatter, NullLocator

    locator: Locator
    low, high = sorted(axis.get_view_interval())
    for multiples in ((1.0,), (1.0, 2.0, 5.0), tuple(range(1, 10))):
        locator = LogLocator(base=10, subs=multiples)
        if sum(low <= tick <= high for tick in locator.tick_values(low, high)) >= ENOUGH_TICKS:
            break
    else:
        locator = AutoLocator()  # less than a digit: as on a straight axis
    axis.set_major_locator(locator)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())


def short(value: float) -> str:
    """A number as an axis has room for it: 0.002, 20, 5k, 3M, 1e-07."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1e9:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _axis_above(axes: "Axes", above: Above) -> None:
    low, high = axes.get_xlim()
    twin = axes.twiny()
    twin.set_xlim(low, high)
    ticks = [(at, text) for at, text in above.ticks if low <= at <= high]
    twin.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    twin.set_xlabel(above.label)
    twin.grid(visible=False)


# -- legends -----------------------------------------------------------------------------------------------------------


def _legends(canvas: "Canvas", grid: "list[Axes]", figure: Figure) -> float:
    """A legend where there are labels; where all panels show the same, only one. The inches that it needs below."""
    entries = [_entries(axes) for axes in grid]
    most = max((len(labels) for _, labels in entries), default=0)
    if not most:
        return 0.0
    shared = len(grid) > 1 and len({tuple(labels) for _, labels in entries}) == 1
    if figure.legend == "inside":
        for axes, (marks, labels) in list(zip(grid, entries, strict=True))[: 1 if shared else None]:
            if labels:
                axes.legend(marks, labels)
        return 0.0
    longest = max(len(label) for _, labels in entries for label in labels)
    columns = _columns(most, (len(grid) if shared and figure.across else 1) * LEGEND_LETTERS // (longest + 6))
    if shared or len(grid) == 1:
        canvas.legend(*entries[0], loc="outside lower center", ncols=columns, fontsize=8.5)
        return LEGEND_ROW * (-(-most // columns) + 1)
    for axes, (marks, labels) in zip(grid, entries, strict=True):
        if labels:
            axes.legend(marks, labels, loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=columns, fontsize=8.5)
    return LEGEND_ROW * (-(-most // columns) + 1) * (1 if figure.across else len(grid))


def _entries(axes: "Axes") -> tuple[list[Any], list[str]]:
    """Marks and labels of a panel, each label once."""
    found: dict[str, Any] = {}
    for mark, label in zip(*axes.get_legend_handles_labels(), strict=True):
        found.setdefault(label, mark)
    return list(found.values()), list(found)


def _columns(entries: int, most: int) -> int:
    """As many as have room, one fewer where the last row is even then."""
    most = max(1, most)
    return most - 1 if most > 2 and entries % most and entries % (most - 1) == 0 else most
