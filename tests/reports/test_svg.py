"""Figures as SVG of a page: well-formed, within their frame, every point says its numbers, no label is markup."""

import math
import re
from itertools import groupby
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.reports.figures import MARKS, one

from tacit.reports.figure import Above, Axis, Bars, ErrorBars, Figure, Line, Panel, Points, Rule, Steps
from tacit.reports.svg import Scale, numbers, said, span, svg, svg_alone, ticks, told_apart

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
VALUES = st.floats(-1e6, 1e6, allow_subnormal=False)
POSITIVE = st.floats(1e-6, 1e6)


def drawn(figure: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(svg(figure))


def sayings(figure: Figure) -> list[str]:
    return [each.text or "" for each in drawn(figure).iter("title")]


def ways(figure: Figure) -> list[list[tuple[str, float]]]:
    """Of every path its commands, each number with the letter before it."""
    found = []
    for path in drawn(figure).iter("path"):
        parts = re.findall(r"([MLHVavz])([^MLHVavz]*)", path.attrib["d"])
        found.append([(letter, float(number)) for letter, rest in parts for number in NUMBER.findall(rest)])
    return found


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: f"{type(mark).__name__}-{getattr(mark, 'label', '')}")
def test_every_mark_is_drawn(mark: Line) -> None:
    assert svg(one(mark)) != svg(one()), mark


def test_the_same_figure_is_the_same_text() -> None:
    assert svg(one(*MARKS)) == svg(one(*MARKS))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30), st.booleans(), st.booleans())
def test_all_is_within_the_frame(points: list[tuple[float, float]], across_log: bool, up_log: bool) -> None:
    xs, ys = zip(*points, strict=True)
    spread = np.abs(ys)
    marks = (
        Line(x=xs, y=ys, label="line"),
        Steps(x=sorted(xs), y=ys),
        ErrorBars(x=xs, y=ys, low=ys - spread, high=ys + spread, joined=True),
        ErrorBars(x=xs, y=ys, low=ys - spread, high=ys + spread, x_low=xs, x_high=xs, mark="o"),
        Points(x=xs, y=ys, mark="*"),
        Points(x=xs, y=ys, mark="x", at_foot=True),
    )
    figure = one(*marks, x=Axis("across", log=across_log), y=Axis("up", log=up_log))
    _, _, wide, high = map(float, drawn(figure).attrib["viewBox"].split())
    for way in ways(figure):
        for letter, number in way:
            if letter in "ML":
                assert -9 <= number <= max(wide, high), way
            elif letter == "H":
                assert 0 <= number <= wide, way
            elif letter == "V":
                assert 0 <= number <= high, way
    assert "nan" not in svg(figure) and "inf" not in svg(figure)


@given(st.tuples(VALUES, VALUES).map(sorted), st.booleans(), st.booleans())
def test_ticks_are_few_round_and_within(ends: list[float], whole: bool, log: bool) -> None:
    axis = Axis("x", whole=whole, log=log)
    low, high = span(axis, ends)
    found = ticks(axis, low, high)
    places = [at for at, _ in found]
    assert places == sorted(set(places)) and len(places) <= 11
    assert all(low - 1e-9 * abs(low) <= at <= high + 1e-9 * abs(high) for at in places)
    assert len({text for _, text in found}) == len(found), found
    assert not whole or log or high - low < 1 or all(at.is_integer() for at in places)
    wide = high - low
    assert log or whole or wide < 1e-9 * max(abs(low), abs(high)) or len(places) >= 3, (low, high, found)


@given(st.lists(POSITIVE, min_size=2, max_size=5, unique=True).map(sorted), st.booleans())
def test_a_scale_keeps_the_order(values: list[float], log: bool) -> None:
    scale = Scale(Axis("x", log=log), *span(Axis("x", log=log), values), 40.0, 400.0)
    places = [scale.at(each) for each in values]
    assert places == sorted(places) and places[0] >= 40 and places[-1] <= 400
    assert math.isnan(scale.at(math.nan)) and (not log or math.isnan(scale.at(0)))


@pytest.mark.parametrize("names", [("low", "middle", "high"), ("high", "middle", "low")])
def test_names_of_an_upright_axis_stand_in_either_order(names: tuple[str, ...]) -> None:
    at = {"low": 0.0, "middle": 1.0, "high": 2.0}
    y = Axis(ticks=tuple((at[name], name) for name in names))
    assert set(names) <= {each.text for each in drawn(one(Points(x=(1, 2, 3), y=(0, 1, 2)), y=y)).iter("text")}


