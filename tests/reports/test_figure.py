"""Figures as data: the same bytes each time, plain numbers on every axis, all marks drawn, and rows for others."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.support.reports.figures import AT, MARKS, one

from tacit.reports.drawing import render, short
from tacit.reports.figure import (
    Above,
    Axis,
    Figure,
    Line,
    Mark,
    Panel,
    Rule,
    traced,
)
from tacit.reports.figure_files import save_figure, svg_file, write_figure

pytestmark = pytest.mark.drawn


def texts(figure: Figure) -> list[str]:
    """What is written in a figure: matplotlib says the text of each group of glyphs in a comment of its SVG."""
    return re.findall(r"<!-- (.*?) -->", render(figure, "svg").decode())


def test_the_same_figure_draws_the_same_bytes() -> None:
    figure = one(*MARKS)
    once = render(figure, "png"), render(figure, "svg")
    assert once[0].startswith(b"\x89PNG") and b"</svg>" in once[1]
    render.cache_clear()  # what was drawn is remembered
    assert (render(figure, "png"), render(figure, "svg")) == once


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: type(mark).__name__)
def test_every_mark_is_drawn(mark: Mark) -> None:
    assert render(one(mark), "png") != render(one(), "png")


def test_labels_stand_in_a_legend_once_each() -> None:
    twice = one(Line(x=AT, y=AT, label="same"), Line(x=AT, y=-AT, label="same"), Line(x=AT, y=0 * AT))
    assert texts(twice).count("same") == 1
    assert texts(one(*MARKS, legend="below")).count("a rule") == 1
    panels = (Panel(marks=MARKS[:1], x=Axis(), y=Axis(), title=title) for title in ("first", "second"))
    assert texts(Figure(name="two", title="", alt="", panels=tuple(panels))).count("a line") == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.2, 40), {"0.5", "10"}),
        ((1e-6, 1e6), {"1M", "0.01"}),
        ((2.1, 4.9), {"3", "4"}),
        ((3.001, 3.004), {"3.002"}),
        ((7, 7), {"5", "10"}),
    ],
)
def test_a_logarithmic_axis_has_plain_numbers(values: tuple[float, float], expected: set[str]) -> None:
    assert expected <= set(texts(one(Line(x=(1, 2), y=values), y=Axis(log=True))))


def test_axes_write_shares_and_whole_numbers_as_such() -> None:
    shares = texts(one(Line(x=(1, 2, 3), y=(-0.25, 0.5, 1.0)), x=Axis(whole=True), y=Axis(percent=True)))
    assert {"20%", "\N{MINUS SIGN}20%", "1", "2", "3"} <= set(shares) and "1.5" not in shares
    given = texts(one(Line(x=(1, 2), y=(1, 2)), x=Axis(ticks=((1.0, "few"), (2.0, "many")))))
    assert {"few", "many"} <= set(given)


def test_an_axis_above_says_what_each_tick_stands_for() -> None:
    panel = Panel(marks=MARKS[:1], x=Axis(low=0), y=Axis(), above=Above("twice", ((0.5, "1 of"), (99.0, "far"))))
    written = texts(Figure(name="above", title="", alt="", panels=(panel,)))
    assert "twice" in written and "1 of" in written
    assert "far" not in written, "beyond the panel"


@pytest.mark.parametrize("rounds", [7, 30, 78, 120, 700, 4300])
def test_ticks_are_round_numbers(rounds: int) -> None:
    shown = texts(one(Line(x=range(rounds), y=[0.1] * rounds), x=Axis("rounds", whole=True), y=Axis(percent=True)))
    numbers = sorted(int(text) for text in shown if text.isdigit())
    step = numbers[1] - numbers[0]
    assert len(numbers) >= 3 and str(step).rstrip("0") in ("1", "2", "5")


@pytest.mark.parametrize("log", [False, True])
def test_nothing_to_draw_is_an_empty_panel(log: bool) -> None:
    assert render(one(Line(x=(), y=(), label="none"), y=Axis(log=log)), "png").startswith(b"\x89PNG")


def test_numbers_are_short() -> None:
    shown = [short(value) for value in (0.002, 20, 999, 5000, 2.5e6, 1e-7)]
    assert shown == ["0.002", "20", "999", "5k", "2.5M", "1e-07"]


def test_rows_and_files_for_who_draws_it_otherwise(tmp_path: Path) -> None:
    curve = traced("square", (1, 2, 3), lambda x: x * x)
    figure = one(curve, Line(x=(1,), y=(1,)), Rule(at=0, label="no row"))
    assert list(figure.rows()) == [("", "square", 1.0, 1.0), ("", "square", 2.0, 4.0), ("", "square", 3.0, 9.0)]
    assert write_figure(figure, tmp_path) == ["one.png", "one.svg", "one.csv"]
    assert (tmp_path / "one.csv").read_text() == "panel,curve,x,y\n,square,1,1\n,square,2,4\n,square,3,9\n"
    assert (tmp_path / "one.svg").read_bytes() == svg_file(figure)
    save_figure(figure, tmp_path / "other.svg")
    save_figure(figure, tmp_path / "other.png")
    assert (tmp_path / "other.svg").read_bytes() == svg_file(figure)
    assert (tmp_path / "other.png").read_bytes() == render(figure, "png")


def test_a_file_of_its_own_has_letters_its_style_and_its_title() -> None:
    figure = replace(one(*MARKS), title="R&D <b>", headed=True)
    text = svg_file(figure).decode()
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.attrib["class"] == "tacit"
    assert "".join(root.itertext()).count("R&D <b>") == 1 and "prefers-color-scheme: dark" in text
    assert "R&D" not in "".join(ElementTree.fromstring(svg_file(replace(figure, headed=False))).itertext())
    assert {"a line", "a rule", "across", "up"} <= set(root.itertext()) and "style=" not in text
