"""Where the time of one packed step goes: its parts, each compiled and timed by itself.

The 2.4 M network with a vocabulary of 10,000, 16 sentences of 20 words, so no padding and one compiled size. A part's
figure is CPU time on one core, least and median of the repetitions; beside it the floating-point operations of its
products. `step` is the whole, `around a client` what happens once after a client's steps: subtract, clip, add.

    python benchmarks/speed/step_parts.py --repetitions 9 [--precision bfloat16]

Prints one JSON line per part. Needs half a minute of one core.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacit.aggregation.clipping import clip
from tacit.networks.cifg import packed
from tacit.networks.cifg.network import Cifg, CifgParameters

VOCABULARY, WORDS, BATCH, RATE, CLIP = 10_000, 20, 16, 0.5, 0.2
BOS, EOS, SPECIALS = 1, 2, 4


def sentences() -> Array:
    """(B, L+1) ids, words with Zipf's frequencies."""
    zipf = 1.0 / np.arange(1, VOCABULARY - SPECIALS + 1)
    ids = np.empty((BATCH, WORDS + 1), np.int32)
    ids[:, 0], ids[:, -1] = BOS, EOS
    ids[:, 1:-1] = SPECIALS + np.random.default_rng(0).choice(len(zipf), (BATCH, WORDS - 1), p=zipf / zipf.sum())
    return jnp.asarray(ids)


def parts(
    model: CifgParameters, ids: Array, precision: str
) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]]:
    """By name: a function to compile, what it is called with, and GFLOP of its products."""
    width, units = model.embedding.shape[1], len(model.projection)
    batch = jax.jit(packed._pack)(ids)
    rows = len(batch.inputs)
    operand = jnp.dtype(precision)
    kernel, projection = model.kernel.astype(operand), model.projection.astype(operand)
    words, feedback = kernel[:width], kernel[width:]
    inputs = model.embedding[batch.inputs]
    gates, vocabulary = (2e-9 * rows * width * columns for columns in (3 * units, VOCABULARY))
    projected = 2e-9 * rows * width * units

    def hoist(inputs: Array, words: Array) -> Array:
        return packed._sized(batch, packed._hoist, inputs, words, model.bias)

    def forward(hoisted: Array, feedback: Array, projection: Array) -> Any:
        return packed._forward(batch, hoisted, feedback, projection, BATCH)

    def softmax(outputs: Array, matrix: Array, bias: Array) -> Any:
        return packed._softmax(batch, outputs, matrix, bias, operand)

    def backward(trace: Any, d_outputs: Array, feedback: Array, projection: Array) -> Any:
        return packed._backward(batch, trace, d_outputs, feedback, projection, BATCH)

    def gradients(both: Array, hidden: Array, dz: Array, d_fed: Array, back: Array) -> Any:
        return packed._sized(batch, packed._weight_gradients, both, hidden, dz, d_fed, back)

    def around(theta: CifgParameters, model: CifgParameters, total: CifgParameters) -> Any:
        return jax.tree.map(jnp.add, total, clip(jax.tree.map(jnp.subtract, theta, model), CLIP).update)

    hoisted = jax.jit(hoist)(inputs, words)
    outputs, trace = jax.jit(forward)(hoisted, feedback, projection)
    _, d_outputs, _ = jax.jit(softmax)(outputs, model.output, model.output_bias)
    dz, d_fed = jax.jit(backward)(trace, d_outputs, feedback, projection)
    both, hidden = jnp.concatenate([inputs, outputs], axis=1).T.astype(operand), trace.emit * trace.squashed

    def step(model: CifgParameters, ids: Array) -> Any:
        return packed.descend(model, ids, RATE, precision=precision)

    theta = jax.tree.map(lambda leaf: leaf * 1.01, model)
    return {
        "words' part of the gates": (hoist, (inputs, words), gates),
        "recurrence, forward": (forward, (hoisted, feedback, projection), gates + projected),
        "softmax, both its gradients": (softmax, (outputs, model.output, model.output_bias), 3 * vocabulary),
        "recurrence, backward": (backward, (trace, d_outputs, feedback, projection), gates + projected),
        "gradients of the other matrices": (
            gradients,
            (both, hidden, dz, d_fed.T.astype(operand), words.T),
            3 * gates + projected,
        ),
        "step": (step, (model, ids), 3 * (vocabulary + 2 * gates + projected)),
        "around a client": (around, (theta, model, model), 0.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="of products' operands")
    options = parser.parse_args()
    packed.SIZES = 1  # every batch here has all of its words
    model = Cifg(vocabulary=VOCABULARY).init(jax.random.key(0))
    print(
        json.dumps(
            {"figure": "machine", "load": os.getloadavg(), "version": f"jax {jax.__version__}"}
            | {"precision": options.precision}
        ),
        flush=True,
    )
    for name, (function, operands, gflop) in parts(model, sentences(), options.precision).items():
        compiled = jax.jit(function)
        jax.block_until_ready(compiled(*operands))
        spent = []
        for _ in range(options.repetitions):
            before = time.process_time()
            jax.block_until_ready(compiled(*operands))
            spent.append(1e3 * (time.process_time() - before))
        least, middle = round(min(spent), 2), round(statistics.median(spent), 2)
        facts = {"part": name, "least_ms": least, "median_ms": middle, "products_gflop": round(gflop, 3)}
        print(json.dumps({"figure": "step_parts", **facts}), flush=True)


if __name__ == "__main__":
    main()
