"""`tacit plan figures`: the trade-offs of both papers with our mechanisms on them, as PNG, SVG and CSV.

What is drawn is computed in `planning.configurations` and `planning.robustness`; here it gets its look.
"""

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.errors import InputError
from tacit.files import write_whole
from tacit.planning import configurations, robustness
from tacit.planning.panels import Panel, PlannedFigure, Told
from tacit.privacy.strategy import Banded
from tacit.progress import Advanced, Event
from tacit.reports.drawing import DOTS_PER_INCH, PALETTE, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis

HUES = PALETTE
STROKES = ("-", "--", ":", "-.")
PANEL = (5.4, 3.9)  # inches, without the legend
LEGEND_ROW = 0.22
SMALL = 8.5  # points, the letters of a legend
LETTERS = 80  # of that size, across a panel
FEW = 12  # points of a curve that are worth a mark each

Builder = Callable[[Told], Iterator[PlannedFigure]]


def builders(banded: Banded | None = None) -> dict[str, tuple[Builder, int]]:
    """Each family of figures by name, and how many curves it computes."""
    more = int(banded is not None)
    return {
        "gboard-figure-4": (configurations.gboard_figure_4, 24),
        "blt-figure-2": (lambda tell: robustness.blt_figure_2(tell, banded), 2 * (6 + more)),
        "blt-figure-3": (lambda tell: robustness.blt_figure_3(tell, banded), 6 + more),
        "blt-figure-4": (lambda tell: robustness.blt_figure_4(tell, banded), 7 + more),
        "blt-figure-5": (lambda tell: robustness.blt_figure_5(tell, banded), 7 + more),
        "blt-figure-6": (robustness.blt_figure_6, 8),
        "blt-figure-8": (configurations.blt_figure_8, 8),
        "blt-figure-9": (configurations.blt_figure_9, 2),
    }


@speaks_plainly
def figures(
    out: Annotated[Path, typer.Option(help="The folder for the figures; made if it is not there.")],
    only: Annotated[list[str] | None, typer.Option(help=f"Some of {', '.join(builders())}.")] = None,
    bandmf: Annotated[
        bool, typer.Option(help="Design a BandMF for Figures 2 to 5 as well: some minutes more.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Draw arXiv:2305.18465, Figure 4, and arXiv:2408.08868, Figures 2-6, 8, 9: PNG, SVG and the data as CSV."""
    known = builders()
    if unknown := [name for name in only or () if name not in known]:
        raise InputError(f"--only {unknown[0]!r} is none of {', '.join(known)}.")
    out.mkdir(parents=True, exist_ok=True)
    files: list[str] = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=complaints,
        disable=not complaints.is_terminal,
    ) as progress:
        banded = _bandmf(progress) if bandmf else None
        chosen = {name: each for name, each in builders(banded).items() if only is None or name in only}
        bar = progress.add_task("computing", total=sum(curves for _, curves in chosen.values()))

        def tell(line: str) -> None:
            progress.update(bar, advance=1, description=line)

        for build, _ in chosen.values():
            for planned in build(tell):
                files += write_figure(planned, out)
                if not complaints.is_terminal:
                    complaints.print(f"{planned.name}: {planned.says}")
    if as_json:
        print_json({"out": str(out), "files": files})
        return
    console.print(f"{len(files)} files in {out}")


def _bandmf(progress: Progress) -> Banded:
    bar = progress.add_task("designing BandMF", total=None)

    def tell(event: Event) -> None:
        if isinstance(event, Advanced):
            loss = event.figures["loss"]
            progress.update(bar, completed=event.done, description=f"designing BandMF: rms loss {loss:.4f}")

    found = robustness.bandmf(tell)
    progress.remove_task(bar)
    return found


def write_figure(planned: PlannedFigure, out: Path) -> list[str]:
    """NAME.png, NAME.svg and NAME.csv in `out`; their names."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(("panel", "curve", "x", "y"))
    rows.writerows((panel, curve, f"{x:.10g}", f"{y:.10g}") for panel, curve, x, y in planned.rows())
    contents = {**draw(planned), "csv": table.getvalue().encode()}
    for kind, content in contents.items():
        write_whole(out / f"{planned.name}.{kind}", content)
    return [f"{planned.name}.{kind}" for kind in contents]


def draw(planned: PlannedFigure) -> dict[str, bytes]:
    """The panels side by side, as png and svg; one legend below for all where they show the same curves."""
    from matplotlib import rc_context  # takes most of a second to import: only when something is drawn
    from matplotlib.figure import Figure

    count = len(planned.panels)
    shared = count > 1 and len({tuple(curve.label for curve in panel.curves) for panel in planned.panels}) == 1
    entries = max(len(panel.curves) for panel in planned.panels)
    longest = max(len(curve.label) for panel in planned.panels for curve in panel.curves)
    most = max(1, (count if shared else 1) * LETTERS // (longest + 6))
    columns = most - 1 if most > 2 and entries % most and entries % (most - 1) == 0 else most
    with rc_context(STYLE):
        height = PANEL[1] + LEGEND_ROW * (-(-entries // columns) + 1)
        figure = Figure(figsize=(PANEL[0] * count, height))
        figure.set_layout_engine("constrained", w_pad=0.1)
        figure.suptitle(planned.title, fontsize=12)
        for axes, panel in zip(figure.subplots(1, count, squeeze=False)[0], planned.panels, strict=True):
            _paint(axes, panel, titled=count > 1)
            if not shared:
                axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=columns, fontsize=SMALL)
        if shared:
            lines, labels = axes.get_legend_handles_labels()
            figure.legend(lines, labels, loc="outside lower center", ncols=columns, fontsize=SMALL)
        png, svg = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return {"png": png.getvalue(), "svg": svg.getvalue()}


def _paint(axes: "Axes", panel: Panel, *, titled: bool) -> None:
    for curve in panel.curves:
        axes.plot(
            curve.x,
            curve.y,
            color=HUES[curve.hue],
            linestyle=STROKES[curve.stroke],
            marker="o" if len(curve.x) <= FEW else None,
            markersize=3.5,
            linewidth=1.5,
            label=curve.label,
        )
    if titled:
        axes.set_title(panel.title, fontsize=10.5)
    axes.set_xlabel(panel.x_label, fontsize=10)
    axes.set_ylabel(panel.y_label, fontsize=10)
    for axis, logarithmic in ((axes.xaxis, panel.log_x), (axes.yaxis, panel.log_y)):
        if logarithmic:
            _logarithmic(axis)
    if panel.y_limits is not None:
        axes.set_ylim(*panel.y_limits)
    elif not panel.log_y:
        axes.set_ylim(bottom=0)


def _logarithmic(axis: "XAxis | YAxis") -> None:
    """A logarithmic axis whose ticks are plain numbers: 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1000 else f"{value / 1000:g}k"))
    axis.set_minor_formatter(NullFormatter())
