"""`tacit personalize`: would a model of one's own help each user, which users, and when should a device use it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tacit
from tacit.cli import values
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, Population, Price, SecureOptions, command
from tacit.compute import Hardware
from tacit.errors import InputError
from tacit.networks.metrics import TOP1

if TYPE_CHECKING:  # JAX would come with them
    from tacit.evaluation.counts.histograms import Buckets
    from tacit.evaluation.personalize.outcomes import FineTuning, TemporalSplit

GATE_SHARE = 0.125  # of the text before test: of time:0.8 it leaves 70% to train on, 10% to the gate


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is tried: every batch size with every learning rate and every end; and caches."""

    batch_size: Annotated[str, typer.Option(help="Sentences a step, several with commas.")] = "5,10,20"
    learning_rate: Annotated[str, typer.Option(help="Learning rates, several with commas.")] = "0.01,0.1,1.0"
    max_tokens: Annotated[str, typer.Option(help="It stops at so many words and ends, several with commas.")] = "5000"
    epochs: Annotated[str, typer.Option(help="Or after so many passes over the text, several with commas.")] = "1"
    layers: Annotated[str, typer.Option(help="What is fine-tuned: all, output, biases, recurrent or embeddings.")] = (
        "all"
    )
    proximal: Annotated[float, typer.Option(help="Weight of the pull to the global model; 0 is none.")] = 0.0
    unigram: Annotated[str, typer.Option(help="Weights of a cache of the user's words, with commas; no SGD.")] = ""
    bigram: Annotated[str, typer.Option(help="The same of a cache of the user's pairs of words.")] = ""
    cache_with_sgd: Annotated[
        bool, typer.Option("--cache-with-sgd", help="Every way of SGD with every cache, too.")
    ] = False

    def strategies(self) -> "tuple[FineTuning, ...]":
        """The grid. Raises: InputError for what is no number or unknown."""
        from tacit.evaluation.personalize.outcomes import FineTuning

        return FineTuning.grid(
            [values.whole_number(each, "batch-size") for each in values.parts(self.batch_size)],
            values.numbers(self.learning_rate, "learning-rate", "0.1,1.0"),
            epochs=[values.whole_number(each, "epochs") for each in values.parts(self.epochs)],
            max_tokens=[values.whole_number(each, "max-tokens") for each in values.parts(self.max_tokens)],
            unigram=values.numbers(self.unigram, "unigram", "0.05,0.1"),
            bigram=values.numbers(self.bigram, "bigram", "0.05,0.1"),
            cache_with_sgd=self.cache_with_sgd,
            layers=self.layers,
            proximal=self.proximal,
        )


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Three temporal parts and who accepts; without a gate two."""

    split: Annotated[
        str, typer.Option(help="Where test text begins: time:0.8, count:100, date:2004-06-01 or last:20.")
    ] = "time:0.8"
    undated: Annotated[
        str, typer.Option(help="Sentences without a time: drop, or order (the cache's order is that of typing).")
    ] = "drop"
    gate: Annotated[
        str, typer.Option(help="none; a level (0.5: accept what is better); auto: chosen on half of the clients.")
    ] = "none"
    gate_share: Annotated[
        float, typer.Option(help="Share of the text before test, its latest, that only the gate looks at.")
    ] = GATE_SHARE
    harm_weight: Annotated[
        float, typer.Option(help="How much a loss counts against an equal gain when policies are chosen.")
    ] = 2.0

    def levels(self) -> tuple[float, ...]:
        """The gates that are compared. Raises: InputError for what is none."""
        from tacit.evaluation.personalize.gate import LEVELS, OPEN, GateRule

        if self.gate in ("none", "auto"):
            return (OPEN,) if self.gate == "none" else LEVELS
        level = GateRule(strategy=0, level=values.number(self.gate, "gate")).level
        return (OPEN,) if level == OPEN else (OPEN, level)

    def temporal(self) -> "TemporalSplit":
        """The split, with a part for the gate where there is one. Raises: InputError where it cannot be read."""
        from tacit.evaluation.personalize.gate import OPEN
        from tacit.evaluation.personalize.outcomes import TemporalSplit

        if self.undated not in ("drop", "order"):
            raise InputError(f"--undated {self.undated} is unknown; choose drop or order.")
        if not 0 < self.gate_share < 1:
            raise InputError(f"--gate-share {self.gate_share:g} is no share above 0 and below 1; give one.")
        share = 0.0 if self.levels() == (OPEN,) else self.gate_share
        return TemporalSplit.parse(self.split, gate=share, undated=self.undated)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Which histograms there are."""

    slices: Annotated[
        str, typer.Option(help="Histograms by tokens, baseline, joint (both at once); empty: of everybody only.")
    ] = "tokens,baseline"
    token_buckets: Annotated[str, typer.Option(help="Cuts between buckets of train tokens.")] = "1000,2000,4000"
    baseline_buckets: Annotated[str, typer.Option(help="Cuts between buckets of accuracy before.")] = "0.1,0.15,0.2"
    delta_buckets: Annotated[str, typer.Option(help="Cuts of changes of accuracy, FROM:TO:STEP.")] = "-0.1:0.2:0.01"
    metrics: Annotated[str, typer.Option(help="Metrics whose changes are counted; the first slices, too.")] = TOP1

    def settings(self) -> dict[str, Any]:
        """Raises: InputError where cuts make no buckets."""
        from tacit.evaluation.counts.histograms import Buckets

        return {
            "metrics": tuple(values.parts(self.metrics)),
            "slices": tuple(values.parts(self.slices)),
            "tokens": Buckets(values.numbers(self.token_buckets, "token-buckets", "1000,2000")),
            "baseline": Buckets(values.numbers(self.baseline_buckets, "baseline-buckets", "0.1,0.2")),
            "share_changes": self._changes(),
        }

    def _changes(self) -> "Buckets":
        from tacit.evaluation.counts.histograms import Buckets

        cuts = values.from_to_step(self.delta_buckets, "delta-buckets")
        if 0.0 not in cuts:
            raise InputError(
                f"--delta-buckets {self.delta_buckets!r} has no cut at 0, which parts gains from losses; "
                "write -0.1:0.2:0.01."
            )
        return Buckets(cuts).with_unchanged_apart()


