"""Figures as SVG that stands in a page: light or dark as the page is, and points say their numbers.

    svg(figure)       the figure as an element; what it needs of a stylesheet is in the template of pages
    svg_alone(figure, style)    the same as a file of its own
    ticks(axis, low, high)      where an axis has numbers, and what they say

`drawing` draws the same figures by matplotlib, for files and for print. Nothing here knows a colour: a mark has the
class of its hue. Without script a browser shows a point's numbers under the pointer; who cannot see hears `alt`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tacit.reports.blocks import Table
from tacit.reports.drawing import ENOUGH_TICKS, FEW
from tacit.reports.figure import (
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
from tacit.statements.markdown import one_line

# Units of the drawing. At the width of a phone, 340 pixels, letters are 10 pixels high.
WIDTH = 420.0  # of a panel
INCH = 78.0  # a panel is 5.4 of them wide
LETTER = 12.0  # height of the letters
ADVANCE = 0.56  # of a letter, in its height: the mean of a sans-serif
LINE = 16.0  # of text, and of the legend
SIDE = 14.0  # free to the right, where half of the last number stands
TICK = 4.0
EDGE, ENLARGED = 12.0, 1.4  # of a file of its own: free around the figure, and how large it is shown
SWATCH = 22.0  # of a line in the legend
DOT = 2.4
MOST_DRAWN = 2_000  # points of a line; of more, what lies closer than can be seen is left out
SAID = 60  # points of a mark that say their numbers: more cannot be pointed at
MOST_ROWS = 200  # of a table of a panel's numbers
MARGIN = 0.05  # of an axis, free at each end
MOST_TICKS = 7
LEAN = 0.7  # of a name along the lower axis: what it goes down in its length
PLUS = [(-1.2, -0.25), (-0.25, -0.25), (-0.25, -1.2), (0.25, -1.2), (0.25, -0.25), (1.2, -0.25)]
PLUS += [(-across, -up) for across, up in PLUS]  # the outline of a cross that stands upright, around nothing
STEPS = (1.0, 2.0, 5.0, 10.0)  # what ticks are multiples of, times a power of ten


# -- axes --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """Numbers along an axis, and where they are drawn."""

    axis: Axis
    low: float
    high: float
    begin: float  # of the drawing
    end: float

    def at(self, value: float) -> float:
        """Where a number stands; nan for what has no place, as 0 on a logarithmic axis."""
        if not math.isfinite(value) or (self.axis.log and value <= 0):
            return math.nan
        low, high, value = (math.log10(each) if self.axis.log else each for each in (self.low, self.high, value))
        return self.begin + (self.end - self.begin) * (value - low) / (high - low)

    def clamped(self, value: float) -> float:
        """The same, of what lies beyond an end the end."""
        at = self.at(value)
        return at if math.isnan(at) else min(max(at, min(self.begin, self.end)), max(self.begin, self.end))

    def all_clamped(self, values: Numbers) -> NDArray[np.float64]:
        """`clamped` of many (n,), at once."""
        low, high, given = np.float64(self.low), np.float64(self.high), np.asarray(values, np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.axis.log:
                low, high, given = np.log10(low), np.log10(high), np.log10(given)
            at = self.begin + (self.end - self.begin) * (given - low) / (high - low)
        at[~np.isfinite(given)] = np.nan
        return np.clip(at, min(self.begin, self.end), max(self.begin, self.end))


def span(axis: Axis, values: Sequence[float], *, from_zero: bool = False) -> tuple[float, float]:
    """From where to where an axis goes that shows these values."""
    shown = [each for each in values if math.isfinite(each) and (each > 0 or not axis.log)]
    low, high = (min(shown), max(shown)) if shown else (0.1, 1.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    margin = MARGIN if axis.margin is None else axis.margin
    if axis.log:
        wide = (high / low) ** margin if high > low else 2.0
        found = low / wide, high * wide
    else:
        wide = margin * (high - low) if high > low else (abs(high) / 2 or 0.5)
        found = low - wide * (not (from_zero and low == 0)), high + wide * (not (from_zero and high == 0))
    low, high = (each if given is None else given for given, each in zip((axis.low, axis.high), found, strict=True))
    return (low, high) if high > low else (low, low * 2 if axis.log else low + 1.0)


def ticks(axis: Axis, low: float, high: float) -> list[tuple[float, str]]:
    """(where, what is written there) from low to high, in their order."""
    if axis.ticks:
        return [(at, text) for at, text in axis.ticks if low <= at <= high]
    places = _powers(low, high) if axis.log else []
    if len(places) < ENOUGH_TICKS:
        places = _multiples(low, high, whole=axis.whole)
    return [(at, written(axis, at)) for at in places]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 times or all their multiples where those are few."""
    found: list[float] = []
    for multiples in ((1.0,), (1.0, 2.0, 5.0), tuple(map(float, range(1, 10)))):
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        found = [float(f"{each * 10.0**power:.10g}") for power in range(first, last + 1) for each in multiples]
        found = [each for each in found if low <= each <= high]
        if len(found) >= ENOUGH_TICKS:
            break
    return _thinned(found)


