"""What a run published of its privacy, for people, and whether such a statement says what follows from its facts."""

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError
from tacit.files import PathLike, as_path
from tacit.jobs.account import NO_PROMISE
from tacit.jobs.opening import opened
from tacit.runs import Run
from tacit.statements.accounts import reading
from tacit.statements.run_facts import statement_of
from tacit.statements.statement import Statement
from tacit.statements.verify import CheckedLine
from tacit.statements.verify import verify as lines_of


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Every line of a statement, checked; `statement` is the file that it stands in, None where it came as a value."""

    lines: tuple[CheckedLine, ...]
    statement: str | None = None

    @property
    def holds(self) -> bool:
        """Whether every line follows from the facts. Whether the facts are true is not checked."""
        return not self.failed

    @property
    def failed(self) -> tuple[CheckedLine, ...]:
        """The lines that do not."""
        return tuple(line for line in self.lines if not line.holds)

    @property
    def verdict(self) -> str:
        """All of it in a sentence."""
        if self.holds:
            return f"All {len(self.lines)} lines follow from the facts. Whether the facts are true is not checked."
        return f"{len(self.failed)} of {len(self.lines)} lines FAIL: this is not a statement of its own facts."

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit verify --json` prints."""
        return {
            "statement": self.statement,
            "verified": self.holds,
            "checked": len(self.lines),
            "failed": [{"line": line.name, "complaint": line.complaint} for line in self.failed],
        }

    def _repr_html_(self) -> str:
        """The verdict and the lines that fail, as a notebook shows it."""
        rows = "".join(
            f"<tr><td><code>{html.escape(line.name)}</code></td><td>{html.escape(line.complaint or '')}</td></tr>"
            for line in self.failed
        )
        return f"<p>{self.verdict}</p>" + (f"<table>{rows}</table>" if rows else "")


def statement(run: Run | PathLike, *, delta: float | None = None) -> Statement:
    """The privacy statement of what a run has released so far, from its folder alone.

    delta: left out, the one that the run was begun with. Raises: AccountingError where nothing is released, InputError
    for a kind of run that releases nothing, UnknownRelease for a ledger that is not understood, RunError (damaged).
    """
    with opened(run) as found, reading(found):
        if found.kind in NO_PROMISE:
            raise InputError(
                f"'{found.path}' is a run of `tacit {found.kind}`, which has no statement: {NO_PROMISE[found.kind]}."
            )
        return statement_of(found, delta)


def verify(statement: Statement | Mapping[str, Any] | PathLike) -> Verification:
    """Recompute every figure, label and sentence of a statement from its facts.

    statement: a Statement, its record, or the `report/statement.json` that holds the record. Raises: InputError where
    it is no statement of a format that this version reads.
    """
    if isinstance(statement, Statement):
        return Verification(lines=lines_of(json.loads(statement.to_json())))
    if isinstance(statement, Mapping):
        return Verification(lines=lines_of(statement))
    return Verification(lines=lines_of(_read(as_path("statement", statement))), statement=str(statement))


def _read(file: Path) -> object:
    if file.is_dir():
        raise InputError(f"'{file}' is a folder; name a statement in it, such as {file}/report/statement.json.")
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"there is no statement '{file}'; `tacit account run ... --statement` and `tacit discover` write one."
        ) from None
    except ValueError as error:
        raise InputError(f"'{file}' is not JSON ({error}); ask for the file again.") from error
