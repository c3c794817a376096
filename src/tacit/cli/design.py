"""`tacit design`: the parameters of a mechanism that cost least for given participations, and what they cost."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.mechanism_options import Limits
from tacit.design.blt import design_blt, design_robust_blt, spread
from tacit.design.losses import Losses, Objective, checked_objective, losses
from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Record, Strategy
from tacit.records import json_ready

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
    rounds: Annotated[str, typer.Option(help="Rounds of the whole run: 2000; several 1000,2000; a range 1000:4000.")],
    min_separation: Annotated[
        str | None,
        typer.Option(
            help="Distance in rounds between two participations of a client, b = MinS + 1; several or a range."
        ),
    ] = None,
    rounds_between: Annotated[
        str | None,
        typer.Option(help="Or the rounds strictly between two participations: the papers' MinS; several or a range."),
    ] = None,
    max_participations: MostTimes = None,
    buffers: Annotated[int, typer.Option(help="Buffers of the model's size that the noise keeps.")] = 4,
    objective: Minimised = "max",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """A buffered linear Toeplitz mechanism: a few buffers, any number of rounds.

    With several rounds or separations, one mechanism for all: the one whose worst ratio to the least loss possible
    at each combination is least. A range stands for three values at equal ratios.
    """
    minimised = checked_objective(objective)
    between = _numbers(rounds_between, "rounds-between")
    separations = _numbers(min_separation, "min-separation")
    several = [
        (each, separation, gap) for each in _numbers(rounds, "rounds") for separation in separations for gap in between
    ]
    if len(several) > 1:
        cases = [_fitting(*case, max_participations) for case in several]
        _robust(cases, buffers, minimised, out, as_json)
        return
    served = participation(*several[0], max_participations)
    begin = time.perf_counter()
    strategy = design_blt(served, buffers=buffers, objective=minimised)
    seconds = time.perf_counter() - begin
    show(strategy, losses(strategy, served), minimised, seconds, as_json, out=out)


def _robust(cases: list[Participation], buffers: int, objective: Objective, out: Path | None, as_json: bool) -> None:
    """One strategy for all cases, shown with what it costs in each against the best there."""
    begin = time.perf_counter()
    with complaints.status(f"designing for {len(cases)} participations"):
        strategy = design_robust_blt(cases, buffers=buffers, objective=objective)
        seconds = time.perf_counter() - begin
        rows = []
        for case in cases:
            loss = losses(strategy, case).of(objective)
            least = losses(design_blt(case, buffers=buffers, objective=objective), case).of(objective)
            rows.append({**asdict(case), "loss": loss, "least_loss": least, "ratio": loss / least})
    record = strategy.to_record()
    _write(record, out)
    figures: Record = {
        "mechanism": record.pop("kind"),
        "objective": objective,
        "worst_ratio": max(row["ratio"] for row in rows),
        **record,
        "seconds": seconds,
    }
    if as_json:
        print_json({**figures, "participations": rows})
        return
    _print(figures)
    table = Table(*(name.replace("_", " ") for name in rows[0]), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(_shown(value) for value in row.values()))
    console.print(table)


def _numbers(text: str | None, name: str) -> list[Any]:
    """The values of an option that takes several: 5; 5,7; 5:80. A list of None where it was left out."""
    if text is None:
        return [None]
    try:
        if ":" in text:
            low, high = text.split(":")
            return list(spread(int(low), int(high)))
        return [int(part) for part in text.split(",")]
    except InputError:
        raise
    except ValueError as error:
        raise InputError(
            f"--{name} {text!r} is neither a number nor several; write 2000, or 1000,2000, or 1000:4000."
        ) from error


def _fitting(rounds: int, separation: int | None, between: int | None, most: int | None) -> Participation:
    """Among several, `most` participations are promised where so many fit, and as many as fit elsewhere."""
    worst = participation(rounds, separation, between, None)
    if most is None:
        return worst
    return Participation(rounds=rounds, min_separation=worst.min_separation, max_participations=most).effective


def participation(
    rounds: int, min_separation: int | None, rounds_between: int | None, max_participations: int | None
) -> Participation:
    """What a design is for; InputError where the numbers contradict each other."""
    worst = Limits(rounds=rounds, rounds_between=rounds_between, min_separation=min_separation).participation()
    separation = worst.min_separation
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
    _write(record, out)
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
        "exact": losses.exact,
        **record,
        "seconds": seconds,
    }
    if as_json:
        print_json(figures)
        return
    _print(figures)
    console.print("Errors of the prefix sums for seeds of deviation 1; loss = error x sensitivity, at equal privacy.")
    if not losses.exact:
        console.print("The sensitivity is a proved upper bound, so the losses are too.")


def _write(record: Record, out: Path | None) -> None:
    if out is not None:
        out.write_text(json.dumps(json_ready(record)) + "\n", encoding="utf-8")


def _print(figures: Record) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), _shown(value))
    console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, list):
        listed = ", ".join(_shown(each) for each in value[:8])
        return listed if len(value) <= 8 else f"{listed}, ... ({len(value)} in all)"
    return f"{value:.8g}" if isinstance(value, float) else str(value)
