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
from tacit.data.sources import BY_SUFFIX, SOURCES, HowToRead
from tacit.data.vocabulary_choice import MANUALS, NOVELS
from tacit.errors import InputError

NAMES = [f"{name}:{source.takes}" if source.takes else name for name, source in SOURCES.items()]

app = late_app(help="Bring clients' text in, and look at what came.")


SourceLine = Annotated[
    str,
    typer.Argument(
        help=f"{', '.join(NAMES)}, or just the path of a file that is called *{', *'.join(BY_SUFFIX)} or else is "
        "Parquet (docs/importing.md says what each reads)."
    ),
]
ClientId = Annotated[
    str | None, typer.Option(help="What the rows call the column of who typed.", show_default="client_id")
]
Text = Annotated[str | None, typer.Option(help="What they call the column of what was typed.", show_default="text")]
Timestamp = Annotated[
    str | None, typer.Option(help="What they call the column of when.", show_default="timestamp, if there is one")
]
Lines = Annotated[
    str | None,
    typer.Option(
        help="What a text of a text file is: `messages`, each line, or `paragraphs`, lines up to a blank one.",
        show_default="paragraphs",
    ),
]
Encoding = Annotated[str | None, typer.Option(help="Of text files.", show_default="utf-8")]
Delimiter = Annotated[str | None, typer.Option(help="Of CSV, between fields: a sign, or `tab`.", show_default=",")]
Quotes = Annotated[
    str | None,
    typer.Option(help="Of CSV: `double`, around fields, or `none`, where they are text.", show_default="double"),
]
Query = Annotated[str | None, typer.Option(help="Of SQLite: one SELECT.", show_default="none")]
TimeZone = Annotated[
    str | None, typer.Option(help="Of times that do not say theirs, Europe/Madrid say.", show_default="none")
]
DateOrder = Annotated[
    str | None, typer.Option(help="Of WhatsApp's dates: `dmy`, `mdy` or `ymd`.", show_default="found out")
]


@app.command("import")
@command
def import_(
    source: SourceLine,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where the cache goes; an old cache there is replaced when the new is whole.", show_default="none"
        ),
    ] = None,
    preview: Annotated[
        bool,
        typer.Option("--preview", help="Write nothing; say what would be read, with the first texts: private ones."),
    ] = False,
    vocabulary_from: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Public text for its words: Parquet with a column text, {MANUALS}, {NOVELS}; repeatable.",
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
    client_id: ClientId = None,
    text: Text = None,
    timestamp: Timestamp = None,
    lines: Lines = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    quotes: Quotes = None,
    query: Query = None,
    time_zone: TimeZone = None,
    date_order: DateOrder = None,
    json: Json = False,
) -> None:
    """Tokenise clients' text once, into a memory-mapped cache."""
    columns = {"client_id": client_id, "text": text, "timestamp": timestamp}
    how = HowToRead(lines=lines, encoding=encoding, delimiter=delimiter, quotes=quotes, query=query)
    how |= HowToRead(time_zone=time_zone, date_order=date_order)
    if preview:
        _show_preview(source, columns, how, json)
        return
    if out is None:
        raise InputError("an import goes to a cache: give --out CACHE, or --preview to see what would be read.")
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
            progress=progress,
            **columns,
            **how,
        )
    say(cache, json, lambda made: print_blocks(described(made)))


def _show_preview(source: str, columns: dict[str, str | None], how: HowToRead, json: bool) -> None:
    from tacit.jobs.preview_data import described_preview, preview_data

    with display(quiet=json) as progress:
        found = preview_data(source, progress=progress, **columns, **how)
    say(found, json, lambda made: print_blocks(described_preview(made)))


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
