"""Folders of a server and of a device, as both leave them: what live pages read, made without a network."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.server.documents import a_plan, a_task
from tests.support.server.stores import KEY, Clock, sqlite_store

from tacit.device.record import opened
from tacit.protocol.log_proofs import leaf_of, plan_entry, root_of
from tacit.protocol.messages import AggregationSettings, Plan, SignedPlan, TreeHead
from tacit.protocol.signing import digest
from tacit.server.store.round_states import enter_run

NOON = 1_800_000_000.0
KEEPERS = ("a1" * 32, "b2" * 32, "c3" * 32)
SEALED = AggregationSettings(
    kind="sealed", threshold=5, keepers=KEEPERS, boxes=KEEPERS, corrupt=1, contributors=KEEPERS[:2], honest=1
)
STATES = ("released", "released", "abandoned", "released", "selecting")


def signed(plan: Plan) -> tuple[str, str]:
    """(the plan as it is sent, its digest)."""
    text = plan.to_json()
    return KEY.plan(text).to_json(), digest(text)


def write_server(folder: Path, *, population: str = "keyboards-es", why: str = "too few devices came") -> Path:
    """A server with a run that goes on, one that is paused, and a log of both."""
    folder.mkdir(parents=True, exist_ok=True)
    plans = [a_plan(population=population, run="es-1"), a_plan(population=population, run="es-2", aggregation=SEALED)]
    with closing(sqlite_store(folder, Clock(NOON))) as store:
        for plan in plans:
            sent, named = signed(plan)
            enter_run(store, plan.run, population=plan.population, kind=plan.kind, plan=sent, plan_digest=named)
    entries = [plan_entry(signed(plan)[1]) for plan in plans]
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as database:
        database.execute("UPDATE runs SET paused = 1 WHERE name = 'es-2'")
        for at, state in enumerate(STATES):
            ended = None if state == "selecting" else NOON + 600 * at + 300
            database.execute(
                "INSERT INTO rounds (task, run, round, attempt, state, signed_task, model_digest, goal, least, most, "
                "opened, closes_selecting, deadline, assigned, received, counted, lost, ended, why) "
                "VALUES (?, 'es-1', ?, 0, ?, '{}', ?, 10, 5, 14, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
                (
                    *(f"{at:032x}", at, state, "ab" * 32, NOON + 600 * at, NOON + 600 * at + 60, NOON + 600 * at + 500),
                    *(12 - at % 3, 10 - at % 3, at % 2, ended, why if state == "abandoned" else None),
                ),
            )
        for at, entry in enumerate(entries):
            head = KEY.signed(TreeHead(size=at + 1, root=root_of(map(leaf_of, entries[: at + 1])).hex()))
            database.execute("INSERT INTO log VALUES (?, ?, ?, ?)", (at, entry, leaf_of(entry).hex(), head.to_json()))
        database.execute("INSERT INTO workers VALUES (?, ?)", ("1" * 32, NOON + 2500))
        database.execute("INSERT INTO paces VALUES (?, ?, 1234, 5, 98765, ?)", ("1" * 32, population, NOON + 2500))
    return folder


def write_device(folder: Path, journal: Path, *, rounds: tuple[int, ...] = (0, 5, 10), run: str = "es-1") -> Path:
    """A device that took part in some rounds of a run; of the last it has no receipt."""
    plan = a_plan(run=run)
    sent, named = signed(plan)
    with opened(folder, journal, now=NOON, first_time=True) as record:
        record.pin(KEY.public)
        record.keep_plan(named, SignedPlan.from_json(sent))
        for at, round in enumerate(rounds):
            task = a_task(run=run, plan=named, round=round, task=f"{round:032x}", opens=NOON + at, deadline=NOON + 9e3)
            record.observe(task)
            record.take_part(task, assignment=f"{round:032x}", at=NOON + 7200 * at, zcdp=0.1 * (at + 1))
            if round != rounds[-1]:
                record.received(task)
    return folder
