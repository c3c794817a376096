"""`tacit audit device`: whether text decides anything but what a device's reports say."""

from typing import Annotated

import typer

from tacit.cli.audit_shown import show_findings
from tacit.cli.display import display
from tacit.cli.options import Json, command


@command
def device(
    strategy: Annotated[
        list[str] | None, typer.Option(help="Try this one; may be given several times. Left out, all.")
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="Ask this one; may be given several times. Left out, all.")
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs with each of two texts, where what is seen of them differs.")] = 40,
    confidence: Annotated[float, typer.Option(help="Of all rows together.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the devices' private randomness.")] = 0,
    json: Json = False,
) -> None:
    """Whether text shows in anything that leaves a device but what its reports say: requests, lengths, times, refusals
    and retries under an operator's models, tasks, logs and clocks.
    """
    from tacit.audit.device.job import audit_device

    with display(quiet=json) as progress:
        found = audit_device(
            strategies=strategy or None,
            questions=question or None,
            runs=runs,
            confidence=confidence,
            seed=seed,
            progress=progress,
        )
    show_findings(found, json)