def test_numbers_of_an_upright_axis_do_not_touch() -> None:
    low = Figure(
        name="low", title="", alt="", panels=one(Line(x=(1, 2), y=(4, 12)), y=Axis(log=True)).panels, height=1.6
    )
    places = sorted(float(each.attrib["y"]) for each in drawn(low).iter("text") if (each.text or "").isdigit())
    upright = [each for each in places if each < max(places) - 10]
    assert len(upright) >= 2 and min(np.diff(upright)) >= 12


def test_names_that_would_touch_lean_and_all_are_there() -> None:
    names = [f"a-long-\nname-{number}" for number in range(12)]
    ticks_of = tuple((float(at), name) for at, name in enumerate(names))
    figure = one(Bars(x=range(12), y=range(12)), x=Axis(ticks=ticks_of))
    leaning = [each.text for each in drawn(figure).iter("text") if "rotate" in each.attrib.get("transform", "")]
    assert leaning == [name.replace("\n", "") for name in names]
    few = one(Bars(x=(0, 1), y=(1, 2)), x=Axis(ticks=((0.0, "a-\nname"), (1.0, "b"))))
    words = [each.text for each in drawn(few).iter("text")]
    assert {"a-", "name", "b"} <= set(words) and sayings(few)[0].startswith("a-name")


def test_bars_stand_on_zero() -> None:
    figure = one(Bars(x=(1, 2), y=(0.9, 1.0)))
    assert ticks(Axis("up"), *span(Axis("up"), (0.9, 1.0), from_zero=True))[0] == (0.0, "0")
    scale = re.findall(r'class="bar" d="M[\d.]+ ([\d.]+)V([\d.]+)', svg(figure))
    foot, top = map(float, scale[0])
    second = [float(each) for each in re.findall(r"V([\d.]+)", svg(figure))]
    assert foot == max(second) and foot - top > 150, "a bar of 0.9 is nine tenths of one of 1"


def test_every_point_says_its_numbers() -> None:
    bars = ErrorBars(x=(10,), y=(0.147,), low=(0.142,), high=(0.1512,), label="epsilon 8")
    figure = one(bars, x=Axis("rounds", whole=True), y=Axis("accuracy", percent=True))
    assert sayings(figure) == ["epsilon 8: rounds 10, accuracy 14.7% (14.2% to 15.12%)"]
    assert sayings(one(Rule(at=0.5, label="a trigram"), y=Axis("accuracy", percent=True))) == ["a trigram: 50%"]


def test_of_many_points_some_say_their_numbers() -> None:
    said_by = sayings(one(Line(x=range(10_000), y=range(10_000))))
    assert 50 <= len(said_by) <= 60 and said_by[0] == "across 0, up 0"


def test_of_a_long_line_its_peaks_are_drawn() -> None:
    up = [math.sin(at / 50) for at in range(20_000)]
    up[9_777] = 5.0
    figure = one(Line(x=range(20_000), y=up, dots=False))
    way = next(each for each in ways(figure) if len(each) > 1_000)
    heights = [number for letter, number in way if letter in "ML"][1::2]
    assert len(heights) < 4_000 and len(svg(figure)) < 60_000
    assert min(heights) < sorted(heights)[1] - 50, "one point among 20,000 stands out as it does in the data"


def test_of_many_bars_the_highest_are_drawn() -> None:
    up = [1.0] * 20_000
    up[9_777] = 5.0
    figure = one(Bars(x=range(20_000), y=up))
    bars = next(each for each in ways(figure) if len(each) > 1_000)
    tops = [number for letter, number in bars if letter == "V"][::2]
    assert len(tops) < 4_000 and min(tops) < sorted(tops)[1] - 50


def told_apart_slowly(places: list[tuple[float, float]]) -> list[int]:
    """Of each run of points within half a unit the first, the last, the lowest and the highest; of gaps the first."""
    found: list[int] = []
    nowhere = [math.isnan(across) or math.isnan(up) for across, up in places]
    columns = [None if gap else round(2 * across) for gap, (across, _) in zip(nowhere, places, strict=True)]
    for column, group in groupby(range(len(places)), key=lambda at: columns[at]):
        there = list(group)
        up = [places[at][1] for at in there]
        ends = {0} if column is None else {0, len(there) - 1, up.index(min(up)), up.index(max(up))}
        found += [there[at] for at in sorted(ends)]
    return found


@given(st.lists(st.tuples(st.floats(0, 5) | st.just(math.nan), st.integers(0, 9) | st.just(math.nan)), min_size=1))
def test_what_is_told_apart_is_found_by_columns_as_point_by_point(places: list[tuple[float, float]]) -> None:
    across, up = np.array(places, np.float64).T
    assert told_apart(across, up) == told_apart_slowly(places)


