"""A training step as an exported graph costs a device no more than one and a half times what it costs JAX.

`train.onnx` by ONNX Runtime (`OnnxTrainer`) against the compiled step of simulated clients (`Cifg.sgd_step`), on the
same batches of 16 sentences and on one core, in turns, so that whatever else the machine does meets both. Figures are
CPU time: the median of all steps, and the median of the pairs' ratios with the 10th and 90th of a hundred. Both train
on, each from its own last parameters; how far apart they end is printed, too, in relation to the update.

    python benchmarks/keyboard/on_device_training.py --cache PATH     sentences of a cache's validation clients
    python benchmarks/keyboard/on_device_training.py                  words drawn at random, lengths about geometric
    ... --pairs 4                                            a smoke test

Prints one JSON line per network: small (32 and 64 wide), and the papers' of 2.4 M parameters. Takes a few seconds.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before NumPy
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

from tacit.data import Cache  # noqa: E402
from tacit.keyboard.onnx_trainer import OnnxTrainer  # noqa: E402
from tacit.networks.cifg.network import Cifg  # noqa: E402
from tacit.networks.language_model import leaves, parameter_count  # noqa: E402
from tacit.networks.onnx.training import training_graph  # noqa: E402
from tacit.text.vocabulary import BOS, EOS, PAD, SPECIALS  # noqa: E402

SENTENCES, WORDS, RATE = 16, 20, 0.5
WARM = 3  # steps of each before any is timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, help="of any vocabulary; words drawn at random without")
    parser.add_argument("--pairs", type=int, default=40)
    asked = parser.parse_args()
    vocabulary = Cache.open(asked.cache).manifest.vocabulary.size if asked.cache else 10_000
    text = of_cache(Cache.open(asked.cache)) if asked.cache else drawn(vocabulary)
    batches = list(islice(text, asked.pairs + WARM))
    for network in (Cifg(vocabulary=vocabulary, embedding=32, units=64), Cifg(vocabulary=vocabulary)):
        print(json.dumps(compared(network, batches)), flush=True)


def of_cache(cache: Cache) -> Iterator[Any]:
    """Batches (16, 21) of consecutive sentences of one client each."""
    for client in cache.clients("validation").tolist():
        for first in range(0, cache.sentence_count(client) - SENTENCES + 1, SENTENCES):
            yield cache.padded(client, np.arange(first, first + SENTENCES), WORDS)


def drawn(vocabulary: int) -> Iterator[Any]:
    """Batches (16, 21) of sentences of about a dozen words."""
    random = np.random.default_rng(1)
    places = np.arange(WORDS + 1)[None, :]
    while True:
        ends = np.minimum(1 + random.geometric(1 / 13, SENTENCES), WORDS)[:, None]
        words = random.integers(SPECIALS, vocabulary, (SENTENCES, WORDS + 1))
        words = np.where(places == 0, BOS, np.where(places == ends, EOS, words))
        yield np.where(places > ends, PAD, words).astype(np.int32)


def compared(network: Cifg, batches: list[Any]) -> dict[str, Any]:
    """The times of both, and how far apart they end."""
    first = network.init(jax.random.key(0))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    trainer = OnnxTrainer(onnxruntime.InferenceSession(training_graph(network).SerializeToString(), options))
    compiled = jax.jit(network.sgd_step)

    def jax_step(parameters: Any, batch: jax.Array) -> Any:
        return jax.block_until_ready(compiled(parameters, batch, RATE))

    begun = {name: np.asarray(leaf) for name, leaf in leaves(first).items() if leaf.size}
    by_jax, by_graph, seconds = first, begun, []
    for batch in batches:
        on_device = jnp.asarray(batch, jnp.int32)
        jax_took, (by_jax, _) = timed(partial(jax_step, by_jax, on_device))
        graph_took, (by_graph, _) = timed(partial(trainer.descend, by_graph, batch, RATE))
        seconds.append((jax_took, graph_took))
    pairs = np.array(seconds[WARM:])
    apart = {name: by_graph[name] - np.asarray(leaf) for name, leaf in leaves(by_jax).items() if leaf.size}
    update = {name: by_graph[name] - leaf for name, leaf in begun.items()}
    low, middle, high = np.quantile(pairs[:, 1] / pairs[:, 0], (0.1, 0.5, 0.9))
    return {
        "parameters": parameter_count(network),
        "pairs": len(pairs),
        "words_a_batch": round(float(np.mean([np.count_nonzero(batch[:, 1:]) for batch in batches])), 1),
        "jax_ms": round(float(np.median(pairs[:, 0])) * 1e3, 2),
        "onnx_ms": round(float(np.median(pairs[:, 1])) * 1e3, 2),
        "ratio": round(float(middle), 3),
        "ratio_p10": round(float(low), 3),
        "ratio_p90": round(float(high), 3),
        "apart_of_update": float(f"{length(apart) / length(update):.1e}"),
    }


def timed(step: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = step()
    return time.process_time() - began, result


def length(parts: dict[str, Any]) -> float:
    return float(np.sqrt(sum(np.sum(np.square(part, dtype=np.float64)) for part in parts.values())))


if __name__ == "__main__":
    main()
