"""`tacit verify`: whether a privacy statement says what follows from the facts in it."""

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tacit
from tacit.cli.console import console, say
from tacit.cli.options import Json, command

if TYPE_CHECKING:
    from tacit.jobs.statement import Verification

CHANGED = 1  # the exit code of a statement with a line that fails


@command
def verify_statement(
    file: Annotated[
        Path,
        typer.Argument(
            help="A report/statement.json or report folder of a run of any kind; the run, an export, a page."
        ),
    ],
    run: Annotated[
        Path | None, typer.Option(help="The folder whose ledger, log and seal a published statement is held against.")
    ] = None,
    log: Annotated[
        str | None, typer.Option(help="Of a served run, or a page: its log, a file or https://SERVER.")
    ] = None,
    plan: Annotated[
        str | None, typer.Option(help="Of a published discovery: the plan that a device had, by `tacit device --show`.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show every line that holds, not their numbers alone.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Recompute every figure, label and sentence of a statement from its facts; exit code 1 if a line fails.

    Of a run folder of any kind, also whether its files are what the run wrote, and the facts what ledger and log say.
    With --log, whether devices had its plan. Of an export, whether its files are those that were exported.
    Of a page, whether its files are those of its bundle; with --log, whether its bundle stands in the log.
    Of the published report of a discovery also whether its list of words follows from the votes that it published.
    """
    from tacit.jobs.statement import verify

    found = verify(file, run=run, plan=plan)
    if log is not None:
        found = replace(found, lines=(*found.lines, *tacit.verify_log(run or file, log)))
    say(found, as_json, partial(_show, verbose=verbose))
    if not found.holds:
        raise typer.Exit(CHANGED)


def _show(found: "Verification", *, verbose: bool) -> None:
    """What fails first and in full; of what holds, how many of each kind."""
    for line in found.failed:
        console.print(f"FAILS  {line.name}: {line.complaint}")
    if verbose:
        for line in found.lines:
            if line.holds:
                console.print(f"ok     {line.name}")
    else:
        for kind, lines in Counter(line.kind for line in found.lines if line.holds).items():
            console.print(f"ok     {lines:,} {kind}")
    console.print(found.judgement)
