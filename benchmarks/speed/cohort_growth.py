"""Memory does not grow with the cohort, and time grows in proportion: 100 to 6,500 clients a round.

One round per size in a fresh process: the papers' network (2.4 M parameters), all cores of this machine, clients with
16 sentences of 20 words, one batch, read from a cache on disk. That is a quarter of the fixed workload, to take
minutes on two cores; with `--sentences 64` it is the workload itself and takes four times as long. Each size of
shard is trained once before, so that compilation is not timed. Memory is the most that the process had resident during
the round (looked at every 20 ms). One JSON line a size; a figure (PNG and SVG) with --figure.

    python benchmarks/speed/cohort_growth.py --figure docs/results/cohort-growth        about ten minutes
    python benchmarks/speed/cohort_growth.py --clients 20 40                            a smoke test

Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fixed_workload import fixed_cache, fixed_learner, fixed_recipe, uniform_collector

SIZES = [100, 200, 400, 800, 1600, 3200, 6500]


def one_round(folder: Path, clients: int, sentences: int) -> dict[str, Any]:
    """Play a round of so many clients in this process."""
    from tacit.compute import Hardware
    from tacit.compute.cores import Cores
    from tacit.data import Cache
    from tacit.recipe import Recipe
    from tacit.training.cohort import shards_of
    from tacit.training.rounds import initial_state, run_round
    from tacit.training.workers_cores import CoreWorkers

    Hardware().apply()
    cores, learner = Cores(Hardware()), fixed_learner(Cache.open(folder / "cache"))
    plan = Recipe.from_toml(fixed_recipe(folder / "cache", rounds=1, report_goal=clients, sentences=sentences)).plan()
    workers = CoreWorkers(cores)
    collector = uniform_collector(learner, plan, workers)
    state = initial_state(learner.start, plan, collector)
    sizes = {len(shard): shard for shard in shards_of(learner.clients[:clients])}  # each is compiled, on each core
    warm = list(sizes.values()) * 2 * len(cores.devices)
    list(workers.shard_sums(learner.work(plan.client), state.model, warm, seed=bytes(32), clip_norm=1.0))
    before = resident_megabytes()
    began, cpu = time.perf_counter(), cpu_seconds()
    with watched_memory() as seen:
        run_round(state, 0, plan=plan, key=bytes(16), collector=collector)
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    return {
        "figure": "cohort_growth",
        "clients": clients,
        "sentences_per_client": sentences,
        "workers": len(cores.devices),
        "seconds": round(seconds, 3),
        "cpu_seconds_per_client": round(cpu / clients, 4),
        "peak_megabytes": round(max(seen), 1),
        "megabytes_before_the_round": round(before, 1),
    }


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


@contextmanager
def watched_memory() -> Iterator[list[float]]:
    """What was resident, again and again until the block ends."""
    seen, ended = [resident_megabytes()], threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            seen.append(resident_megabytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    """Memory and time against the cohort, side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    sizes = [row["clients"] for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    left.plot(sizes, [row["peak_megabytes"] for row in rows], "o-", color="#1f5fa8")
    left.set(
        xscale="log",
        ylim=(0, 1.15 * max(row["peak_megabytes"] for row in rows)),
        xlabel="clients in a round",
        ylabel="MB",
        title="most memory resident during the round",
    )
    right.plot(sizes, [row["seconds"] for row in rows], "o", color="#1f5fa8", label="measured")
    last = rows[-1]
    line = [size * last["seconds"] / last["clients"] for size in sizes]
    right.plot(sizes, line, "-", color="0.6", label="in proportion to the largest")
    right.set(xscale="log", yscale="log", xlabel="clients in a round", ylabel="seconds", title="time of a round")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xticks([100, 1000, 6500], ["100", "1,000", "6,500"])
        axes.spines[["top", "right"]].set_visible(False)
    for ending in ("png", "svg"):
        figure.savefig(out.with_suffix(f".{ending}"), dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=SIZES)
    parser.add_argument("--sentences", type=int, default=16, help="of a client; 64 is the fixed workload")
    parser.add_argument("--figure", type=Path, help="where to draw it, without the ending")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)  # this process plays one round
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_round(options.one, options.clients[0], options.sentences)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        fixed_cache(Path(temporary) / "cache", max(options.clients), options.sentences)
        for clients in options.clients:
            command = [sys.executable, __file__, "--one", temporary, "--clients", str(clients)]
            done = subprocess.run(
                [*command, "--sentences", str(options.sentences)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                env=os.environ,
            )
            rows.append(json.loads(done.stdout))
            print(json.dumps(rows[-1]), flush=True)
    grown = rows[-1]["peak_megabytes"] / rows[0]["peak_megabytes"]
    print(
        json.dumps(
            {"figure": "memory_growth", "clients": [rows[0]["clients"], rows[-1]["clients"]], "times": round(grown, 3)}
        )
    )
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
