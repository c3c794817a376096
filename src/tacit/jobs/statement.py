"""What a run published of its privacy, for people, and whether such a statement says what follows from its facts."""

import html
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, TacitError
from tacit.federation.kinds import KINDS
from tacit.files import PathLike, as_path, read_bounded
from tacit.jobs.mix import COUNTED
from tacit.jobs.open_run import opened
from tacit.jobs.train.mixture_run import is_mixture_run, mixture_run_at
from tacit.networks.models import PROMISE
from tacit.parsing import parsed_json, strict_json
from tacit.records import visible
from tacit.runs import Run
from tacit.runs.journal import DATABASE
from tacit.statements import DiscoveryFacts
from tacit.statements.accounts import reading
from tacit.statements.composed import SCHEMA, check
from tacit.statements.page_bundle import BUNDLE, PageBundle
from tacit.statements.run_facts import statement_of
from tacit.statements.run_folder import folder_lines
from tacit.statements.statement import Statement
from tacit.statements.verify import KINDS_OF_LINES, CheckedLine, against_run
from tacit.statements.verify import verify as lines_of

if TYPE_CHECKING:  # what cuts words comes with it
    from tacit.keyboard.exported import Exported

NAME = "statement.json"  # of the file, in the report of a run
MANIFEST = "manifest.json"  # of an exported model, which carries one
SHOWN = "report.json"  # the page for programs, beside its record
EXPORTED = KINDS_OF_LINES["exported"]


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Every line of a statement, checked.

    `statement` is the file that it stands in, None where it came as a value; `run` the folder whose ledger and log its
    facts were held against, None where that was not at hand. `labels` are the names of those that it bears: a statement
    that promises nothing follows from its facts as well as any. `promise` is what an export without a statement says of
    the text that its model was made from. `bundle` is the digest of a built page, which has no statement.
    """

    lines: tuple[CheckedLine, ...]
    statement: str | None = None
    run: str | None = None
    labels: tuple[str, ...] = ()
    promise: str | None = None
    bundle: str | None = None

    def __repr__(self) -> str:
        return f"Verification({self.judgement!r})"

    @property
    def holds(self) -> bool:
        """Whether every line follows from the facts, and each fact from the run, where one was given."""
        return not self.failed

    @property
    def failed(self) -> tuple[CheckedLine, ...]:
        """The lines that do not."""
        return tuple(line for line in self.lines if not line.holds)

    @property
    def judgement(self) -> str:
        """All of it in a sentence."""
        if self.bundle is not None:
            if self.holds:
                return f"All {len(self.lines)} lines hold: this is the page whose bundle has the digest {self.bundle}."
            failing = f"{len(self.failed)} of {len(self.lines)} lines FAIL"
            return f"{failing}: this is not the page whose bundle has the digest {self.bundle}."
        if self.holds:
            if self.promise is not None and self.statement is not None:
                return f"All {len(self.lines)} lines follow from the parts; no statement: {self.promise}."
            if self.promise is not None:
                return f"All {len(self.lines)} files are those that {MANIFEST} names; no statement: {self.promise}."
            truth = (
                "Whether the facts are true is not checked."
                if self.run is None
                else "The facts are those of the run's ledger and log."
            )
            if self.statement is None and self.run is not None:
                return f"All {len(self.lines)} files are what the run wrote; it has no statement."
            labelled = f" It is labelled {', '.join(self.labels)}." if self.labels else ""
            return f"All {len(self.lines)} lines follow from the facts. {truth}{labelled}"
        what = "a statement of its own facts" if self.run is None else "what the run wrote and its ledger says"
        if self.run is None and any(line.kind == EXPORTED for line in self.lines):
            what = "what was exported"
        return f"{len(self.failed)} of {len(self.lines)} lines FAIL: this is not {what}."

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit verify --json` prints."""
        return {
            "schema": "tacit.verification",
            "version": 1,
            "statement": self.statement,
            "run": self.run,
            "verified": self.holds,
            "checked": len(self.lines),
            "failed": [{"line": line.name, "complaint": line.complaint} for line in self.failed],
            "labels": list(self.labels),
            "promise": self.promise,
            "bundle": self.bundle,
        }

    def __str__(self) -> str:
        """The judgement, and a line for each that fails."""
        return "\n".join([self.judgement, *(visible(f"FAIL {line.name}: {line.complaint}") for line in self.failed)])

    def _repr_html_(self) -> str:
        """The judgement and the lines that fail, as a notebook shows it."""
        rows = "".join(
            f"<tr><td><code>{html.escape(line.name)}</code></td><td>{html.escape(line.complaint or '')}</td></tr>"
            for line in self.failed
        )
        return f"<p>{self.judgement}</p>" + (f"<table>{rows}</table>" if rows else "")


