"""The pages of a run that made a mixture: what it promises; and, exact and apart, what each part added."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.evaluation.verdict import NATS, sides_of
from tacit.networks.metrics import TOP1
from tacit.reports.blocks import Block, Heading, Labels, Paragraph, Table
from tacit.reports.page import Page
from tacit.reports.release import simulation_blocks
from tacit.statements.statement import Label

TITLE = "One model of counts and a network"
EXACT = "SIMULATION ONLY: held-out clients were looked at exactly; no guarantee covers that, and no server could"
VERDICTS = {
    "first suggestion only": "betters the first suggestion, at worse probabilities",
    "hurts": "HURTS the first suggestion; leave it out",
    "probabilities only": "betters the probabilities; that it betters the first suggestion is not shown",
    "hurts probabilities": "HURTS the probabilities; that it betters the first suggestion is not shown",
    "not shown": "changes neither the first suggestion nor the probabilities, as far as these clients show",
}
IN = {TOP1: "top-1", "top3_accuracy": "top-3", NATS: "nats"}
SIDES = {1: "Better in", -1: "Worse in", 0: "Not told apart in"}
HEAD = ("model", "top-1", "top-3", "nats", "top-1 added", "top-3 added", "nats added", "so it")


def page(record: Mapping[str, Any]) -> Page:
    """Everything. record: what was found."""
    blocks = (*_promised(record), *simulation_blocks(EXACT), *tables(record))
    return Page(kind="report of a mixture", title=TITLE, blocks=blocks, record=record)


def released_page(record: Mapping[str, Any]) -> Page:
    """What may be published; its record has nothing else."""
    said = {name: each for name, each in record.items() if name != "simulation_only"}
    return Page(kind="report of a mixture, released", title=TITLE, blocks=tuple(_promised(record)), record=said)


def tables(record: Mapping[str, Any]) -> list[Block]:
    """What each part added, a line each, and a sentence for every part that is not shown to help."""
    found = record["simulation_only"]
    rows = tuple(_row(each) for each in found["arms"])
    about = (
        f"{found['clients']:,} test clients, {found['words']:,} known words. Intervals are 95%, of the paired "
        "bootstrap over clients. Each line adds a part to the one before; all is everything against the first. Nats "
        "are of the word's probability, the fewer the better."
    )
    said = [_judged(each) for each in found["arms"] if each["verdict"] not in (None, "helps")]
    if record["network_weight"] == 0:
        said.append("The network adds nothing to the n-grams on public text, which gives it the weight 0.")
    return [Table(rows, HEAD), Paragraph(about), *map(Paragraph, said)]


def _promised(record: Mapping[str, Any]) -> list[Block]:
    labels = tuple(Label(**each) for each in record["labels"])
    rows = tuple((each["part"], f"{each['zcdp']:.6g}", each["statement"]) for each in record["parts"])
    return [
        *([Labels(labels)] if labels else []),
        Paragraph(f"Privacy: {record['says']}."),
        Heading("What it costs a client"),
        Table((*rows, ("together", f"{record['zcdp']:.6g}", "promise.json")), ("part", "zCDP", "statement")),
        Paragraph("`tacit verify RUN` computes each line again, and makes the model again from its parts."),
    ]


def _row(arm: Mapping[str, Any]) -> tuple[str, ...]:
    top1, top3, nats = arm["values"].values()
    shown = (arm["name"], f"{100 * top1:.2f}%", f"{100 * top3:.2f}%", f"{nats:.3f}")
    if arm["change"] is None:
        return (*shown, "", "", "", "")
    one, three, less = arm["change"].values()
    changes = (_points(one), _points(three), _nats(less))
    return (*shown, *changes, arm["verdict"])


def _judged(arm: Mapping[str, Any]) -> str:
    """What an arm does that does not simply help: in a sentence, then in what it is better or worse, by how much."""
    change = arm["change"]
    sides = sides_of(change)
    amounts = {name: f"{_points(change[name])} points" for name in IN if name != NATS} | {NATS: _nats(change[NATS])}
    of_each = {side: [f"{IN[name]} {amounts[name]}" for name in IN if sides[name] == side] for side in SIDES}
    told = " ".join(f"{SIDES[side]} {', '.join(those)}." for side, those in of_each.items() if those)
    return f"{arm['name']}: {VERDICTS[arm['verdict']]}. {told}"


def _nats(change: Sequence[float]) -> str:
    return _interval(change, 1, 3)


def _points(change: Sequence[float]) -> str:
    return _interval(change, 100, 2)


def _interval(change: Sequence[float], scale: float, digits: int) -> str:
    value, low, high = (f"{scale * float(each):+.{digits}f}" for each in change)
    return f"{value} ({low} to {high})"
