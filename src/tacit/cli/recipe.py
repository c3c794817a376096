"""`tacit recipe`: recipes made for a cache, a reason beside each value."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.console import say_blocks
from tacit.cli.groups import late_app
from tacit.cli.options import Json, OwnDelta, command

app = late_app(help="Write a recipe for the clients of a cache, a reason beside each value.")


@app.command("new")
@command
def new(
    data: Annotated[Path, typer.Option(help="The cache of the clients' text: `tacit data import`.")],
    epsilon: Annotated[float, typer.Option(help="What the whole run may spend: 8 is usual, 1 is strict.")],
    delta: OwnDelta = None,
    init: Annotated[
        Path | None, typer.Option(help="A model of `tacit pretrain` to begin from, over the same vocabulary.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; left out, it is printed.")] = None,
    name: Annotated[
        str | None, typer.Option(help="What reports call the run.", show_default="of cache and epsilon")
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Write a recipe that cannot work, too.")] = False,
    json: Json = False,
) -> None:
    """Write a whole recipe for so many clients at this epsilon, and say what accuracy it is expected to cost."""
    from tacit.jobs.new_recipe import new_recipe  # JAX comes with it

    made = new_recipe(data, epsilon=epsilon, delta=delta, init=init, out=out, name=name, anyway=anyway)
    if out is None and not json:
        sys.stdout.write(made.to_toml())
    else:
        say_blocks(made, json)
