"""What a device remembers: the operators it trusts, the plans it knows, its participations and what they cost.

One record of a device, whoever asks it. Participations stand in two places: in the state folder, beside everything
else, and in a journal outside it. Each is on disk in both, with its price, before any text is read for it; whatever
happens then, it stays spent, unless its report surely never left. A device that starts counts what either place has.
Where neither is the one that was written last (both copies, or gone), nobody knows what is missing: all that its budget
allows counts as spent.
"""

import hashlib
import json
import math
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tacit.device import state_file
from tacit.device.separation import PastParticipation, SealedAttempt, Seen
from tacit.device.state_file import Form, Standing, StateFile
from tacit.errors import DeviceError, InputError, TaskRefused
from tacit.files import check_folder, held
from tacit.parsing import parsed_json
from tacit.protocol.messages import Plan, RoundTask, ShownLog, SignedPlan

FILE, JOURNAL = "device.db", "journal.db"
BESIDE = ("policy.toml",)  # what an owner puts into a folder before the first start
OPERATORS = "operators"  # in the state folder, a folder for each: who has its lock speaks with that operator
PLACE = Path("tacit", "devices")  # of journals, in the user's folder of data
_PARTICIPATIONS = """
CREATE TABLE participations (id INTEGER PRIMARY KEY, operator TEXT NOT NULL, population TEXT NOT NULL,
    run TEXT NOT NULL, kind TEXT NOT NULL, summed TEXT NOT NULL, plan TEXT NOT NULL, epoch INTEGER NOT NULL,
    round INTEGER NOT NULL, task TEXT NOT NULL UNIQUE, assignment TEXT NOT NULL, at REAL NOT NULL, opens REAL NOT NULL,
    deadline REAL NOT NULL, zcdp REAL NOT NULL, received INTEGER NOT NULL DEFAULT 0, series TEXT NOT NULL,
    attempt TEXT NOT NULL, UNIQUE (plan, round, attempt));
CREATE TABLE losses (epoch INTEGER NOT NULL, at REAL NOT NULL, zcdp REAL NOT NULL, why TEXT NOT NULL,
    PRIMARY KEY (epoch, at))"""
_SCHEMA = f"""{_PARTICIPATIONS};
CREATE TABLE plans (operator INTEGER NOT NULL, digest TEXT NOT NULL, population TEXT NOT NULL, run TEXT NOT NULL,
    kind TEXT NOT NULL, summed TEXT NOT NULL, signed TEXT NOT NULL,
    PRIMARY KEY (operator, digest), UNIQUE (operator, population, run));
CREATE TABLE sights (operator INTEGER NOT NULL, plan TEXT NOT NULL, epoch INTEGER NOT NULL, round INTEGER NOT NULL,
    opens REAL NOT NULL, PRIMARY KEY (operator, plan, epoch))"""
_OF_ONE = (
    "operator, population, run, kind, summed, plan, epoch, round, task, assignment, at, opens, deadline, zcdp, "
    "received, series, attempt"
)
_ENTER = f"INSERT OR IGNORE INTO participations ({_OF_ONE}) VALUES ({', '.join('?' * len(_OF_ONE.split(', ')))})"
# Rows of the same plan and round are attempts of one series, and one participation: as late as any of them.
_SAME = "(plan = ? AND round = ? AND series = ? AND series != '')"
_LATEST = "round, max(at), max(opens), max(deadline)"
MOST_PLANS = 100  # of an operator, that are kept of runs in which it never took part; each has up to a megabyte
_FORGOTTEN = """SELECT digest FROM plans WHERE operator = ? AND digest != ?
    AND digest NOT IN (SELECT plan FROM participations) ORDER BY rowid DESC LIMIT -1 OFFSET ?"""
_PLAN, _TASK, _ZCDP = (_OF_ONE.split(", ").index(name) for name in ("plan", "task", "zcdp"))
RECORD_FORM = Form(
    format="tacit device 3",
    schema=_SCHEMA,
    anew="move the folder away: a new record takes over what the journal has, and counts what nobody knows as spent",
)
JOURNAL_FORM = Form(
    format="tacit device journal 1",
    schema=_PARTICIPATIONS,
    anew="move it away: it is made again of the record",
)
NEW, COPY = "new", "copy"  # why something may have been lost


