"""What workers do in the store: give a device its task, take its report once, flush a sum of reports.

    assigned -> received -> counted | lost

assigned   the device has the task and a secret
received   its report is in a worker's memory
counted    it is in a partial sum that was flushed
lost       it was in the memory of a worker that died, or that could not flush it with others

One transaction each, and each takes the round's row first, under the state that it needs. No row names a device: an id
and a secret are drawn for each assignment, and of the secret the store has the SHA-256.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, and_, bindparam, delete, func, insert, select, true, update

from tacit.errors import InputError, StoreError
from tacit.server.store.round_states import CLOSING, FLUSHING, OPEN, SELECTING, TAKING
from tacit.server.store.schema import assignments, partials, rounds, runs, tokens, workers
from tacit.server.store.store import Store, insert_into

ASSIGNED, RECEIVED, COUNTED, LOST = "assigned", "received", "counted", "lost"
NEARLY_FULL = 16  # places left: from then on a worker writes nothing before its round closes, and none begins to hold
FEWEST = 2  # reports that a flush adds: the difference of two partial sums is never a single update


class Assigned(NamedTuple):
    """What a device is given beside its task."""

    id: str  # 32 hex
    secret: str  # 64 hex: who shows it may report


class ShownToken(NamedTuple):
    """A token that a device shows for its place."""

    hash: str
    epoch: int


class NoPlace(Enum):
    """Why a device is given none."""

    FULL = "full"  # the round has no place left, or is not selecting any more
    REDEEMED = "redeemed"  # the token was redeemed before


class StoredAssignment(NamedTuple):
    """An assignment as the store has it."""

    task: str
    secret_hash: str
    state: str
    body_digest: str | None

    def opened_by(self, secret: str) -> bool:
        """Whether this is its secret, compared in constant time."""
        return hmac.compare_digest(self.secret_hash, hash_of(secret))


class ArrivedReport(NamedTuple):
    """A report that came."""

    assignment: str
    body_digest: str


class ReportAnswer(Enum):
    """What becomes of a report."""

    RECEIVED = "received"  # it is the worker's to add, now
    AGAIN = "again"  # the same body came before: the same receipt, and nothing to add
    OTHER = "other"  # another body came before: refused
    LATE = "late"  # the round takes no more: refused
    ELSEWHERE = "elsewhere"  # it would be alone here: another worker is to have it


class OpenRound(NamedTuple):
    """A round that workers have to do with, for their snapshot."""

    run: str
    population: str
    kind: str
    paused: bool
    plan_digest: str
    task: str
    round: int
    state: str  # selecting, reporting or closing
    signed_task: str
    model_digest: str
    goal: int
    most: int
    assigned: int
    received: int
    counted: int
    closes_selecting: float
    deadline: float

    @property
    def gives(self) -> bool:
        """Whether devices are given its task."""
        return self.state == SELECTING and not self.paused and self.assigned < self.most

    @property
    def flushes(self) -> bool:
        """Whether workers give up what they hold alone: the round closes, or would be full with it."""
        return self.state == CLOSING or self.received + self.counted >= self.goal


def hash_of(secret: str) -> str:
    """The SHA-256 of a secret, in hex: all that is kept of it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def open_rounds(store: Store) -> list[OpenRound]:
    """The rounds of all runs that take devices, reports or flushes: what a worker keeps for a fraction of a second."""
    of_runs = {"population", "kind", "paused", "plan_digest"}
    columns = [(runs if name in of_runs else rounds).c[name] for name in OpenRound._fields]
    active = and_(rounds.c.state.in_(FLUSHING), runs.c.state == OPEN)
    with store.reading() as connection:
        found = connection.execute(select(*columns).join_from(rounds, runs).where(active).order_by(rounds.c.task))
        return [OpenRound._make(row) for row in found]


def signed_plan(store: Store, digest: str) -> str | None:
    """The signed plan with this digest, as it is sent; None where there is none."""
    with store.reading() as connection:
        return connection.execute(select(runs.c.plan).where(runs.c.plan_digest == digest)).scalar()


def assign(store: Store, task: str, *, token_hash: str | None = None, epoch: int = 0) -> Assigned | None:
    """A place in the round, as `assign_all` gives it to one; None where there is none, for whatever reason."""
    (given,) = assign_all(store, task, [None if token_hash is None else ShownToken(token_hash, epoch)])
    return given if isinstance(given, Assigned) else None


