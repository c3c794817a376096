"""A run that is killed with SIGKILL at random instants and resumed ends bit for bit as one that never was.

Each cycle trains a fresh run folder in real processes, kills them one to four times (anywhere in time, while a chosen
round is written, or in the finishing steps), resumes to the end and compares model files, the digest of the state after
every round, ledger rows, participations and metrics with those of an uninterrupted run. Prints one JSON line.

    python benchmarks/deployment/kill_and_resume.py --cycles 50

Processes are forked from one that has imported everything and computed nothing, and compiled code is kept between them:
that saves seconds in each and changes no bit, as the comparison with the first run, which compiled for itself, shows.
"""

import argparse
import json
import multiprocessing
import os
import random
import runpy
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

WORDS = [a + b for a in "bcdfgklm" for b in ("a", "at", "en", "ing", "o", "ur", "y")]  # 56; with the specials 60
CLIENTS = 90
PRELOADED = ["tacit.cli", "matplotlib.backends.backend_agg", "matplotlib.font_manager", "matplotlib.figure"]
ROUNDS = 16
SECURE = '[aggregation]\nkind = "secure"\nprotocol = "{}"\nprotocol_clients = 6\nprotocol_dropout = 0.15\nthreshold = 3'
MECHANISMS = {
    "none": 'mechanism = { name = "none" }',
    "independent": 'noise_multiplier = 0.3\nmechanism = { name = "independent" }',
    "tree": 'noise_multiplier = 0.3\nmechanism = { name = "tree", restarts = [5] }',
    "tree-variance-reduced": 'noise_multiplier = 0.3\nmechanism = { name = "tree-variance-reduced" }',
    "blt-b400": 'noise_multiplier = 0.3\nmechanism = { name = "blt-b400" }',
    "banded-inverse": 'noise_multiplier = 0.3\nmechanism = { name = "banded-inverse", coefficients = [1.0, -0.5] }',
    "tree with adaptive clipping": (
        'noise_multiplier = 0.3\nmechanism = { name = "tree", restarts = [5, 10] }\n[clipping]\ninitial = 0.2'
    ),
    "secure sums by masks": 'noise_multiplier = 0.3\nmechanism = { name = "blt-b400" }\n' + SECURE.format("masks"),
    "secure sums by one message": (
        'noise_multiplier = 0.3\nmechanism = { name = "tree", restarts = [5, 10] }\n[clipping]\ninitial = 0.2\n'
        "[training_loss]\nbound = 8.0\n" + SECURE.format("one-message")
    ),
}
RECIPE = """
name = "killed"
data.cache = {cache}
model = {{ embedding = 8, units = 16 }}
client = {{ batch_size = 4, sentences = 8, words = 6 }}
rounds = {{ rounds = {rounds}, report_goal = 6, min_separation = 5 }}
evaluation = {{ every = 3, clients = 4, test_clients = 4, sentences = 8 }}
run.seed = 11
[privacy]
clip_norm = 0.2
{noise}
"""