class Loss(NamedTuple):
    """From when on the record is the whole truth, and what was charged for what it lacks before."""

    epoch: int
    at: float  # Unix seconds, by the device's clock
    zcdp: float
    why: str  # NEW, COPY


class DeviceRecord:
    """The open record of a device; `opened` makes it."""

    def __init__(self, folder: Path, file: StateFile, *others: StateFile) -> None:
        """others: where participations and losses are kept, too."""
        self.folder, self._file, self._others = folder, file, others
        self._chosen = 0  # the operator that this process speaks with; 0 before one is pinned
        self._held = ExitStack()

    # -- whom it believes ----------------------------------------------------------------------------------------------

    @property
    def operator(self) -> str | None:
        """The public key of the operator that it speaks with, 64 hexadecimal digits; None before one is pinned."""
        found: str | None = self._about("key")
        return found

    @property
    def operators(self) -> tuple[str, ...]:
        """The keys of all operators that it believes, in the order in which they were pinned first."""
        return tuple(key for (key,) in self._rows("SELECT value FROM about WHERE name = 'key' ORDER BY operator"))

    def only_operator(self) -> str | None:
        """The key of the one operator that was pinned; None before the first. Raises: InputError where several were."""
        if len(self.operators) > 1:
            known = ", ".join(f"{key[:16]}..." for key in self.operators)
            raise InputError(f"'{self.folder}' has pinned several operators ({known}); give --operator-key.")
        return next(iter(self.operators), None)

    def pin(self, key: str) -> None:
        """Speak with this operator from now on, by a key that was pinned before or is from now on.

        Raises: DeviceError where another process of this device speaks with it.
        """
        known = self._rows("SELECT operator, name, value FROM about WHERE name IN ('key', 'keys before')")
        found = next(
            (row[0] for row in known if key == row[2] or (row[1] != "key" and key in parsed_json(row[2]))), None
        )
        with self._writing():
            self._chosen = max((row[0] for row in known), default=0) + 1 if found is None else found
            if found is None:
                self._note("key", key)
        self._hold(self.folder / OPERATORS / str(self._chosen))

    @property
    def _keys_before(self) -> list[str]:
        """Keys of this operator that were pinned and handed over, the oldest first."""
        return list(parsed_json(self._about("keys before") or "[]"))

    def key_rotation(self, key: str, shown: ShownLog) -> None:
        """Believe this key in place of the pinned one, which signed that; shown: the log that has it.

        Raises: TaskRefused for one that was believed before: there is no way back.
        """
        before = [*self._keys_before, self.operator]
        if key in before:
            raise TaskRefused(f"the operator handed its key over to {key[:16]}..., which is one that it had before.")
        if key in self.operators:
            raise TaskRefused(f"the operator handed its key over to {key[:16]}..., which is another operator's here.")
        with self._writing():
            self.keep_log(shown)
            self._note("keys before", json.dumps(before))
            self._note("key", key)

    @property
    def since(self) -> float | None:
        """From when on this record is the whole truth, by the device's clock; None: it always was."""
        return self.losses[-1].at if self.losses else None

    @property
    def losses(self) -> list[Loss]:
        """When something may have been lost, in order, and what was charged for it."""
        return [Loss(*row) for row in self._rows("SELECT epoch, at, zcdp, why FROM losses ORDER BY epoch, at")]

    @property
    def log(self) -> tuple[str, ...]:
        """The entries of the operator's log, the longest that it saw; none before the first."""
        found = self._about("log")
        return () if found is None else ShownLog.from_json(found).entries

    @property
    def logs(self) -> list[tuple[str, tuple[str, ...]]]:
        """(key, entries of the log) of each operator that showed one."""
        rows = self._rows(
            "SELECT whose.value, log.value FROM about AS log JOIN about AS whose USING (operator) "
            "WHERE log.name = 'log' AND whose.name = 'key' ORDER BY operator"
        )
        return [(key, ShownLog.from_json(shown).entries) for key, shown in rows]

    def keep_log(self, shown: ShownLog) -> None:
        """Remember the longer of this log and the kept one, with its signed head: who signed another that begins
        otherwise is convicted by both. That one begins with the other is the caller's to know.
        """
        if len(shown.entries) > len(self.log):
            with self._writing():
                self._note("log", shown.to_json())

    @property
    def disbelieves(self) -> bool:
        """Whether the operator signed a log that does not begin like the kept one."""
        return self._about("another log") is not None

    def disbelieve(self, shown: ShownLog) -> None:
        """Keep the log that does not begin like the kept one. This operator is asked for nothing more, since it could
        show such lists again and again, and see each time what this device saw.
        """
        with self._writing():
            self._note("another log", shown.to_json())

    @property
    def tokens(self) -> dict[str, Any]:
        """What it keeps of the epoch's tokens (`tokens.py`); nothing before the first."""
        return dict(parsed_json(self._about("tokens") or "{}"))

    def keep_tokens(self, kept: dict[str, Any]) -> None:
        """In place of what was kept; on disk when this returns."""
        with self._writing():
            self._note("tokens", json.dumps(kept))

    # -- plans ---------------------------------------------------------------------------------------------------------

    def keep_plan(self, digest: str, signed: SignedPlan) -> None:
        """Remember a plan, as it was signed, and forget the oldest of more than MOST_PLANS in whose runs it never took
        part: whoever asks may make one after another. Raises: TaskRefused where it took part in the run by another: a
        run has one plan for ever. What it was only shown goes for the new one: a refusal would tell who saw it.
        """
        plan = signed.read(Plan)
        keys = [self.operator, *self._keys_before]  # what a journal gave back has the key of its time
        named = self._rows(
            "SELECT digest FROM plans WHERE operator = ? AND population = ? AND run = ? UNION "
            f"SELECT plan FROM participations WHERE operator IN ({', '.join('?' * len(keys))}) AND population = ? "
            "AND run = ?",
            *(self._chosen, plan.population, plan.run),
            *(*keys, plan.population, plan.run),
        )
        others = [found for (found,) in named if found != digest]
        for other in others:
            if self.rounds(other):
                raise TaskRefused(
                    f"run {plan.run!r} now has the plan {digest[:16]}..., and it had {other[:16]}... when this device "
                    "took part: a run has one plan for ever, so its operator has to give another run another name."
                )
        with self._writing():
            for table, column in (("sights", "plan"), ("plans", "digest")):
                self._file.database.executemany(
                    f"DELETE FROM {table} WHERE operator = ? AND {column} = ?",
                    [(self._chosen, other) for other in others],
                )
            self._file.database.execute(
                "INSERT OR IGNORE INTO plans (operator, digest, population, run, kind, summed, signed) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    *(self._chosen, digest, plan.population, plan.run, plan.kind, plan.aggregation.kind),
                    signed.to_json(),
                ),
            )
            self._forget(self._chosen, digest, MOST_PLANS)

    def plans(self) -> int:
        """How many plans it keeps, of all operators."""
        return int(self._rows("SELECT count(*) FROM plans")[0][0])

    def forget_plans(self) -> int:
        """Forget all plans of runs in which it never took part; how many they were."""
        with self._writing():
            before = self.plans()
            for (operator,) in self._rows("SELECT DISTINCT operator FROM plans"):
                self._forget(operator, "", 0)
            return before - self.plans()

    def _forget(self, operator: int, digest: str, most: int) -> None:
        for table, column in (("sights", "plan"), ("plans", "digest")):
            self._file.database.execute(
                f"DELETE FROM {table} WHERE operator = ? AND {column} IN ({_FORGOTTEN})",
                (operator, operator, digest, most),
            )

    # -- taking part ---------------------------------------------------------------------------------------------------

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """No other process of this device decides or takes part meanwhile; what is written in it is so together."""
        with self._writing():
            yield

    def observe(self, task: RoundTask, attempt: SealedAttempt | None = None) -> Seen:
        """What it knows of itself with respect to a task of a plan that it keeps; the task has been seen then.

        attempt: of a sealed round. What it did in other attempts of the series is the participation that it is asked
        for, and none besides.
        """
        epoch, same = self._epoch, (task.plan, task.round, "" if attempt is None else attempt.series)
        with self._writing():
            self._file.database.execute(
                "INSERT OR IGNORE INTO sights (operator, plan, epoch, round, opens) VALUES (?, ?, ?, ?, ?)",
                (self._chosen, task.plan, epoch, task.round, task.opens),
            )
        first = self._row(
            "SELECT round, opens FROM sights WHERE operator = ? AND plan = ? AND epoch = ?",
            *(self._chosen, task.plan, epoch),
        )
        others = f"FROM participations WHERE NOT {_SAME}"
        rows = self._rows(
            f"SELECT max(epoch), {_LATEST} {others} AND plan = ? GROUP BY round ORDER BY round", *same, task.plan
        )
        last = self._row(
            f"SELECT {_LATEST} {others} GROUP BY plan, round ORDER BY max(at) DESC, max(id) DESC LIMIT 1", *same
        )
        (latest,) = self._row("SELECT max(at) FROM participations") or (None,)
        assert first is not None  # written above, or before
        return Seen(
            parts=[PastParticipation(*row[1:]) for row in rows],
            known=sum(row[0] == epoch for row in rows),
            last=None if last is None else PastParticipation(*last),
            latest=latest,
            first_round=first[0],
            first_opens=first[1],
            since=self.since,
        )

    def joined(self, task: RoundTask) -> frozenset[bytes]:
        """The names of the sealed rounds in which it reported, of all attempts at this round of its plan."""
        found = self._rows("SELECT attempt FROM participations WHERE plan = ? AND round = ?", task.plan, task.round)
        return frozenset(bytes.fromhex(name) for (name,) in found)

    def rounds(self, plan: str) -> list[int]:
        """In which rounds of a plan it took part."""
        return [
            found
            for (found,) in self._rows("SELECT DISTINCT round FROM participations WHERE plan = ? ORDER BY round", plan)
        ]

    def costs(self) -> list[dict[str, Any]]:
        """What counts against budgets: `zcdp` that a `plan` had cost at a time, `at`. A loss is a plan of its own."""
        rows = self._rows(
            "SELECT plan, at, zcdp FROM participations UNION ALL SELECT 'loss ' || epoch, at, zcdp FROM losses"
        )
        return [dict(zip(("plan", "at", "zcdp"), row, strict=True)) for row in rows]

    def spent(self, *, but: str = "") -> float:
        """rho of everything, whoever asked, losses too; without the run of the plan with the digest `but`."""
        return _spent(self._rows("SELECT plan, zcdp FROM participations WHERE plan != ?", but), self.losses)

    def take_part(
        self, task: RoundTask, *, assignment: str, at: float, zcdp: float, attempt: SealedAttempt | None = None
    ) -> None:
        """Record a participation, on disk in each place when this returns: before any text is read for it. zcdp: what
        this run has cost with it. attempt: of a sealed round; another of the same series is the same participation, at
        a later time. Raises: TaskRefused where the round, the task or this attempt is recorded already.
        """
        named = self._row(
            "SELECT population, run, kind, summed FROM plans WHERE operator = ? AND digest = ?",
            *(self._chosen, task.plan),
        )
        assert named is not None  # a task is believed by its plan, which is kept
        series, name = ("", "") if attempt is None else attempt
        values = (self.operator, *named, task.plan, self._epoch, task.round, task.task, assignment, at)
        enter = _ENTER.replace(" OR IGNORE", "")
        twice = f"round {task.round} of run {task.run!r}: this device took part in it already; wait for another."
        other = "SELECT 1 FROM participations WHERE plan = ? AND round = ? AND series != ?"
        try:
            with self._writing():
                if self._row(other, task.plan, task.round, series) is not None:
                    raise TaskRefused(twice)
                self._write_everywhere(enter, (*values, task.opens, task.deadline, zcdp, 0, series, name))
        except sqlite3.IntegrityError:
            raise TaskRefused(twice) from None

    def received(self, task: RoundTask) -> None:
        """The operator signed that the report came."""
        self._write_everywhere("UPDATE participations SET received = 1 WHERE task = ?", (task.task,))

    def never_left(self, task: RoundTask) -> None:
        """Take a participation back of whose report surely no byte left. The journal first: who is killed in between
        finds it in the record, and it stays spent.
        """
        self._write_everywhere("DELETE FROM participations WHERE task = ? AND received = 0", (task.task,))

    def participations(self) -> list[dict[str, Any]]:
        """Everything that it took part in, as plain values, in the order of time."""
        names = ("operator", "population", "run", "kind", "summed", "plan", "round", "at", "zcdp", "received")
        rows = self._rows(
            f"SELECT {', '.join(names[:7])}, max(at), max(zcdp), max(received) FROM participations "
            "GROUP BY plan, round ORDER BY min(at), min(id)"
        )
        return [dict(zip(names, (*row[:-1], bool(row[-1])), strict=True)) for row in rows]

    # -- the files -----------------------------------------------------------------------------------------------------

    def begin(self, *, now: float, first_time: bool, budget_zcdp: float) -> None:
        """Bring together what all places have, and charge what none of them can know; see `opened`."""
        with self._file.alone():
            places = (self._file, *self._others)
            _brought_together(places, places, now=now, first_time=first_time, budget_zcdp=budget_zcdp)

    def close(self) -> None:
        """Another process may speak with its operator from now on."""
        self._held.close()

    def hold_all(self) -> None:
        """No process of this device speaks with any operator until this record is closed. Raises: DeviceError."""
        self._hold(*sorted((self.folder / OPERATORS).glob("*")))

    def _hold(self, *places: Path) -> None:
        self.close()
        for place in places:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._held.enter_context(held(place))
            except BlockingIOError:
                raise DeviceError(
                    f"another process runs the device of '{self.folder}' with this operator; end it first."
                ) from None

    @property
    def _epoch(self) -> int:
        return int(self._rows("SELECT coalesce(max(epoch), 0) FROM losses")[0][0])

    def _about(self, name: str) -> Any:
        return self._file.about(name, self._chosen) if self._chosen else None

    def _note(self, name: str, value: Any) -> None:
        self._file.note(name, value, self._chosen)

    def _row(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        rows = self._rows(query, *values)
        return rows[0] if rows else None

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._file.rows(query, *values)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._file.writing():
            yield

    def _write_everywhere(self, statement: str, values: Sequence[Any]) -> None:
        """On disk in each place, in the record last: what a killed process wrote into the journal alone counts, too."""
        with self._writing():
            self._file.database.execute(statement, values)
            for each in self._others:
                with each.writing():
                    each.database.execute(statement, values)


def _brought_together(
    places: Sequence[StateFile], into: Sequence[StateFile], *, now: float, first_time: bool, budget_zcdp: float
) -> None:
    """Write what any of these places has into others, and a loss where none is the one that was written last.

    first_time: see `opened`. Raises: InputError where its owner says so of a device that took part.
    """
    standings = [place.standing() for place in places]
    there = [place for place, standing in zip(places, standings, strict=True) if standing is not Standing.NEW]
    parts = {row[_TASK]: row for place in there for row in place.rows(f"SELECT {_OF_ONE} FROM participations")}
    losses = {Loss(*row) for place in there for row in place.rows("SELECT epoch, at, zcdp, why FROM losses")}
    if first_time and standings[0] is Standing.NEW and parts:
        raise InputError(
            f"--first-time says that this device took part nowhere, and '{there[0].path}' has {len(parts)} "
            "participations of it; leave --first-time out. Of another person's device, move that file away."
        )
    untouched = not parts and {each.why for each in losses} <= {NEW}
    if first_time and untouched:
        losses.clear()
    if Standing.LAST not in standings and not (first_time and not there):
        spent = _spent([(row[_PLAN], row[_ZCDP]) for row in parts.values()], losses)
        epoch = max((each.epoch for each in losses), default=0) + 1
        losses.add(Loss(epoch, now, max(budget_zcdp - spent, 0.0), COPY if there else NEW))
    for place in into:
        standing = place.standing()
        if standing is Standing.LAST and _has(place, set(parts), losses):
            continue
        with place.adopting():
            place.database.executemany(_ENTER, list(parts.values()))
            place.database.execute("DELETE FROM losses")
            place.database.executemany("INSERT INTO losses VALUES (?, ?, ?, ?)", sorted(losses))


def _has(place: StateFile, tasks: set[str], losses: set[Loss]) -> bool:
    found = {Loss(*row) for row in place.rows("SELECT epoch, at, zcdp, why FROM losses")}
    return tasks == {task for (task,) in place.rows("SELECT task FROM participations")} and losses == found


def _spent(costs: Iterable[tuple[str, float]], losses: Iterable[Loss]) -> float:
    """rho of everything: of each plan what its run has cost last, which never falls, and the losses."""
    runs: dict[str, float] = {}
    for plan, zcdp in costs:
        runs[plan] = max(runs.get(plan, 0.0), zcdp)
    return math.fsum([*runs.values(), *(each.zcdp for each in losses)])


def journal_of(folder: Path) -> Path:
    """Where the journal of a device lies by default: in the user's folder of data, by the path of its state folder.

    Raises: InputError where the user has none.
    """
    data = os.environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser()
    if not Path(data).is_absolute():
        raise InputError(f"the user's folder of data, '{data}', is no place for a journal; give --journal, a folder.")
    return Path(data) / PLACE / hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]


