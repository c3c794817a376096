"""`tacit personalize`: would a model of one's own help each user, which users, and when should a device use it."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.bars import counting_bar
from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.options import with_options
from tacit.errors import InputError
from tacit.jobs.evaluation_promise import Price, say_promise
from tacit.keyboard.metrics import TOP1

if TYPE_CHECKING:  # JAX would come with them
    from tacit.evaluation.histograms import Buckets
    from tacit.evaluation.personalization import FineTuning, TemporalSplit
    from tacit.evaluation.queries import Queries
    from tacit.jobs.personalize import Work

GATE_SHARE = 0.125  # of the text before test: of time:0.8 it leaves 70% to train on, 10% to the gate
STEPS = 10  # lines of progress where no bar moves


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What fine-tuning is tried: every batch size with every learning rate."""

    batch_size: Annotated[str, typer.Option(help="Sentences a step, several with commas.")] = "5,10,20"
    learning_rate: Annotated[str, typer.Option(help="Learning rates, several with commas.")] = "0.01,0.1,1.0"
    max_tokens: Annotated[int, typer.Option(help="Fine-tuning stops at so many words and ends.")] = 5000
    epochs: Annotated[int, typer.Option(help="Or after so many passes over the text, whichever is first.")] = 1
    layers: Annotated[str, typer.Option(help="What is fine-tuned: all, output, biases, recurrent or embeddings.")] = (
        "all"
    )
    proximal: Annotated[float, typer.Option(help="Weight of the pull to the global model; 0 is none.")] = 0.0

    def strategies(self) -> "tuple[FineTuning, ...]":
        """The grid. Raises: InputError for what is no number or unknown."""
        from tacit.evaluation.personalization import FineTuning

        grid = tuple(
            FineTuning(
                batch_size=_whole(size, "--batch-size"),
                learning_rate=_real(rate, "--learning-rate"),
                max_tokens=self.max_tokens,
                epochs=self.epochs,
                layers=self.layers,
                proximal=self.proximal,
            )
            for size, rate in product(_listed(self.batch_size), _listed(self.learning_rate))
        )
        if not grid or len(set(grid)) < len(grid):
            raise InputError("the grid of --batch-size and --learning-rate is empty or names a strategy twice.")
        return grid


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
        from tacit.evaluation.gate import LEVELS, OPEN, GateRule

        if not (self.harm_weight >= 0 and math.isfinite(self.harm_weight)):
            raise InputError(f"--harm-weight {self.harm_weight:g} must be 0 or more; 1 counts losses like gains.")
        if self.gate in ("none", "auto"):
            return (OPEN,) if self.gate == "none" else LEVELS
        level = GateRule(strategy=0, level=_real(self.gate, "--gate")).level
        return (OPEN,) if level == OPEN else (OPEN, level)

    def temporal(self) -> "TemporalSplit":
        """The split, with a part for the gate where there is one. Raises: InputError where it cannot be read."""
        from tacit.evaluation.gate import OPEN
        from tacit.evaluation.personalization import TemporalSplit

        if self.undated not in ("drop", "order"):
            raise InputError(f"--undated {self.undated} is unknown; choose drop or order.")
        share = 0.0 if self.levels() == (OPEN,) else self.gate_share
        if share == 0.0 and self.levels() != (OPEN,):
            raise InputError("--gate-share 0 leaves a gate nothing to look at; give a share such as 0.125.")
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
    metrics: Annotated[str, typer.Option(help="Whose changes: top1_accuracy, top3_accuracy, cross_entropy.")] = TOP1

    def queries(self, strategies: "tuple[FineTuning, ...]", levels: tuple[float, ...]) -> "Queries":
        """Raises: InputError where a name is unknown or cuts make no buckets."""
        from tacit.evaluation.queries import Queries, changes

        change = _steps(self.delta_buckets)
        return Queries(
            strategies=tuple(map(str, strategies)),
            metrics=tuple(_listed(self.metrics)),
            slices=tuple(_listed(self.slices)),
            tokens=_cuts(self.token_buckets, "--token-buckets"),
            baseline=_cuts(self.baseline_buckets, "--baseline-buckets"),
            changes=changes(change),
            levels=levels,
        )