def _thinned(places: list[float]) -> list[float]:
    """Every second or third, where all would not have room."""
    return places[:: -(-len(places) // (MOST_TICKS + 2))] if places else places


def _multiples(low: float, high: float, *, whole: bool) -> list[float]:
    """Of the least round number that gives no more than MOST_TICKS."""
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in STEPS if each * power >= rough * (1 - 1e-9))
    if whole and high - low >= 1:  # else there may be none within
        step = max(1.0, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.10g}") for number in range(first, last + 1)]


def written(axis: Axis, value: float, digits: int = 6) -> str:
    """A number as it stands at an axis: shares of 1 in percent, 5k, 3M, with a minus of its own."""
    if axis.percent:
        text = f"{100 * value:.{digits}g}%"
    else:
        for size, letter in ((1e6, "M"), (1e3, "k"), (1.0, "")):
            if abs(value) >= size or not letter:
                text = f"{value / size:.{digits}g}{letter}" if abs(value) < 1e9 else f"{value:.{digits}g}"
                break
    return text.replace("-", "\N{MINUS SIGN}") if "e" not in text else text


def said(axis: Axis, value: float) -> str:
    """A number as a point says it: whole, with four digits, or the word that stands at that place."""
    for at, word in axis.ticks:
        if at == value:
            return _unbroken(word)
    if axis.percent or abs(value) < 1e3:
        return written(axis, value, digits=4)
    text = f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.4g}"
    return text.replace("-", "\N{MINUS SIGN}") if "e" not in text else text


def _unbroken(word: str) -> str:
    """A name of several lines in one."""
    return word.replace("-\n", "-").replace("\n", " ")


# -- the figure --------------------------------------------------------------------------------------------------------


def svg(figure: Figure) -> str:
    """The figure as an `<svg>`: as wide as it has room for, with `alt` as its accessible name.

    Panels stand one below the other: side by side their letters would be too small in a page's card, and on a phone.
    """
    inner, wide, high = _panels(replace(figure, across=False))
    size = f"0 0 {wide:g} {high:.6g}"
    return f'<svg class="figure" role="img" viewBox="{size}" aria-label="{_plain(figure.alt)}">{inner}</svg>'


def svg_alone(figure: Figure, style: str) -> str:
    """The same as a file of its own, on a ground of its own; headed by its title where it is to be.

    style: the stylesheet of pages (`page.stylesheet`).
    """
    inner, wide, high = _panels(figure)
    heads = _wrapped(figure.title, wide) if figure.headed else []
    top = EDGE + LINE * 1.3 * len(heads)
    size = wide + 2 * EDGE, high + top + EDGE
    shown = (
        f'width="{ENLARGED * size[0]:.5g}" height="{ENLARGED * size[1]:.5g}" viewBox="0 0 {size[0]:g} {size[1]:.6g}"'
    )
    title = "".join(_text(EDGE, EDGE + LINE * (at + 0.5), text, kind="title") for at, text in enumerate(heads))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tacit" role="img" {shown} aria-label="{_plain(figure.alt)}">'
        f"<style>{style} .tacit .ground {{ fill: var(--card); }} .tacit .title {{ font-weight: 600; }}</style>"
        f'<rect class="ground" width="100%" height="100%"/><g class="figure">{title}'
        f'<g transform="translate({EDGE:g} {top:.6g})">{inner}</g></g></svg>\n'
    )


