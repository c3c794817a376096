"""An experiment is a list of cells, a cell a name and a recipe: run those that are not finished, read those that are.

Every cell is a run folder RUNS/NAME made by `tacit.train` in another process, so that a killed experiment
continues where it was: a finished cell is read, an unfinished one resumed. Its output is in RUNS/NAME.log.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import signal
import statistics
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import t as student

import tacit
from tacit.compute import Hardware
from tacit.errors import TacitError
from tacit.recipe import Recipe
from tacit.runs import Run, TrainingMetadata
from tacit.statements.accounts import trained

TACIT = (sys.executable, "-m", "tacit")
SPAWN = multiprocessing.get_context("spawn")  # a fork would share threads that JAX has begun
SAID_EVERY = 60.0  # seconds between two lines of progress


@dataclass(frozen=True)
class Cell:
    """One run: its recipe says everything, cache and seed included."""

    name: str
    recipe: Recipe


@dataclass(frozen=True)
class Ended:
    """What a finished cell came to."""

    curves: Mapping[str, Mapping[int, float]]  # "validation_top1_accuracy" -> {rounds played: value}
    client_seconds: float

    def last(self, name: str) -> float:
        """The latest value of a curve, as "test_top1_accuracy"."""
        return self.curves[name][max(self.curves[name])]


@dataclass(frozen=True)
class Played(Ended):
    """What the folder of a finished cell says besides."""

    folder: Path
    metadata: TrainingMetadata
    measures: tuple[Mapping[str, float], ...]  # of each round: loss, clipped, clip_norm, ...


class Spread(NamedTuple):
    """Of values over seeds: mean, standard deviation, and the 95% interval of the mean (Student's t)."""

    mean: float
    deviation: float
    low: float
    high: float


# A network of 316 thousand parameters at 2,000 words, and rates that learn fastest without noise among seven settings
# of 60 rounds: an experiment of many cells then takes minutes on two cores. An experiment overrides what it varies.
SMALL: Mapping[str, Mapping[str, Any]] = {
    "model": {"embedding": 64, "units": 128},
    "client": {"batch_size": 16, "sentences": 16, "learning_rate": 2.0, "precision": "bfloat16"},
    "server": {"method": "nesterov", "learning_rate": 2.0},
    "privacy": {"clip_norm": 0.5},
    "evaluation": {"clients": 200, "test_clients": 400, "sentences": 16},
}


def small(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The sections of SMALL, with what `sections` says in their place."""
    return {name: {**SMALL.get(name, {}), **sections.get(name, {})} for name in {**SMALL, **sections}}


def cell(name: str, sections: Mapping[str, Mapping[str, Any]], *, cache: Path, seed: int) -> Cell:
    """A cell from the sections of a recipe as TOML has them; those that contradict each other are refused."""
    values = {**sections, "name": name, "data": {"cache": str(cache)}, "run": {"seed": seed}}
    return Cell(name, Recipe.model_validate(values, strict=False))


def play(cells: Sequence[Cell], runs: Path, *, at_once: int = 2, workers: int = 1) -> dict[str, Played]:
    """Run what is not finished, `at_once` side by side, and read everything.

    Raises: SystemExit where a cell failed (the others are run all the same) or its folder is of another recipe.
    """
    runs.mkdir(parents=True, exist_ok=True)
    waiting = [each for each in cells if not finished(each, runs)]
    say = f"{len(cells) - len(waiting)} of {len(cells)} cells are finished"
    hands = [Hand(runs, workers) for _ in range(min(at_once, len(waiting)))]
    failed, told = [], 0.0
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        while waiting or any(hand.cell for hand in hands):
            for hand in hands:
                if hand.cell is None and waiting:
                    hand.begin(waiting.pop(0))
            for hand in [each for each in hands if each.cell and each.has_ended]:
                name, well = hand.end()
                if not well:
                    failed.append(name)
                say, told = f"{name} {'is finished' if well else 'FAILED'}", 0.0
            if time.monotonic() - told > SAID_EVERY:
                names = [hand.cell.name for hand in hands if hand.cell]
                now = ", ".join(f"{name} at round {_rounds(runs / name)}" for name in names)
                print(f"{say}; running: {now or 'nothing'}; waiting: {len(waiting)}", file=sys.stderr, flush=True)
                told = time.monotonic()
            time.sleep(0.2)
    finally:
        for hand in hands:  # an interrupted experiment leaves nobody behind
            hand.leave()
        signal.signal(signal.SIGTERM, before)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; {runs}/NAME.log says why, and the same command tries again.")
    return read(cells, runs)


class Hand:
    """A process that plays cells one after another: programs compiled for one are there for the next.

    Of a cell of half a minute, 8 to 19 CPU seconds were Python's imports and compiling, with XLA's cache on disk too.
    """

    def __init__(self, runs: Path, workers: int) -> None:
        self.runs, self.workers = runs, workers
        self.cell: Cell | None = None
        self._start()

    def _start(self) -> None:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(self.runs / ".compiled")  # read when the process imports JAX
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, each: Cell) -> None:
        folder, written = self.runs / each.name, self.runs / f"{each.name}.toml"
        written.write_text(each.recipe.to_toml(), encoding="utf-8")
        self.pipe.send((written, folder, self.workers, self.runs / f"{each.name}.log"))
        self.cell = each

    @property
    def has_ended(self) -> bool:
        return self.pipe.poll()

    def end(self) -> tuple[str, bool]:
        """(the cell's name, whether it is finished); a process that died is followed by a new one."""
        assert self.cell is not None
        name, self.cell = self.cell.name, None
        try:
            return name, self.pipe.recv()
        except EOFError:
            self.leave()
            self._start()
            return name, False

    def leave(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _work(pipe: Connection) -> None:
    """What a Hand's process does: it trains the recipes that it is sent; output goes into the log that is named.

    What ends a training with no error of tacit's ends the process.
    """
    with suppress(EOFError):
        while True:
            recipe, folder, workers, log = pipe.recv()
            with open(log, "ab") as output:
                os.dup2(output.fileno(), sys.stdout.fileno())
                os.dup2(output.fileno(), sys.stderr.fileno())
            try:  # anyway: what noise does is what is to be measured
                tacit.train(recipe, folder, hardware=Hardware(workers=workers), anyway=True)
            except TacitError as error:
                print(error, file=sys.stderr, flush=True)
                pipe.send(False)
            else:
                pipe.send(True)


def _terminated(number: int, frame: Any) -> None:
    """On SIGTERM: out of `play`, through its `finally`."""
    sys.exit("terminated; the same command goes on.")


def read(cells: Sequence[Cell], runs: Path) -> dict[str, Played]:
    """What the finished ones among the cells say, by name."""
    return {each.name: read_folder(runs / each.name) for each in cells if finished(each, runs)}


def read_folder(folder: Path) -> Played:
    """What a run folder says, finished or not."""
    with Run.open(folder) as run:
        curves: dict[str, dict[int, float]] = {}
        for metric in run.metrics():
            curves.setdefault(f"{metric.split}_{metric.name}", {})[metric.step] = metric.value
        seconds = sum(seconds for _, _, seconds in run.times())
        return Played(curves, seconds, folder, trained(run), tuple(row.measures for row in run.steps()))


def finished(each: Cell, runs: Path) -> bool:
    """Raises: SystemExit where the folder is there and of another recipe."""
    folder = runs / each.name
    if not (folder / "run.db").is_file():
        return False
    with Run.open(folder) as run:
        asked, done = trained(run).asked, run.finished
    if changed := each.recipe.differences(Recipe.from_toml(asked)):
        raise SystemExit(f"'{folder}' was begun otherwise ({'; '.join(changed)}); give another --runs.")
    return done


def _rounds(folder: Path) -> int:
    if not (folder / "run.db").is_file():
        return 0
    with Run.open(folder) as run:
        return run.steps_done


def remember(cells: Sequence[Cell], done: Mapping[str, Played], path: Path, measures: Sequence[str]) -> None:
    """Add what finished cells came to in these measures to a file, a line of JSON each, where they do not stand yet.

    The file is small and can be committed: whoever has it can add seeds to an experiment whose run folders are gone.
    """
    there = set(remembered(cells, path)) if path.is_file() else set()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        for each in cells:
            if each.name in done and each.name not in there:
                run = done[each.name]
                wanted = {f"{split}_{measure}" for split in ("validation", "test") for measure in measures}
                curves = {
                    name: {at: float(f"{value:.6g}") for at, value in run.curves[name].items()}
                    for name in sorted(wanted & run.curves.keys())
                }
                facts = {"curves": curves, "client_seconds": round(run.client_seconds, 1)}
                file.write(json.dumps({"cell": each.name, "recipe": digest(each), **facts}) + "\n")


def remembered(cells: Sequence[Cell], path: Path) -> dict[str, Ended]:
    """What a file says of these cells; lines of other recipes under the same names are left out, which is said."""
    asked, found, others = {each.name: digest(each) for each in cells}, {}, 0
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["cell"] not in asked:
            continue
        if row["recipe"] == asked[row["cell"]]:
            curves = {name: {int(at): value for at, value in curve.items()} for name, curve in row["curves"].items()}
            found[row["cell"]] = Ended(curves, row["client_seconds"])
        else:
            others += 1
    if others:
        print(f"{others} cells of '{path}' are of other recipes than are asked for; left out.", file=sys.stderr)
    return found


def digest(each: Cell) -> str:
    """Of the recipe but for the folder that its cache lies in, and for whether baselines are measured at the end."""
    values = tomllib.loads(each.recipe.to_toml())
    values["evaluation"].pop("baselines", None)
    values["data"]["cache"] = Path(values["data"]["cache"]).name
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def spread(values: Sequence[float]) -> Spread:
    """Raises: statistics.StatisticsError for fewer than two values."""
    middle, deviation = statistics.mean(values), statistics.stdev(values)
    half = float(student.ppf(0.975, len(values) - 1)) * deviation / len(values) ** 0.5
    return Spread(middle, deviation, middle - half, middle + half)


def paired(first: Sequence[float], second: Sequence[float]) -> Spread:
    """Of second - first, seed by seed: what both of a pair share drops out."""
    return spread([b - a for a, b in zip(first, second, strict=True)])


def compare(title: str, measure: str, first: tuple[str, Sequence[float]], second: tuple[str, Sequence[float]]) -> None:
    """Print what two ways end with, seed by seed: the interval of each, and that of their paired difference."""
    named = {name: _interval(spread(values)) for name, values in (first, second)}
    (low, high), (lowest, highest) = named.values()
    apart = _interval(paired(first[1], second[1]))
    figure(
        title,
        measure=measure,
        **named,
        intervals_overlap=low <= highest and lowest <= high,
        paired_difference=apart,
        difference_may_be_zero=apart[0] <= 0 <= apart[1],
    )


def _interval(of: Spread) -> tuple[float, float]:
    return round(of.low, 6), round(of.high, 6)


def options(title: str, *, seeds: int, rounds: int | None) -> argparse.ArgumentParser:
    """What every experiment asks for; its own options are added to it. `rounds` None: as many as a recipe says."""
    parser = argparse.ArgumentParser(description=title, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="of `tacit data import`")
    parser.add_argument("--runs", type=Path, required=True, help="where the run folders are, or are made")
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="GLOB", help="cells of these names")
    parser.add_argument("--at-once", type=int, default=2, help="cells side by side, each on one core")
    parser.add_argument("--smoke", action="store_true", help="a minute: whether it works, not what is found")
    parser.add_argument("--table", action="store_true", help="print Markdown from the finished cells, run nothing")
    parser.add_argument("--figure", type=Path, help="draw PNG and SVG from the finished cells, run nothing")
    return parser


def chosen(cells: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    return [each for each in cells if any(fnmatch(each.name, glob) for glob in only)]


def figure(name: str, **facts: object) -> None:
    """One line of JSON."""
    print(json.dumps({"figure": name, **facts}), flush=True)


def save(drawing: Any, path: Path) -> None:
    """A figure of matplotlib as PNG and SVG, whatever ending `path` has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in (".png", ".svg"):
        drawing.savefig(path.with_suffix(ending), dpi=150)
