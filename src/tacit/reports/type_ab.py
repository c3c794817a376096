"""The report of an A/B test of typing: what was released and what that promises, then what only a simulation knows.

Two parts that are never mixed, as in every evaluation; the page that may be published has the first alone. The figures
are of exact numbers, so they are in the second.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.reports.blocks import Block, FigureOf, Heading, Paragraph, Table, Tiles
from tacit.reports.figure import BLUE, GREY, ORANGE, Axis, ErrorBars, Figure, Mark, Panel, Rule
from tacit.reports.page import Page
from tacit.reports.record_files import content_of
from tacit.reports.release import Interval, number_from, promise_blocks, simulation_blocks
from tacit.reports.summary_lines import of_promise

PRIVATE_KEYS = ("run", "simulation_only")  # of the record; all others may be published
BESIDE = ("statement",)  # of a record, what report.json does not repeat
TITLE = "What a model changes for somebody who types"
UNKNOWN = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"

# As the tables of arXiv:2305.18465 have them: relative changes in percent, signs so that more is better.
ROW = {
    "PRate(+%)": ("picked rate", 1),
    "Acc(+%)": ("accuracy", 1),
    "SC trig(+%)": ("compose trigger rate", 1),
    "SC PRate(+%)": ("compose picked rate", 1),
    "WMR(-%)": ("words modified ratio", -1),
    "WPM(+%)": ("words a minute", 1),
}
DRAWN = ("words a minute", "words modified ratio")  # in the figure of sensitivity


def page(record: Mapping[str, Any]) -> Page:
    """Everything, with the exact numbers of the simulation.

    record: what was found; `released` beside `simulation_only`, never mixed.
    """
    exact = record["simulation_only"]
    decision = exact["decision"]
    blocks = [
        *_public(record),
        *simulation_blocks(exact["what"]),
        Tiles((("B against A", decision["judgement"]), *_tiles(exact["measures"]))),
        *_exact(record, exact),
        FigureOf(figure_of_changes(exact["measures"])),
        *_sensitivity(exact["sensitivity"]),
    ]
    headline = {"judgement": decision["judgement"]}
    said = content_of(record, *BESIDE)
    return Page(kind="report of typing", title=TITLE, blocks=tuple(blocks), record=said, headline=headline)


def released_page(record: Mapping[str, Any]) -> Page:
    """What may be published; the record has nothing else."""
    return Page(
        kind="report of typing, released",
        title=TITLE,
        blocks=tuple(_public(record)),
        record=content_of(record, *BESIDE),
    )


def published(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of the record of everything may be published."""
    return {name: value for name, value in record.items() if name not in PRIVATE_KEYS}


def _public(record: Mapping[str, Any]) -> list[Block]:
    """The promise, and what was released under it."""
    blocks: list[Block] = [Paragraph(_clients_and_limits(record)), *promise_blocks(record["promise"])]
    return blocks if record["released"] is None else [*blocks, *_released(record["released"])]


def summary_lines(record: Mapping[str, Any]) -> list[Block]:
    """What the command prints: what was released, then the exact part."""
    released, exact = record["released"], record["simulation_only"]
    blocks: list[Block] = [Paragraph(f"{_models(record)} {_users(record)} typed."), *of_promise(record["promise"])]
    blocks += [] if released is None else _released(released, whole=False)
    blocks += [Paragraph(f"{exact['what']} ({record['asked']:,} users)"), *_exact(record, exact)]
    if exact["sensitivity"] is not None:
        blocks.append(Paragraph(_stability(exact["sensitivity"])))
    return blocks


# -- what was asked ----------------------------------------------------------------------------------------------------


def _clients_and_limits(record: Mapping[str, Any]) -> str:
    limits = [f"at most {record[name]:,} {name}" for name in ("sentences", "words") if record[name]]
    how_much = f", of each {limits[0]}" if limits else ""
    how_much += f" of {limits[1]}" if len(limits) > 1 else ""
    return (
        f"{_models(record)} {_users(record)} typed their own text once more{how_much}: simulated typists, each with "
        f"the same slips on A and on B (seed {record['seed']}), on the layout {record['layout']}. {_condition(record)}"
    )


