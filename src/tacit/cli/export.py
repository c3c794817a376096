"""`tacit export`: a model as the files that a keyboard on a phone loads."""

from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command
from tacit.errors import InputError


@command
def export(
    run: Annotated[Path, typer.Argument(help="A finished run, a pre-training, a model folder, n-grams or a mixture.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder to write, whole or not at all; an old export is replaced.")
    ] = None,
    dictionary: Annotated[
        Path | None, typer.Option(help="Write the words alone, as the .dict file that open keyboards import.")
    ] = None,
    trigrams: Annotated[
        bool, typer.Option("--trigrams", help="The dictionary as a folder, with what follows two words.")
    ] = False,
    quantize: Annotated[str | None, typer.Option(help="int8 or int4: smaller graphs; left out, float32.")] = None,
    locale: Annotated[
        str, typer.Option(help="The language of the words, as the dictionary names it: en, pt_BR.")
    ] = "en",
    offensive: Annotated[
        Path | None, typer.Option(help="Words that are only suggested where a user allows it, one a line.")
    ] = None,
    shortcuts: Annotated[Path | None, typer.Option(help="Lines of a word, a tab and what stands in its place.")] = None,
    words_from: Annotated[
        str | None,
        typer.Option(help="Public text, public:FILE[,FILE], whose words the dictionary has beside the model's."),
    ] = None,
    most_words: Annotated[int | None, typer.Option(help="So many of them at most; left out, 60,000.")] = None,
    json: Json = False,
) -> None:
    """Write a model as graphs, weights, words and a dictionary (--out), or as a dictionary alone (--dictionary)."""
    if (out is None) == (dictionary is None):
        raise InputError("nothing says what to write, or two things do; give --out FOLDER or --dictionary FILE.")
    if out is not None:
        if words_from is not None or most_words is not None:
            raise InputError("--words-from is for a dictionary alone; give --dictionary FILE in place of --out.")
        if trigrams:
            raise InputError("--trigrams is for a dictionary alone; give --dictionary FOLDER in place of --out.")
        made = tacit.export(run, out, quantize=quantize, locale=locale, offensive=offensive, shortcuts=shortcuts)
        say_blocks(made, json)
    elif dictionary is not None:
        if quantize is not None:
            raise InputError("--quantize is for graphs, which a dictionary has none of; leave it out.")
        with display(json) as progress:
            written = tacit.export_dictionary(
                run,
                dictionary,
                trigrams=trigrams,
                locale=locale,
                offensive=offensive,
                shortcuts=shortcuts,
                words_from=words_from,
                most_words=most_words,
                progress=progress,
            )
        say_blocks(written, json)