@given(
    st.lists(VALUES | st.sampled_from([0.0, math.inf, -math.inf, math.nan]), max_size=20),
    st.booleans(),
    st.tuples(POSITIVE, POSITIVE).filter(lambda ends: ends[0] < ends[1] * 0.999),
)
def test_many_places_are_those_of_each(values: list[float], log: bool, ends: tuple[float, float]) -> None:
    scale = Scale(Axis(log=log), *ends, 400.0, 20.0)
    np.testing.assert_allclose(scale.all_clamped(values), [scale.clamped(each) for each in values], rtol=1e-9)


def test_the_numbers_stand_in_a_table() -> None:
    marks = (
        Line(x=(1, 2), y=(0.5, 0.25), label="one"),
        Line(x=(2, 3), y=(4, -5000), label="other"),
        Line(x=(9,), y=(9,)),
    )
    (table,) = numbers(one(*marks, x=Axis("rounds", whole=True)))
    assert table.head == ("rounds", "one", "other")
    assert table.rows == (("1", "0.5", ""), ("2", "0.25", "4"), ("3", "", "\N{MINUS SIGN}5,000"))
    assert numbers(one(Rule(at=1, label="a rule"))) == []
    (alone,) = numbers(one(Line(x=(1,), y=(2,)), Line(x=(1,), y=(3,)), Rule(at=1, label="a rule")))
    assert (alone.head, alone.rows) == (("across", "up"), (("1", "2"),)), "of a panel without labels its first mark"


def test_panels_below_each_other_begin_at_one_place() -> None:
    panels = tuple(
        Panel(marks=(Line(x=(1, 2), y=(0, most)),), x=Axis("round"), y=Axis(percent=percent))
        for most, percent in ((1, False), (12_345.678, True))
    )
    column = Figure(name="two", title="", alt="", panels=panels, same_x=True)
    frames = [re.match(r"M([\d.]+)", each.attrib["d"]) for each in drawn(column).iter("path")]
    upright = {
        each.group(1)
        for each, path in zip(frames, drawn(column).iter("path"), strict=True)
        if each is not None and "V" in path.attrib["d"] and path.attrib["class"] == "axis"
    }
    assert len(upright) == 1


@pytest.mark.parametrize(
    ("axis", "value", "words"),
    [
        (Axis(percent=True), 0.14703, "14.7%"),
        (Axis(percent=True), -0.00125, "\N{MINUS SIGN}0.125%"),
        (Axis(), 1234567, "1,234,567"),
        (Axis(), 3.14159, "3.142"),
        (Axis(), 2e-7, "2e-07"),
        (Axis(ticks=((1.0, "BLT"),)), 1.0, "BLT"),
    ],
)
def test_numbers_are_said_as_people_write_them(axis: Axis, value: float, words: str) -> None:
    assert said(axis, value) == words


def test_labels_are_text() -> None:
    bad = '<script>alert("1")</script>\u202e`\n'
    panel = Panel(marks=(Line(x=(1,), y=(1,), label=bad),), x=Axis(bad), y=Axis(bad), title=bad)
    figure = Figure(name="x", title=bad, alt=bad, panels=(panel,))
    text = svg(figure)
    assert "<script" not in text and "\u202e" not in text and "\n" not in text
    assert drawn(figure).attrib["aria-label"].startswith("<script>"), "and it is said as it was written"


def test_panels_below_each_other_and_side_by_side() -> None:
    panel = Panel(marks=(Line(x=(1, 2), y=(3, 4), label="both"),), x=Axis("x"), y=Axis("y"))
    other = Panel(
        marks=(Line(x=(1, 20), y=(3, 4), label="both"),), x=Axis("x"), y=Axis("y"), above=Above("up", ((2, "two"),))
    )
    below = Figure(name="x", title="", alt="", panels=(panel, other), same_x=True)
    beside = Figure(name="x", title="", alt="", panels=(panel, other), across=True)
    alone = [ElementTree.fromstring(svg_alone(each, "")) for each in (below, beside)]
    sizes = [tuple(map(float, each.attrib["viewBox"].split()[2:])) for each in alone]
    assert sizes[1][0] > 1.9 * sizes[0][0] and sizes[1][1] < sizes[0][1], "in a file of its own"
    assert drawn(beside).attrib["viewBox"].split()[2] == drawn(below).attrib["viewBox"].split()[2], "never in a page"
    words = [each.text for each in drawn(below).iter("text")]
    assert words.count("both") == 1, "panels with one legend have it once"
    assert words.count("x") == 1 and "two" in words and words.count("20") == 2, "and one axis across"
