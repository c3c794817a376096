"""`tacit personalize`: would a model of one's own help each user, which users, and when should a device use it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli import values
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.from_settings import Named, Options
from tacit.cli.options import Json, Population, ReleaseOptions, SecureOptions, Workers, command
from tacit.compute import Hardware
from tacit.data.splits import TemporalSplit
from tacit.errors import InputError
from tacit.evaluation.counts.cells import Buckets
from tacit.evaluation.personalize.fine_tuning import Grid
from tacit.evaluation.personalize.gate import LEVELS, OPEN, GateRule
from tacit.evaluation.settings import PersonalizationSettings
from tacit.jobs.personalize.job import strategies_for

GATE_SHARE = 0.125  # of the text before test: of time:0.8 it leaves 70% to train on, 10% to the gate


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

    def levels(self) -> tuple[float, ...]:
        """The gates that are compared. Raises: InputError for what is none."""
        if self.gate in ("none", "auto"):
            return (OPEN,) if self.gate == "none" else LEVELS
        level = GateRule(strategy=0, level=values.number(self.gate, "gate")).level
        return (OPEN,) if level == OPEN else (OPEN, level)

    def temporal(self) -> TemporalSplit:
        """The split, with a part for the gate where there is one. Raises: InputError where it cannot be read."""
        if self.undated not in ("drop", "order"):
            raise InputError(f"--undated {self.undated} is unknown; choose drop or order.")
        if not 0 < self.gate_share < 1:
            raise InputError(f"--gate-share {self.gate_share:g} is no share above 0 and below 1; give one.")
        share = 0.0 if self.levels() == (OPEN,) else self.gate_share
        return TemporalSplit.parse(self.split, gate=share, undated=self.undated)  # type: ignore[arg-type]


def _changes(cuts_of: str) -> Buckets:
    """The cuts of changes. Raises: InputError where none parts gains from losses."""
    cuts = values.from_to_step(cuts_of, "delta-buckets")
    if 0.0 not in cuts:
        raise InputError(
            f"--delta-buckets {cuts_of!r} has no cut at 0, which parts gains from losses; write -0.1:0.2:0.01."
        )
    return Buckets(cuts).with_unchanged_apart()


@command
def personalize(
    model: Annotated[Path, typer.Argument(help="A finished run, a model folder, or a mixture: caches alone.")],
    data: Annotated[Path, typer.Option(help="A cache of clients' text, with the model's vocabulary.")],
    out: Annotated[Path, typer.Option(help="The run folder to make, or to go on with.")],
    grid: Grid,
    gating: Gate,
    options: Annotated[Options[PersonalizationSettings], Named(tokens="token_buckets", baseline="baseline_buckets")],
    cost: ReleaseOptions,
    secure: SecureOptions,
    delta_buckets: Annotated[str, typer.Option(help="Cuts of changes of accuracy, FROM:TO:STEP.")] = "-0.1:0.2:0.01",
    population: Population = None,
    seed: Annotated[int | None, typer.Option(help="Fix the noise: who knows the seed can take it away.")] = None,
    workers: Workers = 0,
    json: Json = False,
) -> None:
    """Fine-tune a model on each client's own text, count who gains and loses, and release that with a guarantee."""
    settings = options.settings(
        strategies=strategies_for(model, grid),
        split=gating.temporal(),
        levels=gating.levels(),
        share_changes=_changes(delta_buckets),
    )
    with display(json, out) as progress:
        result = tacit.personalize(
            model,
            data,
            out,
            settings=settings,
            release=cost.release(secure.protocol()),
            population=population,
            seed=seed,
            hardware=Hardware(workers=workers),
            progress=progress,
        )
    say_blocks(result, json)
