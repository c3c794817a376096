"""`tacit design NAME`: the parameters of a mechanism that cost least, and what they cost; a command for each mechanism.

The commands are made from the catalogue, each with an option for each parameter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tacit.cli.console import console, say
from tacit.cli.display import display
from tacit.cli.mechanisms import given, options_of
from tacit.cli.options import Json, command
from tacit.cli.values import whole_numbers
from tacit.design.catalogue import MECHANISMS
from tacit.design.mechanism import Mechanism
from tacit.errors import InputError
from tacit.jobs.design import (
    Design,
    MechanismComparison,
    RobustDesign,
    compare_mechanisms,
    design_robust_mechanism,
    several_limits,
)
from tacit.jobs.design import limits as limits_of
from tacit.privacy.participation import Participation

app = typer.Typer(
    no_args_is_help=True,
    help="Choose a mechanism's parameters for the least error at equal privacy.",
)

MostTimes = Annotated[
    int | None,
    typer.Option(help="Most rounds a client takes part in (MaxP); left out, as many as the separation allows."),
]
ERRORS = "Errors of the prefix sums for seeds of deviation 1; loss = error x sensitivity, at equal privacy."
Out = Annotated[Path | None, typer.Option(help="Write the strategy there, as JSON that `tacit account` reads.")]


@dataclass(frozen=True, kw_only=True)
class One:
    """One participation."""

    rounds: Annotated[int, typer.Option(help="Rounds of the whole run.")]
    min_separation: Annotated[
        int | None,
        typer.Option(help="Distance in rounds between two participations of a client: b = MinS + 1."),
    ] = None
    rounds_between: Annotated[
        int | None,
        typer.Option(help="Or the rounds strictly between two participations of a client: the papers' MinS."),
    ] = None
    max_participations: MostTimes = None

    def participations(self) -> tuple[Participation, ...]:
        """Just one."""
        (separation,) = _separations(
            None if self.min_separation is None else [self.min_separation],
            None if self.rounds_between is None else [self.rounds_between],
        )
        return (limits_of(self.rounds, separation, self.max_participations),)


@dataclass(frozen=True, kw_only=True)
class Several:
    """One participation, or several at once."""

    rounds: Annotated[str, typer.Option(help="Rounds of the whole run: 2000; several 1000,2000; a range 1000:4000.")]
    min_separation: Annotated[
        str | None,
        typer.Option(
            help="Distance in rounds between two participations of a client, b = MinS + 1; several or a range."
        ),
    ] = None
    rounds_between: Annotated[
        str | None,
        typer.Option(help="Or the rounds strictly between two participations: the papers' MinS; several or a range."),
    ] = None
    max_participations: MostTimes = None

    def participations(self) -> tuple[Participation, ...]:
        """All combinations."""
        separations = _separations(
            None if self.min_separation is None else whole_numbers(self.min_separation, "min-separation"),
            None if self.rounds_between is None else whole_numbers(self.rounds_between, "rounds-between"),
        )
        return several_limits(whole_numbers(self.rounds, "rounds"), separations, self.max_participations)


def _separations(separations: Sequence[int] | None, between: Sequence[int] | None) -> Sequence[int]:
    """In the convention of `--min-separation`; InputError unless it is given in just one of the two."""
    if separations is not None and between is None:
        return separations
    if between is not None and separations is None:
        ends = [Participation.from_rounds_between(rounds=1, rounds_between=each).min_separation for each in between]
        return range(between.start + 1, between.stop + 1) if isinstance(between, range) else ends
    both = "" if separations is None or between is None else f"({between[0]} and {separations[0]})"
    raise InputError(
        f"{f'both {both}' if both else 'neither'} of --rounds-between and --min-separation given; give exactly one: "
        "--rounds-between is the papers' MinS, --min-separation is MinS + 1."
    )


def _add(mechanism: Mechanism) -> None:
    """The mechanism's command."""
    robust = mechanism.build_robust is not None
    minimised = f"The loss to minimise: max (of the worst prefix sum) or rms; left out, {mechanism.objective}."

    def run(asked: Any, said: Any, objective: Any = None, out: Any = None, as_json: Any = False) -> None:
        cases, wished = asked.participations(), {"objective": objective, **given(mechanism, said)}
        with display(quiet=as_json) as progress:
            found: Design | RobustDesign
            if len(cases) > 1:
                found = design_robust_mechanism(mechanism.name, cases, progress=progress, **wished)
            else:
                found = design_mechanism(mechanism.name, cases[0], progress=progress, **wished)
        if out is not None:
            found.save(out)
        say(found, as_json, _show)

    run.__annotations__ = {
        "asked": Several if robust else One,
        "said": options_of(mechanism),
        "objective": Annotated[str | None, typer.Option("--objective", help=minimised)],
        "out": Out,
        "as_json": Json,
        "return": None,
    }
    run.__doc__ = mechanism.explains + (
        "\n\nWith several rounds or separations, one strategy for all: the one whose worst ratio to the least loss "
        "possible at each combination is least. A range stands for three values at equal ratios."
        if robust
        else ""
    )
    app.command(mechanism.name)(command(run))


for each in MECHANISMS.values():
    _add(each)


@app.command("compare")
@command
def compare(
    limits: One,
    objective: Annotated[str, typer.Option(help="The loss to minimise: max (of the worst prefix sum) or rms.")] = "max",
    slow: Annotated[bool, typer.Option(help="Matrices for these rounds too: seconds to minutes.")] = False,
    as_json: Json = False,
) -> None:
    """All mechanisms side by side: their losses at equal privacy, and what each must remember."""
    (served,) = limits.participations()
    with display(quiet=as_json) as progress:
        found = compare_mechanisms(served, objective=objective, slow=slow, progress=progress)  # type: ignore[arg-type]
    say(found, as_json, _show_comparison)


def _show_comparison(found: MechanismComparison) -> None:
    drawn = found.table()
    table = Table(*drawn.head, box=None, pad_edge=False)
    for row in drawn.rows:
        table.add_row(*row)
    console.print(table)


def _show(found: Design | RobustDesign) -> None:
    figures = dict(found.to_record())
    rows = figures.pop("participations", [])
    _print(figures)
    if isinstance(found, Design):
        console.print(ERRORS)
        if not figures["exact"]:
            console.print("The sensitivity is a proved upper bound, so the losses are too.")
        return
    table = Table(*(name.replace("_", " ") for name in rows[0]), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(_shown(value) for value in row.values()))
    console.print(table)


def _print(figures: Mapping[str, Any]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), _shown(value))
    console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, list):
        listed = ", ".join(_shown(each) for each in value[:8])
        return listed if len(value) <= 8 else f"{listed}, ... ({len(value)} in all)"
    return f"{value:.8g}" if isinstance(value, float) else str(value)
