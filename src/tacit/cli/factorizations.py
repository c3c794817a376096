"""`tacit design` for every mechanism but the BLT: banded, inverse, dense, tree, independent; and all side by side."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer
from rich.table import Table

from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.design import Between, Json, MostTimes, Out, Rounds, Separation, app, participation, show
from tacit.cli.options import with_options
from tacit.design.banded import design_banded
from tacit.design.blt import design_blt
from tacit.design.dense import design_dense, full_tree, full_tree_losses
from tacit.design.losses import Losses, Objective, checked_objective, losses
from tacit.design.toeplitz import (
    banded_inverse_square_root,
    banded_square_root,
    design_banded_inverse,
    design_banded_toeplitz,
    design_lambda_cgd,
)
from tacit.errors import TacitError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Independent, Record, Strategy, Tree
from tacit.progress import Advanced, Event, Progress

__all__ = ["app"]  # the one of `design.py`, with the commands of this file on it

EVERY = 5.0  # seconds between two lines of progress where no line can move

Bands = Annotated[
    int, typer.Option(help="Coefficients that are not zero: so many vectors of the model's size, less one, are kept.")
]
Objected = Annotated[
    str, typer.Option("--objective", help="The loss to minimise: max (of the worst prefix sum) or rms.")
]
Shown = Annotated[str, typer.Option("--objective", help="Which loss to print as the loss: max or rms.")]
Design = Callable[[Participation, Objective], Strategy]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """For whom a mechanism is made, and where the answer goes."""

    rounds: Rounds
    min_separation: Separation = None
    rounds_between: Between = None
    max_participations: MostTimes = None
    out: Out = None
    as_json: Json = False

    def participation(self) -> Participation:
        """InputError where the numbers contradict each other."""
        return participation(self.rounds, self.min_separation, self.rounds_between, self.max_participations)

    def answer(
        self, objective: str, design: Design, cost: Callable[[Strategy, Participation], Losses] = losses
    ) -> None:
        """Design, time, show."""
        served, minimised = self.participation(), checked_objective(objective)
        begin = time.perf_counter()
        strategy = design(served, minimised)
        seconds = time.perf_counter() - begin
        show(strategy, cost(strategy, served), minimised, seconds, self.as_json, out=self.out)


@app.command("banded-toeplitz")
@speaks_plainly
@with_options
def banded_toeplitz(
    asked: Asked,
    bands: Bands,
    objective: Objected = "max",
) -> None:
    """BandToep: the best so many falling coefficients of C; any number of rounds."""
    asked.answer(objective, lambda it, loss: design_banded_toeplitz(it, bands=bands, objective=loss))


@app.command("banded-inverse")
@speaks_plainly
@with_options
def banded_inverse(
    asked: Asked,
    bands: Bands,
    objective: Objected = "max",
    falling: Annotated[bool, typer.Option("--falling", help="Only C that falls: an exact sensitivity.")] = False,
) -> None:
    """BandInvMF: the best so many coefficients of C inverse; any number of rounds."""
    asked.answer(objective, lambda it, loss: design_banded_inverse(it, bands=bands, objective=loss, falling=falling))


@app.command("lambda-cgd")
@speaks_plainly
@with_options
def lambda_cgd(
    asked: Asked,
    objective: Objected = "max",
) -> None:
    """DP-lambdaCGD: take back a share of the last seed, the best share; one seed kept or drawn again."""
    asked.answer(objective, lambda it, loss: design_lambda_cgd(it, objective=loss))


@app.command("square-root")
@speaks_plainly
@with_options
def square_root(
    asked: Asked,
    bands: Bands,
    objective: Shown = "max",
) -> None:
    """BSR: C begins like the square root of the prefix sums; a closed form."""
    asked.answer(objective, lambda _, __: banded_square_root(bands))


@app.command("inverse-square-root")
@speaks_plainly
@with_options
def inverse_square_root(
    asked: Asked,
    bands: Bands,
    objective: Shown = "max",
) -> None:
    """BISR: C inverse begins like the inverse of the square root; a closed form."""
    asked.answer(objective, lambda _, __: banded_inverse_square_root(bands))


@app.command("banded")
@speaks_plainly
@with_options
def banded(
    asked: Asked,
    bands: Annotated[int | None, typer.Option(help="Diagonals of C; left out, as many as the separation.")] = None,
    objective: Objected = "rms",
) -> None:
    """BandMF: a banded matrix with every entry free; for these rounds only. Takes seconds to minutes."""
    width = asked.participation().min_separation if bands is None else bands
    with _progress("BandMF", "{} steps, loss {:.6f}") as report:
        asked.answer(
            objective, lambda it, loss: design_banded(it, bands=width, objective=loss, progress=_steps(report, "loss"))
        )


@app.command("dense")
@speaks_plainly
@with_options
def dense(
    asked: Asked,
    objective: Shown = "rms",
) -> None:
    """The optimal matrix (rms) where clients come once; for these rounds only. Takes seconds."""
    with _progress("dense", "{} steps, within {:.1e} of the least squared error") as report:
        asked.answer(objective, lambda it, _: design_dense(it, progress=_steps(report, "gap")))


@app.command("full-tree")
@speaks_plainly
@with_options
def tree_full(
    asked: Asked,
    objective: Shown = "max",
) -> None:
    """TreeAgg-Full: the tree's nodes with their best decoder, a dense matrix; for these rounds only."""
    asked.answer(objective, lambda it, _: full_tree(it.rounds), lambda _, it: full_tree_losses(it))


