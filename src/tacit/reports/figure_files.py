"""Figures as files: PNG by matplotlib, SVG as pages have it, and what is drawn as numbers."""

from collections.abc import Callable
from pathlib import Path

from tacit.files import write_whole
from tacit.reports.drawing import render
from tacit.reports.figure import Figure
from tacit.reports.page import stylesheet
from tacit.reports.svg import svg_alone


def png_file(figure: Figure) -> bytes:
    """The figure for print, and for what shows no SVG."""
    return render(figure, "png")


def svg_file(figure: Figure) -> bytes:
    """The figure as a page draws it, with its letters as text, light or dark as whoever shows it is."""
    return f'<?xml version="1.0" encoding="utf-8"?>\n{svg_alone(figure, stylesheet())}'.encode()


def write_figure(figure: Figure, folder: Path) -> list[str]:
    """Write NAME.png, NAME.svg and NAME.csv, what is drawn as numbers, into a folder that is there; their names."""
    contents = {
        f"{figure.name}.png": png_file(figure),
        f"{figure.name}.svg": svg_file(figure),
        f"{figure.name}.csv": figure.csv().encode(),
    }
    for name, content in contents.items():
        write_whole(folder / name, content)
    return list(contents)


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure alone, as PNG or SVG by the end of its name. Raises: KeyError for another end."""
    drawn: dict[str, Callable[[Figure], bytes]] = {".png": png_file, ".svg": svg_file}
    write_whole(path, drawn[path.suffix](figure))