def statement(run: Run | PathLike, *, delta: float | None = None) -> Statement:
    """The privacy statement of what a run has released so far, from its folder alone.

    run: its folder, or what `open_run` gave. delta: left out, the one that the run was begun with. Raises:
    AccountingError where nothing is released, InputError for a kind of run that releases nothing, UnknownRelease for a
    ledger that is not understood, RunError (damaged).
    """
    if (mixture := mixture_run_at(run)) is not None:
        raise InputError(
            f"'{mixture}' makes a mixture, whose promise has the statements of its parts; `tacit account run {mixture} "
            "--statement FILE` writes it."
        )
    with opened(run) as found, reading(found):
        if (why := KINDS[found.kind].unstated) is not None:
            raise InputError(f"'{found.path}' is a run of `tacit {found.kind}`, which has no statement: {why}.")
        return statement_of(found, delta)


def verify(
    statement: Statement | Mapping[str, Any] | PathLike,
    *,
    run: Run | PathLike | None = None,
    plan: str | None = None,
) -> Verification:
    """Recompute every figure, label and sentence of a statement from its facts.

    statement: a Statement, its record, the `report/statement.json` that holds the record, or a run folder of any kind:
    its statement, if it has one, is held against its ledger and log, and each file that the run recorded against its
    digest. Of an exported model's folder it is the statement in the manifest, if its model has one, and each file is
    held against its digest. Of a published `report` folder it is the statement, and of a discovery its words too, which
    are made again from the votes that were published. Of the folder of a built page it is each file of its bundle.
    run: the folder against whose ledger, log and seal a statement that was published is held.
    plan: the SHA-256 of the plan that a device had (`device_status`), to be that of a published discovery.

    Raises: InputError where it is no statement of a format that this version reads; for a run also as `statement`.
    """
    if plan is not None and not (isinstance(statement, str | os.PathLike) and _is_published(Path(statement))):
        raise InputError("a device's plan is held against the published report of a discovery; give that folder.")
    record: object
    file: Path | None = None
    if isinstance(statement, Statement):
        record = parsed_json(statement.to_json())
    elif isinstance(statement, Mapping):
        record = statement
    else:
        file = as_path("statement", statement)
        if run is None and (file / DATABASE).is_file():
            return _of_folder(file)
        if (file / BUNDLE).is_file():
            return _of_bundle(file, run)
        if (file / MANIFEST).is_file():
            return _of_export(file, run)
        if is_mixture_run(file):
            return _of_mixture_run(file, run)
        if (file / PROMISE).is_file():
            return _of_mixture_folder(file, run)
        if _is_published(file):
            return _of_published(file, run, plan)
        record = _read(file)
        if isinstance(record, Mapping) and record.get("schema") == SCHEMA:
            return _of_mixture(record, str(file), run)
    return _of_record(record, None if file is None else str(file), run)


def _of_record(record: object, shown: str | None, run: Run | PathLike | None) -> Verification:
    lines = lines_of(record)
    assert isinstance(record, Mapping)  # or there were no lines
    labels = _labels(record)
    if run is None:
        return Verification(lines=lines, statement=shown, labels=labels)
    with opened(run) as found, reading(found):
        lines = (*lines, *against_run(record, found))
        return Verification(lines=lines, statement=shown, run=str(found.path), labels=labels)


