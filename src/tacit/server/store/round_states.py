"""The life of a round, as its coordinator moves it: each step is one transaction that compares and sets.

    selecting -> reporting -> closing -> summing -> closed -> released
        \\___________\\___________\\__________\\-> abandoned

selecting   devices are given the task, and may report
reporting   no more are given it; those that have it may report
closing     no more reports; workers flush what they have
summing     no more flushes: what was not flushed is lost, and the partial sums are what they are for ever
closed      the sum is bound: the digest of its blob is written, once, and never another
released    the ledger row of the round is in the run folder
abandoned   nothing was summed up, or the sum was refused before it was bound; another attempt may be made

What a coordinator writes, it writes under its term of the run's lease: the first statement of each transaction takes
the run's row and finds the term still its own, so that of two coordinators the older one writes nothing, whatever the
clocks say. Every transaction of a worker takes the round's row (`assignments.py`): whoever comes second sees the first.
"""

import secrets
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, and_, delete, insert, not_, or_, select, update

from tacit.errors import LeaseLost, RunError, StoreError
from tacit.server.store.schema import assignments, partials, rounds, runs
from tacit.server.store.store import Store

SELECTING, REPORTING, CLOSING, SUMMING = "selecting", "reporting", "closing", "summing"
CLOSED, RELEASED, ABANDONED = "closed", "released", "abandoned"
STATES = (SELECTING, REPORTING, CLOSING, SUMMING, CLOSED, RELEASED, ABANDONED)
TAKING = (SELECTING, REPORTING)  # reports
FLUSHING = (*TAKING, CLOSING)  # partial sums
UNBOUND = (*FLUSHING, SUMMING)  # may yet be abandoned
OVER = (RELEASED, ABANDONED)
OPEN, FINISHED = "open", "finished"  # states of a run
LONGEST_LEASE = 300.0  # seconds; one that says it lasts longer was granted by a clock that went wrong


class Lease(NamedTuple):
    """The right to move a run's rounds, until another has a later term."""

    run: str
    owner: str  # 32 hex, drawn
    term: int


class KnownRun(NamedTuple):
    """A run, as the store has it."""

    name: str
    population: str
    kind: str
    plan_digest: str
    state: str  # open or finished
    paused: bool
    lease_until: float | None


class NewRound(NamedTuple):
    """An attempt at a round, to be opened."""

    task: str  # 32 hex
    round: int
    attempt: int
    signed_task: str  # the document as it is sent
    model_digest: str
    goal: int  # reports that it takes, and no more
    least: int  # below which nothing is summed up
    most: int  # devices that are given the task
    closes_selecting: float
    deadline: float


class Attempt(NamedTuple):
    """An attempt at a round, as the store has it."""

    run: str
    task: str
    round: int
    attempt: int
    state: str
    signed_task: str
    model_digest: str
    goal: int
    least: int
    most: int
    opened: float
    closes_selecting: float
    deadline: float
    assigned: int
    received: int
    counted: int
    lost: int
    total_digest: str | None
    reports: int | None
    short_updates: int | None
    losses: float | None
    why: str | None


class Partial(NamedTuple):
    """A worker's sum of reports that was flushed."""

    worker: str
    generation: int
    blob: str
    digest: str
    reports: int
    short_updates: int | None
    losses: float | None


class Total(NamedTuple):
    """A round's sum, to be bound: the digest of its blob, and what it is the sum of."""

    digest: str
    reports: int
    short_updates: int | None
    losses: float | None


# -- runs and their leases -------------------------------------------------------------------------------------------


def enter_run(store: Store, name: str, *, population: str, kind: str, plan: str, plan_digest: str) -> None:
    """Make the run known; one that is, stays. Raises: StoreError where it is there with another plan."""
    with store.writing() as connection:
        found = connection.execute(select(runs.c.plan_digest).where(runs.c.name == name)).scalar()
        if found is None:
            row = {"name": name, "population": population, "kind": kind, "plan": plan, "plan_digest": plan_digest}
            connection.execute(insert(runs).values(**row, state=OPEN, paused=False, term=0))
        elif found != plan_digest:
            raise StoreError(
                f"the store has a run '{name}' with another plan (digest {found[:16]}..., not {plan_digest[:16]}...), "
                "and devices were told that one: give this run another name, or go on with the recipe and the version "
                "of tacit that it began with."
            )


def plan_of_run(store: Store, name: str) -> str | None:
    """The signed plan of a run, as it is sent; None of a run that is not known."""
    with store.reading() as connection:
        return connection.execute(select(runs.c.plan).where(runs.c.name == name)).scalar()


