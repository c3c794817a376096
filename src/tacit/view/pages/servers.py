"""Servers of real devices, by their stores and counts: runs, budgets, rounds, check-ins, keepers and the log."""

import math
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from tacit.errors import RunError
from tacit.privacy.rounding import rounded_up
from tacit.records import to_plain
from tacit.reports.blocks import Block, FigureOf, Heading, Paragraph, Table
from tacit.reports.figure import GREEN, GREY, Axis, Bars, Figure, Panel
from tacit.view.folders import STORE
from tacit.view.metrics import Counted
from tacit.view.shown import Shown, View
from tacit.view.state import when
from tacit.view.stores import Round, ServedRun, ServerStore, read_store

SHOWN = 30  # rounds of the table
BUDGETS = (
    "As each run's signed plan says, which devices check for themselves. A device that takes part in several runs pays "
    "for all of them: zCDP adds up, and so does epsilon of reports that devices randomise. The sums are of one that "
    "takes part in every run to its end."
)


def page(view: View, request: Request) -> Shown:
    """Those of the named folders, and the counts of servers that were named by their address."""
    found = view.folders.servers()
    named = [(place, view.folders.folder(place).name, _line(view, place)) for place in found]
    counts = view.metrics.all()
    return Shown(
        template="servers",
        title="Servers",
        values={"servers": named, "counts": [(each, _counts(each)) for each in counts]},
        record={"servers": found, "counts": to_plain(counts)},
    )


def _line(view: View, place: str) -> str:
    """What a server answers, in a sentence; or why it cannot be read."""
    try:
        return _answer(read_store(view.folders.file(place, STORE)))
    except RunError as error:
        return str(error)


def one(view: View, request: Request) -> Shown:
    """One server. Raises: NotThere, RunError where its store cannot be read."""
    place = request.path_params["place"]
    mark = view.changes.mark(place)
    path = view.folders.file(place, STORE)
    store = read_store(path)
    answer = _answer(store)
    return Shown(
        template="live",
        title=f"Server {path.parent.name}",
        values={"answer": answer, "blocks": _blocks(store), "place": place, "mark": mark, "soft": str(path)},
        record={"page": "server", "answer": answer, "mark": mark, **to_plain(store)},
    )


def _answer(store: ServerStore) -> str:
    open_rounds = sum(each.ended is None for each in store.rounds)
    return (
        f"Runs: {len(store.runs):,}; populations: {len({each.population for each in store.runs}):,}. Rounds released: "
        f"{sum(each.released for each in store.runs):,}; open: {open_rounds:,}. Entries of the transparency log: "
        f"{store.entries:,}."
    )


def _blocks(store: ServerStore) -> list[Block]:
    blocks: list[Block] = []
    if store.runs:
        known = tuple(
            (each.name, each.kind, each.state, each.population, _of(each.released, each.rounds), _plain(each.summed))
            for each in store.runs
        )
        head: tuple[str, ...] = ("run", "kind", "state", "population", "rounds released", "sums")
        blocks += [Heading("Runs"), Table(known, head)]
        blocks += [Heading("Budgets"), Table(*_budgets(store.runs)), Paragraph(BUDGETS, soft=True)]
    if store.rounds:
        blocks += [Heading("Rounds"), FigureOf(_devices(store.rounds)), Table(*_rounds(store.rounds[-SHOWN:]))]
    if store.paces:
        rows = tuple(
            (each.population, f"{each.away:,.0f}", f"{each.devices:,.0f}", when(each.at)) for each in store.paces
        )
        head = ("population", "check-ins sent away", "devices, estimated", "as of")
        blocks += [Heading("Check-ins"), Table(rows, head)]
    blocks += _keepers(store.runs)
    if store.log:
        entries = tuple((f"{position:,}", entry) for position, entry in store.log)
        blocks += [Heading("Transparency log"), Table(entries, ("position", "entry"))]
        blocks.append(Paragraph(f"The last {len(entries)} of {store.entries:,} entries. Signed root: `{store.root}`."))
    said = f"Workers: {store.workers:,}, last seen {when(store.seen)}." if store.workers else "No worker is running."
    return [*blocks, Paragraph(said, soft=True)]