def assign_all(store: Store, task: str, shown: Sequence[ShownToken | None]) -> list[Assigned | NoPlace]:
    """What each of these devices gets, as if they came one after another; one transaction for all of them.

    shown: a device each, the token that is redeemed with its place, or None where devices need none. A token takes one
    place, whoever shows it how often, and is redeemed only with one. Raises: StoreError, and nobody was given anything.
    """
    free = and_(rounds.c.task == task, rounds.c.state == SELECTING, rounds.c.assigned < rounds.c.most)
    wanted = update(rounds).where(free).values(assigned=rounds.c.assigned + len(shown))
    with store.writing(durable=any(shown)) as connection:
        taken = connection.execute(wanted.returning(rounds.c.assigned, rounds.c.most)).one_or_none()
        if taken is None:
            return [NoPlace.FULL] * len(shown)
        left = min(len(shown), taken.most - (taken.assigned - len(shown)))
        fresh, given = _redeemed(connection, [each for each in shown if each is not None]), list[Assigned | NoPlace]()
        for each in shown:
            if not left:
                given.append(NoPlace.FULL)
            elif each is not None and each.hash not in fresh:
                given.append(NoPlace.REDEEMED)
            else:
                left -= 1
                fresh.discard("" if each is None else each.hash)
                given.append(Assigned(secrets.token_hex(16), secrets.token_hex(32)))
        if fresh:  # no place was left for them
            connection.execute(delete(tokens).where(tokens.c.hash.in_(sorted(fresh))))
        rows = [
            {"id": each.id, "task": task, "secret_hash": hash_of(each.secret), "state": ASSIGNED}
            for each in given
            if isinstance(each, Assigned)
        ]
        if rows:
            connection.execute(insert(assignments), rows)
        if len(rows) < len(shown):
            fewer = update(rounds).where(rounds.c.task == task)
            connection.execute(fewer.values(assigned=rounds.c.assigned - (len(shown) - len(rows))))
    return given


def _redeemed(connection: Connection, shown: Sequence[ShownToken]) -> set[str]:
    """Redeem these tokens: those that nobody had redeemed before. In one order, so that two workers never wait for each
    other.
    """
    if not shown:
        return set()
    rows = [each._asdict() for each in sorted(set(shown))]
    new = insert_into(connection, tokens).on_conflict_do_nothing().returning(tokens.c.hash)
    return set(connection.execute(new, rows).scalars())


def find_all(store: Store, names: Sequence[str]) -> list[StoredAssignment | None]:
    """The assignments of these ids, to check secret and task before a body is read; None where there is none."""
    columns = select(assignments.c.id, *(assignments.c[name] for name in StoredAssignment._fields))
    with store.reading() as connection:
        rows = connection.execute(columns.where(assignments.c.id.in_(sorted(set(names)))))
        found = {row.id: StoredAssignment._make(row[1:]) for row in rows}
    return [found.get(each) for each in names]


def receive(store: Store, assignment: str, *, task: str, worker: str, body_digest: str) -> ReportAnswer:
    """What becomes of one report, as `receive_all` says it."""
    (answer,) = receive_all(store, [ArrivedReport(assignment, body_digest)], task=task, worker=worker)
    return answer


def receive_all(store: Store, arrived: Sequence[ArrivedReport], *, task: str, worker: str) -> list[ReportAnswer]:
    """Which of these reports this worker is to add to its sum, as if they came one after another; one transaction.

    Each once, by whichever worker comes first. A report is in the sum when the worker has added it, and durable when it
    is flushed. Of the round's last NEARLY_FULL reports a worker that holds none takes none where others hold some: they
    would be alone in it when the round is full, and lost. Raises: StoreError, and nothing was received.
    """
    return _taken(store, arrived, task, rounds.c.received, {"state": RECEIVED, "worker": worker})


def count(store: Store, assignment: str, *, task: str, worker: str, body_digest: str) -> ReportAnswer:
    """The same for a sealed report, whose blob is written: it is durable with this."""
    arrived, values = [ArrivedReport(assignment, body_digest)], {"state": COUNTED, "worker": worker}
    (answer,) = _taken(store, arrived, task, rounds.c.counted, values, durable=True)
    return answer