def all_runs(store: Store) -> list[KnownRun]:
    """All that are known, by name."""
    columns = [runs.c[name] for name in KnownRun._fields]
    with store.reading() as connection:
        return [KnownRun._make(row) for row in connection.execute(select(*columns).order_by(runs.c.name))]


def take_lease(store: Store, run: str, *, seconds: float, owner: str | None = None) -> Lease | None:
    """The lease of a run whose last one has run out, or is this owner's; None where another holds it.

    seconds: how long it lasts without being renewed, at most LONGEST_LEASE. Raises: StoreError for an unknown run.
    """
    owner, now = owner or secrets.token_hex(16), store.now()
    free = or_(
        runs.c.lease_until.is_(None),
        runs.c.lease_until <= now,
        runs.c.lease_until > now + LONGEST_LEASE,  # the clock was set back
        runs.c.lease_owner == owner,
    )
    with store.writing() as connection:
        taken = connection.execute(
            update(runs)
            .where(runs.c.name == run, free)
            .values(lease_owner=owner, lease_until=now + min(seconds, LONGEST_LEASE), term=runs.c.term + 1)
        )
        term = connection.execute(select(runs.c.term).where(runs.c.name == run)).scalar()
        if term is None:
            raise StoreError(f"the store has no run '{run}'; start it with `tacit serve`.")
        return Lease(run, owner, term) if taken.rowcount else None


def renew_lease(store: Store, lease: Lease, *, seconds: float) -> None:
    """Nothing of its own process delays it. Raises: LeaseLost."""
    with store.saying() as connection:
        _hold(connection, lease, lease_until=store.now() + min(seconds, LONGEST_LEASE))


def give_lease_back(store: Store, lease: Lease) -> None:
    """So that the next coordinator need not wait. Raises: LeaseLost."""
    with store.writing() as connection:
        _hold(connection, lease, lease_until=None)


def finish_run(store: Store, lease: Lease) -> None:
    """No more rounds. Raises: LeaseLost."""
    with store.writing() as connection:
        _hold(connection, lease, state=FINISHED)


def pause_run(store: Store, run: str, *, paused: bool) -> None:
    """Whether devices are given its tasks; the operator's word, so without a lease. Raises: StoreError."""
    with store.writing() as connection:
        if not connection.execute(update(runs).where(runs.c.name == run).values(paused=paused)).rowcount:
            raise StoreError(f"the store has no run '{run}'; see the names of those that it has.")


def _hold(connection: Connection, lease: Lease, **values: Any) -> None:
    """Take the run's row and find the term still this one's. Raises: LeaseLost."""
    mine = and_(runs.c.name == lease.run, runs.c.term == lease.term, runs.c.lease_owner == lease.owner)
    if not connection.execute(update(runs).where(mine).values(**{"term": runs.c.term, **values})).rowcount:
        raise LeaseLost(f"another coordinator took over the run '{lease.run}'; this one writes nothing more.")


# -- rounds ----------------------------------------------------------------------------------------------------------


def open_round(store: Store, lease: Lease, new: NewRound) -> Attempt:
    """Open an attempt at a round for selection.

    Raises: LeaseLost; RunError where another attempt of the run is not over, or this round or a later one has a sum.
    """
    with store.writing() as connection:
        _hold(connection, lease)
        over = rounds.c.state == ABANDONED
        ended = and_(rounds.c.state == RELEASED, rounds.c.round < new.round)
        names = select(rounds.c.round, rounds.c.attempt, rounds.c.state)
        other = connection.execute(names.where(rounds.c.run == lease.run, not_(over), not_(ended))).first()
        if other is not None:
            raise RunError(
                f"round {other.round} of the run '{lease.run}' is {other.state} (attempt {other.attempt}), so no "
                f"attempt at round {new.round} is opened."
            )
        row = {**new._asdict(), "run": lease.run, "state": SELECTING, "opened": store.now()}
        connection.execute(insert(rounds).values(**row, assigned=0, received=0, counted=0, lost=0))
        return _attempt(connection, new.task)


def end_selecting(store: Store, lease: Lease, task: str) -> bool:
    """selecting -> reporting. False where it was not selecting. Raises: LeaseLost."""
    return _move(store, lease, task, (SELECTING,), state=REPORTING)


def begin_closing(store: Store, lease: Lease, task: str) -> bool:
    """selecting or reporting -> closing. False where it was neither. Raises: LeaseLost."""
    return _move(store, lease, task, TAKING, state=CLOSING)


def begin_summing(store: Store, lease: Lease, task: str) -> bool:
    """closing -> summing: whatever was received and not flushed is lost. False where it was not closing.

    Raises: LeaseLost.
    """
    with store.writing() as connection:
        _hold(connection, lease)
        if not _set(connection, task, (CLOSING,), state=SUMMING, lost=rounds.c.lost + rounds.c.received, received=0):
            return False
        late = and_(assignments.c.task == task, assignments.c.state == "received")
        connection.execute(update(assignments).where(late).values(state="lost"))
        return True