def _only_its_owner(folder: Path) -> None:
    """Take a folder that was there before from everybody but its owner.

    Raises: InputError where anybody may write in it and this process may not change that: another file in place of the
    record forgets what was spent.
    """
    rights = folder.stat().st_mode
    if rights & (stat.S_IRWXG | stat.S_IRWXO):
        try:
            folder.chmod(rights & stat.S_IRWXU)
        except OSError as error:
            if rights & stat.S_IWOTH:
                raise InputError(
                    f"anybody may write in '{folder}', and its rights cannot be changed ({error.strerror}); give "
                    "another, or have its owner do it (chmod 700)."
                ) from None


def _checked_journal(folder: Path, journal: Path | None) -> Path:
    found = journal_of(folder) if journal is None else journal
    check_folder("--journal", found)
    if found.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"--journal '{found}' is in the state folder, and would be lost with it; give another folder.")
    return found


@contextmanager
def opened(
    folder: Path,
    journal: Path | None = None,
    *,
    now: float,
    first_time: bool = False,
    budget_zcdp: float = math.inf,
) -> Iterator[DeviceRecord]:
    """The record in a state folder; folders and files are made where there are none. Other processes may have it too.

    journal: the folder outside it, in which its participations stand a second time; None: `journal_of`. now: by the
    device's clock. first_time: of a new record, that this device has taken part nowhere before. budget_zcdp: what
    counts as spent where nobody knows what is missing. Raises: DeviceError where a file is damaged or another thing;
    InputError where no folder can be, or `first_time` is not so.
    """
    check_folder("--state", folder)
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []  # at once: another process may begin it
    strange = [] if FILE in names else [name for name in names if name not in BESIDE]
    if strange:
        raise InputError(
            f"--state '{folder}' has no {FILE} and something else ({strange[0]}), so it is left alone; give another."
        )
    second = _checked_journal(folder, journal)
    try:
        second.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the journal's folder '{second}' cannot be made ({error.strerror}); give --journal, a folder outside "
            "--state."
        ) from None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _only_its_owner(folder)
    if all(each.name.startswith(JOURNAL) for each in second.iterdir()):  # else it is somebody's with other things
        _only_its_owner(second)
    with (
        state_file.opened(folder / FILE, RECORD_FORM) as file,
        state_file.opened(second / JOURNAL, JOURNAL_FORM) as other,
        closing(DeviceRecord(folder, file, other)) as record,
    ):
        record.begin(now=now, first_time=first_time, budget_zcdp=budget_zcdp)
        yield record


@contextmanager
def read_only(
    folder: Path, journal: Path | None = None, *, now: float, budget_zcdp: float = math.inf
) -> Iterator[DeviceRecord]:
    """The record as `opened` would have it now, in memory: nothing is written, and the device may run meanwhile.

    Raises: DeviceError where it cannot be read, or is of another version.
    """
    second = _checked_journal(folder, journal) / JOURNAL
    with ExitStack() as stack:
        file = stack.enter_context(state_file.read_only(folder / FILE, RECORD_FORM))
        places = [file]
        if second.exists():
            places.append(stack.enter_context(state_file.read_only(second, JOURNAL_FORM)))
        memory = stack.enter_context(state_file.in_memory(RECORD_FORM))
        for place in places:
            stack.enter_context(place.alone())
        place_of = file.standing()  # raises for a file that is no record, before it is copied
        if place_of is not Standing.NEW:
            file.database.backup(memory.database)
        _brought_together(places, [memory], now=now, first_time=False, budget_zcdp=budget_zcdp)
        yield DeviceRecord(folder, memory)
