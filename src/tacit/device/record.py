"""What a device remembers: the keys it trusts, the plans it knows, its participations and what they cost.

One SQLite file in the state folder, written by one process. A participation is on disk, with its price, before any
text is read for it; whatever happens then, it stays spent. A copy of the file, a restored backup say, lacks what
came after it. It is told by the number of the file on its disk (the inode) and by when it was changed last, which a
file beside it knows (the time of change, which no program can set): from then on the record is the whole truth again,
and not before.
"""

import fcntl
import json
import math
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tacit.device.separation import PastParticipation, Seen
from tacit.errors import DeviceError, InputError, TaskRefused
from tacit.files import check_folder, held, transaction
from tacit.parsing import parsed_json
from tacit.protocol.messages import Plan, RoundTask, ShownLog, SignedPlan

FILE = "device.db"
FORMAT = "tacit device 2"
CHANGED = "changed"  # beside it: when it was changed last, in nanoseconds, or that it is being changed
CHANGING = "changing"
BESIDE = ("policy.toml",)  # what an owner puts into a folder before the first start
GENERATION = 0x80087601  # FS_IOC_GETVERSION of linux/fs.h
_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE plans (digest TEXT PRIMARY KEY, population TEXT NOT NULL, run TEXT NOT NULL, signed TEXT NOT NULL,
    UNIQUE (population, run));
CREATE TABLE sights (plan TEXT NOT NULL REFERENCES plans, epoch INTEGER NOT NULL, round INTEGER NOT NULL,
    opens REAL NOT NULL, PRIMARY KEY (plan, epoch));
CREATE TABLE participations (id INTEGER PRIMARY KEY, plan TEXT NOT NULL REFERENCES plans, epoch INTEGER NOT NULL,
    round INTEGER NOT NULL, task TEXT NOT NULL UNIQUE, assignment TEXT NOT NULL, at REAL NOT NULL, opens REAL NOT NULL,
    deadline REAL NOT NULL, zcdp REAL NOT NULL, received INTEGER NOT NULL DEFAULT 0,
    UNIQUE (plan, round));
