"""A round whose updates are encoded for secure sums takes at most 1.5 times the CPU time of a plain one.

The fixed workload (2.4 M parameters, 64 sentences of 20 words a client) on one core: a shard of clients is trained and
summed in the clear, then encoded and summed as integers, in turns after a warm-up; at the end of each the sum is
decoded. Beside the ratio of each pair's CPU seconds stand what encoding one update and decoding one sum take by
themselves. One JSON line.

    python benchmarks/speed/encoded_round.py
    python benchmarks/speed/encoded_round.py --clients 2 --pairs 1     a smoke test
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from fixed_workload import BATCH, CLIP, RATE, SENTENCES, WORDS, fixed_cache, fixed_learner

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.privacy.encoding_choice import encoding_within
from tacit.training import ClientTraining
from tacit.training.cohort import train_cohort
from tacit.training.secure_updates import RoundEncoding
from tacit.training.workers_cores import CoreWorkers

TARGET, GOAL = 1.5, 6500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder) / "cache", asked.clients, asked.pairs)))


def measured(folder: Path, clients: int, pairs_asked: int) -> dict[str, Any]:
    """The figures of one line; `folder`: where the clients' cache is made."""
    learner = fixed_learner(fixed_cache(folder, clients))
    encoding = encoding_within(len(learner.start), CLIP, GOAL)
    how = RoundEncoding(encoding=encoding, signs=bytes(32))
    settings = ClientTraining(batch_size=BATCH, learning_rate=RATE, sentences=SENTENCES, words=WORDS)
    workers, work, model = CoreWorkers(Cores(Hardware(workers=1))), learner.work(settings), jnp.asarray(learner.start)

    def cpu_seconds(secure: RoundEncoding | None) -> float:
        began = time.process_time()
        received = train_cohort(
            work, model, learner.clients, seed=bytes(32), clip_norm=CLIP, workers=workers, secure=secure
        )
        np.asarray(received.total)
        return (time.process_time() - began) / clients

    for secure in (None, how):
        cpu_seconds(secure)  # compiles
    pairs = [(cpu_seconds(None), cpu_seconds(how)) for _ in range(pairs_asked)]
    update = np.random.default_rng(0).standard_normal(len(learner.start)).astype(np.float32)
    alone = []
    for _ in range(10):
        began = time.process_time()
        residues = how.encoded(update, norm=np.float32(1), loss=np.float32(0), seed=bytes(32), client=1)
        between = time.process_time()
        how.opened(residues, 1)
        alone.append((between - began, time.process_time() - between))
    ratio = statistics.median(encoded / plain for plain, encoded in pairs)
    return {
        "parameters": len(learner.start),
        "dimension": encoding.dimension,
        "bits": encoding.bits,
        "plain_cpu_seconds_a_client": statistics.median(plain for plain, _ in pairs),
        "encoded_cpu_seconds_a_client": statistics.median(encoded for _, encoded in pairs),
        "ratio": ratio,
        "ratios": [encoded / plain for plain, encoded in pairs],
        "encode_cpu_ms": 1e3 * statistics.median(encode for encode, _ in alone),
        "decode_cpu_ms": 1e3 * statistics.median(decode for _, decode in alone),
        "target": TARGET,
        "met": ratio <= TARGET,
        "clients": clients,
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    main()
