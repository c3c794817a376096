"""`tacit pretrain`: a first model from public text, for private training to begin with.

JAX is imported by the function that trains, not by this file.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.bars import counting_bar
from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.training.central import CentralState
    from tacit.training.pretrain import Look, Pretrained, Pretraining


@speaks_plainly
def pretrain(
    data: Annotated[Path, typer.Argument(help="A cache of public text: `tacit data import public:FILE.parquet`.")],
    out: Annotated[
        Path, typer.Option(help="The folder of the model; one that was interrupted is continued by the same command.")
    ],
    embedding: Annotated[int, typer.Option(help="Width of the word embeddings.")] = 96,
    units: Annotated[int, typer.Option(help="Units of the recurrent layer.")] = 670,
    tied: Annotated[
        bool, typer.Option("--tied", help="One embedding at both ends; paper 1 found that such models fine-tune badly.")
    ] = False,
    sentences: Annotated[int, typer.Option(help="Train on at most so many.")] = 1_000_000,
    every: Annotated[int, typer.Option(help="Sentences between two looks at held-out public text.")] = 50_000,
    patience: Annotated[int, typer.Option(help="Looks without a better one, after which training stops.")] = 5,
    learning_rate: Annotated[float, typer.Option(help="Adam's, at its highest.")] = 2e-3,
    batch_size: Annotated[int, typer.Option(help="Sentences of a step.")] = 64,
    words: Annotated[int, typer.Option(help="Predicted words of a sentence; the rest of a longer one is not used.")] = (
        20
    ),
    held_out: Annotated[int, typer.Option(help="Passages of the cache's validation part to look at.")] = 50,
    seed: Annotated[
        int, typer.Option(help="Of the initial model and of the order of the text; nothing is private.")
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a display.")] = False,
) -> None:
    """Train a model on public text; `tacit train --init OUT` begins from it."""
    from tacit.training.central import CentralTraining
    from tacit.training.pretrain import Pretraining

    if min(seed, held_out - 1) < 0:
        raise InputError(f"--seed {seed} must be 0 or more and --held-out {held_out} at least 1.")
    plan = Pretraining(
        central=CentralTraining(learning_rate=learning_rate, batch_size=batch_size, words=words),
        sentences=sentences,
        every=every,
        patience=patience,
    )
    size = {"embedding": embedding, "units": units, "tied": tied}
    _carry_out(data, out, size, plan, held_out=held_out, seed=seed, json=json)


def _carry_out(
    data: Path, out: Path, size: dict[str, Any], plan: "Pretraining", *, held_out: int, seed: int, json: bool
) -> None:
    import jax

    from tacit.compute import Hardware
    from tacit.compute.cores import Cores
    from tacit.data import Cache
    from tacit.evaluation.accuracy import HeldOut, evaluate
    from tacit.keyboard.cifg import Cifg
    from tacit.keyboard.language_model import next_word_loss
    from tacit.keyboard.model_folder import write_model, write_origin
    from tacit.keyboard.vocabulary import Vocabulary
    from tacit.training import generator_for, key_from_seed
    from tacit.training.pretrain import pretrain

    cache = Cache.open(data)
    network = Cifg(vocabulary=Vocabulary.load(cache.vocabulary_path).size, **size)
    validation = HeldOut.read(cache, cache.clients("validation")[:held_out], sentences=200, words=plan.central.words)
    key, cores = key_from_seed(seed), Cores(Hardware(workers=1))
    start = network.init(jax.random.key(int(generator_for(key, "initial model").integers(2**31))))
    with PretrainingProgress(plan.sentences, quiet=json) as progress:
        outcome = pretrain(
            out,
            next_word_loss(network),
            start,
            cache,
            cache.clients("train"),
            plan=plan,
            key=key,
            identity={"data": cache.manifest.digest, "model": asdict(network), "seed": seed, "held_out": held_out},
            measure=lambda model: evaluate(network, model, validation, cores=cores).metrics()["cross_entropy"],
            watch=progress.show,
        )
    write_model(out / "model", network, outcome.model, cache.vocabulary_path.read_bytes())
    write_origin(out / "model", cache.manifest.source)
    found = evaluate(network, outcome.model, validation, cores=cores).metrics()
    _say(out, outcome, found, cache.manifest.source, json=json)


def _say(out: Path, outcome: "Pretrained", found: dict[str, float], source: str, *, json: bool) -> None:
    best = outcome.best
    if json:
        looks: list[dict[str, Any]] = [look._asdict() for look in outcome.looks]
        print_json(
            {
                "model": str(out / "model"),
                "source": source,
                "best": best._asdict(),
                "stopped_early": outcome.stopped_early,
                "held_out": found,
                "looks": looks,
            }
        )
        return
    ended = "stopped early: held-out text no longer gained" if outcome.stopped_early else "all sentences seen"
    console.print(
        f"best after {best.sentences:,} sentences of {source} ({ended}): held-out top-1 "
        f"{found['top1_accuracy']:.2%}, cross-entropy {best.held_out:.3f} nats"
    )
    console.print(f"model: {out / 'model'}; begin a private run from it: tacit train RECIPE --init {out}")


class PretrainingProgress:
    """A bar on a terminal, a line for each look elsewhere."""

    def __init__(self, sentences: int, *, quiet: bool) -> None:
        self._quiet, self._looks = quiet, 0
        self._bar = counting_bar(quiet=quiet, says=True, left="left at most")
        self._task = self._bar.add_task("pre-training", total=sentences, shown="")

    def __enter__(self) -> "PretrainingProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, state: "CentralState", looks: "tuple[Look, ...]") -> None:
        """Called after every block of steps."""
        best = min(look.held_out for look in looks)
        shown = f"loss {state.loss:.3f}, held out {looks[-1].held_out:.3f} (best {best:.3f}) nats"
        self._bar.update(self._task, completed=state.sentences, shown=shown)
        if self._bar.disable and not self._quiet and len(looks) > self._looks:
            complaints.print(f"{state.sentences:,} sentences: {shown}")
        self._looks = len(looks)