def _panels(figure: Figure) -> tuple[str, float, float]:
    """(all that is drawn, how wide, how high)."""
    columns = len(figure.panels) if figure.across else 1
    spans = _shared_x(figure) if figure.same_x else [None] * len(figure.panels)
    margins = [_margin(each) for each in figure.panels]
    if columns == 1:  # panels one below the other begin at one place
        margins = [max(margins, default=0.0)] * len(margins)
    drawn, left, top, bottom = [], 0.0, 0.0, 0.0
    shared = len(figure.panels) > 1 and len({tuple(_legend(each)) for each in figure.panels}) == 1
    last = len(figure.panels) - 1
    for number, (panel, wide, margin) in enumerate(zip(figure.panels, spans, margins, strict=True)):
        labelled = not figure.same_x or number == last
        legend = [] if shared and number < last else list(_legend(panel).items())
        text, height = _panel(panel, figure.height * INCH, margin, wide, labelled, legend)
        drawn.append(f'<g class="panel" transform="translate({left:g} {top:.6g})">{text}</g>')
        bottom = max(bottom, top + height)
        left, top = (left + WIDTH, 0.0) if figure.across else (0.0, bottom)
    return "".join(drawn), WIDTH * columns, bottom


def numbers(figure: Figure) -> list[Table]:
    """What is drawn in words, a table a panel: at each x what every labelled mark has there, as its points say it.

    Of a panel without labels it is what its first mark has. Of more than MOST_ROWS every second, third, ... is left.
    """
    tables = []
    for panel in figure.panels:
        drawn = [each for each in panel.marks if not isinstance(each, Rule)]
        marks = [each for each in drawn if each.label] or [replace(each, label=_named(panel)) for each in drawn[:1]]
        labels = tuple(dict.fromkeys(mark.label for mark in marks))
        places = sorted({across for mark in marks for across in mark.x})
        shown = places[:: -(-len(places) // MOST_ROWS) or 1]
        values: dict[float, dict[str, str]] = {across: {} for across in shown}
        for mark in marks:
            for number, across in enumerate(mark.x):
                if across in values:
                    values[across][mark.label] = _value(mark, number, panel.y)
        rows = tuple((said(panel.x, at), *(values[at].get(label, "") for label in labels)) for at in shown)
        if rows:
            tables.append(Table(rows, head=(panel.x.label or panel.title, *labels)))
    return tables


def _named(panel: Panel) -> str:
    """What its numbers are, where no mark says it."""
    return panel.y.label or panel.title


def _shared_x(figure: Figure) -> list[tuple[float, float] | None]:
    """Of panels one below the other the same span across."""
    spans = [span(each.x, _along(each, "x")) for each in figure.panels]
    return [(min(low for low, _ in spans), max(high for _, high in spans))] * len(spans)


def _upright(panel: Panel) -> tuple[float, float]:
    """From where to where its upright axis goes: bars stand on zero."""
    return span(panel.y, _along(panel, "y"), from_zero=any(isinstance(mark, Bars) for mark in panel.marks))


def _margin(panel: Panel) -> float:
    """What the numbers of its upright axis take to the left."""
    return max([_width(text) for _, text in ticks(panel.y, *_upright(panel))], default=0.0) + 2 * TICK


def _panel(
    panel: Panel,
    height: float,
    left: float,
    wide: tuple[float, float] | None,
    labelled: bool,
    legend: Sequence[tuple[str, Mark]],
) -> tuple[str, float]:
    """(what is drawn, how high it is)."""
    heads = [text for text in (panel.title, panel.y.label) if text]
    lines = [each for text in heads for each in _wrapped(text, WIDTH)]
    top = LINE * (len(lines) + 0.5) + (2.2 * LINE if panel.above else 0.0)
    foot = top + height - LINE * (4 if labelled and panel.x.label else 3)
    y = Scale(panel.y, *_upright(panel), foot, top)
    upright = _apart(ticks(panel.y, y.low, y.high), y)
    x = Scale(panel.x, *(wide or span(panel.x, _along(panel, "x"))), left, WIDTH - SIDE)
    parts = [_text(0, LINE * (at + 0.8), text, kind="head") for at, text in enumerate(lines)]
    parts += [f'<path class="grid" d="M{left:.5g} {y.at(at):.5g}H{WIDTH - SIDE:g}"/>' for at, _ in upright]
    parts += [_text(left - TICK, y.at(at) + 0.35 * LETTER, text, anchor="end") for at, text in upright]
    written_below, bottom = _below(x, foot)
    parts += written_below
    parts.append(f'<path class="axis" d="M{left:.5g} {top:.5g}V{foot:.5g}H{WIDTH - SIDE:g}"/>')
    if panel.above:
        parts += _above(panel.above, x, top)
    parts += [_mark(mark, x, y) for mark in panel.marks]
    if labelled and panel.x.label:
        for text in _wrapped(panel.x.label, WIDTH - left):
            bottom += LINE
            parts.append(_text((left + WIDTH - SIDE) / 2, bottom - 2, text, anchor="middle"))
    rows = _legend_rows(legend, bottom + LINE)
    return "".join([*parts, *(text for text, _ in rows)]), max([bottom, *(at for _, at in rows)]) + LINE * 0.7


def _apart(places: Sequence[tuple[float, str]], y: Scale) -> list[tuple[float, str]]:
    """Those of an upright axis whose numbers do not touch one that is kept, in their order."""
    kept: list[tuple[float, str]] = []
    for place in places:
        if not kept or abs(y.at(kept[-1][0]) - y.at(place[0])) >= LETTER:
            kept.append(place)
    return kept


def _below(x: Scale, foot: float) -> tuple[list[str], float]:
    """(what stands along the lower axis, how far down): of numbers that would touch the second is left out, names that
    would touch lean.
    """
    places = [(x.at(at), text, max(map(_width, text.split("\n"))) / 2) for at, text in ticks(x.axis, x.low, x.high)]
    parts = [f'<path class="axis" d="M{where:.5g} {foot:.5g}v{TICK:g}"/>' for where, _, _ in places]
    touch = any(
        one + half + LETTER / 2 > other - next_half for (one, _, half), (other, _, next_half) in pairwise(places)
    )
    if touch and x.axis.ticks:
        names = {where: _unbroken(text) for where, text, _ in places}
        return [*parts, *_leaning(names, foot)], foot + LINE + LEAN * max(map(_width, names.values()))
    free, deep = -math.inf, 1
    for where, text, half in places:
        if where - half > free:
            lines = text.split("\n")
            middle = max(min(where, WIDTH - half), half)
            parts += [_text(middle, foot + LINE * at, line, anchor="middle") for at, line in enumerate(lines, start=1)]
            free, deep = where + half + LETTER / 2, max(deep, len(lines))
    return parts, foot + LINE * (deep + 0.3)


def _leaning(names: Mapping[float, str], foot: float) -> Iterator[str]:
    """Names that end at their places and begin below them, to the left."""
    turned = -math.degrees(math.asin(LEAN))
    for where, name in names.items():
        place = f"translate({where:.5g} {foot + LINE * 0.8:.5g}) rotate({turned:.3g})"
        yield f'<text text-anchor="end" transform="{place}">{_plain(name)}</text>'


def _above(above: Above, x: Scale, top: float) -> list[str]:
    parts = [_text((x.begin + x.end) / 2, top - 1.5 * LINE, above.label, anchor="middle")]
    free = -math.inf
    for at, text in above.ticks:
        if x.low <= at <= x.high and x.at(at) - _width(text) / 2 > free:
            parts.append(_text(x.at(at), top - TICK, text, anchor="middle"))
            free = x.at(at) + _width(text) / 2 + LETTER / 2
    return parts


def _along(panel: Panel, axis: str) -> list[float]:
    """All numbers that marks have along an axis, the ends of intervals and bars among them."""
    found: list[float] = []
    for mark in panel.marks:
        if isinstance(mark, Rule):
            found += [mark.at] if mark.along == axis else []
        elif axis == "x":
            half = mark.width / 2 if isinstance(mark, Bars) else 0.0
            found += [each + side for each in mark.x for side in (-half, half)]
            found += [*mark.x_low, *mark.x_high] if isinstance(mark, ErrorBars) else []
        elif not (isinstance(mark, Points) and mark.at_foot):
            found += [*mark.y, *(mark.low if isinstance(mark, ErrorBars) else ())]
            found += mark.high if isinstance(mark, ErrorBars) else []
    return found


# -- marks -------------------------------------------------------------------------------------------------------------


def _mark(mark: Mark, x: Scale, y: Scale) -> str:
    match mark:
        case Rule():
            return _rule(mark, x, y)
        case Line():
            dots = len(mark.x) <= FEW if mark.dots is None else mark.dots
            style = f"line s{mark.stroke}" + (" faint" if mark.faint else "")
            lines = f'<path class="{style}" stroke-width="{mark.width:g}" d="{_path(mark.x, mark.y, x, y)}"/>'
            inner = lines + (_dots(mark, x, y, "o", DOT) if dots else "")
        case Steps():
            inner = f'<path class="line" d="{_stairs(mark, x, y)}"/>'
        case Points():
            on_foot = [y.begin - TICK] * len(mark.x) if mark.at_foot else None
            inner = _dots(mark, x, y, mark.mark, mark.size / 2, on_foot, hollow=mark.hollow)
        case ErrorBars():
            inner = _intervals(mark, x, y)
        case Bars():
            inner = _bars(mark, x, y)
    return f'<g class="h{mark.hue}">{inner}{_sayings(mark, x, y)}</g>'


def _rule(rule: Rule, x: Scale, y: Scale) -> str:
    across = rule.along == "y"
    at = (y if across else x).at(rule.at)
    if math.isnan(at) or not (y if across else x).low <= rule.at <= (y if across else x).high:
        return ""
    way = f"M{x.begin:.5g} {at:.5g}H{x.end:.5g}" if across else f"M{at:.5g} {y.end:.5g}V{y.begin:.5g}"
    words = f"<title>{_plain(rule.label)}: {said(y.axis if across else x.axis, rule.at)}</title>" if rule.label else ""
    style = f'class="line s{rule.stroke}" stroke-width="{rule.width:g}"'
    return f'<g class="h{rule.hue}"><path {style} d="{way}">{words}</path></g>'


def _places(xs: Numbers, ys: Numbers, x: Scale, y: Scale) -> Iterator[tuple[float, float] | None]:
    """Where points stand; None for one that has no place. What lies beyond an axis is drawn at its end."""
    for across, up in zip(xs, ys, strict=True):
        place = x.at(across), y.at(up)
        yield None if math.isnan(place[0]) or math.isnan(place[1]) else (x.clamped(across), y.clamped(up))


def _path(xs: Numbers, ys: Numbers, x: Scale, y: Scale) -> str:
    parts, pen = [], "M"
    for place in _places(*_seen(xs, ys, x, y), x, y):
        if place is not None:
            parts.append(f"{pen}{place[0]:.5g} {place[1]:.5g}")
        pen = "M" if place is None else "L"
    return "".join(parts)


def _seen(xs: Numbers, ys: Numbers, x: Scale, y: Scale) -> tuple[Numbers, Numbers]:
    """All; of more than can be seen those that can be told apart."""
    if len(xs) <= MOST_DRAWN:
        return xs, ys
    kept = told_apart(x.all_clamped(xs), y.all_clamped(ys))
    return [xs[at] for at in kept], [ys[at] for at in kept]


def told_apart(across: NDArray[np.float64], up: NDArray[np.float64]) -> list[int]:
    """Of places (n,) those that can be told apart: the highest and the lowest of those that follow each other within
    half a unit, the first and the last of them; of those without a place (nan) that follow each other the first.
    """
    column = np.where(np.isnan(across) | np.isnan(up), np.inf, np.round(2 * across))
    begins = [0, *(np.flatnonzero(column[1:] != column[:-1]) + 1).tolist(), len(column)]
    found: list[int] = []
    for begin, end in pairwise(begins):
        there = up[begin:end]
        ends = {0} if column[begin] == np.inf else {0, int(there.argmin()), int(there.argmax()), end - begin - 1}
        found += sorted(begin + each for each in ends)
    return found


def _stairs(mark: Steps, x: Scale, y: Scale) -> str:
    """Level around each point, up or down in the middle between two."""
    there = [place for place in _places(mark.x, mark.y, x, y) if place is not None]
    if not there:
        return ""
    parts = [f"M{there[0][0]:.5g} {there[0][1]:.5g}"]
    parts += [f"H{(a + b) / 2:.5g}V{up:.5g}" for (a, _), (b, up) in pairwise(there)]
    return "".join([*parts, f"H{there[-1][0]:.5g}"])


def _dots(
    mark: Line | Points | ErrorBars,
    x: Scale,
    y: Scale,
    shape: str,
    size: float,
    on_foot: Sequence[float] | None = None,
    *,
    hollow: bool = False,
) -> str:
    style = "dot hollow" if hollow else "dot"
    places = _places(mark.x, mark.y, x, y) if on_foot is None else zip(map(x.clamped, mark.x), on_foot, strict=True)
    ways = [_shape(shape, *place, size) for place in places if place is not None and not math.isnan(place[0])]
    return f'<path class="{style}" d="{"".join(ways)}"/>' if ways else ""


def _shape(shape: str, across: float, up: float, size: float) -> str:
    """The outline of a mark (figure.MARKS) around a place."""
    if shape == "o":
        arc = f"a{size:g} {size:g} 0 1 0"
        return f"M{across - size:.5g} {up:.5g}{arc} {2 * size:g} 0{arc} {-2 * size:g} 0"
    corners = {
        "s": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "^": [(0, -1.1), (1.1, 0.9), (-1.1, 0.9)],
        "v": [(0, 1.1), (1.1, -0.9), (-1.1, -0.9)],
        "D": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
        "x": [(a * c - b * s, a * s + b * c) for a, b in PLUS for c, s in [(math.sqrt(0.5), math.sqrt(0.5))]],
        "*": [
            (reach * math.sin(turn * math.pi / 5), -reach * math.cos(turn * math.pi / 5))
            for turn in range(10)
            for reach in [1.4 if turn % 2 == 0 else 0.6]
        ],
    }[shape]
    return "M" + "L".join(f"{across + a * size:.5g} {up + b * size:.5g}" for a, b in corners) + "z"


def _intervals(mark: ErrorBars, x: Scale, y: Scale) -> str:
    """Of a curve a band, of single points bars; and the points."""
    style = "faint" if mark.faint else ""
    if mark.joined and len(mark.x) > 1:
        there = [_path(mark.x, mark.high, x, y), _path(mark.x[::-1], mark.low[::-1], x, y)]
        whole = all(place is not None for of in (mark.low, mark.high) for place in _places(mark.x, of, x, y))
        if whole:
            band = f'<path class="band {style}" d="{there[0]}L{there[1][1:]}z"/>'
            line = f'<path class="line {style}" d="{_path(mark.x, mark.y, x, y)}"/>'
            return band + line + (_dots(mark, x, y, mark.mark, mark.size / 2) if mark.mark else "")
    ways = []
    for number, (across, up) in enumerate(zip(mark.x, mark.y, strict=True)):
        if math.isnan(x.at(across)) or math.isnan(y.at(up)):
            continue
        low, high = y.clamped(mark.low[number]), y.clamped(mark.high[number])
        if not math.isnan(low) and not math.isnan(high):
            ways.append(f"M{x.clamped(across):.5g} {low:.5g}V{high:.5g}")
        if mark.x_low:
            begin, end = x.clamped(mark.x_low[number]), x.clamped(mark.x_high[number])
            ways.append(f"M{begin:.5g} {y.clamped(up):.5g}H{end:.5g}")
    bars = f'<path class="line {style}" d="{"".join(ways)}"/>'
    line = f'<path class="line {style}" d="{_path(mark.x, mark.y, x, y)}"/>' if mark.joined else ""
    return bars + line + (_dots(mark, x, y, mark.mark, mark.size / 2) if mark.mark else "")


def _bars(mark: Bars, x: Scale, y: Scale) -> str:
    zero = y.clamped(0.0) if not y.axis.log else y.begin
    ways = []
    for across, up in zip(*_seen(mark.x, mark.y, x, y), strict=True):
        begin, end, top = x.clamped(across - mark.width / 2), x.clamped(across + mark.width / 2), y.clamped(up)
        if not any(map(math.isnan, (begin, end, top))):
            ways.append(f"M{begin:.5g} {zero:.5g}V{top:.5g}H{end:.5g}V{zero:.5g}z")
    return f'<path class="bar" d="{"".join(ways)}"/>'


def _sayings(mark: Line | Steps | Points | ErrorBars | Bars, x: Scale, y: Scale) -> str:
    """An unseen disc over each point, or over SAID of them, that says its numbers."""
    foot = isinstance(mark, Points) and mark.at_foot
    chosen = range(0, len(mark.x), -(-len(mark.x) // SAID) or 1)
    xs, ys = [mark.x[at] for at in chosen], [] if foot else [mark.y[at] for at in chosen]
    places = [(x.clamped(each), y.begin - TICK) for each in xs] if foot else _places(xs, ys, x, y)
    parts = []
    for number, place in zip(chosen, places, strict=True):
        if place is not None and not math.isnan(place[0]):
            words = _plain(_saying(mark, number, x.axis, y.axis, foot))
            parts.append(
                f'<circle class="hit" cx="{place[0]:.5g}" cy="{place[1]:.5g}" r="9"><title>{words}</title></circle>'
            )
    return "".join(parts)


def _saying(mark: Line | Steps | Points | ErrorBars | Bars, number: int, x: Axis, y: Axis, foot: bool) -> str:
    """ "epsilon 8: rounds 120, accuracy 14.7% (14.2% to 15.1%)" """
    across = " ".join(part for part in (x.label, said(x, mark.x[number])) if part)
    words = [across]
    if not foot:
        words.append(" ".join(part for part in (y.label, _value(mark, number, y)) if part))
    return f"{mark.label}: {', '.join(words)}" if mark.label else ", ".join(words)


def _value(mark: Line | Steps | Points | ErrorBars | Bars, number: int, y: Axis) -> str:
    """With its interval, where it has one."""
    value = said(y, mark.y[number])
    if isinstance(mark, ErrorBars):
        value += f" ({said(y, mark.low[number])} to {said(y, mark.high[number])})"
    return value


# -- words -------------------------------------------------------------------------------------------------------------


def _legend(panel: Panel) -> dict[str, Mark]:
    """The first mark of each label."""
    found: dict[str, Mark] = {}
    for mark in panel.marks:
        if mark.label:
            found.setdefault(mark.label, mark)
    return found


def _legend_rows(entries: Sequence[tuple[str, Mark]], top: float) -> list[tuple[str, float]]:
    """(an entry drawn, how far down it reaches), side by side where they have room."""
    found, left = [], 0.0
    for label, mark in entries:
        for line, text in enumerate(_wrapped(label, WIDTH - SWATCH - TICK)):
            wide = SWATCH + TICK + _width(text) + LETTER
            if left and (left + wide > WIDTH or line):
                left, top = 0.0, top + LINE
            sign = _sign(mark, left, top - 0.35 * LETTER) if not line else ""
            found.append((sign + _text(left + SWATCH + TICK, top, text), top))
            left += wide
    return found


def _sign(mark: Mark, left: float, middle: float) -> str:
    """What stands before a label."""
    right, centre = left + SWATCH, left + SWATCH / 2
    match mark:
        case Bars():
            inner = f'<path class="bar" d="M{left:g} {middle - 4:.5g}H{right:g}V{middle + 4:.5g}H{left:g}z"/>'
        case Points():
            style = "dot hollow" if mark.hollow else "dot"
            inner = f'<path class="{style}" d="{_shape(mark.mark, centre, middle, mark.size / 2)}"/>'
        case ErrorBars() if not mark.joined:
            inner = f'<path class="line" d="M{centre:g} {middle - 6:.5g}v12"/>'
            inner += f'<path class="dot" d="{_shape(mark.mark or "o", centre, middle, mark.size / 2)}"/>'
        case _:
            stroke = mark.stroke if isinstance(mark, Line | Rule) else 0
            faint = " faint" if isinstance(mark, Line | ErrorBars) and mark.faint else ""
            inner = f'<path class="line s{stroke}{faint}" d="M{left:g} {middle:.5g}H{right:g}"/>'
    return f'<g class="h{mark.hue}">{inner}</g>'


def _text(x: float, y: float, text: str, *, anchor: str = "", kind: str = "") -> str:
    words = f' class="{kind}"' if kind else ""
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{words} x="{x:.5g}" y="{y:.5g}"{where}>{_plain(text)}</text>'


def _plain(text: str) -> str:
    """Others' text within a tag or a value: neither markup nor what a terminal or a reader of right to left obeys."""
    return escape(one_line(text))


def _width(text: str) -> float:
    return len(text) * LETTER * ADVANCE


def _wrapped(text: str, width: float) -> list[str]:
    """In lines that have room; a word that is longer stands alone."""
    lines: list[str] = []
    for word in text.split():
        if lines and _width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
