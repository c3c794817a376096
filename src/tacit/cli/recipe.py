"""`tacit recipe`: recipes made for a cache, a reason beside each value, and those that come with the package."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.console import print_toml
from tacit.cli.display import display
from tacit.cli.groups import late_app
from tacit.cli.options import Json, OwnDelta, command

app = late_app(help="Write a recipe for the clients of a cache, or copy a shipped one.")


@app.command("new")
@command
def new(
    data: Annotated[Path, typer.Option(help="The cache of the clients' text: `tacit data import`.")],
    epsilon: Annotated[float, typer.Option(help="What the whole run may spend: 8 is usual, 1 is strict.")],
    delta: OwnDelta = None,
    init: Annotated[
        Path | None, typer.Option(help="A model of `tacit pretrain` to begin from, over the same vocabulary.")
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            help="A cache of public text over the same vocabulary: the recipe then makes a mixture. Left out, that "
            "which --init was made of. What is free of it is measured: it has to be beaten."
        ),
    ] = None,
    ngram: Annotated[
        list[Path] | None,
        typer.Option(help="A model of `tacit ngram`, or several; left out, the run counts the public text."),
    ] = None,
    training_share: Annotated[
        float | None,
        typer.Option(help="Of the budget, that of rounds which train the network.", show_default="0: no rounds"),
    ] = None,
    network_alone: Annotated[
        bool, typer.Option("--network-alone", help="Rounds that train a network, and no mixture.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="The file to write; left out, it is printed.")] = None,
    name: Annotated[
        str | None, typer.Option(help="What reports call the run.", show_default="of cache and epsilon")
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Write a recipe that is too noisy, too.")] = False,
    json: Json = False,
) -> None:
    """Write a whole recipe for so many clients at this epsilon, and say what is expected of it."""
    from tacit.jobs.plan.new_mixture import new_recipe_for  # JAX comes with it

    with display(json) as progress:
        made = new_recipe_for(
            data,
            epsilon=epsilon,
            delta=delta,
            public=public,
            ngram=ngram,
            init=init,
            training_share=training_share,
            network_alone=network_alone,
            out=out,
            name=name,
            anyway=anyway,
            progress=progress,
        )
    if out is None and not json:
        print_toml(made.to_toml())
    else:
        say_blocks(made, json)


@app.command("list")
@command
def list_(json: Json = False) -> None:
    """The recipes that come with the package, and the command that makes each one's clients' text."""
    from tacit.jobs.shipped_recipes import shipped_recipes

    say_blocks(shipped_recipes(), json)


@app.command()
@command
def show(
    name: Annotated[str, typer.Argument(help="Of a shipped recipe: `tacit recipe list`.")],
    out: Annotated[Path | None, typer.Option(help="The file for a copy to change; left out, it is printed.")] = None,
    json: Json = False,
) -> None:
    """Print a recipe that comes with the package, or write a copy of it to change."""
    from tacit.jobs.shipped_recipes import shipped_recipe

    found = shipped_recipe(name, out=out)
    if out is None and not json:
        print_toml(found.toml)
    else:
        say_blocks(found, json)
