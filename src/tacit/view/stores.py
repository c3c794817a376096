"""A server's store, read: runs with what their plans promise, rounds, check-ins, workers and the transparency log.

The store names no device, and of what it has neither tokens nor enrolments nor assignments are read here.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import RunError
from tacit.parsing import parsed_json
from tacit.runs.copied_database import copied_database

LAST = 200  # rounds that are read
ENTRIES = 20  # of the log
RUNS = "SELECT name, population, kind, state, paused, plan FROM runs ORDER BY population, name"
RELEASED = "SELECT run, COUNT(*) FROM rounds WHERE state = 'released' GROUP BY run"
ROUNDS = (
    "SELECT run, round, attempt, state, goal, assigned, received, counted, lost, opened, ended, why FROM rounds "
    "ORDER BY opened DESC LIMIT ?"
)
LOG = "SELECT position, entry FROM log ORDER BY position DESC LIMIT ?"
HEAD = "SELECT head FROM log ORDER BY position DESC LIMIT 1"
WORKERS = "SELECT COUNT(*), MAX(seen) FROM workers"
PACES = "SELECT population, SUM(away), MAX(devices), MAX(at) FROM paces GROUP BY population ORDER BY population"


class Round(NamedTuple):
    """One attempt at a round."""

    run: str
    round: int
    attempt: int
    state: str
    goal: int
    assigned: int
    received: int
    counted: int
    lost: int
    opened: float
    ended: float | None
    why: str | None


class Pace(NamedTuple):
    """Devices of a population, as workers count them."""

    population: str
    away: float  # check-ins that were sent away
    devices: float
    at: float  # Unix seconds


@dataclass(frozen=True, kw_only=True)
class ServedRun:
    """A run, and what its plan asks of a device and promises it: as the plan says, whose signature devices check."""

    name: str
    population: str
    kind: str
    state: str
    released: int  # rounds
    rounds: int | None = None  # of the plan; None where it cannot be read
    report_goal: int | None = None
    max_participations: int | None = None
    rounds_apart: int | None = None
    hours_apart: float | None = None
    zcdp: float | None = None
    epsilon: float | None = None  # at delta
    delta: float | None = None
    local_epsilon: float | None = None
    summed: str = ""
    threshold: int | None = None
    keepers: tuple[str, ...] = ()  # identities of the decryptors of its sealed sums
    corrupt: int = 0  # of them, that may work with the server and learn nothing
    contributors: tuple[str, ...] = ()  # keepers that add noise to every sum


@dataclass(frozen=True, kw_only=True)
class ServerStore:
    """All of it."""

    runs: tuple[ServedRun, ...]
    rounds: tuple[Round, ...]  # the last, in order
    paces: tuple[Pace, ...]
    log: tuple[tuple[int, str], ...]  # (position, entry), the last first
    root: str  # of the log's tree, as the operator signed it last; empty where there is none
    workers: int
    seen: float | None  # when one was seen last

    @property
    def entries(self) -> int:
        """Of the log."""
        return self.log[0][0] + 1 if self.log else 0


def read_store(path: Path) -> ServerStore:
    """What is in the store now. Raises: RunError where it cannot be read as one."""
    try:
        with closing(copied_database(path)) as database:
            released = dict(database.execute(RELEASED).fetchall())
            head = database.execute(HEAD).fetchone()
            ((workers, seen),) = database.execute(WORKERS).fetchall()
            return ServerStore(
                runs=tuple(_run(row, released.get(row[0], 0)) for row in database.execute(RUNS)),
                rounds=tuple(map(_round, database.execute(ROUNDS, (LAST,)).fetchall()[::-1])),
                paces=tuple(Pace(str(row[0]), *map(float, row[1:])) for row in database.execute(PACES)),
                log=tuple((int(position), str(entry)) for position, entry in database.execute(LOG, (ENTRIES,))),
                root="" if head is None else str(_table(_document(head[0])).get("root", "")),
                workers=int(workers),
                seen=None if seen is None else float(seen),
            )
    except (sqlite3.Error, OSError, ValueError, TypeError) as error:
        raise RunError(
            f"'{path}' cannot be read as a server's store ({error}); upgrade it with `tacit serve --upgrade-store`."
        ) from error


def _round(row: tuple[Any, ...]) -> Round:
    run, number, attempt, state, goal, assigned, received, counted, lost, opened, ended, why = row
    return Round(
        run=str(run),
        round=int(number),
        attempt=int(attempt),
        state=str(state),
        goal=int(goal),
        assigned=int(assigned),
        received=int(received),
        counted=int(counted),
        lost=int(lost),
        opened=float(opened),
        ended=None if ended is None else float(ended),
        why=None if why is None else str(why),
    )


def _run(row: tuple[Any, ...], released: int) -> ServedRun:
    name, population, kind, state, paused, plan = row
    said = _table(_document(plan))
    privacy, separation, summed = (_table(said.get(part)) for part in ("privacy", "separation", "aggregation"))
    seconds = _number(separation.get("timer_seconds"))
    return ServedRun(
        name=str(name),
        population=str(population),
        kind=str(kind),
        state="paused" if paused else str(state),
        released=released,
        rounds=_whole(privacy.get("rounds")),
        report_goal=_whole(privacy.get("report_goal")),
        max_participations=_whole(privacy.get("max_participations")),
        rounds_apart=_whole(separation.get("rounds")),
        hours_apart=None if seconds is None else seconds / 3600,
        zcdp=_number(privacy.get("zcdp")),
        epsilon=_number(privacy.get("epsilon")),
        delta=_number(privacy.get("delta")),
        local_epsilon=_number(privacy.get("local_epsilon")),
        summed=str(summed.get("kind", "")),
        threshold=_whole(summed.get("threshold")),
        keepers=_names(summed.get("keepers")),
        corrupt=_whole(summed.get("corrupt")) or 0,
        contributors=_names(summed.get("contributors")),
    )


def _document(signed: object) -> Any:
    """What was signed; None of what is no signed document."""
    try:
        return parsed_json(_table(parsed_json(str(signed))).get("document", "null"))
    except (ValueError, TypeError):
        return None


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
