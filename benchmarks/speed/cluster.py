"""Two workers of a Ray cluster give a round the bits of two cores, also when one is killed in mid-round.

Starts a cluster of two workers on this machine and stops it again. Rounds of the fixed workload (the papers' network of
2.4 M parameters, 64 sentences a client) are trained by two cores without Ray and by the cluster, in turns, and then by
the cluster while one of its workers is killed in each. Prints a table: the seconds of a round, their ratio to those of
the cores (the median of the pairs, and in brackets the least and the most), whether the sums of all rounds have the
same bits, and the megabytes that crossed the loopback interface in a round. The exit code is 1 where bits differ, or
where not as many workers were lost as were killed.

    python benchmarks/speed/cluster.py
    python benchmarks/speed/cluster.py --nodes    # two nodes, one of which is killed; the driver's memory by the cohort

All workers share this machine's cores, so a cluster cannot be faster here than the cores are; what can be seen is what
Ray and the wire cost. Ray's own default lets workers run at the lowest priority but four (nice 15), so that whatever
else the machine does comes first; here they have the priority of this command (RAY_worker_niceness=0).
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
from fixed_workload import BATCH, CLIP, RATE, SENTENCES, WORDS, fixed_cache, fixed_learner
from jax.flatten_util import ravel_pytree
from scale_of_data import cheap_loss, write_cache

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.training import ClientTraining, Learner
from tacit.training.cohort import shards_of, train_cohort
from tacit.training.workers_cores import CoreWorkers
from tacit.training.workers_ray import open_cluster

SETTINGS = ClientTraining(batch_size=BATCH, learning_rate=RATE, sentences=SENTENCES, words=WORDS)
STORE = 400_000_000  # bytes of each node's object store
LOSSES = 2  # rounds in each of which a worker is killed
COHORTS = (100, 100, 650, 6_500)  # whose memory is asked for; the first one compiles
ENVIRONMENT = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",  # as `tacit train` sets it
    "RAY_USAGE_STATS_ENABLED": "0",  # this and the next as `open_cluster` sets them
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    "RAY_worker_niceness": "0",
}


@contextmanager
def nodes(cores: list[int]) -> Iterator[Any]:
    """A Ray cluster on this machine whose nodes have so many cores. Ray forks, so this comes before JAX has threads."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray")
    os.environ["RAY_TMPDIR"] = folder  # Ray writes an address into its folder `ray` and does not make it
    (Path(folder) / "ray").mkdir()
    head = {
        "num_cpus": cores[0],
        "include_dashboard": False,
        "object_store_memory": STORE,
        "temp_dir": f"{folder}/ray",
    }
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    cluster.joined = [cluster.add_node(num_cpus=count, object_store_memory=STORE) for count in cores[1:]]
    try:
        yield cluster
    finally:
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def loopback() -> int:
    """Bytes that went over the loopback interface since the machine started."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return int(next(line for line in lines if line.strip().startswith("lo:")).split()[1])


@dataclass
class Disturbed:
    """Workers of a cluster, in each of whose rounds something happens when a third of the shards' sums is there."""

    crew: Any
    disturb: Callable[[], None]

    def shard_sums(self, work: Any, model: Any, shards: Any, **settings: Any) -> Iterator[Any]:
        for number, total in enumerate(self.crew.shard_sums(work, model, shards, **settings)):
            if number == len(shards) // 3:
                self.disturb()
            yield total


@dataclass
class Played:
    """Rounds of the same workers."""

    seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)

    def play(self, learner: Learner, workers: Any, goal: int, number: int) -> None:
        """Round `number`, with the clients and the seed that it has for all workers."""
        clients = learner.clients[np.random.default_rng(number).choice(len(learner.clients), goal, replace=False)]
        start, work = jax.numpy.asarray(learner.start), learner.work(SETTINGS)
        wire, began = loopback(), time.perf_counter()
        got = train_cohort(work, start, clients, seed=bytes([number]), clip_norm=CLIP, workers=workers)
        total = np.asarray(got.total)
        self.seconds.append(time.perf_counter() - began)
        self.megabytes.append((loopback() - wire) / 1e6)
        self.digests.append(hashlib.sha256(total.tobytes()).hexdigest()[:16])

    def row(self, name: str, beside: list[float]) -> dict[str, Any]:
        """beside: the seconds of the same rounds on the cores."""
        ratios = [mine / theirs for mine, theirs in zip(self.seconds, beside, strict=True)]
        return {
            "workers": name,
            "seconds_a_round": round(median(self.seconds), 2),
            "to_cores": [round(ratio, 3) for ratio in (median(ratios), min(ratios), max(ratios))],
            "loopback_megabytes_a_round": round(median(self.megabytes), 1),
        }


