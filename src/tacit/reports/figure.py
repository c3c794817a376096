"""The figures of a report and of a comparison: each one column wide, so that a phone shows them too."""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.reports.training import RunSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

Points = Sequence[tuple[float, float]]

BLUE, ORANGE, GREY, INK = "#1f6feb", "#d9730d", "#c9d1d9", "#24292f"
SIZE = (5.4, 3.6)  # inches: at the width of a phone the letters are still about 10 pixels high
DOTS_PER_INCH = 160
STYLE: Any = {
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "grid.color": "#eaeef2",
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "svg.hashsalt": "tacit",  # the same run draws the same bytes
    "svg.fonttype": "path",
}


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One figure, drawn: `alt` says in words what it shows."""

    name: str
    title: str
    alt: str
    png: bytes
    svg: bytes

    @property
    def data_uri(self) -> str:
        """The SVG as an address that an <img> can carry in itself."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg).decode("ascii")


def draw_run(summary: RunSummary) -> tuple[Drawing, ...]:
    """The figures that a run has data for; none of an empty run."""
    drawings = []
    if summary.curves.get("top1_accuracy"):
        alt = f"Top-1 and top-3 accuracy on validation clients over {summary.released} rounds."
        draw = _learning_curve(summary)
        drawings.append(drawing("learning_curve", "Accuracy over rounds", alt, draw))
        if summary.private and summary.released:
            alt = "The same accuracies against the zCDP and the epsilon spent by then, as realised."
            draw = _accuracy_privacy(summary)
            drawings.append(drawing("accuracy_privacy", "Accuracy against privacy spent", alt, draw))
    if summary.released:
        alt = "Mean training loss and share of clipped updates of each round."
        draw = _loss_clipped(summary)
        drawings.append(drawing("loss_clipped", "Training loss and clipped updates", alt, draw))
        if summary.rounds.clip_estimate is not None:
            alt = "The clip norm in force in each round, and its estimate after the round."
            drawings.append(drawing("clip_norm", "Clip norm that follows the updates", alt, _clip_norm(summary)))
        alt = "Clients trained a second and dropped clients of each round."
        draw = _speed_dropped(summary)
        drawings.append(drawing("speed_dropped", "Speed and dropped clients", alt, draw))
    return tuple(drawings)


def draw_comparison(a: RunSummary, b: RunSummary) -> Drawing:
    """Top-1 accuracy of both on validation clients over rounds, and over zCDP where both are private."""

    def draw(figure: "Figure") -> None:
        privately = a.private and b.private
        axes = figure.subplots(2 if privately else 1, 1, squeeze=False)[:, 0]
        for summary, colour in ((a, BLUE), (b, ORANGE)):
            _curve(axes[0], _by_rounds(summary, "top1_accuracy"), colour, label_of(summary, (a, b)))
            if privately:
                _curve(axes[1], _by_zcdp(summary, "top1_accuracy"), colour, label_of(summary, (a, b)))
        _accuracy_axis(axes[0], "top-1 accuracy, validation")
        axes[0].set_xlabel("rounds")
        axes[0].legend(loc="lower right")
        if privately:
            _accuracy_axis(axes[1], "top-1 accuracy, validation")
            axes[1].set_xlabel("zCDP spent, realised")

    alt = f"Top-1 accuracy of {a.name} and {b.name} on validation clients."
    height = 2 * SIZE[1] if a.private and b.private else SIZE[1]
    return drawing("compare", f"{a.name} and {b.name}", alt, draw, (SIZE[0], height))


def label_of(summary: RunSummary, both: Sequence[RunSummary]) -> str:
    """The run's name; with its folder where both have the same."""
    same = len({each.name for each in both}) < len(both)
    name = f"{summary.name} ({summary.path.name})" if same else summary.name
    return name if summary.private else f"{name}, NON-PRIVATE"


def drawing(
    name: str,
    title: str,
    alt: str,
    draw: Callable[["Figure"], None],
    size: tuple[float, float] = SIZE,
) -> Drawing:
    """What `draw` draws on a figure of this size in inches."""
    from matplotlib import rc_context  # takes most of a second to import: only when something is drawn
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        png, svg = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return Drawing(name=name, title=title, alt=alt, png=png.getvalue(), svg=svg.getvalue())


def _learning_curve(summary: RunSummary) -> Callable[["Figure"], None]:
    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for name, shown, colour in _ACCURACIES:
            _curve(axes, _by_rounds(summary, name), colour, shown)
            if name in summary.test:
                axes.plot(
                    summary.released,
                    summary.test[name],
                    "D",
                    markersize=7,
                    markerfacecolor="white",
                    markeredgecolor=colour,
                    label=f"{shown}, test clients",
                )
        _accuracy_axis(axes, "accuracy, validation clients")
        axes.set_xlabel("rounds")
        _whole_numbers(axes.xaxis)
        axes.legend(fontsize=9)

    return draw