def _of_folder(path: Path) -> Verification:
    """A run's folder, and the statement in its report against itself and the run."""
    file = path / "report" / NAME
    with opened(path) as run, reading(run):
        lines, labels = folder_lines(run), tuple[str, ...]()
        if not file.is_file():
            return Verification(lines=lines, run=str(path))
        try:
            record = _read(file)
            own = lines_of(record)
            assert isinstance(record, Mapping)  # or there were no lines
            of_list = _of_list(file.parent, record) if _is_published(file.parent) else ()
            lines, labels = (*own, *lines, *against_run(record, run), *of_list), _labels(record)
        except TacitError as error:
            lines = (CheckedLine(name="statement", complaint=str(error)), *lines)
        return Verification(lines=lines, statement=str(file), run=str(path), labels=labels)


def _is_published(folder: Path) -> bool:
    """Whether it is the `report` folder of a run, alone or in the run's."""
    if not (folder / NAME).is_file():
        return False
    from tacit.reports.record_files import RECORD

    return (folder / RECORD).is_file()


def _of_published(folder: Path, run: Run | PathLike | None, plan: str | None) -> Verification:
    """A report as it was published: its statement and, of a discovery, whether its words follow from its votes."""
    record = _read(folder / NAME)
    found = _of_record(record, str(folder / NAME), run)
    return replace(found, lines=(*found.lines, *_of_list(folder, record, plan)))


def _of_list(folder: Path, stated: object, plan: str | None = None) -> tuple[CheckedLine, ...]:
    """The list of words in the published folder of a discovery; nothing of other kinds of runs."""
    if not isinstance(stated, Mapping) or stated.get("format") != DiscoveryFacts.format:
        return ()
    from tacit.jobs.discover.published import list_lines  # what asks and cuts words comes with it
    from tacit.reports.record_files import RECORD

    record = _read(folder / RECORD)
    shown = _read(folder / SHOWN) if (folder / SHOWN).is_file() else {}
    if not isinstance(record, Mapping) or not isinstance(shown, Mapping):
        return (CheckedLine(name="list", complaint=f"{RECORD} or {SHOWN} holds no record"),)
    return list_lines(record, stated, shown=shown or None, plan=plan)


def _of_export(path: Path, run: Run | PathLike | None) -> Verification:
    """An exported model's files, and the statement that it carries, if any."""
    from tacit.keyboard.exported import load_exported  # what cuts words comes with it

    exported = load_exported(path)
    privacy = exported.manifest.privacy
    if privacy.statement is None and run is not None:
        raise InputError(f"the export in '{path}' has no statement to hold against a run: {privacy.says}.")
    others = {} if run is None else _of_another_model(exported, run)
    files = tuple(
        CheckedLine(name=f"exported {name}", complaint=exported.complaint(name) or others.get(name))
        for name in exported.names
    )
    if privacy.statement is None:
        return Verification(lines=files, promise=privacy.says)
    if privacy.statement.get("schema") == SCHEMA:
        found = _of_mixture(privacy.statement, str(path), run)
        return replace(found, lines=(*files, *found.lines))
    facts, differs = privacy.statement.get("facts"), None
    stated = facts.get("seal") if isinstance(facts, Mapping) else None
    if stated != exported.manifest.run:
        differs = f"it is of the run with the seal {exported.manifest.run}, and its statement of the one with {stated}"
    found = _of_record(privacy.statement, str(path), run)
    return replace(found, lines=(*files, CheckedLine(name=f"exported {MANIFEST}", complaint=differs), *found.lines))


def _of_bundle(folder: Path, run: Run | PathLike | None) -> Verification:
    """A built page's files."""
    if run is not None:
        raise InputError(f"'{folder}' is a page, which no run has; leave --run out.")
    found = PageBundle.in_folder(folder)
    return Verification(lines=found.lines(), bundle=found.digest)


