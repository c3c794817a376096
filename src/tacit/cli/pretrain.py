"""`tacit pretrain`: a first model from public text, for private training to begin with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, LogOptions, command
from tacit.networks.models import DEFAULT
from tacit.progress import together

if TYPE_CHECKING:  # what a command computes with is loaded when it is called
    from tacit.compute.precision import Precision


@command
def pretrain(
    data: Annotated[Path, typer.Argument(help="A cache of public text: `tacit data import public:FILE.parquet`.")],
    out: Annotated[
        Path, typer.Option(help="The run folder to make; one that was interrupted is continued by the same command.")
    ],
    logs: LogOptions,
    kind: Annotated[str, typer.Option(help="The network, as a recipe's model.kind names it.")] = DEFAULT,
    embedding: Annotated[
        int | None, typer.Option(help="Width of the word embeddings; left out, the network's.")
    ] = None,
    units: Annotated[int | None, typer.Option(help="Units of the recurrent layer; left out, the network's.")] = None,
    tied: Annotated[
        bool, typer.Option("--tied", help="One embedding at both ends; paper 1 found that such models fine-tune badly.")
    ] = False,
    sentences: Annotated[int, typer.Option(help="Train on at most so many.")] = 1_000_000,
    every: Annotated[int, typer.Option(help="Sentences between two evaluations on held-out public text.")] = 50_000,
    patience: Annotated[int, typer.Option(help="Evaluations without a better one, after which training stops.")] = 5,
    learning_rate: Annotated[float, typer.Option(help="Adam's, at its highest.")] = 2e-3,
    batch_size: Annotated[int, typer.Option(help="Sentences of a step.")] = 64,
    words: Annotated[int, typer.Option(help="Predicted words of a sentence; the rest of a longer one is not used.")] = (
        20
    ),
    precision: Annotated[
        str, typer.Option(help="float32, or bfloat16: of products, twice as fast on processors with units for it.")
    ] = "float32",
    held_out: Annotated[int, typer.Option(help="Passages of the cache's validation part to evaluate on.")] = 50,
    seed: Annotated[
        int, typer.Option(help="Of the initial model and of the order of the text; nothing is private.")
    ] = 0,
    declared_public: Annotated[
        bool,
        typer.Option(
            "--declared-public", help="The cache has clients, whose text is public all the same: statements repeat it."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Train a model on public text; `tacit train --init OUT` begins from it."""
    from tacit.jobs.pretrain import pretrain as job
    from tacit.training.central import CentralTraining
    from tacit.training.pretrain import Pretraining

    settings = Pretraining(
        central=CentralTraining(
            learning_rate=learning_rate,
            batch_size=batch_size,
            words=words,
            precision=cast("Precision", precision),  # which ones there are is checked there
        ),
        sentences=sentences,
        every=every,
        patience=patience,
    )
    model = {"kind": kind, "embedding": embedding, "units": units, "tied": tied or None}
    with logs.logs(out) as told, display(json, out) as progress:
        both = together(progress, told)
        result = job(
            data,
            out,
            model={key: value for key, value in model.items() if value is not None},
            settings=settings,
            held_out=held_out,
            seed=seed,
            declared_public=declared_public,
            progress=both,
        )
    say_blocks(result, json)
