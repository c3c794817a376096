"""`tacit demo`: the main job from end to end on text that comes with tacit."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.console import console
from tacit.cli.display import display
from tacit.cli.options import Json, command


@command
def demo(
    out: Annotated[
        Path, typer.Option(help="The private run's folder, others beside it; an unfinished demo is resumed.")
    ] = Path("runs/demo"),
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of it: every step, in a minute or two.")] = False,
    json: Json = False,
) -> None:
    """Private models from nothing: people, public models, counts and rounds at epsilon 1, and what each is worth."""
    from tacit.jobs.demo import demo as job
    from tacit.jobs.run_start import check_place

    check_place(out)  # before anything is said
    if not json:
        who = "The first 1,500" if quick else "16,827"
        console.print(f"Clients: {who} people of a help channel for Linux. What they typed there is what is private.")
        console.print("Public text, for words and first models: English novels to 1899. Both come with tacit.")
    with display(json) as progress:
        result = job(out, quick=quick, progress=progress)
    say_blocks(result, json)