@app.command("tree")
@speaks_plainly
@with_options
def tree(
    asked: Asked,
    variance_reduced: Annotated[bool, typer.Option(help="Estimate from all nodes below, not one (Honaker).")] = False,
    objective: Shown = "max",
) -> None:
    """Binary-tree aggregation without restarts; nothing to choose."""
    asked.answer(objective, lambda _, __: Tree(variance_reduced=variance_reduced))


@app.command("independent")
@speaks_plainly
@with_options
def independent(
    asked: Asked,
    objective: Shown = "max",
) -> None:
    """Fresh noise every round: what all the others are measured against."""
    asked.answer(objective, lambda _, __: Independent())


@app.command("compare")
@speaks_plainly
def compare(
    rounds: Rounds,
    min_separation: Separation = None,
    rounds_between: Between = None,
    max_participations: MostTimes = None,
    objective: Objected = "max",
    slow: Annotated[bool, typer.Option(help="BandMF and the dense matrices too: seconds to minutes.")] = False,
    as_json: Json = False,
) -> None:
    """All mechanisms side by side: their losses at equal privacy, and what each must remember."""
    minimised = checked_objective(objective)
    served = participation(rounds, min_separation, rounds_between, max_participations)
    rows = []
    with _progress("comparing", "{} mechanisms, {:.0f} s") as report:
        begin = time.perf_counter()
        for done, (name, design) in enumerate(_contenders(served, minimised, slow), start=1):
            rows.append(_row(name, design, served))
            report(done, time.perf_counter() - begin)
    rows.sort(key=lambda row: (row[f"{minimised}_loss"] is None, row[f"{minimised}_loss"]))
    if as_json:
        print_json(
            {
                "rounds": rounds,
                "min_separation": served.min_separation,
                "max_participations": served.max_participations,
                "objective": minimised,
                "mechanisms": rows,
            }
        )
        return
    table = Table("mechanism", "max loss", "rms loss", "memory (models)", "seconds", box=None, pad_edge=False)
    for row in rows:
        shown = [row["refused"], ""] if row["refused"] else [f"{row['max_loss']:.4f}", f"{row['rms_loss']:.4f}"]
        table.add_row(row["name"], *shown, str(row["memory"]), f"{row['seconds']:.2f}")
    console.print(table)


def _contenders(
    served: Participation, objective: Objective, slow: bool
) -> Iterator[tuple[str, Callable[[], Strategy]]]:
    """(name, how to design it); bands as many as the separation, and four where memory must be small."""
    wide, few = min(served.min_separation, served.rounds), min(4, served.rounds)
    yield "independent", Independent
    yield "tree", Tree
    yield "tree, variance-reduced", partial(Tree, variance_reduced=True)
    for buffers in (2, 3, 4):
        yield f"blt, {buffers} buffers", partial(design_blt, served, buffers=buffers, objective=objective)
    for bands in sorted({few, wide}):
        yield f"square-root, {bands} bands", partial(banded_square_root, bands)
        yield f"inverse-square-root, {bands} bands", partial(banded_inverse_square_root, bands)
        yield (
            f"banded-toeplitz, {bands} bands",
            partial(design_banded_toeplitz, served, bands=bands, objective=objective),
        )
    yield f"banded-inverse, {few} bands", partial(design_banded_inverse, served, bands=few, objective=objective)
    yield "lambda-cgd", partial(design_lambda_cgd, served, objective=objective)
    if slow:
        yield "full-tree", partial(full_tree, served.rounds)
        yield f"banded, {wide} bands", partial(design_banded, served, bands=wide, objective=objective)
        if served.effective.max_participations == 1:
            yield "dense", partial(design_dense, served)


def _row(name: str, design: Callable[[], Strategy], served: Participation) -> Record:
    """One line of the comparison; a mechanism that has no exact answer here says why."""
    begin = time.perf_counter()
    row: Record = {"name": name, "max_loss": None, "rms_loss": None, "memory": None, "refused": None}
    try:
        strategy = design()
        cost = full_tree_losses(served) if name == "full-tree" else losses(strategy, served)
        row |= {"max_loss": cost.max_loss, "rms_loss": cost.rms_loss, "memory": strategy.memory(served.rounds)}
    except TacitError as error:
        row["refused"] = str(error)
    return row | {"seconds": time.perf_counter() - begin}


def _steps(report: Callable[[int, float], None], figure: str) -> Progress:
    """A design's events as steps with one figure."""

    def told(event: Event) -> None:
        if isinstance(event, Advanced):
            report(event.done, event.figures[figure])

    return told


@contextmanager
def _progress(name: str, words: str) -> Iterator[Callable[[int, float], None]]:
    """How far a slow design is: one line that moves on a terminal, elsewhere a line every few seconds."""
    if complaints.is_terminal:
        with complaints.status(name) as status:
            yield lambda step, figure: status.update(f"{name}: {words.format(step, figure)}")
        return
    last = time.perf_counter()

    def line(step: int, figure: float) -> None:
        nonlocal last
        if time.perf_counter() - last > EVERY:
            last = time.perf_counter()
            complaints.print(f"{name}: {words.format(step, figure)}")

    yield line