"""
MOST_PLANS = 100  # that are kept of runs in which it never took part; each has up to a megabyte
_FORGOTTEN = """SELECT digest FROM plans WHERE digest != ? AND digest NOT IN (SELECT plan FROM participations)
    ORDER BY rowid DESC LIMIT -1 OFFSET ?"""
ANEW = "move the folder away, and a new one waits as long as a device that may have taken part"


class DeviceRecord:
    """The open record of a device; `opened` makes it."""

    def __init__(self, folder: Path, database: sqlite3.Connection) -> None:
        self.folder, self._database = folder, database

    # -- whom it believes ----------------------------------------------------------------------------------------------

    @property
    def operator(self) -> str | None:
        """The public key that is pinned, 64 hexadecimal digits; None before the first."""
        found: str | None = self._about("operator")
        return found

    def pin(self, key: str) -> None:
        """Believe this operator from now on. Raises: InputError where another is pinned."""
        pinned = self.operator
        if pinned == key or key in self._operators_before:
            return
        if pinned is not None:
            raise InputError(
                f"--operator-key {key[:16]}... is not the key that '{self.folder}' has pinned ({pinned[:16]}...); for "
                "another operator give another --state."
            )
        with self._writing():
            self._note("operator", key)

    @property
    def _operators_before(self) -> list[str]:
        """Keys that were pinned and handed over, the oldest first."""
        return list(parsed_json(self._about("operators before") or "[]"))

    @property
    def operators(self) -> tuple[str, ...]:
        """All keys that were ever pinned, the present one last; none before the first."""
        return (*self._operators_before, *([] if self.operator is None else [self.operator]))

    def key_rotation(self, key: str, shown: ShownLog) -> None:
        """Believe this key in place of the pinned one, which signed that; shown: the log that has it.

        Raises: TaskRefused for one that was believed before: there is no way back.
        """
        before = [*self._operators_before, self.operator]
        if key in before:
            raise TaskRefused(f"the operator handed its key over to {key[:16]}..., which is one that it had before.")
        self.keep_log(shown)
        with self._writing():
            self._note("operators before", json.dumps(before))
            self._note("operator", key)

    @property
    def since(self) -> float | None:
        """From when on this record is the whole truth, by the device's clock; None: it always was."""
        found: float | None = self._about("since")
        return found

    @property
    def log(self) -> tuple[str, ...]:
        """The entries of the operator's log, the longest that it saw; none before the first."""
        found = self._about("log")
        return () if found is None else ShownLog.model_validate_json(found).entries

    def keep_log(self, shown: ShownLog) -> None:
        """Remember the longer of this log and the kept one, with its signed head: who signed another that begins
        otherwise is convicted by both. That one begins with the other is the caller's to know.
        """
        if len(shown.entries) > len(self.log):
            with self._writing():
                self._note("log", shown.model_dump_json())

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
        """Remember a plan, and forget the oldest of more than MOST_PLANS in whose runs it never took part: whoever asks
        may make one after another. Raises: TaskRefused where it took part in the run by another: a run has one plan for
        ever. What it was only shown goes for the new one: a refusal would tell who saw it.
        """
        plan = signed.plan
        row = self._row("SELECT digest FROM plans WHERE population = ? AND run = ?", plan.population, plan.run)
        other = "" if row is None or row[0] == digest else row[0]
        if other and self.rounds(other):
            raise TaskRefused(
                f"run {plan.run!r} now has the plan {digest[:16]}..., and it had {other[:16]}... when this device took "
                "part: a run has one plan for ever, so its operator has to give another run another name."
            )
        with self._writing():
            for table, column in (("sights", "plan"), ("plans", "digest")):
                self._database.execute(f"DELETE FROM {table} WHERE {column} = ?", (other,))
            self._database.execute(
                "INSERT OR IGNORE INTO plans (digest, population, run, signed) VALUES (?, ?, ?, ?)",
                (digest, plan.population, plan.run, signed.model_dump_json()),
            )
            for table, column in (("sights", "plan"), ("plans", "digest")):
                self._database.execute(f"DELETE FROM {table} WHERE {column} IN ({_FORGOTTEN})", (digest, MOST_PLANS))

    def kept_plans(self) -> dict[tuple[str, str], Plan]:
        """All plans that it keeps, by (population, run)."""
        signed = [SignedPlan.model_validate_json(row[0]).plan for row in self._rows("SELECT signed FROM plans")]
        return {(plan.population, plan.run): plan for plan in signed}

    def forget_plans(self) -> int:
        """Forget all plans of runs in which it never took part; how many they were."""
        with self._writing():
            before = self._rows("SELECT count(*) FROM plans")[0][0]
            for table, column in (("sights", "plan"), ("plans", "digest")):
                self._database.execute(f"DELETE FROM {table} WHERE {column} IN ({_FORGOTTEN})", ("", 0))
            return int(before - self._rows("SELECT count(*) FROM plans")[0][0])

    # -- taking part ---------------------------------------------------------------------------------------------------

    def observe(self, task: RoundTask) -> Seen:
        """What it knows of itself with respect to a task of a plan that it keeps; the task has been seen then."""
        epoch = self._epoch
        with self._writing():
            self._database.execute(
                "INSERT OR IGNORE INTO sights (plan, epoch, round, opens) VALUES (?, ?, ?, ?)",
                (task.plan, epoch, task.round, task.opens),
            )
        first = self._row("SELECT round, opens FROM sights WHERE plan = ? AND epoch = ?", task.plan, epoch)
        rows = self._rows(
            "SELECT epoch, round, at, opens, deadline FROM participations WHERE plan = ? ORDER BY round", task.plan
        )
        last = self._row("SELECT round, at, opens, deadline FROM participations ORDER BY at DESC, id DESC LIMIT 1")
        assert first is not None  # written above, or before
        return Seen(
            parts=[PastParticipation(*row[1:]) for row in rows],
            known=sum(row[0] == epoch for row in rows),
            last=None if last is None else PastParticipation(*last),
            first_round=first[0],
            first_opens=first[1],
            since=self.since,
        )

    def rounds(self, plan: str) -> list[int]:
        """In which rounds of a plan it took part."""
        return [
            found for (found,) in self._rows("SELECT round FROM participations WHERE plan = ? ORDER BY round", plan)
        ]

    def spent(self, *, but: str = "") -> float:
        """rho of all runs together, of one but for the plan with the digest `but`."""
        rows = self._rows("SELECT max(zcdp) FROM participations WHERE plan != ? GROUP BY plan", but)
        return math.fsum(found for (found,) in rows)

    def take_part(self, task: RoundTask, *, assignment: str, at: float, zcdp: float) -> None:
        """Record a participation, on disk when this returns: before any text is read for it. zcdp: what this run has
        cost with it. Raises: TaskRefused where the round or the task is recorded already.
        """
        try:
            with self._writing():
                self._database.execute(
                    "INSERT INTO participations (plan, epoch, round, task, assignment, at, opens, deadline, zcdp) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(task.plan, self._epoch, task.round, task.task, assignment),
                        *(at, task.opens, task.deadline, zcdp),
                    ),
                )
        except sqlite3.IntegrityError:
            raise TaskRefused(
                f"round {task.round} of run {task.run!r}: this device took part in it already; wait for another."
            ) from None

    def received(self, task: RoundTask) -> None:
        """The operator signed that the report came."""
        with self._writing():
            self._database.execute("UPDATE participations SET received = 1 WHERE task = ?", (task.task,))

    def participations(self) -> list[dict[str, Any]]:
        """Everything that it took part in, as plain values, in the order of time."""
        rows = self._rows(
            "SELECT population, run, round, at, zcdp, received FROM participations JOIN plans ON plan = digest "
            "ORDER BY participations.id"
        )
        names = ("population", "run", "round", "at", "zcdp", "received")
        return [dict(zip(names, (*row[:-1], bool(row[-1])), strict=True)) for row in rows]

    # -- the file ------------------------------------------------------------------------------------------------------

    @property
    def _epoch(self) -> int:
        return int(self._about("epoch"))

    def _about(self, name: str) -> Any:
        row = self._row("SELECT value FROM about WHERE name = ?", name)
        return None if row is None else row[0]

    def _note(self, name: str, value: Any) -> None:
        self._database.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    def _row(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        rows = self._rows(query, *values)
        return rows[0] if rows else None

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._complaints():
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: all of it is on disk afterwards, or nothing."""
        self._tell_change(changing=True)
        with self._complaints(), transaction(self._database):
            yield
        self._tell_change(changing=False)

    def _tell_change(self, *, changing: bool) -> None:
        """Nothing waits for the disk: where a power cut takes it back, the record is trusted later than need be."""
        try:
            when = CHANGING if changing else _changed(self.folder / FILE)
            (self.folder / CHANGED).write_text(when, encoding="ascii")
        except OSError as error:
            raise DeviceError(f"'{self.folder / CHANGED}' cannot be written ({error.strerror}); make room.") from error

    def _number(self) -> str:
        """Which file of its disk the record is in."""
        return _number(self.folder / FILE)

    def _is_the_last(self) -> bool:
        """Whether the file is the one that was written last, and nobody else has changed it since."""
        try:
            told = (self.folder / CHANGED).read_text(encoding="ascii")
        except (OSError, ValueError):
            told = ""
        return self._about("inode") == self._number() and told in (CHANGING, _changed(self.folder / FILE))

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.Error, UnicodeDecodeError) as error:  # which a damaged page may be shown in
            raise DeviceError(
                f"the record in '{self.folder / FILE}' cannot be used ({error}); make room on its disk, or see who "
                f"else has it open. Where it is damaged, {ANEW}."
            ) from error

    def _begin(self, now: float, *, first_time: bool) -> None:
        """Make the tables where there are none, and see whether this file is the one that was written last.

        Raises: DeviceError for a file of somebody else's, or another version's.
        """
        if not self._rows("SELECT name FROM sqlite_master LIMIT 1"):
            with self._writing():
                for statement in _SCHEMA.split(";"):
                    self._database.execute(statement)
                since = None if first_time else now
                about = {"format": FORMAT, "inode": self._number(), "epoch": 0, "since": since}
                for name, value in about.items():
                    self._note(name, value)
            return
        tables = {name for (name,) in self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = self._about("format") if "about" in tables else None
        if found != FORMAT:
            raise DeviceError(
                f"'{self.folder / FILE}' has the format {found!r}, and this version keeps {FORMAT!r}; use the version "
                "that wrote it."
            )
        if self._rows("PRAGMA quick_check(1)") != [("ok",)]:
            raise DeviceError(f"the record in '{self.folder / FILE}' is damaged; restore it from a copy, or {ANEW}.")
        if not self._is_the_last():
            with self._writing():
                self._note("inode", self._number())
                self._note("epoch", self._epoch + 1)
                self._note("since", now)


def _changed(path: Path) -> str:
    """When the file was changed last, in nanoseconds."""
    return str(path.stat().st_ctime_ns)


def _number(path: Path) -> str:
    """Which file of its disk it is, and of which generation, where the file system counts them: numbers come again."""
    with path.open("rb") as file:
        found = bytearray(8)
        with suppress(OSError):
            fcntl.ioctl(file, GENERATION, found)
        return f"{os.fstat(file.fileno()).st_ino}:{int.from_bytes(found, 'little')}"


@contextmanager
def opened(folder: Path, *, now: float, first_time: bool = False) -> Iterator[DeviceRecord]:
    """The record in a state folder, for this process alone; folder and file are made where there are none.

    now: by the device's clock. first_time: of a new record, that this device has taken part nowhere before, so that it
    is the whole truth from the beginning. Raises: DeviceError where another process has it, or it is damaged or another
    thing; InputError where no folder can be.
    """
    check_folder("--state", folder)
    strange = (
        []
        if (folder / FILE).exists() or not folder.is_dir()
        else [each.name for each in folder.iterdir() if each.name not in BESIDE]
    )
    if strange:
        raise InputError(
            f"--state '{folder}' has no {FILE} and something else ({strange[0]}), so it is left alone; give another."
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with held(folder):
            path = folder / FILE
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            database = sqlite3.connect(path, isolation_level=None, timeout=1.0)
            try:
                record = DeviceRecord(folder, database)
                with record._complaints():
                    # On disk before it counts, the journal's removal too: a power cut takes nothing back.
                    database.execute("PRAGMA journal_mode = DELETE")
                    database.execute("PRAGMA synchronous = EXTRA")
                    database.execute("PRAGMA foreign_keys = ON")
                record._begin(now, first_time=first_time)
                yield record
            finally:
                database.close()
    except BlockingIOError:
        raise DeviceError(f"another process runs the device of '{folder}'; end it, or give another --state.") from None


@contextmanager
def read_only(folder: Path) -> Iterator[DeviceRecord]:
    """The record in a state folder that has one, as it is on disk; another process may run the device meanwhile.

    Raises: DeviceError where it cannot be read, or is of another version.
    """
    database = sqlite3.connect(f"{(folder / FILE).absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
    try:
        record = DeviceRecord(folder, database)
        found = record._about("format")
        if found != FORMAT:
            raise DeviceError(
                f"'{folder / FILE}' has the format {found!r}, and this version reads {FORMAT!r}; use the version that "
                "wrote it."
            )
        yield record
    finally:
        database.close()
