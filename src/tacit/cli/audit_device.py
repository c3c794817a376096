"""`tacit audit device`: whether text decides anything but what a device's reports say."""

from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command

BROKEN = 1  # the exit code where a text shows


@command
def device(
    strategy: Annotated[
        list[str] | None, typer.Option(help="Try this one alone; may be given several times. Left out, all.")
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="Ask this one alone; may be given several times. Left out, all.")
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs with each text, where chance decides what is seen.")] = 40,
    confidence: Annotated[float, typer.Option(help="That all lower bounds hold together.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the devices' private randomness.")] = 1,
    as_json: Json = False,
) -> None:
    """Try to learn what a device's owner typed from all that leaves it but what its reports say; exit code 1 where a
    text shows.
    """
    from tacit.audit.device.job import audit_device

    with display(quiet=as_json) as progress:
        found = audit_device(
            strategies=strategy or None,
            questions=question or None,
            runs=runs,
            confidence=confidence,
            seed=seed,
            progress=progress,
        )
    say_blocks(found, as_json)
    if found.broken:
        raise typer.Exit(BROKEN)