def tacit(*arguments: str) -> None:
    """The command, in this process; nothing of what it prints is shown."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.argv = ["tacit", *arguments]
    runpy.run_module("tacit", run_name="__main__")


def start(run: Path, recipe: Path) -> Any:
    """Train, or resume where there is something to resume, as a person would after a crash."""
    what = ["resume", str(run)] if (run / "run.db").exists() else ["train", str(recipe), "--out", str(run)]
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=tacit, args=(*what, "--json", "--workers", "2"))
    process.start()
    return process


def make_world(folder: Path) -> dict[str, Path]:
    """A population of short sentences, imported, and a recipe per mechanism."""
    draw = random.Random(1)
    (folder / "text").mkdir()
    for client in range(CLIENTS):
        sentences = [" ".join(draw.choices(WORDS, k=draw.randint(2, 9))) + "." for _ in range(draw.randint(1, 12))]
        (folder / "text" / f"{client}.txt").write_text("\n\n".join(sentences))
    (folder / "words.txt").write_text("\n".join(WORDS))
    cache = folder / "cache"
    context = multiprocessing.get_context("forkserver")
    words = ("--word-list", str(folder / "words.txt"))
    process = context.Process(
        target=tacit, args=("data", "import", f"folder:{folder / 'text'}", "--out", str(cache), *words)
    )
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit("the population could not be imported")
    recipes = {}
    for mechanism, noise in MECHANISMS.items():
        recipes[mechanism] = folder / f"{mechanism}.toml"
        text = RECIPE.format(cache=json.dumps(str(cache)), rounds=ROUNDS, noise=noise)
        recipes[mechanism].write_text(text)
    return recipes


def what_happened(path: Path) -> dict[str, Any]:
    """All that two runs must have in common; clocks and paths are left out."""
    from tacit.runs import Run

    with Run.open(path) as run:
        return {
            "model": {file.name: file.read_bytes() for file in (path / "model").iterdir()},
            "digests": [(row.step, row.file, row.digest) for row in run.steps()],
            "ledger": [json.dumps([row.releases, row.measures]) for row in run.steps()],
            "participations": [column.tolist() for column in run.participations()],
            "metrics": [(m.step, m.split, m.name, m.value) for m in run.metrics()],
            "finished": run.finished,
            "key and checkpoints": [(path / "noise.key").exists(), len(list((path / "steps").iterdir()))],
        }


def stage(run: Path) -> str:
    """How far a killed run had come."""
    if not (run / "run.db").exists():
        return "before the run folder"
    import sqlite3

    with closing(sqlite3.connect(run / "run.db")) as database:
        count = "SELECT COUNT(*) FROM journal WHERE kind = 'step'"
        done = database.execute(count).fetchone()[0]
        finished = database.execute('SELECT 1 FROM journal WHERE content LIKE \'%"name": "finished"%\'').fetchone()
    if finished is not None:
        return "after the last step that counts"
    if done == ROUNDS:
        return "after the last round"
    if any((run / "steps").glob(".*.draft")):
        return "while a checkpoint was written"
    newest = max((file.name for file in (run / "steps").glob("round-*")), default="")
    return "between a checkpoint and its row" if newest > f"round-{done - 1:06d}.z" else "between two rounds"


def draft_of(file: str) -> str:
    """A pattern for the hidden draft of a file while it is written."""
    folder, name = file.split("/")
    return f"{folder}/.{name}.*.draft"


def kill_sometime(process: Any, run: Path, draw: random.Random, usual: float) -> bool:
    """SIGKILL at a random instant; False when the process had ended before."""
    kind = draw.choice(["time", "begin", "round", "round", "commit", "last", "finish"])
    round = ROUNDS - 1 if kind == "last" else draw.randrange(ROUNDS)
    checkpoint = f"steps/round-{round:06d}.safetensors"
    model = "model/model.safetensors"
    wait_for, most = {
        "time": (None, usual),
        "begin": (None, 0.5),
        "round": ((draft_of(checkpoint), checkpoint), 0.01),
        "commit": ((checkpoint,), 0.01),
        "last": ((checkpoint,), 0.2),
        "finish": ((draft_of(model), model), 0.02),
    }[kind]
    while wait_for and process.is_alive() and not any(any(run.glob(name)) for name in wait_for):
        time.sleep(0.0002)
    until = time.monotonic() + draw.uniform(0, most)
    while process.is_alive() and time.monotonic() < until:
        time.sleep(0.0002)
    process.kill()
    process.join()
    return bool(process.exitcode == -9)


def complete(run: Path, recipe: Path) -> float:
    """Train or resume to the end; the seconds that took."""
    began = time.monotonic()
    process = start(run, recipe)
    process.join()
    if process.exitcode:
        raise SystemExit(f"'{run}' could not be carried to its end (exit code {process.exitcode})")
    return time.monotonic() - began


def cycle(folder: Path, number: int, recipe: Path, draw: random.Random, usual: float) -> tuple[Path, list[str]]:
    """One run folder, killed and resumed; where the kills hit."""
    run = folder / f"run-{number}"
    stages = []
    for _ in range(draw.randint(1, 4)):
        if kill_sometime(start(run, recipe), run, draw, usual):
            stages.append(stage(run))
    complete(run, recipe)
    return run, stages


def measure(cycles: int, seed: int, mechanisms: list[str], progress: Callable[[str], None]) -> dict[str, Any]:
    """Run the cycles: {"cycles", "kills", "identical", "different": [...], "stages", "seconds"}."""
    draw = random.Random(seed)
    began = time.monotonic()
    stages: Counter[str] = Counter()
    different = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder / "compiled")
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
        recipes = make_world(folder)
        wanted, usual = {}, 0.0
        for mechanism in mechanisms[: max(cycles, 1)]:
            usual = complete(folder / mechanism, recipes[mechanism])
            wanted[mechanism] = what_happened(folder / mechanism)
        for number in range(cycles):
            mechanism = list(wanted)[number % len(wanted)]
            run, hit = cycle(folder, number, recipes[mechanism], draw, usual)
            stages.update(hit)
            found = what_happened(run)
            wrong = [name for name, value in wanted[mechanism].items() if found[name] != value]
            different += [{"cycle": number, "mechanism": mechanism, "stages": hit, "differs": wrong}] if wrong else []
            progress(
                f"cycle {number + 1}/{cycles} ({mechanism}): killed {', '.join(hit) or 'too late'}: "
                f"{'DIFFERENT ' + str(wrong) if wrong else 'identical'}"
            )
    return {
        "cycles": cycles,
        "kills": stages.total(),
        "identical": cycles - len(different),
        "different": different,
        "stages": dict(stages.most_common()),
        "seed": seed,
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    """Exit code 1 when any run differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None, help="of the instants; left out, from the clock")
    parser.add_argument("--mechanisms", default="", help="only those whose name begins so; left out, all")
    options = parser.parse_args()
    seed = time.time_ns() % 2**32 if options.seed is None else options.seed
    mechanisms = [name for name in MECHANISMS if name.startswith(options.mechanisms)]
    if not mechanisms:
        parser.error(f"no mechanism begins with '{options.mechanisms}'; there are {', '.join(MECHANISMS)}")
    result = measure(options.cycles, seed, mechanisms, lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(result))
    sys.exit(1 if result["different"] else 0)


if __name__ == "__main__":
    main()
