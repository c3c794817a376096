"""Servers of real devices, by their stores: runs, rounds and what devices were told; no device has a name there."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from starlette.requests import Request

from tacit.errors import RunError
from tacit.reports.blocks import Block, FigureOf, Heading, Paragraph, Table
from tacit.reports.figure import GREEN, GREY, Axis, Bars, Figure, Panel
from tacit.runs.copied_database import copied_database
from tacit.view.folders import STORE
from tacit.view.shown import Shown, View
from tacit.view.state import when

LAST = 200  # rounds that are shown
RUNS = "SELECT name, population, kind, state, paused FROM runs ORDER BY name"
ROUNDS = (
    "SELECT run, round, attempt, state, goal, assigned, received, counted, lost, opened, ended, why FROM rounds "
    "ORDER BY opened DESC LIMIT ?"
)
LOG = "SELECT COUNT(*) FROM log"
WORKERS = "SELECT COUNT(*), MAX(seen) FROM workers"
PACES = "SELECT population, SUM(away), MAX(devices), MAX(at) FROM paces GROUP BY population ORDER BY population"


def page(view: View, request: Request) -> Shown:
    """Those of the named folders."""
    found = view.folders.servers()
    named = [(place, view.folders.folder(place).name) for place in found]
    return Shown(template="servers", title="Servers", values={"servers": named}, record={"servers": found})


def one(view: View, request: Request) -> Shown:
    """One server. Raises: NotThere, RunError where its store cannot be read."""
    place = request.path_params["place"]
    store = view.folders.file(place, STORE)
    asked = _read(store)
    open_rounds = [each for each in asked["rounds"] if each[10] is None]
    released = sum(each[3] == "released" for each in asked["rounds"])
    answer = (
        f"Runs: {len(asked['runs']):,}. Of the last {len(asked['rounds']):,} rounds {released:,} released, "
        f"{len(open_rounds):,} open. Entries of the transparency log: {asked['log']:,}."
    )
    return Shown(
        template="server",
        title=f"Server {store.parent.name}",
        values={"answer": answer, "blocks": _blocks(asked)},
        record={"answer": answer, **{name: _plain(rows) for name, rows in asked.items()}},
    )


def _read(store: Path) -> dict[str, Any]:
    try:
        with closing(copied_database(store)) as database:
            return {
                "runs": database.execute(RUNS).fetchall(),
                "rounds": database.execute(ROUNDS, (LAST,)).fetchall()[::-1],
                "log": database.execute(LOG).fetchone()[0],
                "workers": database.execute(WORKERS).fetchall(),
                "paces": database.execute(PACES).fetchall(),
            }
    except (sqlite3.Error, OSError) as error:
        raise RunError(
            f"'{store}' cannot be read as a server's store ({error}); upgrade it with `tacit serve --upgrade-store`."
        ) from error


def _plain(rows: Any) -> Any:
    return [list(each) for each in rows] if isinstance(rows, list) else rows


def _blocks(asked: dict[str, Any]) -> list[Block]:
    rounds: Sequence[Any] = asked["rounds"]
    blocks: list[Block] = []
    if asked["runs"]:
        rows = tuple(
            (str(name), str(kind), "paused" if paused else str(state), str(population))
            for name, population, kind, state, paused in asked["runs"]
        )
        blocks += [Heading("Runs"), Table(rows, ("run", "kind", "state", "population"))]
    if rounds:
        blocks += [Heading("Rounds"), FigureOf(_devices(rounds)), Table(*_table(rounds[-30:]))]
    if asked["paces"]:
        rows = tuple(
            (str(population), f"{away:,.0f}", f"{devices:,.0f}", when(at))
            for population, away, devices, at in asked["paces"]
        )
        head = ("population", "check-ins sent away", "devices, estimated", "as of")
        blocks += [Heading("Devices that check in"), Table(rows, head)]
    for count, seen in asked["workers"]:
        said = f"Workers: {count:,}, last seen {when(seen)}." if count else "No worker is running."
        blocks.append(Paragraph(said, soft=True))
    return blocks


def _table(rounds: Sequence[Any]) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    rows = tuple(
        (
            str(run),
            f"{number}",
            f"{attempt}",
            str(state),
            f"{counted:,} of {goal:,}",
            f"{assigned:,}",
            f"{lost:,}",
            when(opened),
            str(why or ""),
        )
        for run, number, attempt, state, goal, assigned, _, counted, lost, opened, _, why in rounds
    )
    return rows, ("run", "round", "attempt", "state", "reports", "devices", "lost", "opened", "why it ended")


def _devices(rounds: Sequence[Any]) -> Figure:
    """Devices that were given each round's task, and reports that were counted."""
    at = range(1, len(rounds) + 1)
    assigned, counted = [each[5] for each in rounds], [each[7] for each in rounds]
    return Figure(
        name="rounds",
        title="Devices and reports of each round",
        alt=f"The last {len(rounds)} rounds; the latest gave its task to {assigned[-1]:,} devices.",
        panels=(
            Panel(
                marks=(
                    Bars(x=[each - 0.2 for each in at], y=assigned, width=0.38, label="devices", hue=GREY),
                    Bars(x=[each + 0.2 for each in at], y=counted, width=0.38, label="reports", hue=GREEN),
                ),
                x=Axis("the last rounds, in order", whole=True),
                y=Axis("how many", low=0, whole=True),
            ),
        ),
    )
