"""`tacit account run`: what a run promises, from its folder: one that trains, or one that evaluates models."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tacit.cli.account_options import Json
from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.errors import InputError
from tacit.jobs.evaluation_promise import promise_of, say_promise
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record
from tacit.runs import Run, TrainingMetadata
from tacit.statements import Statement
from tacit.statements.accounts import reading, run_figures, statement_of
from tacit.statements.statement import WEAKER


@speaks_plainly
def account_run(
    run: Annotated[Path, typer.Argument(help="A run folder, finished or not.")],
    delta: Annotated[
        float | None, typer.Option(help="The delta at which epsilon is given; left out, the recipe's.")
    ] = None,
    statement: Annotated[
        Path | None, typer.Option(help="Also write the statement here, as JSON with all that `tacit verify` needs.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What a run promises by what happened: MinS and MaxP from its log, the mechanism from its ledger."""
    if delta is not None and not 0 < delta < 1:
        raise InputError(f"--delta {delta} is not a probability between 0 and 1; give for example 1e-10.")
    with Run.open(run) as found, reading(found):
        if found.kind != TrainingMetadata.kind:
            _account_evaluation(found, delta, statement, as_json=as_json)
            return
        figures = run_figures(found, delta)
        stated = statement_of(found, delta) if found.steps_done or statement is not None else None
        if statement is not None and stated is not None:
            statement.write_text(stated.to_json(), "utf-8")
    if as_json:
        print_json(figures)
        return
    _show(figures)
    if stated is not None:
        say_if_weaker(stated)


def say_if_weaker(stated: Statement) -> None:
    """A loud line where clients came more often or sooner than planned: the other labels are no surprise."""
    for label in stated.labels:
        if label.name == WEAKER:
            complaints.print(f"{label.name}: {label.meaning}", style="bold red", soft_wrap=True)


def _account_evaluation(run: Run, delta: float | None, statement: Path | None, *, as_json: bool) -> None:
    """Of histograms over clients: by the ledger and the log of who was asked."""
    promise = promise_of(run, delta)
    if statement is not None:
        raise InputError(
            f"'{run.path}' evaluates models, and statements that verify are of runs that train and of campaigns for "
            f"new words; what it promises stands in {run.path}/report/released.md."
        )
    if as_json:
        print_json({"run": str(run.path), "of": run.kind, "finished": run.finished, "promise": promise})
        return
    say_promise(promise)
    if promise["kind"] == "central":
        rows = zip(promise["histograms"], promise["stddev_of_a_count"], strict=True)
        console.print(f"zCDP {rounded_up(promise['zcdp'], 6)}")
        for step, (histograms, spread) in enumerate(rows, start=1):
            console.print(f"step {step}: {histograms} histograms, standard deviation of a count {spread:.4g}")


def _show(figures: Record) -> None:
    columns = [name for name in ("planned", "realised") if figures[name]]
    table = Table("", *columns, box=None, pad_edge=False)
    for name in [name for name in figures["planned"] if name != "sequences"]:
        table.add_row(name.replace("_", " "), *(_shown(name, figures[column][name]) for column in columns))
    for at, share in enumerate(figures["planned"].get("sequences", ())):
        alone = [figures[column]["sequences"][at] for column in columns]
        for name in ("noise_multiplier", "zcdp"):
            title = f"{name.replace('_', ' ')}, {share['what']} alone"
            table.add_row(title, *(_shown(name, each[name]) for each in alone))
    console.print(table)
    console.print(f"{figures['released_rounds']} of {figures['planned']['rounds']} rounds are released.")
    if not figures["private"]:
        console.print("NON-PRIVATE: no noise was added, so nothing is promised.")
    if figures["extrapolated"]:
        larger = figures["extrapolated"]
        console.print(
            f"EXTRAPOLATED, not a guarantee of this run: with {larger['report_goal']} reports a round, "
            f"realised zCDP {_shown('zcdp', larger['realised']['zcdp'])}, "
            f"epsilon {_shown('epsilon', larger['realised']['epsilon'])}.",
            soft_wrap=True,
        )


def _shown(name: str, value: float) -> str:
    if name in {"zcdp", "epsilon"}:
        return rounded_up(value, 6)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
