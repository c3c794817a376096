"""The best banded matrix for 2052 rounds and 342 bands (BandMF) takes seconds and a third of a gigabyte.

Each figure comes from a process of its own, so that memory (ru_maxrss) and CPU time (all threads, imports and
compilation included) are that design's alone.

design     tacit's design at (rounds, bands) = (2052, 342), separation 342, 6 participations: loss, steps, seconds,
           memory. arXiv:2408.08868, Table 3, prints rms loss 8.60.
compare    tacit and jax-privacy on a smaller problem that the latter finishes, in turns, one thread each; the ratio is
           the median of the pairs' own ratios of CPU time. Losses are of the same workload, columns of norm 1.

    python benchmarks/accounting/banded_design.py                       with the extra `peers` installed
    python benchmarks/accounting/banded_design.py --peer-python PATH    jax-privacy lives in another environment
    python benchmarks/accounting/banded_design.py --smoke               seconds: tiny sizes, one pair

Prints one JSON line per figure. Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from typing import Any

OURS = """
import json, resource, sys, time
began = time.process_time(), time.perf_counter()
from tacit.design.banded import design_banded
from tacit.design.losses import prefix_errors
from tacit.privacy.participation import Participation
rounds, bands, separation, visits = map(int, sys.argv[1:5])
served, told = Participation(rounds=rounds, min_separation=separation, max_participations=visits), []
design = design_banded(served, bands=bands, progress=told.append)
cpu, seconds = time.process_time() - began[0], time.perf_counter() - began[1]
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
largest, mean = (error * visits**0.5 for error in prefix_errors(design, rounds))
print(json.dumps({"max_loss": largest, "rms_loss": mean, "steps": len(told) - 2, "cpu_seconds": cpu, "seconds": seconds,
                  "gib": memory}))
"""

PEER = """
import json, resource, sys, time
began = time.process_time(), time.perf_counter()
import jax
jax.config.update("jax_enable_x64", True)
from jax_privacy.matrix_factorization import banded
rounds, bands, separation, visits, steps = map(int, sys.argv[1:6])
design = banded.optimize(rounds, bands=bands, max_optimizer_steps=steps)
design.params.block_until_ready()
cpu, seconds = time.process_time() - began[0], time.perf_counter() - began[1]
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
variances = banded.per_query_error(design)
largest, mean = (float((it * visits) ** 0.5) for it in (variances.max(), variances.mean()))
print(json.dumps({"max_loss": largest, "rms_loss": mean, "steps": steps, "cpu_seconds": cpu, "seconds": seconds,
                  "gib": memory}))
"""


ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def measured(python: str, program: str, *numbers: int, threads: dict[str, str] | None = None) -> dict[str, Any]:
    """One design in a process of its own."""
    command = [python, "-c", program, *map(str, numbers)]
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **(threads or {})},
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", default=sys.executable, help="a Python that has jax-privacy")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    large = (100, 10, 10, 10) if options.smoke else (2052, 342, 342, 6)
    small, steps, pairs = ((40, 8, 8, 5), 20, 1) if options.smoke else ((512, 64, 64, 8), 100, options.pairs)

    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    names = ("rounds", "bands", "min_separation", "max_participations")
    design = measured(sys.executable, OURS, *large)
    print(json.dumps({"figure": "design", **dict(zip(names, large, strict=True)), **design, **machine}), flush=True)

    found = [
        (
            measured(sys.executable, OURS, *small, threads=ONE_THREAD),
            measured(options.peer_python, PEER, *small, steps, threads=ONE_THREAD),
        )
        for _ in range(pairs)
    ]
    ratios = [peer["cpu_seconds"] / ours["cpu_seconds"] for ours, peer in found]
    figure = {
        "figure": "compare",
        **dict(zip(names, small, strict=True)),
        "tacit": found[0][0],
        "jax_privacy": found[0][1],
        "times_less_cpu": statistics.median(ratios),
        "ratios": ratios,
        **machine,
    }
    print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
