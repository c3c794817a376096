"""A round has the same bits on two cores, on a Ray cluster of one node or two, and when a worker or a node is killed.

Starts Ray clusters on this machine, in a fresh process for each part, trains rounds of the papers' network (2.4 M
parameters, 10,000 words) on synthetic clients, and kills in the last rounds. Prints one JSON line per part: a digest of
the sums of all rounds (exit code 1 when they differ), the median seconds of a round, and the megabytes that crossed
the loopback interface in a round, beside what the design says: the model once a node that has not started training, and
one sum a shard from there. The last part is the driver's memory as the cohort grows from 100 to 6,500.

    python benchmarks/cluster.py

Both nodes share this machine's cores, so two nodes cannot be faster here than one with as many cores; what can be seen
is what the wire costs.
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
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from scale_of_data import cheap_loss, write_cache

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.keyboard.cifg import Cifg
from tacit.keyboard.language_model import next_word_loss
from tacit.training import ClientTraining, Learner
from tacit.training.cohort import shards_of, train_cohort
from tacit.training.workers_cores import CoreWorkers
from tacit.training.workers_ray import open_cluster

SCALE = 0.02  # of StackOverflow: 6,850 clients of about 400 sentences
ROUNDS = 4  # the first one compiles and is not timed
STORE = 400_000_000  # bytes of each node's object store
PARTS = ["two cores, no Ray", "one node", "two nodes", "a worker killed", "a node killed", "memory"]


@contextmanager
def nodes(cores: list[int]) -> Iterator[Any]:
    """A Ray cluster on this machine whose nodes have so many cores."""
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
    cluster = Cluster(initialize_head=True, head_node_args=head)
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


def papers_learner(cache: Cache) -> Learner:
    start, unravel = ravel_pytree(Cifg().init(jax.random.key(0)))
    return Learner(
        start=np.asarray(start),
        unravel=unravel,
        loss=next_word_loss(Cifg()),
        cache=cache,
        clients=cache.clients("train"),
    )


def rounds(cache: Cache, workers: Any, goal: int, disturb: Any) -> dict[str, Any]:
    """A few rounds; disturb(round) is called when each begins."""
    learner, settings = papers_learner(cache), ClientTraining()
    work = learner.work(settings)
    digest, seconds, moved = hashlib.sha256(), [], []
    for round in range(ROUNDS):
        clients = learner.clients[np.random.default_rng(round).choice(len(learner.clients), goal, replace=False)]
        disturb(round)
        began, wire = time.perf_counter(), loopback()
        got = train_cohort(
            work, jax.numpy.asarray(learner.start), clients, seed=bytes([round]), clip_norm=0.5, workers=workers
        )
        digest.update(np.asarray(got.total).tobytes())
        seconds.append(time.perf_counter() - began)
        moved.append(loopback() - wire)
    return {
        "cohort": goal,
        "shards": len(shards_of(clients)),
        "digest": digest.hexdigest()[:16],
        "seconds_a_round": round_to(np.median(seconds[1:])),
        "loopback_megabytes_a_round": round_to(np.median(moved[1:]) / 1e6),
        "a_model_is_megabytes": round_to(learner.start.nbytes / 1e6),
    }


def round_to(value: float) -> float:
    return round(float(value), 2)


def trained(part: str, path: Path, goal: int) -> dict[str, Any]:
    """One part in this process."""
    cache, lost = Cache.open(path), []
    if part == "two cores, no Ray":
        jax.config.update("jax_num_cpu_devices", 2)
        return rounds(cache, CoreWorkers(Cores(Hardware(workers=2))), goal, lambda round: None)
    with (
        nodes([2] if part == "one node" else [1, 1]) as cluster,
        open_cluster(cluster.address, progress=lost.append) as crew,
    ):

        def disturb(round: int) -> None:
            if part == "a worker killed" and round:
                threading.Timer(1.5, os.kill, (crew.nodes[-1].process, signal.SIGKILL)).start()
            if part == "a node killed" and round == 2:
                threading.Timer(1.5, cluster.remove_node, (cluster.joined[0],), {"allow_graceful": False}).start()

        figures = rounds(cache, crew, goal, disturb)
        return {**figures, "workers_at_the_end": len(crew.nodes), "workers_lost": len(lost)}


def memory(path: Path) -> dict[str, Any]:
    """The driver's greatest memory in a round, with a model of the same size that costs little to train."""
    cache = Cache.open(path)
    clients, peaks = cache.clients("train"), {}
    with nodes([1, 1]) as cluster, open_cluster(cluster.address, progress=print) as crew:
        start, unravel = ravel_pytree(np.ones((10_000, 241), np.float32))  # Ray forks before JAX has threads
        learner = Learner(start=np.asarray(start), unravel=unravel, loss=cheap_loss, cache=cache, clients=clients)
        work = learner.work(ClientTraining(sentences=16))
        for goal in (100, 100, 650, 6_500):
            Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
            train_cohort(work, start, clients[:goal], seed=bytes(4), clip_norm=0.5, workers=crew)
            said = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
            peaks[str(goal)] = int(said["VmHWM"].split()[0]) // 1024
    return {"driver_peak_megabytes_by_cohort": peaks}


def main() -> None:
    """Every part in a fresh process, on one cache."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report-goal", type=int, default=96)
    parser.add_argument("--cache", type=Path, help="use the cache that is there")
    parser.add_argument("--part", choices=PARTS, help="only this, in this process")
    options = parser.parse_args()
    if options.part:
        part = options.part
        figures = memory(options.cache) if part == "memory" else trained(part, options.cache, options.report_goal)
        print(json.dumps({"benchmark": "cluster", "part": part, **figures}))
        return
    digests = set()
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"  # as `tacit train` sets it
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}  # as `open_cluster` sets them
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder) / "cache"
        if not cache.exists():
            write_cache(cache, SCALE)
        for part in PARTS:
            arguments = ["--part", part, "--cache", str(cache), "--report-goal", str(options.report_goal)]
            done = subprocess.run([sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True)
            line = done.stdout.strip().splitlines()[-1]
            print(line, flush=True)
            digests.add(json.loads(line).get("digest"))
    sys.exit(len(digests - {None}) != 1)


if __name__ == "__main__":
    main()
