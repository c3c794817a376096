"""`tacit audit mechanism`: the worst client of a mechanism, played a million times through the code of training."""

from typing import Annotated

import typer

from tacit.audit.mechanism.job import CONFIDENCE, RUNS
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command
from tacit.errors import InputError

BROKEN = 1  # the exit code where a promise is refuted


@command
def mechanism(
    mechanism: Annotated[
        str | None,
        typer.Argument(
            help="A mechanism by name (docs/mechanisms.md) or package.module:NAME, a part of a round (clipping, "
            "encoding, decryptors, ...), or a recipe, whose mechanism, limits and noise are played."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All mechanisms, and the other parts of a round.")] = False,
    runs: Annotated[int, typer.Option(help="How often each is played, half of them with the canary.")] = RUNS,
    confidence: Annotated[float, typer.Option(help="That no bound is above its true value.")] = CONFIDENCE,
    seed: Annotated[
        int | None, typer.Option(help="Play the same runs again; left out, drawn from the system and shown.")
    ] = None,
    json: Json = False,
) -> None:
    """How much a mechanism leaks at least, beside what it claims."""
    if (mechanism is None) != every:
        raise InputError("nothing to audit was named; give a mechanism, a recipe, or --all, and one of them.")
    from tacit.audit.mechanism.job import audit_mechanism

    with display(quiet=json) as progress:
        found = audit_mechanism(mechanism, runs=runs, confidence=confidence, seed=seed, progress=progress)
    say_blocks(found, json)
    if found.broken:
        raise typer.Exit(BROKEN)
