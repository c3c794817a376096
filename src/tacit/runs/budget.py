"""What a population of clients may be asked for in all, and what every run took of it: a folder that runs share.

    budgets/phones/
      entries.jsonl   one line an entry, each sealed with those before it: what is allowed, then what each run takes
      head            how many entries there are, and the seal of the last
      lock            held while something is entered

A run is *entered* with its planned cost before its folder exists, *begun* when that exists, and *settled* to what it
really took when nothing more can be released from it. Nothing is released from a run that was not begun here, so an
entry that a killed process left before that cost nothing and is *withdrawn*; one that was begun keeps its planned cost
until it is settled, whatever becomes of its folder. A run whose clients come more often than planned is *raised* before
it releases what costs more, or stops: so nothing is released beyond what is allowed. Costs add: rho of zCDP where noise
is added to sums, epsilon where devices randomise their own reports (`statements.population` says which theorem).
"""

import fcntl
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.errors import BudgetError, RunError
from tacit.files import sync_folder
from tacit.folders import folder_beside, place_of
from tacit.parsing import strict_json
from tacit.plurals import quantity
from tacit.records import from_plain, to_plain
from tacit.runs.budget_book import (
    DAY,
    FORMAT,
    KINDS,
    Allowed,
    Book,
    Committed,
    Cost,
    Line,
    Raised,
    Reservation,
    Reserved,
    RunBegun,
    Window,
    Withdrawn,
)
from tacit.runs.journal import RESTORE, START

ENTRIES, HEAD, LOCK = "entries.jsonl", "head", "lock"
PATIENCE = 30.0  # seconds for which a run waits to be entered while others are
ROUNDING = 1e-9  # relative; of sums of costs


