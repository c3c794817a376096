"""A checkpoint after every round costs less than 2% of a run of the fixed workload with 100 clients a round.

Runs the trainer as `tacit train` does (2.4 M parameters, momentum, BLT noise: a state of 96 MB, written, hashed and
synced every round) and counts, after the first round, which compiles: how long the thread that plays the rounds is held
up by the state's copy, the disk and the ledger, as a share of the time that passed; and the CPU time of the copy, the
hash and the writing, as a share of the process's, which is what they take from the workers. A state costs the same
whatever the cohort: with 20 clients a round the share is five times that. One JSON line a cohort size.

    python benchmarks/checkpoint_cost.py                     100 clients a round, some minutes
    python benchmarks/checkpoint_cost.py --clients 20 100 --rounds 6

Run it on an otherwise idle machine.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from fixed_workload import fixed_cache, fixed_recipe

from tacit.compute import Hardware
from tacit.compute.profile import current
from tacit.jobs.training_run import begin, carry_on
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
    leaves, save = loop.leaves, loop.save_checkpoint
    loop.leaves, loop.save_checkpoint = watcher.count(leaves), watcher.count(save)
    try:
        with begin(recipe, folder / f"run-{clients}") as run:
            carry_on(run, hardware=Hardware(), progress=watcher, until=count)
            state = run.last_file.stat().st_size if run.last_file else 0
    finally:
        loop.leaves, loop.save_checkpoint = leaves, save
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
        "milliseconds_held_up_per_round": round(1e3 * held_up / (count - 1), 1),
        "cpu_milliseconds_per_checkpoint": round(1e3 * (saving_after - saving_before) / (count - 1), 1),
        "share_of_time": round(shares[0], 5),
        "share_of_cpu": round(shares[1], 5),
        "below_2_percent": max(shares) < TARGET,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[100], help="of a cohort")
    parser.add_argument("--rounds", type=int, default=6, help="at least 2; the first is not counted")
    options = parser.parse_args()
    Hardware().apply()
    with tempfile.TemporaryDirectory() as temporary:
        fixed_cache(Path(temporary) / "cache", max(options.clients))
        for clients in options.clients:
            print(json.dumps(measure(Path(temporary), clients, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
