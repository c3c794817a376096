"""`tacit account run`: what a run of any kind promises, from its folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tacit.cli.console import complaints, console, say
from tacit.cli.options import Json, RunFolder, command
from tacit.jobs.account import RunAccount, account_run
from tacit.jobs.statement import statement
from tacit.privacy.guarantee import OPERATING_SYSTEM
from tacit.privacy.rounding import rounded_up
from tacit.statements.statement import WEAKER, Statement


@command
def run(
    run: RunFolder,
    delta: Annotated[
        float | None, typer.Option(help="The delta at which epsilon is given; left out, the run's own.")
    ] = None,
    statement_file: Annotated[
        Path | None,
        typer.Option("--statement", help="Also write the statement here, as JSON with all that `tacit verify` needs."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What a run promises by what happened: who took part from its log, the mechanism from its ledger."""
    made = account_run(run, delta=delta)
    if statement_file is not None:
        statement_file.write_text(statement(run, delta=delta).to_json(), "utf-8")
    say(made, as_json, _show)
    if not as_json and made.weaker:
        say_loudly(made.weaker)


def say_if_weaker(stated: Statement) -> None:
    """A loud line where clients came more often or sooner than planned: the other labels are no surprise."""
    if WEAKER in stated.labels:
        say_loudly(f"{WEAKER.name}: {WEAKER.meaning}")


def say_loudly(warning: str) -> None:
    """One line that nobody overlooks, on standard error."""
    complaints.print(warning, style="bold red", soft_wrap=True)


def _show(made: RunAccount) -> None:
    figures = made.to_record()
    if "promise" in figures:
        _show_evaluation(figures["promise"])
    elif "guarantee" in figures:
        console.print(
            "\n".join(figures["guarantee"]["statement"] if figures["guarantee"] else ["NOTHING WAS RELEASED"])
        )
    else:
        _show_training(figures)


def say_promise(promise: Mapping[str, Any]) -> None:
    """One line of what an evaluation released; a second where the noise can be taken away."""
    if promise["kind"] == "nothing":
        console.print("NOTHING WAS RELEASED")
        return
    price = f"epsilon {rounded_up(promise['epsilon'])} at delta {promise['delta']:g}"
    console.print(f"RELEASED ({promise['kind']}): {price}, per client")
    if promise["key_source"] != OPERATING_SYSTEM:
        console.print(f"FIXED SEED: randomness came from {promise['key_source']}; who knows it can take the noise away")


def _show_evaluation(promise: Mapping[str, Any]) -> None:
    """Of histograms over clients: by the ledger and the log of who was asked."""
    say_promise(promise)
    if promise["kind"] == "central":
        rows = zip(promise["histograms"], promise["stddev_of_a_count"], strict=True)
        console.print(f"zCDP {rounded_up(promise['zcdp'], 6)}")
        for step, (histograms, spread) in enumerate(rows, start=1):
            console.print(f"step {step}: {histograms} histograms, standard deviation of a count {spread:.4g}")


def _show_training(figures: Mapping[str, Any]) -> None:
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
