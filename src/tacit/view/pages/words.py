"""What a live page of a discovery shows beside its report: the trie as it grows, and what made words anonymous."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.parsing import parsed_json
from tacit.reports.blocks import Block, FigureOf, Heading, Paragraph, Table
from tacit.reports.figure import BLUE, GREEN, GREY, Axis, Bars, Figure, Line, Panel
from tacit.runs import Run
from tacit.statements.markdown import one_line

MOST = 60  # prefixes of a layer that are shown: a page is no dictionary


def blocks(run: Run | None, record: Mapping[str, Any], *, simulation: bool) -> list[Block]:
    """Layer by layer, from what randomised reports said: all of it was released."""
    layers = [each for row in run.steps() for each in row.releases if each.get("what") == "prefix votes"] if run else []
    if run is None or not layers:
        return []
    return [
        Heading("The trie as it grew"),
        FigureOf(trie(layers)),
        Table(
            tuple(
                (
                    f"{each['turn']}, {each['layer']}",
                    f"{each['users']:,}",
                    f"{each['prefixes']:,}",
                    f"{each['words']:,}",
                    f"{each['least_votes']:,}",
                )
                for each in layers
            ),
            ("pass, layer", "users asked", "prefixes kept", "words ended", "fewest votes to be kept"),
        ),
        *_last_prefixes(run),
        *_anonymity(record),
    ]


def trie(layers: Sequence[Mapping[str, Any]]) -> Figure:
    """Prefixes and words of each layer, and how many votes kept one."""
    at = range(1, len(layers) + 1)
    ticks = tuple((number, f"{each['turn']}.{each['layer']}") for number, each in zip(at, layers, strict=True))
    across = Axis("pass and layer", ticks=ticks)
    kept = [each["prefixes"] for each in layers]
    return Figure(
        name="trie",
        title="Prefixes kept, and words that ended",
        alt=f"{len(layers)} layers so far; the last kept {kept[-1]:,} prefixes.",
        same_x=True,
        height=2,
        panels=(
            Panel(
                marks=(
                    Line(x=at, y=kept, label="prefixes kept", hue=BLUE),
                    Bars(x=at, y=[each["words"] for each in layers], width=0.5, label="words ended", hue=GREEN),
                ),
                x=across,
                y=Axis("strings", low=0),
            ),
            Panel(
                marks=(Line(x=at, y=[each["least_votes"] for each in layers], label="fewest votes", hue=GREY),),
                x=across,
                y=Axis("votes", low=0),
            ),
        ),
    )


def _last_prefixes(run: Run) -> list[Block]:
    """What the last layers kept, as a branch a line; nothing where their files are gone."""
    found: list[Block] = []
    for row in run.steps()[-3:]:
        path = run.path / "steps" / row.file
        try:
            content = b"" if path.is_symlink() else path.read_bytes()
            kept = hashlib.sha256(content).hexdigest() == row.digest
            prefixes = [str(each) for each in parsed_json(content)["prefixes"]] if kept else []
        except (OSError, ValueError, KeyError, TypeError):  # of counts, or gone
            continue
        if prefixes:
            found.append(branches(row.step, prefixes))
    return found


def branches(step: int, prefixes: Sequence[str]) -> Paragraph:
    """What a step kept; whatever devices sent, it is text and no markup."""
    more = f", and {len(prefixes) - MOST:,} more" if len(prefixes) > MOST else ""
    said = ", ".join(f"`{one_line(each)}`" for each in prefixes[:MOST])
    return Paragraph(f"After step {step + 1:,}: {said}{more}.")


def _anonymity(record: Mapping[str, Any]) -> list[Block]:
    figures = record.get("figures")
    anonymity = figures.get("anonymity") if isinstance(figures, Mapping) else None
    if not isinstance(anonymity, Mapping):
        return []
    rows = tuple((name.replace("_", " "), str(value)) for name, value in anonymity.items())
    return [Heading("Anonymity"), Table(rows)]
