"""Pre-training computes the real words of a batch alone: how many words a CPU-second, beside the padded loss.

    OPENBLAS_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false \
        python benchmarks/speed/pretraining_step.py --cache caches/public5k --embedding 96 --units 320

The gradient of a step of `tacit pretrain`, without the optimizer, over random batches of the cache's training part. The
three take turns, batch by batch, so that a busy machine slows all of them; time is that of the process.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tacit.data import Cache
from tacit.networks.cifg.network import Cifg
from tacit.text.vocabulary import PAD
from tacit.training.central import Pool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--embedding", type=int, default=96)
    parser.add_argument("--units", type=int, default=320)
    parser.add_argument("--sentences", type=int, default=64, help="of a step")
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20)
    asked = parser.parse_args()
    cache = Cache.open(asked.cache)
    pool = Pool.from_cache(cache, cache.clients("train")[:200])
    network = Cifg(vocabulary=cache.manifest.vocabulary.size, embedding=asked.embedding, units=asked.units)
    model, random = network.init(jax.random.key(0)), np.random.default_rng(0)
    ways: dict[str, Callable[..., Any]] = {
        "padded, float32": jax.jit(jax.value_and_grad(network.loss)),
        "packed, float32": jax.jit(partial(network.loss_gradient, precision="float32")),
        "packed, bfloat16": jax.jit(partial(network.loss_gradient, precision="bfloat16")),
    }
    spent, words = dict.fromkeys(ways, 0.0), 0
    for step in range(asked.steps + 1):
        batch = pool.padded(random.integers(0, len(pool.starts) - 1, asked.sentences), asked.words)
        words += int((batch[:, 1:] != PAD).sum()) if step else 0  # the first compiles
        for name, gradient in ways.items():
            began = time.process_time()
            jax.block_until_ready(gradient(model, batch))
            spent[name] += time.process_time() - began if step else 0.0
    print("| gradient | words a CPU-second | times the padded |\n|---|--:|--:|")
    for name, seconds in spent.items():
        print(f"| {name} | {words / seconds:,.0f} | {spent['padded, float32'] / seconds:.1f} |")


if __name__ == "__main__":
    main()