def _users(record: Mapping[str, Any]) -> str:
    some = "All" if record["asked"] == record["of_split"] else f"{record['asked']:,} of the"
    return (
        f"{some} {record['of_split']:,} users in the {record['split_name']} split of {record['source']} "
        f"({record['clients']:,} users in all, split by {record['split_by']})"
    )


def _models(record: Mapping[str, Any]) -> str:
    a, b = record["a"], record["b"]
    more = record["more_words"]
    said = f"A is {a['name']}, B is {b['name']}."
    if more is not None:
        said = (
            f"{said[:-1]} with {more['words']:,} more words of {more['name']}, {more['share']:.1%} of the unknown ones "
            f"by its reports: {more['origin']}."
        )
    if record["same_model"] and record.get("learns") != "b" and not record.get("personal"):
        return f"{said} They are the same model, so " + (
            "nothing can change." if more is None else "only that changes."
        )
    if a["words"] == b["words"] == record["shared_words"]:
        return said
    return (
        f"{said} A knows {a['words']:,} words and B {b['words']:,}, {record['shared_words']:,} of them the same; each "
        "keyboard corrects to the words of its own model, and measures count words as they are written, whoever knows "
        "them."
    )


def _condition(record: Mapping[str, Any]) -> str:
    weight = f"language weight {record['language_weight']:g}"
    match record["condition"]:
        case "network":
            said = f"Each model is in its decoder's search ({weight})"
        case "rescore":
            said = f"{record['search']} searches, and each model ranks its candidates anew ({weight})"
        case _:
            said = f"{record['search']} searches and ranks alone ({weight}); the models only suggest"
    phrases = "no inline phrases are offered"
    if record["compose"] is not None:
        phrases = f"inline phrases are offered from a probability of {record['compose']:g}"
    learns = {
        "b": " B learns the words and pairs that its user types, and mixes them in where that helped before.",
        "both": " Both learn the words and pairs that their user types, and mix them in where that helped before.",
    }
    personal = "" if record.get("personal") is None else f" {_personal(record['personal'])}"
    return f"{said}; {phrases}.{learns.get(record.get('learns') or '', '')}{personal}"


def _personal(how: Mapping[str, Any]) -> str:
    """How B becomes each user's own."""
    return (
        f"B is fitted to each user's earlier text ({how['way']}) and used where, on the latest {how['gate_share']:.1%} "
        f"of that text, the chance of so many gains is at most {how['level']:g}; elsewhere it is B as it was. Typed is "
        f"what came later (split {how['split']}), by users with at least {how['least']} sentences in each part."
    )


# -- what was released -------------------------------------------------------------------------------------------------


def _released(released: Mapping[str, Any], *, whole: bool = True) -> list[Block]:
    """whole: with the rule, which the exact part says as well."""
    rows = tuple((name, _interval(row["mean_change"], row["unit"])) for name, row in released["measures"].items())
    rule = Paragraph(f"The rule: {released['decision']['rule']}.", soft=True)
    return [
        Table(rows, ("B - A, mean over users", "95%, with the noise")),
        Paragraph(
            f"{_judgement(released['decision'])} Each user counts alike here, and a change beyond the outer cuts of "
            "its histogram counts as if it were there.",
            answer=True,
        ),
        *([rule] if whole else []),
    ]


# -- what is exact -----------------------------------------------------------------------------------------------------


def _exact(record: Mapping[str, Any], exact: Mapping[str, Any]) -> list[Block]:
    measures = exact["measures"]
    rows = [
        (name, _number(row["a"], row["unit"]), _number(row["b"], row["unit"]), _change(row))
        for name, row in measures.items()
        if record["compose"] is not None or not name.startswith("compose")
    ]
    return [
        Table((papers_row(measures),), tuple(ROW)),
        Table(tuple(rows), ("all users together", "A", "B", "B against A (95%)")),
        Paragraph(_judgement(exact["decision"]), answer=True),
        *_own_models(exact.get("own_models")),
        Paragraph(f"The rule: {exact['decision']['rule']}.", soft=True),
        Paragraph(_counted(record, exact["typed"]), soft=True),
    ]


