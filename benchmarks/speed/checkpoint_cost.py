"""A checkpoint after every round costs less than 2% of a run of the fixed workload with 100 clients a round.

Runs the trainer as `tacit train` does (2.4 M parameters, momentum, BLT noise: a state of 19 MB written, hashed and
synced every round, of 96 MB every eighth) and counts, after the first round, which compiles: how long the thread that
plays the rounds is held up by the state's copy, the disk and the ledger, as a share of the time that passed; and the
CPU time of the copy, the hash and the writing, as a share of the process's, which is what they take from the workers.
A state costs the same whatever the cohort: with 20 clients a round the share is five times that. One JSON line a
cohort size. Count eight rounds or a multiple of it (one more than that is played), so that whole states are counted
as often as they come.

    python benchmarks/speed/checkpoint_cost.py                     100 clients a round, some minutes
    python benchmarks/speed/checkpoint_cost.py --clients 20 100
    python benchmarks/speed/checkpoint_cost.py --clients 20 --against ELSEWHERE/src --pairs 4

The last runs the same rounds in turns with another version of the library, in processes of their own, and prints the
ratios of this one to that: of seconds and of CPU seconds a round, one for each pair and their medians. Run it on an
otherwise idle machine; CPU seconds suffer less from one that is not.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fixed_workload import fixed_cache, fixed_recipe

from tacit.compute import Hardware
from tacit.compute.profile import current
from tacit.jobs.train.run import begin, carry_on
from tacit.progress import Advanced, Event, StageEnded
from tacit.recipe import Recipe
from tacit.training import loop

TARGET = 0.02


class Counting:
    """A listener; keeps what had been spent when the first round was done, and when the last was."""

    def __init__(self) -> None:
        self.saving_cpu = 0.0
        self.spent: list[tuple[dict[str, Any], float, float]] = []

    def __call__(self, event: Event) -> None:
        profile = current()  # of the run that speaks
        if profile is not None and isinstance(event, Advanced | StageEnded) and event.stage == loop.STAGE:
            self.spent.append((profile.to_record(1), time.process_time(), self.saving_cpu))

    def count(self, work: Any) -> Any:
        """The same function, and the CPU time of its thread is counted."""

        def counted(*arguments: Any) -> Any:
            began = time.thread_time()
            try:
                return work(*arguments)
            finally:
                self.saving_cpu += time.thread_time() - began

        return counted


def measure(folder: Path, clients: int, count: int) -> dict[str, Any]:
    """Rounds of one size of cohort."""
    recipe = Recipe.from_toml(fixed_recipe(folder / "cache", rounds=count + 1, report_goal=clients))
    watcher = Counting()
    patched: Any = loop
    pending, save = patched._Pending, patched.save_checkpoint
    begin_to_write = pending.begin
    pending.begin, patched.save_checkpoint = watcher.count(begin_to_write), watcher.count(save)
    try:
        with begin(recipe, folder / f"run-{clients}") as run:
            carry_on(run, hardware=Hardware(), progress=watcher, until=count)
            state = max((file.stat().st_size for file in (run.path / "steps").iterdir()), default=0)
    finally:
        pending.begin, patched.save_checkpoint = begin_to_write, save
    (after, cpu_after, saving_after), (before, cpu_before, saving_before) = watcher.spent[-1], watcher.spent[0]
    seconds = after["seconds"] - before["seconds"]
    held_up = sum(after["phases"][name] - before["phases"][name] for name in ("checkpoint", "commit"))
    shares = held_up / seconds, (saving_after - saving_before) / (cpu_after - cpu_before)
    return {
        "figure": "checkpoint_cost",
        "clients_per_round": clients,
        "rounds": count - 1,
        "state_megabytes": round(state / 1e6, 1),
        "seconds_per_round": round(seconds / (count - 1), 3),
        "cpu_seconds_per_round": round((cpu_after - cpu_before) / (count - 1), 3),
        "milliseconds_held_up_per_round": round(1e3 * held_up / (count - 1), 1),
        "cpu_milliseconds_per_checkpoint": round(1e3 * (saving_after - saving_before) / (count - 1), 1),
        "share_of_time": round(shares[0], 5),
        "share_of_cpu": round(shares[1], 5),
        "below_2_percent": max(shares) < TARGET,
    }


def in_turns(elsewhere: str, clients: int, count: int, pairs: int) -> dict[str, Any]:
    """Ratios of this version's rounds to those of the library in the folder `elsewhere`."""
    here = str(Path(loop.__file__).parents[2])
    found: dict[str, list[dict[str, Any]]] = {here: [], elsewhere: []}
    for turn in range(2 * pairs):
        library = (here, elsewhere)[(turn + turn // 2) % 2]  # the first of a pair is now this one, now that
        command = [sys.executable, __file__, "--clients", str(clients), "--rounds", str(count)]
        played = subprocess.run(command, env={**os.environ, "PYTHONPATH": library}, capture_output=True, text=True)
        if played.returncode:
            raise SystemExit(f"the rounds with PYTHONPATH={library} failed:\n{played.stderr}")
        found[library].append(json.loads(played.stdout))
    ratios = {
        name: [round(a[name] / b[name], 4) for a, b in zip(found[here], found[elsewhere], strict=True)]
        for name in ("cpu_seconds_per_round", "seconds_per_round", "cpu_milliseconds_per_checkpoint")
    }
    return {
        "figure": "checkpoint_cost_in_turns",
        "clients_per_round": clients,
        "rounds": count - 1,
        "here": found[here],
        "elsewhere": found[elsewhere],
        "ratios": ratios,
        "medians": {name: round(statistics.median(each), 4) for name, each in ratios.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[100], help="of a cohort")
    parser.add_argument("--rounds", type=int, default=9, help="at least 2; the first is not counted")
    parser.add_argument("--against", metavar="SRC", help="the `src` folder of another version, to run in turns")
    parser.add_argument("--pairs", type=int, default=3, help="of processes, with --against")
    options = parser.parse_args()
    if options.against:
        for clients in options.clients:
            print(json.dumps(in_turns(options.against, clients, options.rounds, options.pairs)), flush=True)
        return
    Hardware().apply()
    with tempfile.TemporaryDirectory() as temporary:
        fixed_cache(Path(temporary) / "cache", max(options.clients))
        for clients in options.clients:
            print(json.dumps(measure(Path(temporary), clients, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
