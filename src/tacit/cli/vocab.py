"""`tacit vocab`: a vocabulary that learns the words that a run found, and candidates that a count is to look for."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.console import console, say, styled
from tacit.cli.display import display
from tacit.cli.groups import late_app
from tacit.cli.options import Json, command

app = late_app(help="Make and extend vocabularies.")


@app.command("extend")
@command
def extend(
    vocabulary: Annotated[Path, typer.Option(help="The vocabulary that the run started from.")],
    words: Annotated[
        Path, typer.Option(help="The folder of a finished run (`tacit discover`, or `tacit count` of candidates).")
    ],
    out: Annotated[Path, typer.Option(help="Where the new vocabulary.json goes; a file there is not replaced.")],
    data: Annotated[
        str | None, typer.Option(help="Clients to measure the out-of-vocabulary rate on, before and after.")
    ] = None,
    split: Annotated[str, typer.Option(help="Which of those clients: those that the run did not ask.")] = "test",
    most: Annotated[int | None, typer.Option(help="Take at most so many words, those with the highest counts.")] = None,
    json: Json = False,
) -> None:
    """Add the words that a run found, and say what that changes for clients whose text it never saw."""
    from tacit.jobs.vocabulary import extend_file  # Numba comes with it

    with display(quiet=json) as progress:
        made = extend_file(vocabulary, words, out, most=most, data=data, split=split, progress=progress)
    say(made, json, lambda extension: _show(extension.to_record()))


@app.command("candidates")
@command
def candidates(
    vocabulary: Annotated[Path, typer.Option(help="The vocabulary that is to learn.")],
    larger: Annotated[Path, typer.Option(help="One with the candidates besides, by which clients' text is cut.")],
    out: Annotated[Path, typer.Option(help="The list to write, for `tacit count --cells`.")],
    words_each: Annotated[int, typer.Option(help="Candidates that one client counts in full.")] = 1,
    json: Json = False,
) -> None:
    """Write the words of a larger vocabulary as a list to count, each once a client."""
    from tacit.jobs.count.new_words import candidates as job

    say_blocks(job(vocabulary, larger, out, words_each=words_each), json)


def _show(facts: dict[str, Any]) -> None:
    console.print(styled(f"{facts['vocabulary']}:", "bold"), f"{facts['size']:,} ids, {facts['added']:,} of them new")
    if facts["not_words"]:
        console.print(f"  left out   {facts['not_words']:,} that no text is ever cut into")
    if held := facts.get("held_out"):
        console.print(
            f"  {held['oov_rate_before']:.2%} of words were out of vocabulary, now {held['oov_rate_after']:.2%} "
            f"({held['words_typed']:,} words of {held['clients']:,} {held['split']} clients)"
        )