@speaks_plainly
@with_options
def personalize(
    model: Annotated[Path, typer.Argument(help="A finished run, or a model folder.")],
    data: Annotated[Path, typer.Option(help="A cache of clients' text, with the model's vocabulary.")],
    out: Annotated[Path, typer.Option(help="The run folder to make, or to go on with.")],
    grid: Grid,
    gating: Gate,
    counted: Counted,
    price: Price,
    clients: Annotated[int, typer.Option(help="Clients to ask; 0 is all of the split.")] = 0,
    split_name: Annotated[str, typer.Option(help="Which clients: test, validation or train.")] = "test",
    seed: Annotated[int | None, typer.Option(help="Fix the noise: who knows the seed can take it away.")] = None,
    workers: Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Never changes the result.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Fine-tune a model on each client's own text, count who gains and loses, and release that with a guarantee."""
    from tacit.jobs.personalize import Work

    if clients < 0 or (seed is not None and seed < 0):
        raise InputError("--clients and --seed must be 0 or more.")
    strategies = grid.strategies()
    work = Work(
        model=model,
        data=data,
        split_name=split_name,
        clients=clients,
        strategies=strategies,
        split=gating.temporal(),
        queries=counted.queries(strategies, gating.levels()),
        harm_weight=gating.harm_weight,
        promise=price.promise(),
        seed=seed,
    )
    _carry_out(work, out, workers, as_json)


def _carry_out(work: "Work", out: Path, workers: int, as_json: bool) -> None:
    from tacit.compute import Hardware
    from tacit.jobs.personalize import evaluate_clients, findings, open_or_begin, write_report

    hardware = Hardware(workers=workers)
    hardware.apply(processor_only=True)
    with open_or_begin(work, out) as run, run.locked():
        with client_progress(quiet=as_json) as told:
            evaluate_clients(work, run, hardware, told)
        found = findings(work, run)
        record, files = write_report(work, run, found)
        run.finish()
        run.destroy_noise_key()
    if as_json:
        print_json({**record, "report": str(files.markdown)})
        return
    _say(record)
    console.print(f"report: {files.markdown}", soft_wrap=True)


def _say(record: Any) -> None:
    promise, exact = record["promise"], record["simulation_only"]
    console.print(f"SIMULATION ONLY: {exact['evaluated']:,} of {record['asked']:,} clients evaluated")
    best = max(exact["strategies"], key=lambda name: exact["strategies"][name][TOP1]["mean"].value)
    row = exact["strategies"][best][TOP1]
    relative = "unknown" if math.isnan(row["relative"].value) else f"{row['relative'].value:+.1%}"
    console.print(
        f"SIMULATION ONLY: best {best}: accuracy {row['mean'].value:+.4f} ({row['mean'].low:+.4f} to "
        f"{row['mean'].high:+.4f}), {relative} relative; {row['gaining'][0.02].value:.0%} gain "
        f"at least 0.02, {row['losing'][0.0].value:.0%} lose"
    )
    for each in exact["policies"]:
        console.print(
            f"SIMULATION ONLY: {each['name']}: accuracy {each['gain'].value:+.4f}, {each['harmed'].value:.0%} lose "
            f"({each['users']:,} users that did not design it)"
        )
    say_promise(promise)


@contextmanager
def client_progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Tell (done, of): a bar with the time left on a terminal, elsewhere a line for each tenth."""
    if quiet:
        yield lambda done, of: None
        return
    bar = counting_bar(quiet=False)
    task = bar.add_task("clients", total=None)
    said = -1

    def told(done: int, of: int) -> None:
        nonlocal said
        bar.update(task, completed=done, total=of)
        if bar.disable and done * STEPS // max(of, 1) > said:
            said = done * STEPS // max(of, 1)
            complaints.print(f"{done:,} of {of:,} clients")

    with bar:
        yield told


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _real(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} {text!r} is no number.") from None


def _whole(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{option} {text!r} is no whole number.") from None


def _cuts(text: str, option: str) -> "Buckets":
    from tacit.evaluation.histograms import Buckets

    return Buckets(tuple(_real(part, option) for part in _listed(text)))


def _steps(text: str) -> "Buckets":
    """FROM:TO:STEP in exact fractions, so that 0.02 is the cut it looks like; who is unchanged is kept apart."""
    from tacit.evaluation.histograms import Buckets

    try:
        first, last, step = (Fraction(part) for part in text.split(":"))
    except ValueError:
        raise InputError(
            f"--delta-buckets {text!r} cannot be read; write FROM:TO:STEP, such as -0.1:0.2:0.01."
        ) from None
    if step <= 0 or first >= last:
        raise InputError(
            f"--delta-buckets {text!r} has no cuts; write FROM:TO:STEP with FROM below TO and STEP above 0."
        )
    cuts = tuple(float(first + k * step) for k in range(int((last - first) / step) + 1))
    if 0.0 not in cuts:
        raise InputError(
            f"--delta-buckets {text!r} has no cut at 0, which parts gains from losses; write -0.1:0.2:0.01."
        )
    return Buckets(cuts).with_unchanged_apart()
