"""`tacit count`: named statistics of clients' text, as histograms or sums over clients."""

from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.from_settings import Options
from tacit.cli.options import Json, Population, ReleaseOptions, SecureOptions, command
from tacit.evaluation.counts.cell_list import CellList
from tacit.evaluation.settings import CountSettings


@command
def count(
    statistics: Annotated[
        list[str] | None,
        typer.Argument(
            help="Each a statistic with its cuts, and what slices it: words:10,100 or 'words:10,100 by sentences:5'. "
            "Or each a sum over the first words of the vocabulary, and the norm of a client's part: "
            "'word_pairs:1000 norm 30', or with ' unit 16' behind, so that less is lost by rounding."
        ),
    ] = None,
    *,
    data: Annotated[Path, typer.Option(help="A cache of clients' text.")],
    out: Annotated[Path, typer.Option(help="The run folder to make, or to go on with.")],
    cells: Annotated[
        Path | None,
        typer.Option(help="A list of n-grams to sum, each with its weight: `tacit plan counts` writes one."),
    ] = None,
    options: Options[CountSettings],
    cost: ReleaseOptions,
    secure: SecureOptions,
    population: Population = None,
    seed: Annotated[int | None, typer.Option(help="Fix the noise: who knows the seed can take it away.")] = None,
    json: Json = False,
) -> None:
    """Count statistics of clients' text, by cuts and slices or word by word, and release them with a guarantee."""
    with display(json, out) as progress:
        result = tacit.count(
            data,
            out,
            settings=options.settings(
                **CountSettings.named_by(statistics or ()), cells=None if cells is None else CellList.load(cells)
            ),
            release=cost.release(secure.protocol()),
            population=population,
            seed=seed,
            progress=progress,
        )
    say_blocks(result, json)
