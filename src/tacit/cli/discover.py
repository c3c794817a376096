"""`tacit discover`: the words that clients type and a vocabulary lacks, without seeing anyone's text."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.from_settings import Named, Options
from tacit.cli.options import Json, Population, SecureOptions, command
from tacit.discovery.settings import DiscoverySettings
from tacit.text.alphabet import Alphabet

PRINTABLE = "printable"


@command
def discover_words(
    data: Annotated[
        str, typer.Option(help="The clients: a source as of `tacit data import`, or a cache with a larger vocabulary.")
    ],
    vocabulary: Annotated[
        Path, typer.Option(help="The vocabulary.json that devices have; its words are never reported.")
    ],
    out: Annotated[Path, typer.Option(help="The run folder; an interrupted run there goes on where it was.")],
    options: Annotated[Options[DiscoverySettings], Named(anonymity="k_anonymity")],
    secure: SecureOptions,
    alphabet: Annotated[
        str, typer.Option(help="The characters of words, as one text; `printable` is Python's 99 and the end.")
    ] = PRINTABLE,
    more_characters: Annotated[str, typer.Option(help="Besides the alphabet's: áéíñóúüÁÉÍÑÓÚÜ for Spanish.")] = "",
    counting_users: Annotated[
        int | None, typer.Option(help="Fresh users who say how often the words are typed.", show_default="as a layer")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Where the central epsilon is read; left out, min(1e-5, n^-1.1) of n clients."),
    ] = None,
    population: Population = None,
    json: Json = False,
) -> None:
    """Find frequent unknown words under local differential privacy, layer by layer of a trie."""
    from tacit.jobs.discover.job import discover

    spelt = Alphabet() if alphabet == PRINTABLE else Alphabet(alphabet)
    settings = options.settings(
        alphabet=spelt.with_characters(more_characters),
        counting_users=options["users_per_layer"] if counting_users is None else counting_users,
        secure_sum=secure.protocol(),
    )
    with display(json, out) as progress:
        result = discover(data, vocabulary, out, settings, delta=delta, population=population, progress=progress)
    say_blocks(result, json)
