"""Figures that tests draw: one panel with every kind of mark."""

import numpy as np

from tacit.reports.figure import RED, Axis, Bars, ErrorBars, Figure, Line, Mark, Panel, Points, Rule, Steps

AT = np.arange(1, 6)
MARKS: tuple[Mark, ...] = (
    Line(x=AT, y=AT, label="a line"),
    Line(x=AT, y=AT / 2, label="a faint one", faint=True, stroke=1, dots=False),
    Steps(x=AT, y=AT[::-1], label="steps"),
    Points(x=AT, y=AT, mark="D", hollow=True, label="points"),
    Points(x=[2], y=[0], mark="x", hue=RED, at_foot=True, label="at the foot"),
    ErrorBars(x=AT, y=AT, low=AT - 0.5, high=AT + 2, x_low=AT - 0.1, x_high=AT + 0.1, mark="s", label="bars"),
    ErrorBars(x=AT, y=AT - 3, low=np.maximum(AT - 4, 0), high=AT, faint=True),  # a value below its interval
    Bars(x=AT, y=AT / 4),
    Rule(at=3.0, along="x", stroke=2),
    Rule(at=1.5, label="a rule"),
)


def one(*marks: Mark, x: Axis | None = None, y: Axis | None = None, **options: object) -> Figure:
    panel = Panel(marks=marks, x=x or Axis("across"), y=y or Axis("up"))
    return Figure(name="one", title="One", alt="One panel.", panels=(panel,), **options)  # type: ignore[arg-type]
