"""A round of BLT noise costs at most twice a bare Gaussian draw, and a third of what jax-privacy spends on it.

Each figure is the CPU time (all threads) of one round of `NoiseStream.add_noise`: derive the round's key from the sum,
draw the seeds, correlate them, release the sum with the noise on a grid. Beside it, in the same processes and turns:

draw        a bare Gaussian draw: NumPy's own float32, from Philox, filling the same memory again and again
seeds       the seeds alone as tacit draws them
floor       the bytes that a round must move (carried vectors read and written, the sum read, the result written) over
            the bandwidth of a plain copy
peer        jax-privacy's `matrix_factorization_privatizer` over the inverse of the same BLT, jitted, state donated

Processes are pinned to one core, then to two; within a turn everything is timed once, the order turning round, and a
ratio is the median of the turns' own ratios.

    python benchmarks/speed/noise_streaming.py --peer-python PY       PY has jax-privacy; without it, tacit alone
    python benchmarks/speed/noise_streaming.py --dimensions 100000 --turns 1 --threads 1      a smoke test

Prints one JSON line per figure. Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

THETA = (0.9999999999921251, 0.9944453083640997, 0.8985923474607591, 0.4912001418098778)  # arXiv:2408.08868, b400
OMEGA = (0.0070314825502323835, 0.10613806907600574, 0.1898159060327625, 0.1966594748073734)
STDDEV = 0.3
AT = 64  # the round at which timing begins: every ring is full
ROUNDS = 16  # that a tree is averaged over, because each round costs another number of seeds
PURPOSE = "model update"

Clock = Callable[[], float]
Case = Callable[[], object]


# -- a worker: one system in its own process -------------------------------------------------------------------------


def strategies() -> dict[str, Any]:
    from tacit.privacy.strategy import Banded, BandedInverse, BandedToeplitz, Blt, Dense, Independent, Tree

    def falling(bands: int) -> tuple[float, ...]:
        return tuple(0.5 / (lag + 1) if lag else 1.0 for lag in range(bands))

    def columns(rounds: int, bands: int) -> np.ndarray:
        lags = np.arange(bands)
        inside = np.arange(rounds)[:, None] + lags < rounds
        return np.where(inside, np.array(falling(bands)), 0.0)

    return {
        "independent": Independent(),
        "tree": Tree(),
        "tree, variance-reduced": Tree(variance_reduced=True),
        "blt, 2 buffers": Blt(theta=THETA[:2], omega=OMEGA[:2]),
        "blt, 4 buffers": Blt(theta=THETA, omega=OMEGA),
        "banded-toeplitz, 8 bands": BandedToeplitz(falling(8)),
        "banded-toeplitz, 64 bands": BandedToeplitz(falling(64)),
        "banded, 8 bands": Banded(columns(1000, 8)),
        "banded, 64 bands": Banded(columns(1000, 64)),
        "lambda-cgd": BandedInverse((1.0, -0.9)),
        "banded-inverse, 8 bands": BandedInverse((1.0, *(-0.1 / lag for lag in range(1, 8)))),
        "banded-inverse, 64 bands": BandedInverse((1.0, *(-0.1 / lag for lag in range(1, 64)))),
        f"dense, round {AT}": Dense(Banded(columns(AT + 1, AT + 1)).dense(AT + 1)),
    }


def carried_at(stream: Any, dimension: int) -> Any:
    """The state of round AT, with whatever numbers in it."""
    from tacit.mechanisms import NoiseState

    rows = np.random.default_rng(0).standard_normal((stream.memory(AT), dimension), np.float32)
    keys = np.zeros((max(1, stream.draws_back), 32), np.uint8)
    return NoiseState(np.asarray(AT, np.int32), rows.astype(stream.carries), keys)


def bytes_moved(stream: Any, dimension: int) -> int:
    """Of one round: what is carried, read and written; the sum, read; the result, written. Of a tree: usually."""
    from tacit.mechanisms.step import Decay

    step = stream.step(AT + 1 if stream.strategy.kind == "tree" else AT)  # round AT + 1 completes a node of two rounds
    written = len(step.then.rates) if isinstance(step.then, Decay) else int(step.then is not None)
    carried = np.dtype(stream.carries).itemsize * (int(np.count_nonzero(step.buffers)) + written)
    return dimension * (carried + 8)


def our_case(name: str, dimension: int) -> tuple[Case, dict[str, Any]]:
    """A round of the mechanism of that name, and what it moves."""
    import jax.numpy as jnp

    from tacit.mechanisms import stream_for

    stream = stream_for(strategies()[name])
    state, total, key = carried_at(stream, dimension), jnp.ones(dimension), bytes(16)

    def one() -> None:
        nonlocal state
        noisy, after = stream.add_noise(state, total, stddev=STDDEV, key=key, purpose=PURPOSE)
        noisy.block_until_ready()
        state = after if name.startswith("tree") else after._replace(round=state.round)

    def rounds_of_a_tree() -> None:
        for _ in range(ROUNDS):
            one()

    carried = stream.memory(AT)
    facts = {"carried_vectors": carried, "bytes_moved": bytes_moved(stream, dimension)}
    return (rounds_of_a_tree if name.startswith("tree") else one), facts


def draw_case(dimension: int) -> tuple[Case, dict[str, Any]]:
    """As many numbers as a round has seeds, drawn by NumPy into memory that is there already."""
    from tacit.mechanisms.seeds import BLOCK, each_block

    seeds = np.zeros(dimension, np.float32)

    def fill(block: int) -> None:
        generator = np.random.Generator(np.random.Philox(key=AT, counter=[0, block, 0, 0]))
        generator.standard_normal(out=seeds[block * BLOCK : (block + 1) * BLOCK], dtype=np.float32)

    return lambda: each_block(fill, dimension), {}


def seeds_case(dimension: int) -> tuple[Case, dict[str, Any]]:
    """The seeds of a round as tacit draws them, into memory of their own."""
    from tacit.mechanisms.seeds import SeedVector

    return lambda: bool(SeedVector(bytes(16)).draw(dimension).size), {}


def copy_case(dimension: int) -> tuple[Case, dict[str, Any]]:
    """A copy of ten vectors: a byte read and a byte written for each."""
    there, here = np.zeros((10, dimension), np.float32), np.ones((10, dimension), np.float32)
    return lambda: np.copyto(here, there), {"bytes_moved": 2 * here.nbytes}


def peer_case(dimension: int) -> tuple[Case, dict[str, Any]]:
    """The streaming BLT of jax-privacy with its own generator, added to a gradient."""
    import jax
    import jax.numpy as jnp
    from jax_privacy import noise_addition
    from jax_privacy.matrix_factorization import buffered_toeplitz

    blt = buffered_toeplitz.BufferedToeplitz.build(buf_decay=THETA, output_scale=OMEGA, dtype=jnp.float32)
    privatizer = noise_addition.matrix_factorization_privatizer(
        blt.inverse_as_streaming_matrix(), stddev=STDDEV, prng_key=jax.random.key(1)
    )
    total = jnp.ones(dimension)
    update, state = jax.jit(privatizer.update, donate_argnums=1), privatizer.init(total)

    def one() -> None:
        nonlocal state
        noisy, state = update(total, state)
        jax.block_until_ready((noisy, state))

    from importlib.metadata import version

    return one, {"version": f"jax-privacy {version('jax-privacy')}, jax {jax.__version__}"}


def prepared(case: str, dimension: int) -> tuple[Case, dict[str, Any]]:
    match case:
        case "draw":
            return draw_case(dimension)
        case "seeds":
            return seeds_case(dimension)
        case "copy":
            return copy_case(dimension)
        case "jax-privacy":
            return peer_case(dimension)
        case _:
            return our_case(case, dimension)


def serve(parent: Any) -> None:
    """A worker's life: make each case that it is told of when it first hears of it, and time one round of it."""
    current: tuple[str, int] | None = None
    run: Case = bool
    facts: dict[str, Any] = {}
    for line in sys.stdin:
        order = json.loads(line)
        if current != (order["case"], order["dimension"]):
            current = order["case"], order["dimension"]
            run = bool  # lets go of the last case's memory first
            run, facts = prepared(*current)
            run()
            run()
        before = time.process_time()
        run()
        spent = time.process_time() - before
        rounds = ROUNDS if order["case"].startswith("tree") else 1
        print(json.dumps({"cpu_seconds": spent / rounds, **facts}), file=parent, flush=True)


