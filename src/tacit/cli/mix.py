"""`tacit mix`: counts and a network as one model."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command


@command
def mix(
    ngram: Annotated[list[Path], typer.Argument(help="What `tacit ngram` wrote, of one public text or of several.")],
    out: Annotated[Path, typer.Option(help="The folder to write, whole or not at all; an old one is replaced.")],
    counts: Annotated[
        Path | None,
        typer.Option(help="A run of `tacit count` with the sum word_counts, and word_pairs if it has it."),
    ] = None,
    network: Annotated[Path | None, typer.Option(help="A finished run, or a pre-training.")] = None,
    weight: Annotated[
        float | None,
        typer.Option(help="The network's share, above 0; of one trained on clients 0.6, without --counts 0.75."),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(help="A cache of public text: its validation part sets that share, and texts' without --counts."),
    ] = None,
    megabytes: Annotated[float, typer.Option(help="What n-grams may take: those worth least are left out.")] = 8.0,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change one of these by its name, such as weight=0.5; may be given several times.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Bend a public n-gram model by private counts, and mix it with a network; one promise covers all of it.

    --set takes one value a key, for this makes one model: several, KEY=A,B, are refused.
    """
    from tacit.jobs.mix import mix_with

    with display(json) as progress:
        found = mix_with(
            ngram,
            out,
            sets or (),
            counts=counts,
            network=network,
            weight=weight,
            public=public,
            megabytes=megabytes,
            progress=progress,
        )
    say_blocks(found, json)
