"""What is computed does not depend on how many cores the process has."""

import os
import subprocess
import sys

import pytest

# Of a million numbers and more, which is where XLA begins to share a sum out.
SUM = """
import hashlib, os
os.sched_setaffinity(0, {cores})
from tacit.compute import Hardware
Hardware(workers={workers}).apply()
import jax, jax.numpy as jnp, numpy as np
total = jax.jit(lambda m: jnp.square(m).sum())
draw = np.random.default_rng(0)
totals = [total(jnp.asarray(draw.standard_normal((320, 10_000), np.float32))) for _ in range(2)]
print(hashlib.sha256(np.stack(totals).tobytes()).hexdigest())
"""


def summed(cores: set[int], workers: int) -> str:
    """A digest of large sums, in a process that has these cores alone."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PJRT_NPROC", "JAX_NUM_CPU_DEVICES")}
    done = subprocess.run(
        [sys.executable, "-c", SUM.format(cores=cores, workers=workers)],
        env=inherited,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process to a core")
def test_a_process_of_one_core_computes_the_bits_of_one_with_several() -> None:
    cores = os.sched_getaffinity(0)
    alone = {min(cores)}
    assert summed(alone, 1) == summed(alone, 3) == summed(cores, 0)