def _own_models(found: Mapping[str, Any] | None) -> list[Block]:
    """How many gates opened, and what that changed for those users."""
    if found is None:
        return []
    said = Paragraph(f"The gate opened for {found['opened']:,} of {found['users']:,} users.")
    rows = tuple((name, _change(row)) for name, row in found["measures"].items() if not name.startswith("compose"))
    return [said, *([Table(rows, ("of these users", "B against A (95%)"))] if rows else [])]


def papers_row(measures: Mapping[str, Any]) -> tuple[str, ...]:
    """Relative changes in percent, in the order of ROW; a dash where A has nothing of which it would be a share."""
    found = []
    for name, sign in ROW.values():
        a, b = (number_from(measures[name][side]) for side in ("a", "b"))
        found.append(f"{100 * sign * (b / a - 1):.2f}".replace("-", MINUS) if a > 0 else UNKNOWN)
    return tuple(found)


def _judgement(decision: Mapping[str, Any]) -> str:
    named = [f"{', '.join(decision[which])} {which}" for which in ("better", "worse") if decision[which]]
    reasons = f" ({'; '.join(named)})" if named else ""
    unknown = f" Nothing is known of {', '.join(decision['unknown'])}." if decision["unknown"] else ""
    return f"Launch rule: {decision['judgement'].upper()}{reasons}.{unknown}"


def _counted(record: Mapping[str, Any], typed: Mapping[str, Any]) -> str:
    untyped = "cannot be typed on this layout, or are too long"
    if typed["unspelled"]:
        untyped = f"were not typed, {typed['unspelled']:,} of them unknown to the cache"
    return (
        f"{typed['words']:,.0f} words of {record['asked']:,} users were typed on each keyboard. Words that {untyped}: "
        f"{typed['untypable']:,.0f}; they stand in the text and are counted nowhere else. A change is relative where "
        "A's own measure is above 0, else a difference. Intervals cover that users are sampled, not that the typist is "
        "a model of people."
    )


def _tiles(measures: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _change(measures[name], interval=False)) for name in DRAWN]


def _number(found: Any, unit: str) -> str:
    value = number_from(found)
    if math.isnan(value):
        return UNKNOWN
    return (f"{value:.2%}" if unit == "%" else f"{value:.2f}").replace("-", MINUS)


def _change(row: Mapping[str, Any], *, interval: bool = True) -> str:
    """The relative change, or the difference where there is none."""
    relative, difference = row["relative"], row["difference"]
    found, unit = (relative, "relative") if relative is not None else (difference, row["unit"])
    return _interval(found, unit) if interval else _signed(Interval.from_plain(found).value, unit)


def _interval(found: Sequence[Any], unit: str) -> str:
    value, low, high = Interval.from_plain(found)
    if math.isnan(value):
        return UNKNOWN
    ends = "any"
    if math.isfinite(low) and math.isfinite(high):
        ends = f"{_signed(low, unit)} to {_signed(high, unit)}"
    return f"{_signed(value, unit)}{' points' if unit == '%' else ''} ({ends})"


def _signed(value: float, unit: str) -> str:
    """A relative change in percent, a difference of shares in points, or a difference."""
    shown = {"relative": f"{100 * value:+.2f}%", "%": f"{100 * value:+.2f}"}.get(unit, f"{value:+.3f}")
    return shown.replace("-", MINUS)


# -- figures -----------------------------------------------------------------------------------------------------------


