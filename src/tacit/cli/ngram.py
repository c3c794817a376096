"""`tacit ngram`: a counted model of public text."""

from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command
from tacit.cli.values import typed


@command
def ngram(
    data: Annotated[Path, typer.Argument(help="A cache of public text: `tacit data import public:FILE.parquet`.")],
    out: Annotated[
        Path, typer.Option(help="The folder to write, whole or not at all; an old counted one is replaced.")
    ],
    order: Annotated[int, typer.Option(help="Words of the longest n-grams.")] = 4,
    cutoffs: Annotated[
        str | None,
        typer.Option(help="For each length from 2 on, how often one has to be seen to be kept.", show_default="1,2,3"),
    ] = None,
    declared_public: Annotated[
        bool, typer.Option("--declared-public", help="The cache has clients, whose text is public all the same.")
    ] = False,
    json: Json = False,
) -> None:
    """Count a Kneser-Ney model of public text: words, pairs and longer n-grams in small tables."""
    least = None if cutoffs is None else typed(cutoffs, "cutoffs", tuple[int, ...], "1,2,3")
    with display(json) as progress:
        found = tacit.ngram(data, out, order=order, cutoffs=least, declared_public=declared_public, progress=progress)
    say_blocks(found, json)
