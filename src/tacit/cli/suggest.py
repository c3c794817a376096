"""`tacit suggest`: what a model would show above the keys of a phone."""

from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.options import Json, command


@command
def suggest(
    model: Annotated[Path, typer.Argument(help="A finished run, a model folder, an export, or trigram:CACHE.")],
    prompts: Annotated[list[str], typer.Argument(help='Whole words, as "I will see"; each prompt is a row.')],
    words: Annotated[int, typer.Option(help="Next words to suggest after each prompt.")] = 3,
    json: Json = False,
) -> None:
    """The likeliest next words after each prompt, words of the model's vocabulary alone."""
    say_blocks(tacit.suggest(model, prompts, k=words), json)