class PopulationBudget:
    """A population's budget on disk. Whatever is read is checked to its end; writing is alone, and on disk at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        clients: str,
        zcdp: float | None = None,
        local_epsilon: float | None = None,
        delta: float | None = None,
        window: Window | None = None,
    ) -> "PopulationBudget":
        """A new one; all of it exists when this returns, or none. Raises: InputError; RunError when `path` is there."""
        allowed = Allowed(
            clients=clients, zcdp=zcdp, local_epsilon=local_epsilon, delta=delta, created=time.time(), window=window
        )
        if path.exists():
            raise RunError(f"'{path}' exists already, and what is allowed never changes; begin another at a new path.")
        path = place_of(path)
        with folder_beside(path) as draft:
            line, seal = _line(0, START, allowed)
            for name, content in ((ENTRIES, line), (HEAD, _head(1, seal)), (LOCK, b"")):
                descriptor = os.open(draft / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            sync_folder(draft)
            draft.rename(path)
        sync_folder(path.parent)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> "PopulationBudget":
        """An existing one, checked. Raises: RunError where there is none, or it is not what was written."""
        if not (path / ENTRIES).is_file():
            raise RunError(
                f"'{path}' is no population's budget (it has no {ENTRIES}); begin one with `tacit account population "
                f"{path} --zcdp RHO --clients WHO`."
            )
        budget = cls(path)
        budget.read()
        return budget

    @property
    def name(self) -> str:
        """What the population is called: the name of the folder."""
        return self.path.resolve().name

    def read(self) -> Book:
        """All entries. Raises: RunError naming the first that is not what was written."""
        try:
            head = (self.path / HEAD).read_bytes()  # before the entries: a writer at work is never behind its head
            content = (self.path / ENTRIES).read_bytes()
        except OSError as error:
            raise RunError(f"the budget '{self.path}' cannot be read ({error}); {RESTORE}.") from error
        book = Book()
        for number, text in enumerate(content.split(b"\n")[:-1]):  # after the last newline: what a killed process left
            where = f"entry {number} of '{self.path / ENTRIES}'"
            before = book.seals[-1] if book.seals else START
            record = _record(text, where)
            seal = str(record.pop("seal", ""))
            if seal != _seal(number, before, record) or text != _written(record, seal):
                raise RunError(
                    f"{where} is not what was written: it, or one before it, was changed, removed or moved; {RESTORE}."
                )
            kind = KINDS.get(str(record.pop("what", "")))
            if kind is None:
                raise RunError(f"{where} is of an unknown kind; use the version that wrote it.")
            line: Line = from_plain(kind, record, error=RunError, where=where)
            book.take(line, seal, where)
        count = len(book.seals)
        stated = int(head[:20]) if head[:20].isdigit() else 0
        if book.allowed is None or not 0 < stated <= count or head != _head(stated, book.seals[stated - 1]):
            raise RunError(
                f"'{self.path / HEAD}' does not fit the {count} entries beside it: some were removed at the end, or "
                f"the file was changed; {RESTORE}."
            )
        return book

    @property
    def allowed(self) -> Allowed:
        """Who the clients are and what may be taken from each."""
        allowed = self.read().allowed
        assert allowed is not None  # or `read` had refused
        return allowed

    @contextmanager
    def reserving(self, *, kind: str, run: Path, clients: int, planned: Cost) -> Iterator[tuple[str, Book]]:
        """Enter a run whose folder is made in the body: its name here, and the budget with it.

        Nobody else enters meanwhile. What the body raises withdraws the entry. Raises: BudgetError where the budget
        does not allow it: before anything is written.
        """
        with self._alone() as book:
            place = str(run.resolve())
            for each in [each for each in book.counted if each.state == "entered" and each.reserved.run == place]:
                if not (run / "run.db").is_file():  # its process was killed between this and the folder
                    book = self._append(book, Withdrawn(name=each.reserved.name))
            self._check(book, planned)
            reserved = Reserved(
                name=secrets.token_hex(8), kind=kind, run=place, clients=clients, planned=planned, time=time.time()
            )
            book = self._append(book, reserved)
            try:
                yield reserved.name, book
            except BaseException:
                self._append(book, Withdrawn(name=reserved.name))
                raise
            self._append(book, RunBegun(name=reserved.name))

    def check(self, planned: Cost) -> None:
        """BudgetError unless there is enough left for so much; nothing is entered."""
        self._check(self.read(), planned)

    def recheck(self, name: str, run: Path) -> Cost:
        """That a run may release: before its first round, and whenever it goes on; so much is reserved for it. Raises:
        RunError where it may not, because it was never entered here, or was withdrawn.
        """
        with self._alone() as book:
            reservation = self._reservation(book, name, run)
            if reservation.state == "entered":  # its process was killed between its folder and this
                self._append(book, RunBegun(name=name))
            return reservation.cost

    def reserve_more(self, name: str, needed: Cost, *, run: Path) -> Cost:
        """Reserve `needed` in all for a begun run, before it releases what costs so much; what is reserved for it now,
        never less than before. On disk when this returns. Raises: BudgetError where that is not free; RunError.
        """
        with self._alone() as book:
            reservation = self._reservation(book, name, run)
            before = reservation.cost
            more = needed.or_more(before)
            if more == before:
                return before
            if reservation.state != "begun":
                raise RunError(f"'{run}' is {reservation.state} in '{self.path}', and costs no more; begin a new run.")
            others = Book(allowed=book.allowed, runs={each: book.runs[each] for each in book.runs if each != name})
            self._check(others, more, "other run")
            return self._append(book, Raised(name=name, reserved=more)).runs[name].cost

    def commit(self, name: str, spent: Cost, *, run: Path, seal: str) -> Book:
        """What a run took, when nothing more can be released from it; the budget after it. Settling twice is once."""
        with self._alone() as book:
            if self._reservation(book, name, run).state == "settled":
                return book
            return self._append(book, Committed(name=name, spent=spent, of=seal, time=time.time()))

    def _reservation(self, book: Book, name: str, run: Path) -> Reservation:
        reservation = book.runs.get(name)
        if reservation is None or reservation.state == "withdrawn":
            raise RunError(
                f"'{run}' is not entered in the budget '{self.path}', so nothing more may be released from it; "
                f"{RESTORE}, or begin a new run."
            )
        if reservation.reserved.run != str(run.resolve()):
            raise RunError(
                f"'{run}' is entered in the budget '{self.path}' as '{reservation.reserved.run}', and a copy would be "
                "counted once and asked for twice; move the run back there to go on with it."
            )
        return reservation

    def _check(self, book: Book, planned: Cost, counted: str = "run") -> None:
        """BudgetError unless there is enough left. counted: what the runs in the book are called."""
        assert book.allowed is not None
        pots = (("zCDP", "zcdp"), ("local epsilon", "local_epsilon"))
        for what, name in pots:
            wanted, taken, allowed = (getattr(each, name) for each in (planned, book.total, book.allowed))
            if wanted and allowed is None:
                raise BudgetError(
                    f"the population '{self.name}' has no budget of {what}, and this run would take {wanted:.6g}; give "
                    "a population that has."
                )
            if allowed is not None and wanted and taken + wanted > allowed * (1 + ROUNDING):
                runs = quantity(len(book.counted), counted)
                raise BudgetError(
                    f"the population '{self.name}' has {what} {max(allowed - taken, 0):.6g} of {allowed:.6g} left "
                    f"after {runs}, and this run would take {wanted:.6g}; ask for less, or others."
                )
        window, now = book.allowed.window, time.time()
        begins = book.window_begins(now)
        if window is None or begins is None:
            return
        for what, name in pots:
            wanted, taken, allowed = (getattr(each, name) for each in (planned, book.in_window(now), window))
            if allowed is not None and wanted and taken + wanted > allowed * (1 + ROUNDING):
                renewed = datetime.fromtimestamp(begins + window.days * DAY, UTC)
                raise BudgetError(
                    f"the population '{self.name}' has {what} {max(allowed - taken, 0):.6g} of {allowed:.6g} left in "
                    f"these {window.days:g} days, and this run would take {wanted:.6g}; ask for less, or after "
                    f"{renewed:%Y-%m-%d %H:%M} UTC, where no run that took it is still open."
                )

    # -- the file --------------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[Book]:
        """The right to write, and what is written by now. The kernel frees it when the process dies."""
        try:
            descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise RunError(f"the budget '{self.path}' cannot be written ({error}); give the right to write.") from error
        try:
            patient = time.monotonic() + PATIENCE
            while not _locked(descriptor):
                if time.monotonic() > patient:
                    raise RunError(f"another run has been entering itself in '{self.path}' for long; try again later.")
                time.sleep(0.01)
            yield self.read()
        finally:
            os.close(descriptor)

    def _append(self, book: Book, line: Line) -> Book:
        """One more entry, on disk; hold `_alone`. What a killed process left of another is written over."""
        number, before = len(book.seals), book.seals[-1]
        content, seal = _line(number, before, line)
        try:
            with open(self.path / ENTRIES, "r+b") as file:
                whole = file.read()
                file.seek(whole.rfind(b"\n") + 1)
                file.truncate()
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            with open(self.path / HEAD, "r+b") as file:
                file.write(_head(number + 1, seal))  # of one length: written over in place
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunError(
                f"the budget '{self.path}' cannot be written ({error}); free space and try again."
            ) from error
        return self.read()


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _record(text: bytes, where: str) -> dict[str, Any]:
    try:
        return dict(strict_json(text.decode()))
    except (ValueError, TypeError) as error:
        raise RunError(f"{where} is damaged ({error}); {RESTORE}.") from error


def _line(number: int, before: str, line: Line) -> tuple[bytes, str]:
    """(the line with its newline, its seal)."""
    record = {"what": line.what, **to_plain(line)}
    seal = _seal(number, before, record)
    return _written(record, seal) + b"\n", seal


def _written(record: dict[str, Any], seal: str) -> bytes:
    """The one way in which an entry is written: two texts of one time (a digit more than it has) are not one entry."""
    return json.dumps({**record, "seal": seal}).encode()


def _seal(number: int, before: str, record: dict[str, Any]) -> str:
    return hashlib.sha256(f"{FORMAT}\n{number}\n{before}\n{json.dumps(record)}".encode()).hexdigest()


def _head(count: int, seal: str) -> bytes:
    return f"{count:020d} {seal}\n".encode()
