"""The pages of a run that made a mixture: what it promises; and, exact and apart, what each part added.

`MixtureSummary` is what its account and a comparison with other runs read of it.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.errors import RunError
from tacit.evaluation.comparison_models import ComparisonModels
from tacit.evaluation.verdict import NATS, SHOWN, sides_of
from tacit.networks.metrics import OF_KNOWN, TOP1
from tacit.privacy import gaussian
from tacit.privacy.rounding import rounded_up
from tacit.records import from_plain
from tacit.reports.blocks import Block, Heading, Labels, Paragraph, Table
from tacit.reports.page import Page
from tacit.reports.release import number_from, simulation_blocks
from tacit.statements.statement import Label

if TYPE_CHECKING:  # the statements of all kinds of runs come with it
    from tacit.statements.composed import ComposedPromise

TITLE = "One model of counts and a network"
EXACT = "SIMULATION ONLY: held-out clients were looked at exactly; no guarantee covers that, and no server could"
UNFINISHED = "UNFINISHED"
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
ALL = "all"  # the arm that is everything against the first


@dataclass(frozen=True, kw_only=True)
class MixtureSummary:
    """One run that makes a mixture, as its folder says, in whatever state it is."""

    path: str
    name: str
    finished: bool
    promise: "ComposedPromise"  # of what was released so far; of one that is finished, that of its model
    folders: Mapping[str, str]  # of its runs, by the part's name in the promise
    rounds: int  # that are released, of its own training
    planned_rounds: int
    settings: Mapping[str, Any]  # "section.key" of its recipe
    clients: int  # who were counted, and trained on
    delta: float  # of the promise
    cache_digest: str
    vocabulary: str  # SHA-256
    source: str  # of the clients' text
    key_source: str
    versions: Mapping[str, str]
    evaluation: Mapping[str, Any]  # who judged, in the words of a training
    exact: Mapping[str, Any] | None  # what each part added; None before the end

    @property
    def private(self) -> bool:
        """Whether noise was added to everything that was released."""
        return self.promise.composition.private

    @property
    def test(self) -> dict[str, float]:
        """Of the whole mixture, by metric; empty before the end."""
        return {} if self.exact is None else dict(self.exact["arms"][-1]["values"])

    @property
    def arms(self) -> list[tuple[str, Mapping[str, float]]]:
        """Each part that was added, from public text on, and how all up to it do."""
        found = [] if self.exact is None else self.exact["arms"]
        return [(each["name"], each["values"]) for each in found if each["name"] != ALL]

    @property
    def tested(self) -> ComparisonModels | None:
        """The same client by client; None before the end, and of a run of a version that did not keep it."""
        if self.exact is None or "tested" not in self.exact:
            return None
        where = f"what '{self.path}' keeps of its test clients"
        return from_plain(ComparisonModels, self.exact["tested"], error=RunError, where=where)

    def account(self, delta: float) -> dict[str, Any]:
        """What it promises as plain values: of everything together, and of each part below."""
        parts = {
            part: {"run": self.folders[part], "zcdp": zcdp, "epsilon": gaussian.epsilon(zcdp, delta), "delta": delta}
            for part, zcdp in self.promise.costs().items()
        }
        composition = self.promise.composition
        return {
            "run": self.path,
            "of": "mixture",
            "finished": self.finished,
            "realised": {"zcdp": composition.zcdp, "epsilon": composition.epsilon(delta), "delta": delta},
            "public": dict(self.promise.public),
            "parts": parts,
        }


def page(record: Mapping[str, Any]) -> Page:
    """Everything. record: what was found."""
    blocks = (*_promised(record), *simulation_blocks(EXACT), *tables(record))
    return Page(
        kind="report of a mixture",
        title=TITLE,
        blocks=blocks,
        record=record,
        headline={**_headline(record), "test": dict(record["simulation_only"]["arms"][-1]["values"])},
        brief=(*tables(record), *_promised(record)),
    )


def released_page(record: Mapping[str, Any]) -> Page:
    """What may be published; its record has nothing else."""
    said = {name: each for name, each in record.items() if name != "simulation_only"}
    return Page(
        kind="report of a mixture, released",
        title=TITLE,
        blocks=tuple(_promised(record)),
        record=said,
        headline=_headline(record),
    )


def _headline(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("name", "epsilon", "delta", "zcdp", "parts")}


def tables(record: Mapping[str, Any]) -> list[Block]:
    """What each part added, a line each, and a sentence for every part that is not shown to help."""
    found = record["simulation_only"]
    rows = tuple(_row(each) for each in found["arms"])
    about = (
        f"{found['clients']:,} test clients. Shares and nats are {OF_KNOWN}, {found['words']:,} in all: who types more "
        "counts more. Intervals are 95%, of the paired bootstrap over clients. Each line adds a part to the one "
        "before; all is everything against the first. Nats are of the word's probability, the fewer the better."
    )
    said = [_judged(each) for each in found["arms"] if each["verdict"] not in (None, "helps")]
    if record["network_weight"] == 0:
        said.append("The network adds nothing to the n-grams on public text, which gives it the weight 0.")
    return [Table(rows, HEAD), Paragraph(about), *map(Paragraph, said)]


def account_blocks(figures: Mapping[str, Any]) -> list[Block]:
    """What people read of `MixtureSummary.account`."""
    whole = figures["realised"]
    rows = [
        (part, rounded_up(each["zcdp"], 6), rounded_up(each["epsilon"], 6), each["run"])
        for part, each in figures["parts"].items()
    ]
    together = ("together", rounded_up(whole["zcdp"], 6), rounded_up(whole["epsilon"], 6), figures["run"])
    public = "; ".join(f"{part} of {text}" for part, text in figures["public"].items())
    said = [f"Every epsilon is at delta {whole['delta']:g}, per client.", f"Public, so free: {public}."]
    if not figures["finished"]:
        said.insert(0, f"{UNFINISHED}: this is what was released so far; `tacit resume {figures['run']}` goes on.")
    if not rows:
        return [Paragraph("NOTHING WAS RELEASED"), *map(Paragraph, said)]
    return [Table((together, *rows), ("part", "zCDP", "epsilon", "run")), *map(Paragraph, said)]


def stopped(record: Mapping[str, Any]) -> list[Block]:
    """What people read of a run that stopped before its last round: how far it is, what it cost, and how it goes on."""
    run, done, planned = shlex.quote(record["run"]), record["rounds"], record["planned_rounds"]
    return [
        Paragraph(f"Stopped after {done:,} of {planned:,} rounds; there is no mixture yet."),
        Paragraph(f"Privacy, so far: {record['says']}."),
        Paragraph(f"Go on with `tacit resume {run}`, or end the rounds and make the rest: `tacit finish {run}`."),
    ]


def _promised(record: Mapping[str, Any]) -> list[Block]:
    labels = tuple(Label(**each) for each in record["labels"])
    rows = tuple((each["part"], *_price(each["zcdp"], record["delta"]), each["statement"]) for each in record["parts"])
    together = ("together", *_price(record["zcdp"], record["delta"]), "report/promise.json")
    head = ("part", "zCDP", f"epsilon at delta {record['delta']:g}", "statement, in the run's folder")
    return [
        *([Labels(labels)] if labels else []),
        Paragraph(f"Privacy: {record['says']}."),
        Heading("What it costs a client"),
        Table((together, *rows), head),
        Paragraph("`tacit verify RUN` computes each line again, and makes the model again from its parts."),
    ]


def _price(zcdp: Any, delta: float) -> tuple[str, str]:
    rho = number_from(zcdp)
    return rounded_up(rho, 6), rounded_up(gaussian.epsilon(rho, delta) if delta else 0.0, 6)


def _row(arm: Mapping[str, Any]) -> tuple[str, ...]:
    top1, top3, nats = (arm["values"][name] for name in SHOWN)
    shown = (arm["name"], f"{100 * top1:.2f}%", f"{100 * top3:.2f}%", f"{nats:.3f}")
    if arm["change"] is None:
        return (*shown, "", "", "", "")
    one, three, less = (arm["change"][name] for name in SHOWN)
    return (*shown, _points(one), _points(three), _nats(less), arm["verdict"])


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