def _accuracy_privacy(summary: RunSummary) -> Callable[["Figure"], None]:
    from tacit.privacy.gaussian import epsilon

    delta = summary.accounts.delta

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for name, shown, colour in _ACCURACIES:
            _curve(axes, _by_zcdp(summary, name), colour, shown)
        _accuracy_axis(axes, "accuracy, validation clients")
        axes.set_xlabel("zCDP spent, realised")
        axes.legend(fontsize=9, loc="lower right")
        axes.set_xlim(left=0)
        right = axes.get_xlim()[1]
        ticks = [float(tick) for tick in axes.get_xticks() if 0 <= tick <= right]
        above = axes.twiny()
        above.set_xlim(axes.get_xlim())
        above.set_xticks(ticks, [_short(epsilon(tick, delta)) for tick in ticks])
        above.set_xlabel(f"epsilon at delta = {delta:g}")
        above.grid(visible=False)

    return draw


def _loss_clipped(summary: RunSummary) -> Callable[["Figure"], None]:
    rounds = summary.rounds

    def draw(figure: "Figure") -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        _per_round(above, rounds.loss, BLUE)
        above.set_ylabel("loss, nats")
        _per_round(below, rounds.clipped, ORANGE)
        below.set_ylabel("clipped")
        below.set_ylim(-0.04, 1.04)
        below.yaxis.set_major_formatter(_percent())
        _whole_numbers(below.xaxis)
        below.set_xlim(0, len(rounds.loss) + 1)
        below.set_xlabel("round")

    return draw


def _clip_norm(summary: RunSummary) -> Callable[["Figure"], None]:
    rounds = summary.rounds

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        at = np.arange(1, len(rounds.clip_norm) + 1)
        axes.step(at, rounds.clip_norm, where="mid", color=BLUE, label="in force")
        axes.plot(at, rounds.clip_estimate, color=ORANGE, linewidth=1, label="estimate")  # type: ignore[arg-type]
        axes.set_yscale("log")
        axes.set_ylabel("clip norm")
        axes.set_xlabel("round")
        _whole_numbers(axes.xaxis)
        axes.legend(fontsize=9)

    return draw


def _speed_dropped(summary: RunSummary) -> Callable[["Figure"], None]:
    rounds = summary.rounds

    def draw(figure: "Figure") -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        _per_round(above, rounds.clients_per_second, BLUE)
        above.set_ylabel("clients/s")
        above.set_ylim(bottom=0)
        below.bar(np.arange(1, len(rounds.dropped) + 1), rounds.dropped, color=ORANGE, width=1.0)
        below.set_ylabel("dropped")
        below.set_ylim(0, max(1, int(rounds.dropped.max()) * 1.1))
        _whole_numbers(below.yaxis)
        _whole_numbers(below.xaxis)
        below.set_xlim(0, len(rounds.loss) + 1)
        below.set_xlabel("round")

    return draw


_ACCURACIES = (("top1_accuracy", "top-1", BLUE), ("top3_accuracy", "top-3", ORANGE))


def _curve(axes: "Axes", points: Points, colour: str, label: str) -> None:
    marker = "o" if len(points) <= 40 else None
    across, up = [x for x, _ in points], [y for _, y in points]
    axes.plot(across, up, color=colour, marker=marker, markersize=4, label=label)


def _per_round(axes: "Axes", values: NDArray[np.float64], colour: str) -> None:
    """Each round lightly, and the mean of its neighbours where there are many rounds."""
    at = np.arange(1, values.size + 1)
    window = max(values.size // 40, 1)
    marker = "o" if values.size <= 40 else None
    alpha = 1.0 if window == 1 else 0.3
    axes.plot(at, values, color=colour, alpha=alpha, linewidth=1, marker=marker, markersize=3)
    if window > 1:
        smooth = np.convolve(values, np.ones(window) / window, mode="valid")
        axes.plot(at[window // 2 : window // 2 + smooth.size], smooth, color=colour, linewidth=1.8)


def _accuracy_axis(axes: "Axes", label: str) -> None:
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(_percent())


def _whole_numbers(axis: "XAxis | YAxis") -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


def _percent() -> "PercentFormatter":
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(xmax=1, decimals=None)


def _by_rounds(summary: RunSummary, name: str) -> Points:
    return sorted(summary.curves.get(name, {}).items())


def _by_zcdp(summary: RunSummary, name: str) -> Points:
    """The metric over the price that was paid when it was measured."""
    price: dict[float, float] = {each.rounds: each.zcdp for each in summary.spent}
    return [(price[rounds], value) for rounds, value in _by_rounds(summary, name) if rounds in price]


def _short(figure: float) -> str:
    """Three digits, and thousands without an exponent."""
    return f"{figure:,.3g}" if figure < 1000 else f"{figure:,.0f}"