def receive_nothing(store: Store, assignment: str, *, task: str, worker: str, body_digest: str) -> ReportAnswer:
    """The same for a report that is not usable: it takes no place in the sum, and its device is a lost one."""
    arrived, values = [ArrivedReport(assignment, body_digest)], {"state": LOST, "worker": worker}
    (answer,) = _taken(store, arrived, task, rounds.c.lost, values)
    return answer


def _taken(
    store: Store,
    arrived: Sequence[ArrivedReport],
    task: str,
    where: Column[int],
    values: Mapping[str, str],
    *,
    durable: bool = False,
) -> list[ReportAnswer]:
    """Set the values of assignments that have reported nothing yet, and count them there, in a round that takes
    reports: unusable ones always, others up to its goal.
    """
    all_of_them = where is rounds.c.lost
    here = and_(rounds.c.task == task, rounds.c.state.in_(TAKING))
    room = true() if all_of_them else rounds.c.received + rounds.c.counted < rounds.c.goal
    more = update(rounds).where(here, room).values({where: where + len(arrived)})
    names = sorted({each.assignment for each in arrived})
    with store.writing(durable=durable) as connection:
        row = connection.execute(more.returning(rounds.c.goal, rounds.c.received, rounds.c.counted)).one_or_none()
        left = len(arrived)
        if row is None or not all_of_them:
            left = 0 if row is None else row.goal - (row.received + row.counted - len(arrived))
        elsewhere = where is rounds.c.received and 0 < left < NEARLY_FULL and _others_hold(connection, task, values)
        mine = select(assignments.c.id, assignments.c.body_digest).where(assignments.c.id.in_(names), _of(task))
        bodies: dict[str, str | None] = {name: body for name, body in connection.execute(mine)}
        answers, new = list[ReportAnswer](), list[dict[str, str]]()
        for each in arrived:
            before = bodies.get(each.assignment)
            if before is not None:
                same = hmac.compare_digest(before, each.body_digest)
                answers.append(ReportAnswer.AGAIN if same else ReportAnswer.OTHER)
            elif each.assignment not in bodies or not left:
                answers.append(ReportAnswer.LATE)
            elif elsewhere:
                answers.append(ReportAnswer.ELSEWHERE)
            else:
                left -= 1
                bodies[each.assignment] = each.body_digest
                answers.append(ReportAnswer.RECEIVED)
                new.append({"which": each.assignment, "body": each.body_digest})
        if new:
            set_one = update(assignments).where(assignments.c.id == bindparam("which"))
            connection.execute(set_one.values(**values, body_digest=bindparam("body")), new)
        if row is not None and len(new) < len(arrived):
            fewer = {where: where - (len(arrived) - len(new))}
            connection.execute(update(rounds).where(rounds.c.task == task).values(fewer))
    return answers


def _others_hold(connection: Connection, task: str, values: Mapping[str, str]) -> bool:
    """Whether other workers hold reports of the round in memory, and this one does not."""
    holding = select(assignments.c.worker).where(assignments.c.task == task, assignments.c.state == RECEIVED).distinct()
    found = set(connection.execute(holding).scalars())
    return bool(found) and values["worker"] not in found


def _of(task: str) -> ColumnElement[bool]:
    """That an assignment found by its id is of this task: an expression, so that no planner takes the index of tasks
    instead, which has thousands of rows for one.
    """
    return func.coalesce(assignments.c.task, "") == task


def give_back(store: Store, assignment: str, *, task: str) -> bool:
    """The device will not report: its place is another's. False where it has reported, or its round is over."""
    taking = and_(rounds.c.task == task, rounds.c.state.in_(TAKING))
    mine = and_(assignments.c.id == assignment, _of(task), assignments.c.state == ASSIGNED)
    with store.writing(durable=False) as connection:
        if not connection.execute(update(rounds).where(taking).values(assigned=rounds.c.assigned - 1)).rowcount:
            return False
        if connection.execute(delete(assignments).where(mine)).rowcount:
            return True
        connection.execute(update(rounds).where(taking).values(assigned=rounds.c.assigned + 1))
        return False


class Flushed(NamedTuple):
    """A worker's sum so far, whose blob is written: all that it received of a round, and who is new in it."""

    task: str
    worker: str
    generation: int  # 0, 1, 2, ... of this worker and round
    blob: str
    digest: str
    reports: int  # in the whole sum
    new: Sequence[str]  # assignments that the generation before did not have
    short_updates: int | None = None
    losses: float | None = None


