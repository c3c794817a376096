"""A round of 6,500 clients of the fixed workload takes less than 3 s on one H200-class GPU: predicted, NOT YET RUN.

No accelerator was at hand when this was written; the code was run on CPU devices only. It plays whole rounds (cohort,
reading, training, noise, server step) after one that compiles, and prints the time beside what the chip allows:

  FLOPs  10.8 GFLOP a client: 2 a multiplication, the 11 products of a step, 4 steps
  bytes  0.72 GB a client: each array of a step written and read once where the program has it in memory; every client
         has weights of its own, so nothing but a step's products over 16 sentences shares a read. See `traffic`.

The larger of FLOPs over peak and bytes over bandwidth is the roofline. With an H200's 4.8 TB/s it is 1.0 s (bytes; the
FLOPs take 0.14 s at 495 TFLOP/s in TF32); at half of the bandwidth, and with some 20,000 kernels to launch (20 words,
forward and backward, 4 steps, 13 chunks), 2 to 2.5 s are predicted, mostly waiting for memory. If it is slower, look at
the share reached first, then at --chunk.

    python benchmarks/speed/accelerator_round.py                                           on a machine with a GPU
    python benchmarks/speed/accelerator_round.py --precision bfloat16 --peak-tflops 989  operands of 8 significant bits
    python benchmarks/speed/accelerator_round.py --peak-tflops 312 --bandwidth 2.0         an A100's peaks
    JAX_PLATFORMS=cpu python benchmarks/speed/accelerator_round.py --clients 8 --rounds 1    a smoke test

The GPU: pip install 'jax[cuda12]' (or cuda13), Python 3.12 and JAX 0.11 or what is current. One JSON line a figure.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, get_args

import jax
import numpy as np
from fixed_workload import (
    BATCH,
    SENTENCES,
    VOCABULARY,
    WORDS,
    fixed_cache,
    fixed_learner,
    fixed_recipe,
    uniform_collector,
)

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.compute.precision import Precision
from tacit.compute.profile import Profile
from tacit.recipe import Recipe
from tacit.training.cohort import train_cohort
from tacit.training.rounds import initial_state, run_round
from tacit.training.workers_accelerator import Accelerator
from tacit.training.workers_cores import CoreWorkers

WIDTH, UNITS = 96, 670
STEPS, TARGET_SECONDS = SENTENCES // BATCH, 3.0


def flops() -> float:
    """Of a client: 2 for each multiplication and addition of the products of a step, forward and backward."""
    words = BATCH * WORDS
    gates, project, softmax = WIDTH * 3 * UNITS, UNITS * WIDTH, WIDTH * VOCABULARY
    forward = 2 * gates + project + softmax  # input and feedback, projection, logits
    backward = 2 * gates + 2 * gates + 2 * project + 2 * softmax  # by the inputs of each, and by its weights
    return 2.0 * STEPS * words * (forward + backward)


def traffic(parameters: int) -> float:
    """Bytes of a client to and from the device's memory, float32, weights of its own."""
    words = BATCH * WORDS
    logits = 5 * words * VOCABULARY  # scores written and read; exponentials written, and read by two products
    output = 2 * WIDTH * VOCABULARY  # read by the logits and by their derivative
    recurrence = 2 * WORDS * (WIDTH * 3 * UNITS + UNITS * WIDTH)  # feedback and projection, each word, both ways
    inputs = 2 * WIDTH * 3 * UNITS
    activations = words * UNITS * (2 * 5 + 3 * 3)  # the trace and the gates' derivatives
    step = 4 * parameters  # gradient written, model and gradient read, model written
    client = 5 * parameters  # model copied; update formed, measured, scaled and summed
    return 4.0 * (STEPS * (logits + output + recurrence + inputs + activations + step) + client)


def figure(name: str, **facts: Any) -> None:
    print(json.dumps({"figure": name, **facts}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=6500, help="of the round")
    parser.add_argument("--rounds", type=int, default=5, help="that are timed")
    parser.add_argument("--chunk", type=int, default=0, help="clients side by side; 0: as many as fit")
    parser.add_argument("--products", default="tensorfloat32", help="or float32; of a recipe in float32")
    parser.add_argument("--precision", choices=get_args(Precision), default="float32", help="of the recipe")
    parser.add_argument("--peak-tflops", type=float, default=495.0, help="of products; an H200's in TF32, dense")
    parser.add_argument("--bandwidth", type=float, default=4.8, help="of the device's memory in TB/s; an H200's")
    parser.add_argument("--check", type=int, default=4, help="clients whose sum is compared with the cores'; 0: none")
    options = parser.parse_args()
    device = jax.local_devices()[0]
    with tempfile.TemporaryDirectory() as temporary:
        cache = fixed_cache(Path(temporary) / "cache", options.clients)
        asked = {"report_goal": options.clients, "precision": options.precision}
        text = fixed_recipe(cache.path, rounds=options.rounds + 1, **asked)
        learner, plan, profile = fixed_learner(cache), Recipe.from_toml(text).plan(), Profile()
        hardware = Hardware(chunk=options.chunk, products=options.products)
        workers = Accelerator(hardware, device=device)
        collector = uniform_collector(learner, plan, workers)
        parameters, work = len(learner.start), learner.work(plan.client)
        by_flops = options.clients * flops() / (1e12 * options.peak_tflops)
        by_bytes = options.clients * traffic(parameters) / (1e12 * options.bandwidth)
        roofline = max(by_flops, by_bytes)
        figure(
            "roofline",
            clients=options.clients,
            gflop_per_client=round(flops() / 1e9, 2),
            gigabytes_per_client=round(traffic(parameters) / 1e9, 3),
            seconds_by_flops=round(by_flops, 3),
            seconds_by_bytes=round(by_bytes, 3),
            predicted_seconds=[round(2 * roofline, 2), round(2.5 * roofline, 2)],
        )
        state, seconds = initial_state(learner.start, plan, collector), []
        for round_ in range(options.rounds + 1):
            began = time.perf_counter()
            with profile.counting():
                state, _ = run_round(state, round_, plan=plan, key=bytes(16), collector=collector)
            seconds.append(time.perf_counter() - began)
        middle = statistics.median(seconds[1:])
        figure(
            "accelerator_round",
            device=device.device_kind,
            jax=jax.__version__,
            precision=options.precision,
            clients=options.clients,
            chunk=workers.chunk_size(work, parameters, options.clients),
            seconds=round(middle, 3),
            each=[round(each, 3) for each in seconds[1:]],
            compiling_seconds=round(seconds[0] - middle, 1),
            share_of_roofline=round(roofline / middle, 3) if device.platform != "cpu" else None,
            below_target=middle < TARGET_SECONDS if options.clients == 6500 else None,
            phases={name: round(spent, 2) for name, spent in profile.to_record(1)["phases"].items()},
        )
        if options.check:
            model, clients = jax.numpy.asarray(learner.start), learner.clients[: options.check]
            sums = [
                np.asarray(train_cohort(work, model, clients, seed=bytes(32), clip_norm=0.2, workers=each).total)
                for each in (workers, CoreWorkers(Cores(Hardware(workers=1))))
            ]
            apart = float(np.linalg.norm(sums[0] - sums[1]) / np.linalg.norm(sums[1]))
            figure("same_sum_one_client_after_another", clients=options.check, relative_difference=apart)


if __name__ == "__main__":
    main()