class Worker:
    """A process pinned to some cores; waits without using CPU time until asked."""

    def __init__(self, python: str, cores: set[int]) -> None:
        self.process = subprocess.Popen(
            [python, __file__, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", **threads(len(cores))},
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )

    def measure(self, case: str, dimension: int) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"case": case, "dimension": dimension}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process for {case} ended with {self.process.wait()}; its message stands above.")
        return dict(json.loads(line))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def threads(cores: int) -> dict[str, str]:
    """One core is one thread, as in `tacit train`."""
    number = {"OMP_NUM_THREADS": str(cores), "OPENBLAS_NUM_THREADS": str(cores)}
    return number | ({"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} if cores == 1 else {})


# -- the comparison --------------------------------------------------------------------------------------------------


def compare(peer_python: str | None, cores: set[int], dimension: int, turns: int, names: list[str]) -> None:
    """Every mechanism against the draw, the copy and (BLT) the peer, turn by turn; one process for each of them."""
    python = dict.fromkeys(("draw", "seeds", "copy"), sys.executable)
    python |= {"jax-privacy": peer_python} if peer_python else {}
    fixed = {case: Worker(which, cores) for case, which in python.items()}
    ours = Worker(sys.executable, cores)
    for name in names:
        measured: dict[str, list[dict[str, Any]]] = {case: [] for case in (*fixed, name)}
        beside = {case: worker for case, worker in fixed.items() if case != "jax-privacy" or name.startswith("blt, 4")}
        for turn in range(turns):
            order = [*beside.items(), (name, ours)]
            for case, worker in order if turn % 2 == 0 else order[::-1]:
                measured[case].append(worker.measure(case, dimension))
        report(name, measured, threads=len(cores), dimension=dimension)
    for worker in (*fixed.values(), ours):
        worker.close()


def report(name: str, measured: dict[str, list[dict[str, Any]]], **setting: int) -> None:
    spent = {case: [each["cpu_seconds"] for each in found] for case, found in measured.items()}
    bandwidth = [each["bytes_moved"] / each["cpu_seconds"] for each in measured["copy"]]
    moved = measured[name][0]["bytes_moved"]
    floor = [moved / each for each in bandwidth]

    def ratio(above: list[float], below: list[float]) -> float:
        return round(statistics.median(a / b for a, b in zip(above, below, strict=True)), 3)

    figure(
        "noise_streaming",
        mechanism=name,
        **setting,
        cpu_milliseconds=round(1e3 * statistics.median(spent[name]), 2),
        nanoseconds_a_number=round(1e9 * statistics.median(spent[name]) / setting["dimension"], 2),
        draw_milliseconds=round(1e3 * statistics.median(spent["draw"]), 2),
        times_the_draw=ratio(spent[name], spent["draw"]),
        seeds_milliseconds=round(1e3 * statistics.median(spent["seeds"]), 2),
        times_the_seeds=ratio(spent[name], spent["seeds"]),
        carried_vectors=measured[name][0]["carried_vectors"],
        bytes_moved=moved,
        bandwidth_gigabytes=round(statistics.median(bandwidth) / 1e9, 1),
        floor_milliseconds=round(1e3 * statistics.median(floor), 2),
        times_seeds_and_floor=ratio(spent[name], [s + f for s, f in zip(spent["seeds"], floor, strict=True)]),
    )
    if spent.get("jax-privacy"):
        figure(
            "times_less_than_jax_privacy",
            mechanism=name,
            **setting,
            ratio=ratio(spent["jax-privacy"], spent[name]),
            peer_milliseconds=round(1e3 * statistics.median(spent["jax-privacy"]), 2),
            peer=measured["jax-privacy"][0]["version"],
        )


def figure(name: str, **facts: Any) -> None:
    print(json.dumps({"figure": name, **facts}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2_400_000, 6_400_000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--turns", type=int, default=9, help="in each of which everything is timed once")
    parser.add_argument("--only", default="", help="mechanisms whose name holds this, for example 'blt, 4'")
    parser.add_argument("--peer-python", help="an interpreter that has jax-privacy")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        parent = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # whatever a library prints must not be taken for an answer
        serve(parent)
        return
    names = [name for name in strategies() if options.only in name]
    cores = sorted(os.sched_getaffinity(0))
    figure(
        "machine",
        processor=platform.processor() or platform.machine(),
        cores=len(cores),
        load=[round(load, 2) for load in os.getloadavg()],
        date=datetime.now(UTC).date().isoformat(),
        numpy=np.__version__,
    )
    for dimension in options.dimensions:
        for number in options.threads:
            compare(options.peer_python, set(cores[:number]), dimension, options.turns, names)


if __name__ == "__main__":
    main()
