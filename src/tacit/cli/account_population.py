"""`tacit account population`: the budget of a population, begun or shown."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import console, say, say_loudly
from tacit.cli.options import Json, command
from tacit.privacy.rounding import rounded_up

if TYPE_CHECKING:
    from tacit.jobs.account.population import PopulationAccount


@command
def population(
    path: Annotated[Path, typer.Argument(help="The folder of the budget.")],
    clients: Annotated[str | None, typer.Option(help="Begin one: who the clients are, in words;")] = None,
    zcdp: Annotated[float | None, typer.Option(help="what all releases with noise may cost each in all,")] = None,
    epsilon: Annotated[float | None, typer.Option(help="or the same as an epsilon at --delta;")] = None,
    delta: Annotated[float | None, typer.Option(help="where epsilon is given;")] = None,
    local_epsilon: Annotated[
        float | None, typer.Option(help="and what all reports that devices randomise themselves may.")
    ] = None,
    window_days: Annotated[
        float | None, typer.Option(help="Beside that, limit every so many days (7: each week):")
    ] = None,
    window_zcdp: Annotated[float | None, typer.Option(help="what releases with noise may cost in them,")] = None,
    window_epsilon: Annotated[float | None, typer.Option(help="or the same as an epsilon at --delta;")] = None,
    window_local_epsilon: Annotated[
        float | None, typer.Option(help="and what reports that devices randomise themselves may.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What every run took of a population's budget; with --clients and what is allowed, begin one."""
    from tacit.jobs.account.population import account_population, begin_population

    limits = {"zcdp": zcdp, "epsilon": epsilon, "delta": delta, "local_epsilon": local_epsilon}
    limits |= {"window_days": window_days, "window_zcdp": window_zcdp, "window_epsilon": window_epsilon}
    limits |= {"window_local_epsilon": window_local_epsilon}
    if clients is None and all(value is None for value in limits.values()):
        made = account_population(path)
    else:
        made = begin_population(path, clients=clients or "", **limits)
    say(made, as_json, _show)


def _show(made: "PopulationAccount") -> None:
    from rich.table import Column, Table

    console.print(f"clients: {made.allowed['clients']}", markup=False)
    for name, spent in (("zcdp", made.zcdp), ("local_epsilon", made.local_epsilon)):
        if (allowed := made.allowed[name]) is not None:
            console.print(f"{name.replace('_', ' ')} {rounded_up(spent, 6)} of {allowed:.6g}")
    if made.epsilon is not None:
        console.print(
            f"epsilon {rounded_up(made.epsilon, 6)} at delta {made.allowed['delta']:g}, of all releases with noise"
        )
    if made.window is not None:
        console.print(made.window.taken(), markup=False)
    if made.runs:
        heads = [Column(name, overflow="fold") for name in ("run", "kind", "state", "zCDP", "local epsilon")]
        table = Table(*heads, box=None, pad_edge=False)
        for each in made.runs:
            cost = (rounded_up(value, 6) if value else "-" for value in (each.cost.zcdp, each.cost.local_epsilon))
            table.add_row(each.reserved.run, each.reserved.kind, each.state, *cost)
        console.print(table)
    for warning in made.warnings:
        say_loudly(warning)
