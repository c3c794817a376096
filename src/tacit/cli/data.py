"""`tacit data`: bring clients' text in, and look at what came."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import print_blocks
from tacit.cli.console import say
from tacit.cli.display import display
from tacit.cli.groups import late_app
from tacit.cli.options import Json, command
from tacit.data import VocabularyChoice
from tacit.data.sources import SOURCES
from tacit.data.vocabulary_choice import MANUALS

NAMES = [f"{name}:{source.takes}" if source.takes else name for name, source in SOURCES.items()]

app = late_app(help="Bring clients' text in, and look at what came.")


@app.command("import")
@command
def import_(
    source: Annotated[
        str,
        typer.Argument(
            help=f"{', '.join(NAMES)}, or just the path of Parquet files (docs/extending.md says what each reads)."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Where the cache goes; an old cache there is replaced when the new is whole.")
    ],
    vocabulary_from: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Public text to count words on: Parquet with a column text, or {MANUALS}; repeatable, equal weights.",
            show_default=MANUALS,
        ),
    ] = None,
    word_list: Annotated[Path | None, typer.Option(help="A file of words, one a line, most frequent first.")] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="A vocabulary that was saved: vocabulary.json of a cache.")
    ] = None,
    vocabulary_from_private: Annotated[
        bool,
        typer.Option("--vocabulary-from-private", help="Count the clients' own words: NO guarantee covers them."),
    ] = False,
    vocabulary_size: Annotated[
        int | None,
        typer.Option(help="Ids, four special ones included.", show_default="10000 or what there is"),
    ] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Write every word in lower case.")] = False,
    language: Annotated[
        str, typer.Option(help="ISO 639 code, where a language has its own case or letters: tr, az, lt, uz.")
    ] = "",
    emoji: Annotated[bool, typer.Option("--emoji", help="Take every emoji as a word.")] = False,
    client_id: Annotated[
        str | None, typer.Option(help="What Parquet calls the column of who typed.", show_default="client_id")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="What it calls the column of what was typed.", show_default="text")
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option(help="What it calls the column of when.", show_default="timestamp, if there is one")
    ] = None,
    json: Json = False,
) -> None:
    """Tokenise clients' text once, into a memory-mapped cache."""
    from tacit.jobs.import_data import described, import_data  # the tokenizer comes with it

    choice = None
    if vocabulary_from or word_list or vocabulary or vocabulary_from_private:
        public, private = tuple(vocabulary_from or ()), vocabulary_from_private
        choice = VocabularyChoice(public=public, word_list=word_list, file=vocabulary, private=private)
    with display(quiet=json) as progress:
        cache = import_data(
            source,
            out,
            vocabulary=choice,
            vocabulary_size=vocabulary_size,
            lowercase=lowercase,
            language=language,
            emoji=emoji,
            client_id=client_id,
            text=text,
            timestamp=timestamp,
            progress=progress,
        )
    say(cache, json, lambda made: print_blocks(described(made)))


@app.command()
@command
def show(
    cache: Annotated[Path, typer.Argument(help="The folder that `tacit data import` made.")],
    verify: Annotated[bool, typer.Option("--verify", help="Read everything and compare it with the digests.")] = False,
    json: Json = False,
) -> None:
    """Clients, words, words per client, and where the vocabulary comes from."""
    from tacit.jobs.import_data import described, open_data

    with display(quiet=json) as progress:
        opened = open_data(cache, verify=verify, progress=progress)
    say(opened, json, lambda found: print_blocks(described(found)))
