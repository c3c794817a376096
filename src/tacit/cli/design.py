"""`tacit design`: the parameters of a mechanism that cost least for given participations, and what they cost."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tacit.cli.console import console, plain, print_json, speaks_plainly
from tacit.design.blt import design_blt
from tacit.design.losses import Losses, Objective, checked_objective, losses
from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Record, Strategy

app = typer.Typer(
    no_args_is_help=True,
    help="Choose a mechanism's parameters for the least error at equal privacy.",
)

Rounds = Annotated[int, typer.Option(help="Rounds of the whole run.")]
Separation = Annotated[
    int | None,
    typer.Option(help="Distance in rounds between two participations of a client: b = MinS + 1."),
]
Between = Annotated[
    int | None,
    typer.Option(help="Or the rounds strictly between two participations of a client: the papers' MinS."),
]
MostTimes = Annotated[
    int | None,
    typer.Option(help="Most rounds a client takes part in (MaxP); left out, as many as the separation allows."),
]
Minimised = Annotated[str, typer.Option(help="The loss to minimise: max (of the last prefix sum) or rms.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Out = Annotated[Path | None, typer.Option(help="Write the strategy there, as JSON that `tacit account` reads.")]


@app.command("blt")
@speaks_plainly
def blt(
    rounds: Rounds,
    min_separation: Separation = None,
    rounds_between: Between = None,
    max_participations: MostTimes = None,
    buffers: Annotated[int, typer.Option(help="Buffers of the model's size that the noise keeps.")] = 4,
    objective: Minimised = "max",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """A buffered linear Toeplitz mechanism: a few buffers, any number of rounds."""
    minimised = checked_objective(objective)
    served = participation(rounds, min_separation, rounds_between, max_participations)
    begin = time.perf_counter()
    strategy = design_blt(served, buffers=buffers, objective=minimised)
    seconds = time.perf_counter() - begin
    show(strategy, losses(strategy, served), minimised, seconds, as_json, out=out)


def participation(
    rounds: int, min_separation: int | None, rounds_between: int | None, max_participations: int | None
) -> Participation:
    """What a design is for; InputError where the numbers contradict each other."""
    if (min_separation is None) == (rounds_between is None):
        given = "neither" if min_separation is None else f"both ({min_separation} and {rounds_between})"
        raise InputError(
            f"{given} of --min-separation and --rounds-between given; give exactly one: --rounds-between is the "
            "papers' MinS, --min-separation is MinS + 1."
        )
    separation = min_separation if min_separation is not None else (rounds_between or 0) + 1
    worst = Participation.worst_case(rounds, separation)
    if separation > rounds:
        raise InputError(
            f"min_separation={separation} exceeds the {rounds} rounds: nobody could come twice; give at most "
            f"{rounds}, which says just that."
        )
    if max_participations is None:
        return worst
    if max_participations > worst.max_participations:
        longest = (rounds - 1) // (max_participations - 1)
        way_out = f" or a separation of at most {longest}" if longest else ""
        raise InputError(
            f"max_participations={max_participations} does not fit: {rounds} rounds at a separation of {separation} "
            f"allow {worst.max_participations}; give at most {worst.max_participations}{way_out}."
        )
    return Participation(rounds=rounds, min_separation=separation, max_participations=max_participations)


def show(
    strategy: Strategy,
    losses: Losses,
    objective: Objective,
    seconds: float,
    as_json: bool,
    *,
    out: Path | None = None,
) -> None:
    """What was designed, what it costs and how long that took; matrices are left out, `out` has everything."""
    record = strategy.to_record()
    if out is not None:
        out.write_text(json.dumps(plain(record)) + "\n", encoding="utf-8")
    record.pop("values", None)
    figures: Record = {
        "mechanism": record.pop("kind"),
        "objective": objective,
        "loss": losses.of(objective),
        "max_loss": losses.max_loss,
        "rms_loss": losses.rms_loss,
        "max_error": losses.max_error,
        "rms_error": losses.rms_error,
        "sensitivity": losses.sensitivity,
        **record,
        "seconds": seconds,
    }
    if as_json:
        print_json(figures)
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), _shown(value))
    console.print(table)
    console.print("Errors of the prefix sums for seeds of deviation 1; loss = error x sensitivity, at equal privacy.")


def _shown(value: object) -> str:
    if isinstance(value, list):
        listed = ", ".join(_shown(each) for each in value[:8])
        return listed if len(value) <= 8 else f"{listed}, ... ({len(value)} in all)"
    return f"{value:.8g}" if isinstance(value, float) else str(value)
