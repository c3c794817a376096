"""The record files of a run: what its pages are made from, as plain values.

    RUN/report/record.json       what follows from what was released; the page to publish is made from it alone
    RUN/simulation/record.json   everything, with exact numbers; the page to read is made from it alone

Each has a `schema`, which names the kind of run, and a `version`. A kind of which nothing is exact, or nothing may be
published, has the other file only. A page is a function of its record: it reads no clock, no folder and no model. The
journal of the run has the SHA-256 of both files, as of everything that is written for readers.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError, RunError
from tacit.federation.kinds import KINDS, loaded
from tacit.parsing import parsed_json
from tacit.records import Record, json_ready
from tacit.reports.page import PUBLISHED, SIMULATION, ReportFiles, to_json, write_both, write_files
from tacit.runs import Run
from tacit.runs.journal import RESTORE
from tacit.statements import Statement
from tacit.statements.statement import formats, statement

RECORD, VERSION = "record.json", 1
HEAD = ("schema", "version")


@dataclass(frozen=True, kw_only=True)
class Records:
    """What both pages of a run are made from; None where its kind has no such page."""

    released: Record | None = None
    exact: Record | None = None

    @classmethod
    def from_values(
        cls, kind: str, *, released: Mapping[str, Any] | None = None, exact: Mapping[str, Any] | None = None
    ) -> "Records":
        """Values of any kind as what their file gives back."""
        head = {"schema": schema_of(kind), "version": VERSION}
        return cls(
            released=None if released is None else head | json_ready(released),
            exact=None if exact is None else head | json_ready(exact),
        )

    @classmethod
    def from_everything(cls, kind: str, values: Mapping[str, Any], *, simulated: bool) -> "Records":
        """Both, where the module of the pages says what of everything may be published (`published`).

        simulated: whether more is known than that, as of simulated clients.
        """
        maker = loaded(KINDS[kind].page)
        return cls.from_values(kind, released=maker.published(values), exact=values if simulated else None)


def schema_of(kind: str) -> str:
    """What the records of a kind of run call themselves."""
    return f"tacit.record.{kind}"


def content_of(record: Mapping[str, Any], *others: str) -> Record:
    """A record without its schema, its version and `others`."""
    return {name: value for name, value in record.items() if name not in (*HEAD, *others)}


def write_run(folder: Path, kind: str, records: Records) -> ReportFiles:
    """Write the records of a run into its folders `report` and `simulation`, and what is made from them: the pages, and
    the statement, if it has one.

    Raises: InputError where a folder is a file.
    """
    maker, (released, exact) = loaded(KINDS[kind].page), (records.released, records.exact)
    beside: dict[str, bytes] = {}
    if released is not None:
        files = getattr(maker, "released_files", statement_file)
        beside = {**files(released), RECORD: to_json(released)}
    return write_both(
        folder,
        published=None if released is None else maker.released_page(released),
        whole=None if exact is None else maker.page(exact),
        files=beside,
        exact={} if exact is None else {RECORD: to_json(exact)},
    )


def write_records(folder: Path, records: Records) -> None:
    """Write the records alone. Raises: as `write_run`."""
    for place, record in ((PUBLISHED, records.released), (SIMULATION, records.exact)):
        if record is not None:
            write_files(folder / place, {RECORD: to_json(record)})


def statement_file(record: Mapping[str, Any]) -> dict[str, bytes]:
    """The statement that a record holds, by the name of its file; nothing where it holds none."""
    stated = record.get("statement")
    return {} if stated is None else {"statement.json": to_json(stated)}


def read_records(run: Run) -> Records:
    """The records of a finished run, from its folder alone.

    Raises: InputError where the run is not finished; RunError where it has no records (it was written by a version that
    kept none), where one is missing or was changed, or has a schema or version that this version does not read.
    """
    if not run.finished:
        raise InputError(
            f"'{run.path}' is not finished, and `tacit {run.kind}` writes its report at the end; go on with `tacit "
            f"resume {run.path}`."
        )
    released, exact = (_read(run, f"{place}/{RECORD}") for place in (PUBLISHED, SIMULATION))
    if released is None and exact is None:
        raise RunError(
            f"'{run.path}' is of a format before this one: it has neither {PUBLISHED}/{RECORD} nor {SIMULATION}/"
            f"{RECORD}, from which pages are made; run `tacit {run.kind}` again with another --out."
        )
    return Records(released=released, exact=exact)


def _read(run: Run, name: str) -> Record | None:
    """A record that the journal knows; None where it knows none."""
    if name not in run.files:
        return None
    path = run.path / name
    try:
        found = parsed_json(run.kept(name))
    except FileNotFoundError:
        raise RunError(f"'{path}' is missing, and pages are made from it; {RESTORE}.") from None
    except ValueError as error:
        raise RunError(f"'{path}' is no JSON ({error}); {RESTORE}.") from error
    schema, version = (found.get(each) for each in HEAD) if isinstance(found, dict) else (None, None)
    if (schema, version) != (schema_of(run.kind), VERSION):
        raise RunError(
            f"'{path}' has the schema {schema!r} in version {version!r}, and this version of tacit reads "
            f"{schema_of(run.kind)!r} in version {VERSION}; use the version that wrote it."
        )
    return dict(found)


@contextmanager
def understood(run: Run) -> Iterator[None]:
    """A record with a value that is not as this version writes it is a RunError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise RunError(
            f"a {RECORD} of '{run.path}' lacks or misnames a value ({error!r}); use the version that wrote it."
        ) from error


def statement_from(record: Mapping[str, Any] | None) -> Statement | None:
    """The statement that a record holds, made again from its facts."""
    return None if record is None else statement(formats()[record["format"]].FACTS.from_record(record["facts"]))