def _of_mixture(record: object, shown: str, run: Run | PathLike | None) -> Verification:
    """What a model of several runs says that they cost together."""
    if run is not None:
        raise InputError(f"'{shown}' is of several runs; hold the statement of each against its own run.")
    lines = check(record)
    assert isinstance(record, Mapping)  # or there were no lines
    labels = dict.fromkeys(label for each in record["statements"].values() for label in _labels(each))
    promise = None if record["statements"] else "public text alone, and nothing is promised to anybody"
    return Verification(lines=lines, statement=shown, labels=tuple(labels), promise=promise)


def _of_mixture_folder(folder: Path, run: Run | PathLike | None) -> Verification:
    """The promise beside a mixture, and that it leaves out no part of it."""
    from tacit.networks.model_files import read_files  # what cuts words comes with it

    record = _read(folder / PROMISE)
    found = _of_mixture(record, str(folder / PROMISE), run)
    return replace(found, lines=(*found.lines, _every_part(record, read_files(folder).settings)))


def _of_mixture_run(path: Path, run: Run | PathLike | None) -> Verification:
    """The run of a mixture: its promise, each run beside it, and the model, which is made again from its parts."""
    from tacit.jobs.train.mixture_check import PARTS, mixture_lines  # JAX comes with it

    found = _of_mixture_folder(path / "model", run)
    if not found.holds:
        return replace(found, run=str(path))
    record = _read(path / "model" / PROMISE)
    assert isinstance(record, Mapping)  # or it had no lines
    lines = list(found.lines)
    for name in PARTS.values():
        if (path / name / DATABASE).is_file():
            own = _of_folder(path / name)
            lines += [CheckedLine(name=f"{name}: {line.name}", complaint=line.complaint) for line in own.lines]
    return replace(found, lines=(*lines, *mixture_lines(path, record)), run=str(path))


def _every_part(record: Any, settings: Mapping[str, Any]) -> CheckedLine:
    """That a mixture's promise leaves out no part that its settings say it has: what is missing there costs nothing."""
    of_clients, public = record["statements"], record["public"]
    missing = ["the counts that bend it"] if settings.get("bent") and COUNTED not in of_clients else []
    if settings.get("network") is not None and "network" not in of_clients and "network" not in public:
        missing.append("its network")
    complaint = f"nothing is said of {' and '.join(missing)}, which the model is made of" if missing else None
    return CheckedLine(name=f"parts of {PROMISE}", complaint=complaint)


def _of_another_model(exported: "Exported", run: Run | PathLike) -> dict[str, str]:
    """What is wrong with the files of an export that are those of the run's model, byte by byte: weights and words."""
    with opened(run) as found:
        model = {name.removeprefix("model/"): sha for name, sha in found.files.items() if name.startswith("model/")}
        return {
            name: f"it is not that of the model in '{found.path}'"
            for name, file in exported.manifest.files.items()
            if name in model and file.sha256 != model[name]
        }


def _labels(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a record's labels, which are known ones where its lines hold, and nothing to be read where not."""
    try:
        return tuple(str(label["name"]) for label in record["labels"])
    except (KeyError, TypeError):
        return ()


def _read(file: Path) -> object:
    if file.is_dir():
        inside = [found for found in (file / "report" / NAME, file / NAME) if found.is_file()]
        way_out = (
            f"name the statement in it, {inside[0]}" if inside else "it holds no run, and no report/statement.json"
        )
        raise InputError(f"'{file}' is a folder; {way_out}.")
    try:
        content = read_bounded(file)
    except FileNotFoundError:
        raise InputError(
            f"there is no statement '{file}'; `tacit account run ... --statement` and `tacit discover` write one."
        ) from None
    try:
        return strict_json(content)
    except ValueError as error:
        raise InputError(
            f"'{file}' is not JSON ({error}), so it is no statement; that of a run is RUN/report/{NAME}."
        ) from error