def figure_of_changes(measures: Mapping[str, Any]) -> Figure:
    """Each measure's relative change with its interval; those without one are left out."""
    shown = {name: row for name, row in measures.items() if row["relative"] is not None}
    places = list(range(len(shown), 0, -1))
    named = [name if row["better"] == "more" else f"{name} ↓" for name, row in shown.items()]
    panel = Panel(
        marks=(_across([row["relative"] for row in shown.values()], places, BLUE), Rule(at=0.0, along="x")),
        x=Axis("B against A, relative (↓: less is better)", percent=True),
        y=Axis(ticks=tuple(zip(map(float, places), named, strict=True)), low=0.5, high=len(shown) + 0.5),
    )
    return Figure(
        name="changes",
        title="What B changes against A (simulation)",
        alt="Relative change of every measure from A to B, with 95% intervals over users.",
        panels=(panel,),
    )


def _sensitivity(found: Mapping[str, Any] | None) -> list[Block]:
    if found is None:
        return []
    return [
        Heading("If the typist were another"),
        Paragraph(_stability(found)),
        FigureOf(figure_of_sensitivity(found)),
        Table(_other_judgements(found), ("parameter", "times", "judgement"))
        if _other_judgements(found)
        else Paragraph(""),
    ]


def _stability(found: Mapping[str, Any]) -> str:
    others, judgement, changes = _other_judgements(found), found["as_it_is"]["judgement"], len(found["variants"])
    said = f"under all {changes} changes it says the same"
    if others:
        said = f"under {len(others)} of {changes} changes it says something else"
    return (
        f"{found['users']:,} of the users typed again with every parameter of the typist halved and doubled, one at a "
        f"time. Of them alone the launch rule says {judgement.upper()} with the typist as it is; {said}."
    )


def _other_judgements(found: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (each["parameter"], f"{each['factor']:g}", each["judgement"])
        for each in found["variants"]
        if each["judgement"] != found["as_it_is"]["judgement"]
    )


def figure_of_sensitivity(found: Mapping[str, Any]) -> Figure:
    """B - A of two measures under every parameter, halved and doubled, beside the typist as it is."""
    parameters = list(dict.fromkeys(each["parameter"] for each in found["variants"]))
    return Figure(
        name="sensitivity",
        title="If a parameter of the typist were half or twice what it is (simulation)",
        alt="Change of words a minute and of words modified from A to B, for each parameter of the typist halved and "
        "doubled, with 95% intervals over users.",
        panels=tuple(_varied(found, parameters, name) for name in DRAWN),
        across=True,
        height=0.4 + 0.22 * len(parameters),
        legend="below",
    )


def _varied(found: Mapping[str, Any], parameters: Sequence[str], name: str) -> Panel:
    unit = found["as_it_is"]["measures"][name]["unit"]
    marks: list[Mark] = []
    for factor, hue, label, moved in ((0.5, BLUE, "halved", 0.15), (2.0, ORANGE, "doubled", -0.15)):
        rows = [each for each in found["variants"] if each["factor"] == factor]
        places = [len(parameters) - parameters.index(each["parameter"]) + moved for each in rows]
        marks.append(_across([each["measures"][name]["difference"] for each in rows], places, hue, label))
    as_it_is = Interval.from_plain(found["as_it_is"]["measures"][name]["difference"]).value
    marks += [Rule(at=0.0, along="x"), Rule(at=as_it_is, along="x", label="as it is", hue=GREY, stroke=1)]
    ticks = tuple((len(parameters) - at, parameter) for at, parameter in enumerate(parameters))
    return Panel(
        marks=tuple(marks),
        x=Axis(f"{name}, B - A", percent=unit == "%"),
        y=Axis(ticks=ticks, low=0.0, high=len(parameters) + 1.0),
    )


def _across(found: Sequence[Sequence[Any]], places: Sequence[float], hue: int, label: str = "") -> ErrorBars:
    """Estimates beside each other as intervals along x."""
    intervals = [Interval.from_plain(each) for each in found]
    return ErrorBars(
        x=[each.value for each in intervals],
        y=places,
        low=places,
        high=places,
        x_low=[each.low for each in intervals],
        x_high=[each.high for each in intervals],
        hue=hue,
        label=label,
        mark="o",
    )
