"""Whether a statement's record says what follows from the facts in it: everything is computed again.

A statement is made from facts (of a run that trains: mechanism, participation as planned and as it happened, who, what,
how; of other runs: the ledger, who, what, how); figures, labels and sentences follow. `verify` makes the statement
again from the recorded facts alone and compares line by line. What it cannot check is whether the facts are true: the
log of who took part is not published with a statement.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError, RunError, TacitError
from tacit.parsing import strict_json
from tacit.privacy.strategy import Record
from tacit.records import LARGEST, json_ready
from tacit.runs import Run
from tacit.runs.budget import PopulationBudget
from tacit.statements.run_facts import facts_of
from tacit.statements.statement import checksum, formats, leaves, statement

ROUNDING = 1e-9  # of figures computed again, on another machine perhaps; relative
SHOWN = 120  # characters of a long text


# Kinds of lines, by the first part of their names; what has none of these follows from the facts.
KINDS_OF_LINES = {
    "facts": "facts as their checksums say",
    "run": "facts as the run's ledger and log say",
    "budget": "entries in the population's budget",
    "file": "files as the run wrote them",
    "list": "steps and figures of a list of words that follow from the published votes",
    "exported": "files as the manifest names them",
    "bundle": "files of a page as its bundle names them",
    "log": "things that the operator's transparency log shows",
    "trial": "runs and files of trials as they were written",
}
FOLLOWS = "figures, labels and sentences that follow from the facts"


@dataclass(frozen=True, kw_only=True)
class CheckedLine:
    """One thing that a statement says, by its name in the record, and what is wrong with it, if anything is."""

    name: str
    complaint: str | None = None

    @property
    def holds(self) -> bool:
        """Whether the line is as it should be."""
        return self.complaint is None

    @property
    def kind(self) -> str:
        """What it is one of, in words."""
        return KINDS_OF_LINES.get(self.name.partition(" ")[0].partition(".")[0], FOLLOWS)


def verify(record: Any) -> tuple[CheckedLine, ...]:
    """Every line of a statement's record, checked: facts against their checksums, all else computed again.

    A changed fact fails by its own name, and so does whatever should have changed with it. Figures may differ by
    the last bits of another machine's arithmetic (1e-9, relative). InputError where `record` is no statement of
    a format that this version reads.
    """
    known = formats()
    found = record.get("format") if isinstance(record, Mapping) else type(record).__name__
    if not isinstance(record, Mapping) or not isinstance(found, str) or found not in known:
        named = " or ".join(map(repr, known))
        way_out = (
            "a statement is called statement.json, beside its report"
            if found is None
            else "use the version that wrote it"
        )
        raise InputError(f"this is no statement of the format {named} but {found!r}; {way_out}.")
    stated = _as_in_a_file(record)
    facts, checksums = stated.pop("facts", None), stated.pop("checksums", None)
    if not isinstance(facts, Mapping) or not isinstance(checksums, Mapping):
        raise InputError("the statement lacks its facts or their checksums; ask for the whole file.")
    lines = _facts(facts, checksums)
    try:
        again = statement(known[found].FACTS.from_record(facts)).to_record()
    except TacitError as error:
        return (*lines, CheckedLine(name="facts", complaint=f"no statement follows from the facts: {error}"))
    computed = {name: value for name, value in again.items() if name not in ("facts", "checksums")}
    return (*lines, *compared(dict(leaves(stated)), dict(leaves(computed))))


def against_run(record: Mapping[str, Any], run: Run, *, budget: bool = True) -> tuple[CheckedLine, ...]:
    """Each fact of a statement against what the run's own ledger and log say, at the delta that it states.

    A run that was moved has another path in the command that accounts it, which is therefore left out.
    budget: against the population's, too, which is a folder of its own. Raises: as `facts_of`, for a run that has
    nothing to state.
    """
    facts = _as_in_a_file(record)["facts"]
    delta = facts.get("delta", facts.get("central_delta"))
    found = facts_of(run, delta if isinstance(delta, float) and 0 < delta < 1 else None)
    if record["format"] != found.format:
        return (CheckedLine(name="run", complaint=f"a run of `tacit {run.kind}` has no statement of this kind"),)
    if (seal := facts.get("seal")) != run.seal and seal in run.seals:
        steps = f"the statement is of the first {run.seals.index(seal)} of {run.steps_done} steps"
        return (CheckedLine(name="run.seal", complaint=f"{steps}; `tacit report` writes that of all"),)
    stated, computed = (
        {f"run.{name}": value for name, value in leaves(each) if name != "verify_command"}
        for each in (facts, json_ready(found.to_record()))
    )
    return (*compared(stated, computed), *(_of_budget(facts, run) if budget else ()))


def _of_budget(facts: Mapping[str, Any], run: Run) -> tuple[CheckedLine, ...]:
    """That the budget of the population, where it is at hand, has the entries that the statement speaks of."""
    if run.metadata.budget is None or not Path(run.metadata.budget.path).exists():
        return ()
    stated = facts["budget"]["seal"] if isinstance(facts["budget"], Mapping) else None
    try:
        seals = PopulationBudget.open(Path(run.metadata.budget.path)).read().seals
    except RunError as error:
        return (CheckedLine(name="budget", complaint=str(error)),)
    other = f"the budget '{run.metadata.budget.path}' never had the seal {_shown(stated)}"
    return (CheckedLine(name="budget", complaint=None if stated in seals else other),)


def _as_in_a_file(record: Mapping[str, Any]) -> Record:
    """The record as JSON gives it back; InputError where it holds what JSON cannot say, which a file cannot hold."""
    try:
        return dict(strict_json(json.dumps(dict(record), allow_nan=False)))
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"this is no statement: it holds what JSON cannot say ({error}); ask for the file.") from error


def _facts(facts: Mapping[str, Any], checksums: Mapping[str, Any]) -> tuple[CheckedLine, ...]:
    """Each fact against its checksum."""
    values = dict(leaves(facts))
    lines = []
    for name in dict.fromkeys((*values, *checksums)):
        complaint = None
        if name not in values:
            complaint = "missing"
        elif name not in checksums:
            complaint = f"stated {_shown(values[name])}, which has no checksum"
        elif checksums[name] != checksum(name, values[name]):
            complaint = f"stated {_shown(values[name])}, but its checksum is another's: {checksums[name]!r}"
        lines.append(CheckedLine(name=f"facts.{name}", complaint=complaint))
    return tuple(lines)


def compared(stated: Record, computed: Record) -> tuple[CheckedLine, ...]:
    """What is stated against what follows."""
    lines = []
    for name in dict.fromkeys((*computed, *stated)):
        complaint = None
        if name not in stated:
            complaint = f"missing; recomputed {_shown(computed[name])}"
        elif name not in computed:
            complaint = f"stated {_shown(stated[name])}, which does not follow from the facts"
        elif not _same(stated[name], computed[name]):
            begin = _difference(stated[name], computed[name])
            complaint = f"stated {_shown(stated[name], begin)}, recomputed {_shown(computed[name], begin)}"
        lines.append(CheckedLine(name=name, complaint=complaint))
    return tuple(lines)


def _same(stated: Any, computed: Any) -> bool:
    if float in (type(stated), type(computed)) and {type(stated), type(computed)} <= {int, float}:
        beyond = isinstance(stated, int) and abs(stated) > LARGEST  # which no real number comes near
        return not beyond and math.isclose(stated, computed, rel_tol=ROUNDING)
    return type(stated) is type(computed) and bool(stated == computed)


def _difference(stated: Any, computed: Any) -> int:
    """Where two long texts begin to differ, a little before; 0 where they are no such texts."""
    if not (isinstance(stated, str) and isinstance(computed, str)):
        return 0
    pairs = enumerate(zip(stated, computed, strict=False))
    first = next((at for at, (here, there) in pairs if here != there), min(len(stated), len(computed)))
    return max(first - SHOWN // 4, 0)


def _shown(value: Any, begin: int = 0) -> str:
    """A value as it is shown, a long text by what stands from `begin` on."""
    if not isinstance(value, str) or len(value) <= SHOWN:
        return repr(value)
    before, after = "..." if begin else "", "..." if begin + SHOWN < len(value) else ""
    return f"{before}{value[begin : begin + SHOWN]!r}{after}"
