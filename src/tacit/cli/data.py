"""`tacit data`: bring clients' text in, and look at what came."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import dropwhile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.data import Cache, ImportProgress, VocabularyRecord, build_cache, open_source
from tacit.data.importing import Progress
from tacit.jobs.import_data import MANUALS, VocabularyChoice, make_vocabulary
from tacit.keyboard.tokens import Tokenizer
from tacit.keyboard.vocabulary import OOV

app = typer.Typer(help="Bring clients' text in, and look at what came.", no_args_is_help=True)


def import_clients(
    source: str,
    out: Path,
    *,
    vocabulary: VocabularyChoice,
    vocabulary_size: int | None = None,
    lowercase: bool = False,
    progress: Progress | None = None,
) -> Cache:
    """Tokenise the clients of a source (see `open_source`) with the chosen vocabulary into a cache at `out`.

    Raises: SourceError, CacheError, InputError.
    """
    clients = open_source(source)
    words = make_vocabulary(vocabulary, clients, size=vocabulary_size, lowercase=lowercase)
    tokenizer = Tokenizer(words)
    record = VocabularyRecord(
        size=words.size,
        sha256=words.sha256,
        lowercase=words.lowercase,
        kind=words.provenance.kind,
        description=words.provenance.description,
        oov_id=OOV,
    )
    return build_cache(
        clients,
        tokenizer.encode,
        out,
        vocabulary=record,
        vocabulary_json=words.to_json(),
        tokenizer=tokenizer.version,
        progress=progress,
    )


@app.command("import")
@speaks_plainly
def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="docstrings, folder:PATH, git:PATH, stackoverflow:PATH, public:FILES (nobody's text), or Parquet "
            "files."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Where the cache goes; an old cache there is replaced when the new is whole.")
    ],
    vocabulary_from: Annotated[
        list[str] | None,
        typer.Option(help=f"Public text to count words on: Parquet with a column text, or {MANUALS}; repeatable."),
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
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a display.")] = False,
) -> None:
    """Tokenise clients' text once, into a memory-mapped cache."""
    given = (vocabulary_from, word_list, vocabulary, vocabulary_from_private)
    if source == "docstrings" and not any(given):
        vocabulary_from = [MANUALS]  # the public text that is on the same machine
    choice = VocabularyChoice(
        public=tuple(vocabulary_from or ()),
        word_list=word_list,
        file=vocabulary,
        private=vocabulary_from_private,
    )
    with progress_bar(shown=not json) as progress:
        cache = import_clients(
            source,
            out,
            vocabulary=choice,
            vocabulary_size=vocabulary_size,
            lowercase=lowercase,
            progress=progress,
        )
    print_json(summary(cache)) if json else _show(summary(cache))


@app.command()
@speaks_plainly
def show(
    cache: Annotated[Path, typer.Argument(help="The folder that `tacit data import` made.")],
    verify: Annotated[bool, typer.Option("--verify", help="Read everything and compare it with the digests.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a display.")] = False,
) -> None:
    """Clients, words, words per client, and where the vocabulary comes from."""
    opened = Cache.open(cache)
    if verify:
        opened.verify()
    print_json(summary(opened)) if json else _show(summary(opened))


def summary(cache: Cache) -> dict[str, Any]:
    """What a cache holds, for people and for JSON."""
    manifest, words = cache.manifest, cache.words_per_client()
    return {
        "cache": str(cache.path),
        "source": manifest.source,
        "clients": manifest.clients,
        "splits": dict(manifest.splits),
        "clients_without_sentences": manifest.clients_without_sentences,
        "left_out": dict(manifest.left_out),
        "sentences": manifest.sentences,
        "words": manifest.words,
        "oov_rate": manifest.oov_rate,
        "words_per_client": {
            "median": float(np.median(words)),
            "mean": float(np.mean(words)),
            "largest": int(np.max(words)),
            "histogram": _histogram(words),
        },
        "vocabulary": {
            "size": manifest.vocabulary.size,
            "lowercase": manifest.vocabulary.lowercase,
            "provenance": manifest.vocabulary.kind,
            "description": manifest.vocabulary.description,
            "sha256": manifest.vocabulary.sha256,
        },
        "tokenizer": manifest.tokenizer,
        "bytes": sum(file.bytes for file in manifest.files.values()),
    }


def _histogram(words: Any) -> list[dict[str, int]]:
    """Clients by number of words: three bars a decade; `from` is inside, `below` is not."""
    decades = range(len(str(np.max(words))) + 1)
    edges = [step * 10**decade for decade in decades for step in (1, 2, 5)]
    edges = edges[: int(np.searchsorted(edges, np.max(words), side="right")) + 1]
    counts, _ = np.histogram(words, edges)
    return [
        {"from": begin, "below": end, "clients": int(count)}
        for begin, end, count in zip(edges, edges[1:], counts, strict=False)
    ]


BAR_WIDTH = 40


def _show(facts: dict[str, Any]) -> None:
    words, vocabulary = facts["words_per_client"], facts["vocabulary"]
    left_out = {**facts["left_out"], "clients without a sentence": facts["clients_without_sentences"]}
    splits = ", ".join(f"{count:,} {name}" for name, count in facts["splits"].items())
    console.print(f"[bold]{facts['cache']}[/]: {facts['source']}", soft_wrap=True)
    console.print(f"  clients    {facts['clients']:,} ({splits})")
    console.print(f"  sentences  {facts['sentences']:,}")
    console.print(f"  words      {facts['words']:,}, {facts['oov_rate']:.2%} out of vocabulary")
    console.print(
        f"  vocabulary {vocabulary['size']:,} ids, {vocabulary['provenance']}: {vocabulary['description']}",
        soft_wrap=True,
    )
    if vocabulary["provenance"] == "private":
        console.print("  [bold red]VOCABULARY FROM PRIVATE TEXT: no guarantee covers its words[/]")
    for what, count in left_out.items():
        if count:
            console.print(f"  left out   {count:,} {what}")
    console.print(f"  words per client: median {words['median']:,.0f}, mean {words['mean']:,.0f}")
    tallest = max(bar["clients"] for bar in words["histogram"])
    for bar in dropwhile(lambda bar: not bar["clients"], words["histogram"]):
        length = -(-bar["clients"] * BAR_WIDTH // tallest)  # rounded up: nobody disappears
        console.print(f"  {bar['from']:>9,} - {bar['below'] - 1:<9,} {'█' * length} {bar['clients']:,}")


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[Progress]:
    """A bar of clients read, on standard error."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("clients, {task.fields[words]:,} words"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=complaints, transient=True, disable=not (shown and complaints.is_terminal)) as bar:
        task = bar.add_task("counting and reading", total=None, words=0)

        def advance(state: ImportProgress) -> None:
            bar.update(
                task,
                description="tokenising",
                completed=state.clients,
                total=state.expected_clients,
                words=state.words,
            )

        yield advance
