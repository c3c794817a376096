"""What a figure shows, as numbers: labelled curves on named axes, ready to be drawn or written as CSV."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Told: TypeAlias = Callable[[str], None]  # is told which curve was computed


@dataclass(frozen=True, kw_only=True)
class Curve:
    """`hue` and `stroke` say which curves belong together: same colour, same kind of line."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    hue: int
    stroke: int = 0


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves on one pair of axes."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = False
    y_limits: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedFigure:
    """`name` is that of its files; `source` the figure of a paper that it stands for; `says` what to see in it."""

    name: str
    title: str
    source: str
    says: str
    panels: tuple[Panel, ...]

    def rows(self) -> Iterator[tuple[str, str, float, float]]:
        """(panel, curve, x, y) of every point."""
        for panel in self.panels:
            for curve in panel.curves:
                for x, y in zip(curve.x, curve.y, strict=True):
                    yield panel.title, curve.label, x, y


def traced(label: str, xs: Sequence[float], of: Callable[[float], float], *, hue: int, stroke: int = 0) -> Curve:
    """The curve of a function at `xs`."""
    return Curve(label=label, x=tuple(xs), y=tuple(of(x) for x in xs), hue=hue, stroke=stroke)
