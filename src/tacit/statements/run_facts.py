"""The facts of a run's statement, from its folder."""

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.errors import InputError, RunError
from tacit.federation.kinds import KINDS, loaded
from tacit.records import from_plain
from tacit.runs import Run
from tacit.statements.markdown import one_line
from tacit.statements.participation_log import separation_of
from tacit.statements.population import PopulationSpent
from tacit.statements.statement import Facts, Statement, statement

PUBLIC_DATA = {  # by the vocabulary's kind
    "public": ("the text that the vocabulary was counted in",),
    "word list": ("the word list that became the vocabulary",),
    "discovered": ("the text or list that the vocabulary began with",),
    "private": (),
}

IN_THE_CLEAR = "simulated in the clear"
PROTOCOLS = {"masks": "pairwise masks", "one-message": "one encrypted message of each and decryptors"}
BUDGET = "budget"  # a note: the state of the population's after the run was settled
ENDED = "ended"  # a note: by what it was decided that a training has no further round
EXACT_FIGURES = "the exact figures under 'simulation' in the folder and in its report, counted in the clients' own text"
SEEN_ALL_THE_SAME = (  # by whom, in a simulation and in what it simulates
    "a simulation hides nothing from whoever runs it, and by the protocol alone a server would still learn each exact "
    "sum and who is in it"
)


def statement_of(run: Run, delta: float | None = None) -> Statement:
    """The privacy statement of what a run has released so far, at `delta` (left out: the one it was begun with).

    Raises: AccountingError where nothing is released, InputError for a kind of run that releases nothing.
    """
    return statement(facts_of(run, delta))


def facts_of(run: Run, delta: float | None = None) -> Facts:
    """What the statement of a run follows from; raises as `statement_of`."""
    module = KINDS[run.kind].statement
    if module is None:
        raise InputError(f"'{run.path}' is a run of `tacit {run.kind}`, which evaluates nothing; give one that does.")
    facts: Facts = loaded(module).facts(run, delta)
    return facts


def summed_how(secure: Mapping[str, Any] | None) -> str:
    """Who adds up the reports of a group, by its run's settings."""
    if secure is None:
        return IN_THE_CLEAR
    return (
        f"simulated secure aggregation by {PROTOCOLS[secure['protocol']]}: of each group {secure['devices']:,} "
        "devices, or all of fewer, play the whole protocol, the reports of the others are added in the clear modulo "
        f"the same power of two, and the total is the plain sum to the bit; {SEEN_ALL_THE_SAME}"
    )


# -- population --------------------------------------------------------------------------------------------------------


def budget_of(run: Run) -> PopulationSpent | None:
    """The budget of a run's population after it, or as it was entered while it is under way; None without one."""
    if run.metadata.budget is None:
        return None
    state = run.notes.get(BUDGET, run.metadata.budget.state)
    return from_plain(PopulationSpent, state, error=RunError, where=f"the budget in '{run.path}'")


# -- commands ----------------------------------------------------------------------------------------------------------


def account_run_command(run: Run, delta: float) -> str:
    """The command line that derives the figures from the run folder again."""
    return f"tacit account run {shlex.quote(str(published_path(run)))} --delta {delta!r}"


def published_path(run: Run) -> Path:
    """The run's folder as a statement names it: of an absolute path, which tells of people and machines, its name."""
    return Path(run.path.name) if run.path.is_absolute() else run.path


def resume_command(run: Run) -> str:
    """The command line that carries the run on; of one that real devices train, the server's."""
    if separation_of(run) is not None:
        return "tacit serve RECIPE" if run.kind == "train" else "tacit serve FILE"
    return f"tacit resume {one_line(shlex.quote(str(run.path)))}"


def created(run: Run) -> str:
    """When the run began, in UTC, to the minute."""
    return datetime.fromtimestamp(run.metadata.created, UTC).strftime("%Y-%m-%d %H:%M UTC")