@command
def personalize(
    model: Annotated[Path, typer.Argument(help="A finished run, or a model folder.")],
    data: Annotated[Path, typer.Option(help="A cache of clients' text, with the model's vocabulary.")],
    out: Annotated[Path, typer.Option(help="The run folder to make, or to go on with.")],
    grid: Grid,
    gating: Gate,
    counted: Counted,
    price: Price,
    secure: SecureOptions,
    clients: Annotated[int, typer.Option(help="Clients to ask; 0 is all of the split.")] = 0,
    split_name: Annotated[str, typer.Option(help="Which clients: test, validation or train.")] = "test",
    population: Population = None,
    seed: Annotated[int | None, typer.Option(help="Fix the noise: who knows the seed can take it away.")] = None,
    workers: Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Never changes the result.")] = 0,
    json: Json = False,
) -> None:
    """Fine-tune a model on each client's own text, count who gains and loses, and release that with a guarantee."""
    from tacit.evaluation.settings import PersonalizationSettings

    settings = PersonalizationSettings(
        split_name=split_name,
        clients=clients,
        strategies=grid.strategies(),
        split=gating.temporal(),
        levels=gating.levels(),
        harm_weight=gating.harm_weight,
        **counted.settings(),
    )
    with display(json, out) as progress:
        result = tacit.personalize(
            model,
            data,
            out,
            settings=settings,
            release=price.release(secure.of()),
            population=population,
            seed=seed,
            hardware=Hardware(workers=workers),
            progress=progress,
        )
    say_blocks(result, json)