def flush(store: Store, sum: Flushed) -> str | None:
    """Put a partial sum in the place of the worker's last one, whose blob is returned, to be deleted: None if none.

    Raises: InputError for fewer than FEWEST new reports; StoreError where the round takes no more flushes, or the
    reports are not this worker's (it was thought dead): nothing changed then, and what the worker holds is lost.
    """
    if len(set(sum.new)) != len(sum.new) or len(sum.new) < FEWEST:
        raise InputError(f"a flush adds {len(sum.new)} reports, and fewer than {FEWEST} would be told apart; wait.")
    here = and_(rounds.c.task == sum.task, rounds.c.state.in_(FLUSHING))
    moved = {"received": rounds.c.received - len(sum.new), "counted": rounds.c.counted + len(sum.new)}
    mine = and_(partials.c.task == sum.task, partials.c.worker == sum.worker)
    with store.writing() as connection:
        if not connection.execute(update(rounds).where(here).values(**moved)).rowcount:
            raise StoreError(f"the task '{sum.task}' takes no more partial sums; what was not flushed is lost.")
        before = connection.execute(select(partials).where(mine)).one_or_none()
        expected = (0, 0) if before is None else (before.generation + 1, before.reports)
        if (sum.generation, sum.reports - len(sum.new)) != expected:
            raise StoreError(
                f"generation {sum.generation} with {sum.reports} reports of a worker does not follow its last partial "
                f"sum of the task '{sum.task}'; it is not taken."
            )
        theirs = and_(
            assignments.c.id.in_(sum.new),
            assignments.c.task == sum.task,
            assignments.c.worker == sum.worker,
            assignments.c.state == RECEIVED,
        )
        if connection.execute(update(assignments).where(theirs).values(state=COUNTED)).rowcount != len(sum.new):
            raise StoreError("some of the reports in a partial sum were given up as lost; it is not taken.")
        values = sum._asdict()
        del values["new"]
        put = insert(partials) if before is None else update(partials).where(mine)
        connection.execute(put.values(**values))
        return None if before is None else str(before.blob)


def give_up(store: Store, task: str, worker: str) -> int:
    """What this worker received of the round and has not flushed is lost, and makes place for others; how many.

    Of a worker itself, that has fewer than FEWEST when the round is full or closes, and by the coordinator for one that
    died.
    """
    mine = and_(assignments.c.task == task, assignments.c.worker == worker, assignments.c.state == RECEIVED)
    here = and_(rounds.c.task == task, rounds.c.state.in_(FLUSHING))
    with store.writing() as connection:
        if not connection.execute(update(rounds).where(here).values(state=rounds.c.state)).rowcount:
            return 0
        count = connection.execute(update(assignments).where(mine).values(state=LOST)).rowcount
        moved = {"received": rounds.c.received - count, "lost": rounds.c.lost + count}
        connection.execute(update(rounds).where(here).values(**moved))
        return count


def held(store: Store, task: str) -> dict[str, int]:
    """How many reports of the round each worker received and has not flushed; those that have none are left out."""
    mine = and_(assignments.c.task == task, assignments.c.state == RECEIVED)
    columns = select(assignments.c.worker, func.count()).where(mine).group_by(assignments.c.worker)
    with store.reading() as connection:
        return {str(worker): int(count) for worker, count in connection.execute(columns)}


def last_seen(store: Store, among: Iterable[str]) -> dict[str, float | None]:
    """When each of these workers was last seen, by its own clock; None: never.

    In a transaction that waits for its turn like a worker's own: from a store that takes no writes nobody is silent.
    """
    names = sorted(set(among))
    with store.writing(durable=False) as connection:
        rows = connection.execute(select(workers.c.id, workers.c.seen).where(workers.c.id.in_(names)))
        found = {str(worker): float(when) for worker, when in rows}
    return {each: found.get(each) for each in names}


def seen(store: Store, worker: str) -> None:
    """The worker is alive. Nothing of its own process delays it."""
    now = store.now()
    with store.saying() as connection:
        if not connection.execute(update(workers).where(workers.c.id == worker).values(seen=now)).rowcount:
            connection.execute(insert(workers).values(id=worker, seen=now))


def bury(store: Store, worker: str) -> None:
    """Forget a worker that died; what it received and had not flushed is to be given up before."""
    with store.writing() as connection:
        connection.execute(delete(workers).where(workers.c.id == worker))