def _budgets(runs: Sequence[ServedRun]) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """A row for each run, and for each population of several their sum."""
    rows = []
    for population in dict.fromkeys(each.population for each in runs):
        own = [each for each in runs if each.population == population]
        rows += [(population, each.name, *_promise(each)) for each in own]
        if len(own) > 1:
            zcdp, local = (_sum([getattr(each, name) for each in own]) for name in ("zcdp", "local_epsilon"))
            rows.append((population, f"all {len(own)} runs", "", "", zcdp, "", local))
    head = ("population", "run", "a device takes part", "apart", "zCDP", "epsilon", "local epsilon")
    return tuple(rows), head


def _promise(run: ServedRun) -> tuple[str, ...]:
    most = "–" if run.max_participations is None else f"{run.max_participations:,} times at most"
    apart = [] if run.rounds_apart is None else [f"{run.rounds_apart:,} rounds"]
    apart += [] if run.hours_apart is None else [f"{run.hours_apart:,.3g} hours"]
    epsilon = "–" if run.epsilon is None else f"{rounded_up(run.epsilon)} at delta {run.delta or 0:g}"
    return most, " and ".join(apart) or "–", _cost(run.zcdp), epsilon, _cost(run.local_epsilon)


def _sum(costs: Sequence[float | None]) -> str:
    known = [each for each in costs if each is not None]
    return _cost(math.fsum(known)) if known else "–"


def _cost(value: float | None) -> str:
    return "–" if value is None else rounded_up(value)


def _keepers(runs: Sequence[ServedRun]) -> list[Block]:
    """Who holds keys of sealed sums; the store does not say whether they are there."""
    found: dict[str, list[ServedRun]] = {}
    for run in runs:
        for keeper in run.keepers:
            found.setdefault(keeper, []).append(run)
    if not found:
        return []
    rows = tuple(
        (
            f"{keeper[:16]}...",
            ", ".join(run.name for run in of),
            "yes" if any(keeper in run.contributors for run in of) else "no",
            ", ".join(f"{len(run.keepers)}, of which {run.corrupt} may be corrupt" for run in of),
        )
        for keeper, of in found.items()
    )
    return [Heading("Keepers of sealed sums"), Table(rows, ("keeper", "runs", "adds noise", "keepers of each run"))]


def _rounds(rounds: Sequence[Round]) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    rows = tuple(
        (
            str(each.run),
            f"{each.round + 1:,}",
            f"{each.attempt + 1:,}",
            str(each.state),
            f"{each.counted:,} of {each.goal:,}",
            f"{each.assigned:,}",
            f"{each.lost:,}",
            when(each.opened),
            str(each.why or ""),
        )
        for each in rounds
    )
    return rows, ("run", "round", "attempt", "state", "reports", "devices", "lost", "opened", "why it ended")


def _counts(counted: Counted) -> list[Block]:
    """What a server counts, as a table."""
    rows = tuple((each.what, each.told_apart_by, _number(each.value)) for each in counted.samples)
    return [Table(rows, ("count", "of", "value"))] if rows else []


def _number(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() or abs(value) >= 1e4 else f"{value:.4g}"


def _of(done: int, planned: int | None) -> str:
    return f"{done:,}" if planned is None else f"{done:,} of {planned:,}"


def _plain(summed: str) -> str:
    return {"plain": "the server sees reports", "encoded": "the server sees integers", "sealed": "sealed"}.get(
        summed, summed or "–"
    )


def _devices(rounds: Sequence[Any]) -> Figure:
    """Devices that were given each round's task, and reports that were counted."""
    at = range(1, len(rounds) + 1)
    assigned, counted = [each.assigned for each in rounds], [each.counted for each in rounds]
    return Figure(
        name="rounds",
        title="Devices and reports of each round",
        alt=f"The last {len(rounds)} rounds; the latest gave its task to {assigned[-1]:,} devices.",
        panels=(
            Panel(
                marks=(
                    Bars(x=at, y=assigned, width=0.8, label="devices that were given the task", hue=GREY),
                    Bars(x=at, y=counted, width=0.5, label="reports that were counted", hue=GREEN),
                ),
                x=Axis("the last rounds, in order", whole=True),
                y=Axis("how many", low=0, whole=True),
            ),
        ),
    )
