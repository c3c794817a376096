"""`tacit export`: a model as the files that a keyboard on a phone loads."""

from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.options import Json, command


@command
def export(
    run: Annotated[Path, typer.Argument(help="A finished run, a pre-training or a model folder.")],
    out: Annotated[Path, typer.Option(help="The folder to write, whole or not at all; an old export is replaced.")],
    quantize: Annotated[str | None, typer.Option(help="int8 or int4: smaller graphs; left out, float32.")] = None,
    locale: Annotated[
        str, typer.Option(help="The language of the words, as the dictionary names it: en, pt_BR.")
    ] = "en",
    json: Json = False,
) -> None:
    """Write a model as ONNX graphs, weights, words and a dictionary, with hashes and the run's privacy statement."""
    say_blocks(tacit.export(run, out, quantize=quantize, locale=locale), json)