def rounds(cache: Path, goal: int, pairs: int, cores: list[int]) -> dict[str, Any]:
    """The table of a cluster of such nodes, beside the cores of this process; the last node is killed, if it may be."""
    lost: list[Any] = []
    with nodes(cores) as cluster, open_cluster(cluster.address, progress=lost.append) as crew:
        Hardware(workers=2).apply()
        learner = fixed_learner(Cache.open(cache))
        here, there, killed = Played(), Played(), Played()
        two_cores = CoreWorkers(Cores(Hardware(workers=2)))
        workers: Any
        for workers in (two_cores, crew):
            Played().play(learner, workers, goal, 0)  # compiles
        for number in range(1, 1 + pairs):
            order = [(here, two_cores), (there, crew)]
            for played, workers in order[:: 1 if number % 2 else -1]:
                played.play(learner, workers, goal, number)
        if len(cores) > 1:
            kills, what = 1, "a node killed"
            disturbed = Disturbed(crew, lambda: cluster.remove_node(cluster.joined[-1], allow_graceful=False))
        else:
            kills, what = min(LOSSES, pairs), "a worker killed"
            disturbed = Disturbed(crew, lambda: os.kill(crew.nodes[-1].process, signal.SIGKILL))
        for number in range(1, 1 + kills):  # the first rounds again
            killed.play(learner, disturbed, goal, number)
        where = "Ray, two workers" if len(cores) == 1 else "Ray, two nodes of a worker each"
        rows = [
            {**here.row("two cores, no Ray", here.seconds), "same_bits": True},
            {**there.row(where, here.seconds), "same_bits": there.digests == here.digests},
            {
                **killed.row(f"{where}, {what} in each round", here.seconds[:kills]),
                "same_bits": killed.digests == here.digests[:kills],
            },
        ]
        return {
            "rows": rows,
            "clients_a_round": goal,
            "shards_a_round": len(shards_of(learner.clients[:goal])),
            "pairs": pairs,
            "model_megabytes": round(learner.start.nbytes / 1e6, 1),
            "workers_killed": kills,
            "workers_lost": len(lost),
            "load": round(os.getloadavg()[0], 1),
        }


def memory(cache: Path) -> dict[str, Any]:
    """The driver's greatest memory in a round, with a model of the same size that costs little to train."""
    write_cache(cache, 0.02)  # of StackOverflow: 6,850 clients of about 400 sentences
    opened, peaks = Cache.open(cache), {}
    clients = opened.clients("train")
    with nodes([1, 1]) as cluster, open_cluster(cluster.address, progress=print) as crew:
        start, unravel = ravel_pytree(np.ones((10_000, 241), np.float32))
        learner = Learner(start=np.asarray(start), unravel=unravel, loss=cheap_loss, cache=opened, clients=clients)
        work = learner.work(ClientTraining(sentences=16))
        for goal in COHORTS:
            Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
            train_cohort(work, start, clients[:goal], seed=bytes(4), clip_norm=0.5, workers=crew)
            said = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
            peaks[str(goal)] = int(said["VmHWM"].split()[0]) // 1024
    return {"driver_peak_megabytes_by_cohort": peaks}


def table(rows: list[dict[str, Any]]) -> str:
    """What people read of them."""
    lines = ["| workers | seconds a round | to the cores | same bits | MB on loopback |", "|---|---|---|---|---|"]
    for row in rows:
        middle, least, most = row["to_cores"]
        ratio = "1" if row is rows[0] else f"{middle:.2f} ({least:.2f} to {most:.2f})"
        bits = "" if row is rows[0] else "yes" if row["same_bits"] else "NO"
        seconds, wire = row["seconds_a_round"], row["loopback_megabytes_a_round"]
        lines.append(f"| {row['workers']} | {seconds:.2f} | {ratio} | {bits} | {wire:.0f} |")
    return "\n".join(lines)


def holds(figures: dict[str, Any]) -> bool:
    """Whether all rounds had the same bits, and each kill was one."""
    lost_as_killed = figures["workers_lost"] == figures["workers_killed"]
    return lost_as_killed and all(row["same_bits"] for row in figures["rows"])


def main() -> None:
    """Each part in a fresh process, since a cluster is started before JAX is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report-goal", type=int, default=64, help="clients a round, at most 128")
    parser.add_argument("--pairs", type=int, default=5, help="rounds that cores and cluster train in turns")
    parser.add_argument("--nodes", action="store_true", help="a cluster of two nodes besides, and memory")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)  # its name and a cache: only this, in this process
    options = parser.parse_args()
    if options.part:
        part, cache = options.part
        cores = [2] if part == "workers" else [1, 1]
        found = (
            memory(Path(cache)) if part == "memory" else rounds(Path(cache), options.report_goal, options.pairs, cores)
        )
        print(json.dumps({"benchmark": "cluster", "part": part, **found}))
        return
    right = True
    with tempfile.TemporaryDirectory() as folder:
        fixed = fixed_cache(Path(folder) / "fixed", 128).path
        parts = {"workers": fixed, "nodes": fixed, "memory": Path(folder) / "large"}
        for part in parts if options.nodes else ["workers"]:
            sizes = ["--report-goal", str(options.report_goal), "--pairs", str(options.pairs)]
            command = [sys.executable, __file__, *sizes, "--part", part, str(parts[part])]
            done = subprocess.run(command, env=os.environ | ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True)
            line = done.stdout.strip().splitlines()[-1]
            figures = json.loads(line)
            print(line, flush=True)
            if "rows" in figures:
                print(table(figures["rows"]), flush=True)
                right &= holds(figures)
    sys.exit(not right)


if __name__ == "__main__":
    main()