def discount(store: Store, lease: Lease, task: str, assignment: str) -> bool:
    """A sealed report that was counted cannot be in the sum: it is lost, and one device more may be given the task.

    False where it was not counted, or the round is bound. Raises: LeaseLost.
    """
    mine = and_(assignments.c.id == assignment, assignments.c.task == task, assignments.c.state == "counted")
    moved = {"counted": rounds.c.counted - 1, "lost": rounds.c.lost + 1, "most": rounds.c.most + 1}
    with store.writing() as connection:
        _hold(connection, lease)
        if not _set(connection, task, UNBOUND, state=rounds.c.state):
            return False
        if not connection.execute(update(assignments).where(mine).values(state="lost")).rowcount:
            return False
        return _set(connection, task, UNBOUND, **moved)


def bind(store: Store, lease: Lease, task: str, total: Total) -> bool:
    """summing -> closed, with this sum, for ever. False where it was not summing.

    Raises: LeaseLost; RunError for a sum of other reports than were flushed, or of fewer than the least.
    """
    with store.writing() as connection:
        _hold(connection, lease)
        found = _attempt(connection, task)
        if found.state != SUMMING:
            return False
        if total.reports != found.counted or total.reports < found.least:
            raise RunError(
                f"round {found.round} of the run '{lease.run}' has {found.counted} reports in its partial sums, and at "
                f"least {found.least} are needed: a sum of {total.reports} is not bound."
            )
        return _set(
            connection,
            task,
            (SUMMING,),
            state=CLOSED,
            total_digest=total.digest,
            reports=total.reports,
            short_updates=total.short_updates,
            losses=total.losses,
        )


def release(store: Store, lease: Lease, task: str) -> bool:
    """closed -> released, after the ledger row is in the run folder; the rows of single devices go.

    False where it was not closed. Raises: LeaseLost.
    """
    return _end(store, lease, task, (CLOSED,), state=RELEASED)


def abandon(store: Store, lease: Lease, task: str, why: str) -> bool:
    """Any state before closed -> abandoned; the rows of single devices go. False where it had a sum, or was over.

    Raises: LeaseLost.
    """
    return _end(store, lease, task, UNBOUND, state=ABANDONED, why=why)


def _end(store: Store, lease: Lease, task: str, before: Iterable[str], **values: Any) -> bool:
    with store.writing() as connection:
        _hold(connection, lease)
        if not _set(connection, task, before, ended=store.now(), **values):
            return False
        connection.execute(delete(assignments).where(assignments.c.task == task))
        connection.execute(delete(partials).where(partials.c.task == task))
        return True


def _move(store: Store, lease: Lease, task: str, before: Iterable[str], **values: Any) -> bool:
    with store.writing() as connection:
        _hold(connection, lease)
        return _set(connection, task, before, **values)


def _set(connection: Connection, task: str, before: Iterable[str], **values: Any) -> bool:
    """Compare the state and set these values. False where the state is another."""
    here = and_(rounds.c.task == task, rounds.c.state.in_(tuple(before)))
    return bool(connection.execute(update(rounds).where(here).values(**values)).rowcount)


# -- what is read ----------------------------------------------------------------------------------------------------

_COLUMNS = [rounds.c[name] for name in Attempt._fields]


def _attempt(connection: Connection, task: str) -> Attempt:
    row = connection.execute(select(*_COLUMNS).where(rounds.c.task == task)).one_or_none()
    if row is None:
        raise StoreError(f"the store has no task '{task}'; it was restored from a copy, or is another one.")
    return _as_attempt(row)


def _as_attempt(row: Row[Any]) -> Attempt:
    return Attempt._make(row)


def attempt_of(store: Store, task: str) -> Attempt:
    """The attempt whose task has this id. Raises: StoreError where there is none."""
    with store.reading() as connection:
        return _attempt(connection, task)


def attempts(store: Store, run: str) -> list[Attempt]:
    """All attempts of a run, by round and attempt."""
    order = select(*_COLUMNS).where(rounds.c.run == run).order_by(rounds.c.round, rounds.c.attempt)
    with store.reading() as connection:
        return [_as_attempt(row) for row in connection.execute(order)]


def partial_sums(store: Store, task: str) -> list[Partial]:
    """What workers flushed of a round, in the order in which it is added up: by worker."""
    columns = [partials.c[name] for name in Partial._fields]
    with store.reading() as connection:
        found = connection.execute(select(*columns).where(partials.c.task == task).order_by(partials.c.worker))
        return [Partial._make(row) for row in found]
