"""`tacit demo`: the main job from end to end on text that every machine with Python has."""

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
    quick: Annotated[bool, typer.Option("--quick", help="A twentieth of it: every step, in half a minute.")] = False,
    json: Json = False,
) -> None:
    """A private model from nothing: clients, a public model, private training from it, and what the noise cost."""
    from tacit.jobs.demo import demo as job
    from tacit.jobs.run_start import check_place

    check_place(out)  # before anything is said
    if not json:
        console.print("Clients: the modules of this Python. What they typed, and what is private: their docstrings.")
        console.print("Public text, for words and a first model: manuals, headers and tests that are installed here.")
    with display(json) as progress:
        result = job(out, quick=quick, progress=progress)
    say_blocks(result, json)
