"""The statement of a run, verified line by line as `tacit verify` does, once for each state of the run.

It takes seconds, so a thread does it and the page is filled in when it is there. What is kept of a run is of its last
state, which goes by the digest of the run: the last seal of its journal, and the files of its report.
"""

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.parsing import strict_json
from tacit.view.folders import Folders
from tacit.view.looks import opened_to_read, steadily

if TYPE_CHECKING:  # the mathematics of promises comes with them, and is loaded where it checks one
    from tacit.runs import Run
    from tacit.statements.verify import CheckedLine

KEPT = 32
STATEMENT = "report/statement.json"


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Every line, and what was checked."""

    lines: "tuple[CheckedLine, ...]"
    of: str

    @property
    def failing(self) -> "tuple[CheckedLine, ...]":
        """Those that do not hold."""
        return tuple(each for each in self.lines if not each.holds)


class Checks:
    """What was checked so far."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._kept: OrderedDict[Path, tuple[Any, Future[Checked]]] = OrderedDict()  # of each run the last
        self._lock = threading.Lock()
        self._alone = ThreadPoolExecutor(1, thread_name_prefix="verify")

    def of(self, path: Path) -> Checked | None:
        """None while it is under way. Raises: TacitError where there is nothing to check, OSError."""
        digest = _digest(path)
        with self._lock:
            known, found = self._kept.get(path, (None, None))
            if found is None or known != digest:
                if found is not None:
                    found.cancel()  # of a state that is past, where it has not begun
                found = self._alone.submit(self._check, path)
                self._kept[path] = digest, found
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return found.result() if found.done() else None

    def close(self) -> None:
        """End what is under way."""
        self._alone.shutdown(wait=False, cancel_futures=True)

    def _check(self, path: Path) -> Checked:
        from tacit.runs.reconciliation import reconciled
        from tacit.statements.accounts import reading

        def read() -> Checked:
            with opened_to_read(path) as run, reading(run):
                reconciled(run)
                return Checked(lines=self._lines(run), of=f"{run.steps_done:,} steps")

        return steadily(path, read)

    def _lines(self, run: "Run") -> "tuple[CheckedLine, ...]":
        from tacit.statements.run_facts import statement_of
        from tacit.statements.run_folder import folder_lines
        from tacit.statements.verify import CheckedLine, against_run
        from tacit.statements.verify import verify as lines_of

        files = folder_lines(run) if run.finished else ()
        try:
            if STATEMENT in run.files and run.finished:
                record = strict_json(run.kept(STATEMENT))
            else:
                record = statement_of(run).to_record()
            budget = run.metadata.budget
            at_hand = budget is not None and self._folders.holds(Path(budget.path))
            said = (*lines_of(record), *against_run(record, run, budget=at_hand), *_of_words(run, record))
        except (TacitError, FileNotFoundError, ValueError) as error:
            said = (CheckedLine(name="statement", complaint=str(error)),)
        return (*said, *files)


def _of_words(run: "Run", record: Any) -> "tuple[CheckedLine, ...]":
    """Of a finished discovery, whether its words follow from its votes."""
    from tacit.statements import DiscoveryFacts

    if record.get("format") != DiscoveryFacts.format or not run.finished:
        return ()
    from tacit.jobs.discover.published import list_lines  # what asks and cuts words comes with it

    found, shown = (strict_json(run.kept(f"report/{name}.json")) for name in ("record", "report"))
    return tuple(list_lines(found, record, shown=shown, plan=None))


def _digest(path: Path) -> tuple[Any, ...]:
    """Of everything that a check reads: its parts are written anew, never in place."""
    head = path / "head"
    files = [each for name in ("report", "model") for each in sorted((path / name).glob("*"))]
    return (
        head.read_bytes() if head.is_file() else b"",
        (path / "settings.toml").stat().st_mtime_ns if (path / "settings.toml").is_file() else 0,
        tuple((each.name, each.stat().st_mtime_ns, each.stat().st_size) for each in files if each.is_file()),
    )
