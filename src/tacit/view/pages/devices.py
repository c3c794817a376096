"""Devices, by their own records: what each learnt from, what it sent and to whom, and what that spent.

A record has no text of its owner's, and neither keeps what was sent nor how large it was. It is read as a copy in
memory, and the journal beside the user's other data is left alone: `tacit device --show` reads both.
"""

import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.requests import Request

from tacit.errors import DeviceError, TacitError
from tacit.privacy.rounding import rounded_up
from tacit.records import json_ready
from tacit.reports.blocks import Block, Heading, Paragraph, Table, Tiles
from tacit.runs.copied_database import copied_database
from tacit.view.folders import DEVICE
from tacit.view.shown import Shown, View

MOST = 500  # runs, and devices, that are shown
ROUNDS = 12  # of a run that are named
BESIDE = (
    "By the record in this folder. Each participation stands in a journal beside it, too, which is not read here: "
    "`tacit device --show` reads both, and is what counts."
)
KEPT = (
    "No text and no report is kept: what was sent is with the operator, who signs that it came. `tacit device "
    "--pause` ends taking part."
)


def page(view: View, request: Request) -> Shown:
    """Those of the named folders."""
    found = view.folders.devices()
    named = [(place, view.folders.folder(place).name, _line(view, place)) for place in found[:MOST]]
    return Shown(
        template="devices",
        title="Devices",
        values={"devices": named, "more": len(found) - len(named)},
        record={"devices": found},
    )


def _line(view: View, place: str) -> str:
    """What a device did, in a sentence; or why it cannot be said."""
    try:
        return _answer(_status(view.folders.file(place, DEVICE)))
    except TacitError as error:
        return str(error)


def one(view: View, request: Request) -> Shown:
    """One device. Raises: NotThere, DeviceError where its record cannot be read, InputError of its policy."""
    place = request.path_params["place"]
    mark = view.changes.mark(place)
    path = view.folders.file(place, DEVICE)
    status = _status(path)
    answer = _answer(status)
    return Shown(
        template="live",
        title=f"Device {path.parent.name}",
        values={"answer": answer, "blocks": _blocks(status), "place": place, "mark": mark, "soft": str(path)},
        record={"page": "device", "answer": answer, "mark": mark, "status": json_ready(status.to_record())},
    )


def _status(path: Path) -> Any:
    from tacit.device.owner import status_of_copy  # what a device reads comes with it
    from tacit.device.policy import FILE as POLICY

    if (path.parent / POLICY).is_symlink():
        raise DeviceError(f"the policy '{path.parent / POLICY}' is a link, and links are not followed.")
    try:
        with closing(copied_database(path)) as database:
            return status_of_copy(path.parent, database, now=time.time())
    except (sqlite3.Error, OSError, ValueError, TypeError, LookupError) as error:
        raise DeviceError(f"'{path}' cannot be read as a device's record ({error}).") from error


def _answer(status: Any) -> str:
    times = sum(len(run.rounds) for run in status.runs)
    received = sum(run.received for run in status.runs)
    paused = "It is paused: it takes part in nothing. " if status.paused else ""
    if not times:
        return f"{paused}Nothing left this device yet."
    return (
        f"{paused}It took part {times:,} time{'s' if times > 1 else ''} in {len(status.runs):,} "
        f"run{'s' if len(status.runs) > 1 else ''}; {received:,} of its reports were received. It spent zCDP "
        f"{rounded_up(status.spent_zcdp)} of {status.budget_zcdp:g}."
    )


def _blocks(status: Any) -> list[Block]:
    limit = status.budget_zcdp_week
    week = "the last seven days' runs" + (", without a limit" if limit is None else "")
    blocks: list[Block] = [
        Tiles(
            (
                ("zCDP spent of all that it ever may", f"{rounded_up(status.spent_zcdp)} of {status.budget_zcdp:g}"),
                (f"zCDP of {week}", rounded_up(status.week_zcdp) + ("" if limit is None else f" of {limit:g}")),
                ("zCDP left", f"{status.left_zcdp:.4g}"),
            )
        ),
        Paragraph(BESIDE, soft=True),
    ]
    if status.since is not None:
        blocks.append(
            Paragraph(
                f"What was before {_day(status.since)} may be missing, since record and journal were new or copies "
                f"then: zCDP {rounded_up(status.lost_zcdp)} of what is spent stands for that."
            )
        )
    if status.runs:
        runs = status.runs[-MOST:]
        sent = tuple(
            (
                run.run,
                run.leaves,
                "sums alone" if run.summed == "sealed" else "each report",
                _rounds(run.rounds),
                f"{run.received:,} of {len(run.rounds):,}",
            )
            for run in runs
        )
        to = tuple((run.run, run.population, f"{run.operator[:16]}...", f"{run.plan[:16]}...") for run in runs)
        spent = tuple((run.run, rounded_up(run.zcdp), _day(run.first), _day(run.last)) for run in runs)
        blocks += [
            Heading("What it learnt from its text and sent"),
            Table(sent, ("run", "what left it", "the operator sees", "in rounds", "received")),
            Paragraph(KEPT, soft=True),
            Heading("To whom"),
            Table(to, ("run", "population", "operator", "plan")),
            Heading("What that spent"),
            Table(spent, ("run", "zCDP", "first", "last")),
        ]
    logs = {each.operator: each for each in status.logs}
    blocks.append(Heading("Operators that it believes"))
    rows = tuple((key, _log(logs.get(key))) for key in dict.fromkeys((*status.operators, *logs)))
    blocks.append(Table(rows, ("key", "its log")) if rows else Paragraph("None is pinned yet."))
    return blocks


def _log(kept: Any) -> str:
    """What is kept of an operator's log: who saw the same has the same root."""
    return "–" if kept is None else f"{kept.size:,} entries, of root {kept.root}"


def _rounds(rounds: tuple[int, ...]) -> str:
    """The last of them, counted from 1 as everywhere here."""
    told = ", ".join(f"{each + 1:,}" for each in rounds[-ROUNDS:])
    return told if len(rounds) <= ROUNDS else f"{len(rounds):,}, the last {told}"


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
