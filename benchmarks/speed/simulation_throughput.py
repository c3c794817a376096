"""One core simulates more clients per CPU-second with tacit than with pfl-research; two cores nearly twice as many.

All systems train the same clients on the same text from the same parameters: the 2.4 M network with a vocabulary of
10k, batches of 16, one epoch of SGD, clip, sum. Two workloads: `fixed`, 64 sentences of 20 words a client, and `blogs`,
real clients of a cache with as many and as long sentences as they have, at most 64 of 20 words. Each system is one
process pinned to one core (the same one, in turns), warmed up before it is timed; a figure is the CPU time of its
process (all its threads) over the clients. glibc keeps what all of them free, as tacit asks of it; peers gain a fifth
by that and do not ask for it (--peers-as-they-come). Systems run in rounds, one after another in each, and a ratio is
the median of the rounds' own ratios.

tacit             shard_sum in float32, clip and sum included
tacit_bfloat16    the same with client.precision = "bfloat16"; float32 where the processor has no units for it
pfl_cifg          pfl's SimulatedBackend with FederatedAveraging over the same network by hand in torch (3 gates, the
                  input projection hoisted out of the recurrence); its sum must equal tacit's. Sentences are padded
                  to 20 words, as datasets of one tensor a user are
pfl_cifg_trimmed  the same, each batch cut to its longest sentence first (only on `blogs`, where it can matter)
pfl_lstm          pfl_cifg with torch's own LSTM with a projection (4 gates): the nearest stock module, more work

Each tacit process also times a product of 2048 x 2048 matrices in its precision: a figure's share of that peak counts
the floating-point operations of real words only. Two cores are held against one, in wall clock: two workers of one
process, and two processes that know nothing of each other, each with a core of its own, beside such a process alone;
and products alone. Two virtual cores may be one physical core, and no program gains more than those processes. One
worker of a process with two cores uses more than one of them, so it is no measure of one core; how many is printed.

    python benchmarks/speed/simulation_throughput.py                          with the extra `peers` installed
    python benchmarks/speed/simulation_throughput.py --peer-python PATH       pfl and torch live in another environment
    python benchmarks/speed/simulation_throughput.py --workload blogs --cache caches/blogs-en
    python benchmarks/speed/simulation_throughput.py --cores-alone            two cores beside one, and nothing else
    python benchmarks/speed/simulation_throughput.py --clients 2 --pairs 1    a smoke test

Prints one JSON line per figure. Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

OURS, PEERS = ("tacit", "tacit_bfloat16"), ("pfl_cifg", "pfl_cifg_trimmed", "pfl_lstm")
TWO_CORES = "two_cores"
VOCABULARY, WIDTH, UNITS = 10_000, 96, 670
SENTENCES, WORDS, BATCH, RATE = 64, 20, 16, 0.5
PEAK_SIZE = 2048  # of the square matrices whose product is taken for the peak
PRODUCTS = 16  # of them, for two cores
# A word's products, forward and twice backward: the softmax's, both halves of the gates', the projection's.
OPERATIONS_PER_WORD = 3 * 2 * (WIDTH * VOCABULARY + 2 * WIDTH * 3 * UNITS + UNITS * WIDTH)
CLIP = 0.2  # below the norm of a client's update here (0.3): clipping is part of the work and of the comparison
PAD, BOS, EOS, SPECIALS = 0, 1, 2, 4
ONE_THREAD = {
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
KEEPING = {  # as `compute.hardware` tells glibc, which reads these as a process begins
    "MALLOC_MMAP_THRESHOLD_": str(1 << 28),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 28),
    "MALLOC_ARENA_MAX": "1",
}


# -- the work, the same for everybody ------------------------------------------------------------------------------


def fixed_sentences(clients: int) -> tuple[np.ndarray, np.ndarray]:
    """(clients, S, L+1) ids, BOS, 19 words with Zipf's frequencies, EOS; and how many sentences each client has."""
    generator = np.random.default_rng(0)
    words = VOCABULARY - SPECIALS
    zipf = 1.0 / np.arange(1, words + 1)
    sentences = np.empty((clients, SENTENCES, WORDS + 1), np.int32)
    sentences[:, :, 1:-1] = SPECIALS + generator.choice(words, (clients, SENTENCES, WORDS - 1), p=zipf / zipf.sum())
    sentences[:, :, 0], sentences[:, :, -1] = BOS, EOS
    return sentences, np.full(clients, SENTENCES)


def real_sentences(clients: int, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The same of random training clients of a cache, each with a random subset of its sentences, cut and padded."""
    from tacit.data import Cache

    cache, generator = Cache.open(path), np.random.default_rng(0)
    sentences, counts = np.zeros((clients, SENTENCES, WORDS + 1), np.int32), np.zeros(clients, np.int64)
    for i, client in enumerate(generator.choice(cache.clients("train"), clients, replace=False)):
        chosen = generator.permutation(cache.sentence_count(int(client)))[:SENTENCES]
        sentences[i, : len(chosen)], counts[i] = cache.padded(int(client), chosen, WORDS + 1), len(chosen)
    return sentences, counts


def write_work(path: Path, sentences: np.ndarray, counts: np.ndarray) -> None:
    """The text, and parameters whose shapes are those of tacit.networks.cifg.network.CifgParameters."""
    generator = np.random.default_rng(1)

    def uniform(limit: float, *shape: int) -> np.ndarray:
        return generator.uniform(-limit, limit, shape).astype(np.float32)

    np.savez(
        path,
        sentences=sentences,
        counts=counts,
        embedding=uniform(0.1, VOCABULARY, WIDTH),
        kernel=uniform(0.08, 2 * WIDTH, 3 * UNITS),
        bias=uniform(0.01, 3 * UNITS),
        projection=uniform(0.09, UNITS, WIDTH),
        output=uniform(0.1, WIDTH, VOCABULARY),
        output_bias=uniform(0.01, VOCABULARY),
    )


# -- a worker: one system in its own process -------------------------------------------------------------------------


@dataclass(frozen=True)
class Prepared:
    """A system that is ready: `run()` trains the cohort and returns the sum of the clipped updates by name."""

    run: Callable[[], dict[str, np.ndarray]]
    facts: dict[str, Any]
    peak: Callable[[], float] | None = None  # CPU seconds of one large product in the same precision


def prepare_tacit(work: dict[str, np.ndarray], precision: Literal["float32", "bfloat16"]) -> Prepared:
    import jax
    import jax.numpy as jnp

    from tacit.compute import Hardware
    from tacit.training.client import precision_of
    from tacit.training.shards import shard_sum

    Hardware(workers=1).apply()  # as `tacit train` begins
    client_work, flat, data = tacit_work(work, precision)
    used = precision_of(client_work)

    def run() -> dict[str, np.ndarray]:
        total = shard_sum(client_work, flat, data, clip_norm=CLIP, device=jax.devices()[0]).total
        return {name: np.asarray(leaf) for name, leaf in client_work.unravel(total)._asdict().items()}

    square = jnp.full((PEAK_SIZE, PEAK_SIZE), 1e-3, jnp.dtype(used))
    product = jax.jit(lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.float32))
    product(square, square).block_until_ready()

    def peak() -> float:
        before = cpu_seconds()
        product(square, square).block_until_ready()
        return cpu_seconds() - before

    return Prepared(run, {"parameters": flat.size, "version": f"jax {jax.__version__}", "precision": used}, peak)


def tacit_work(work: dict[str, np.ndarray], precision: Literal["float32", "bfloat16"]) -> tuple[Any, Any, Any]:
    """(what a client computes, flat model, the clients' text)."""
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from tacit.networks.cifg.network import Cifg, CifgParameters
    from tacit.networks.language_model import next_word_loss
    from tacit.training import ClientTraining
    from tacit.training.client import ClientData, ClientWork

    flat, unravel = ravel_pytree(CifgParameters(*(jnp.asarray(work[name]) for name in CifgParameters._fields)))
    settings = ClientTraining(
        batch_size=BATCH, learning_rate=RATE, sentences=SENTENCES, words=WORDS, precision=precision
    )
    vocabulary, width = work["embedding"].shape
    network = Cifg(vocabulary=vocabulary, embedding=width, units=len(work["projection"]))
    loss = next_word_loss(network)
    no_cache: Any = None  # nothing is read from a disk
    client_work = ClientWork(loss=loss, unravel=unravel, cache=no_cache, settings=settings)
    return client_work, flat, ClientData(work["sentences"], -(-work["counts"] // BATCH).astype(np.int32))


def two_cores(work: dict[str, np.ndarray]) -> dict[str, float]:
    """Seconds of the cohort and of PRODUCTS products by two workers of this process, and how many cores one keeps busy.

    Shards are as small as a round's, so that the last of them is no matter.
    """
    import jax
    import jax.numpy as jnp

    from tacit.compute import Hardware
    from tacit.compute.cores import Cores
    from tacit.training.client import ClientData
    from tacit.training.cohort import SHARDS
    from tacit.training.shards import shard_sum

    Hardware(workers=2).apply()
    client_work, flat, data = tacit_work(work, "float32")
    square = jnp.full((PEAK_SIZE, PEAK_SIZE), 1e-3, jnp.float32)
    product = jax.jit(lambda a: a @ a)
    shards = np.array_split(np.arange(len(data.batches)), min(len(data.batches), SHARDS))
    both, one = Cores(Hardware(workers=2)), Cores(Hardware(workers=1))
    models, squares = ({d: jax.device_put(x, d) for d in both.devices} for x in (flat, square))

    def train(device: Any, shard: np.ndarray) -> Any:
        mine = ClientData(data.sentences[shard], data.batches[shard])
        return shard_sum(client_work, models[device], mine, clip_norm=CLIP, device=device)

    def multiply(device: Any, _: int) -> Any:
        return product(squares[device])

    timed = {}
    tasks: dict[str, tuple[Callable[[Any, Any], Any], list[Any]]] = {
        "clients": (train, shards),
        "products": (multiply, list(range(PRODUCTS))),
    }
    for name, (task, items) in tasks.items():
        for device in both.devices:  # compiles on both
            for each in {len(item) if name == "clients" else 0: item for item in items}.values():
                jax.block_until_ready(task(device, each))
        before, clock = cpu_seconds(), time.perf_counter()
        one.map(task, items)
        timed[f"{name}_cores_of_one"] = (cpu_seconds() - before) / (time.perf_counter() - clock)
        clock = time.perf_counter()
        both.map(task, items)
        timed[name] = time.perf_counter() - clock
    return timed


def torch_cifg(work: dict[str, np.ndarray], *, trim: bool = False) -> Any:
    """The network of tacit.networks.cifg, written for torch's autograd. trim: cut a batch to its longest sentence."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, embedding

    class TorchCifg(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in work.items():
                if name not in ("sentences", "counts"):
                    setattr(self, name, nn.Parameter(torch.from_numpy(value.copy())))

        def loss(self, inputs: Any, targets: Any) -> Any:
            if trim:
                longest = int((targets != PAD).sum(dim=1).max())
                inputs, targets = inputs[:, :longest], targets[:, :longest]
            inputs, targets = inputs.T, targets.T.reshape(-1)  # time-major
            hoisted = embedding(inputs, self.embedding) @ self.kernel[:WIDTH] + self.bias
            feedback = self.kernel[WIDTH:]
            cell, fed_back = hoisted.new_zeros(inputs.shape[1], UNITS), hoisted.new_zeros(inputs.shape[1], WIDTH)
            outputs = []
            for gates in hoisted:
                z_update, z_candidate, z_emit = torch.addmm(gates, fed_back, feedback).chunk(3, dim=1)
                cell = cell + torch.sigmoid(z_update) * (torch.tanh(z_candidate) - cell)  # f = 1 - i
                fed_back = (torch.sigmoid(z_emit) * torch.tanh(cell)) @ self.projection
                outputs.append(fed_back)
            logits = torch.addmm(self.output_bias, torch.cat(outputs), self.output)
            return cross_entropy(logits, targets, ignore_index=PAD)

    return TorchCifg()


def torch_lstm(work: dict[str, np.ndarray]) -> Any:
    """torch's LSTM with a recurrent projection, and the same embeddings."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, embedding

    class TorchLstm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.embedding = nn.Parameter(torch.from_numpy(work["embedding"].copy()))
            self.lstm = nn.LSTM(WIDTH, UNITS, proj_size=WIDTH)
            self.output = nn.Parameter(torch.from_numpy(work["output"].copy()))
            self.output_bias = nn.Parameter(torch.from_numpy(work["output_bias"].copy()))

        def loss(self, inputs: Any, targets: Any) -> Any:
            outputs, _ = self.lstm(embedding(inputs.T, self.embedding))
            logits = torch.addmm(self.output_bias, outputs.reshape(-1, WIDTH), self.output)
            return cross_entropy(logits, targets.T.reshape(-1), ignore_index=PAD)

    return TorchLstm()


def prepare_pfl(work: dict[str, np.ndarray], network: Callable[[dict[str, np.ndarray]], Any]) -> Prepared:
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.common_types import Population
    from pfl.context import CentralContext
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.pytorch import PyTorchTensorDataset
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.model.pytorch import PyTorchModel
    from pfl.privacy.privacy_mechanism import NormClippingOnly

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    sentences = torch.from_numpy(work["sentences"]).long()
    cohort, counts = len(sentences), work["counts"]
    module = network(work)
    module.metrics = None  # pfl wants the name to be there; nothing is evaluated here
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), 1.0))
    turn = iter(int(i % cohort) for i in range(10**9))  # everybody once a round, in order
    users = FederatedDataset(
        lambda user: PyTorchTensorDataset((sentences[user, : counts[user], :-1], sentences[user, : counts[user], 1:])),
        lambda: next(turn),
    )
    backend = SimulatedBackend(users, users, [NormClippingOnly(2, CLIP)])
    context = CentralContext(
        current_central_iteration=1,
        do_evaluation=False,
        cohort_size=cohort,
        population=Population.TRAIN,
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=2, evaluation_frequency=10**9, train_cohort_size=cohort, val_cohort_size=None
        ),
        model_train_params=NNTrainHyperParams(local_num_epochs=1, local_learning_rate=RATE, local_batch_size=BATCH),
        seed=0,
    )
    algorithm = FederatedAveraging()

    def run() -> dict[str, np.ndarray]:
        total, _ = backend.gather_results(model, algorithm, central_context=context)
        return {name: value.numpy() for name, value in total.items()}

    parameters = sum(p.numel() for p in module.parameters())
    return Prepared(run, {"parameters": parameters, "version": f"pfl {version_of('pfl')}, torch {torch.__version__}"})


def prepare(system: str, work: dict[str, np.ndarray]) -> Prepared:
    match system:
        case "tacit" | "tacit_bfloat16":
            return prepare_tacit(work, "float32" if system == "tacit" else "bfloat16")
        case "pfl_cifg" | "pfl_cifg_trimmed":
            return prepare_pfl(work, lambda work: torch_cifg(work, trim=system.endswith("trimmed")))
        case _:
            return prepare_pfl(work, torch_lstm)


def work_for(parent: Any, system: str, folder: Path) -> None:
    """A worker's life: prepare, warm up, save the sum, then one timed cohort for every line on stdin."""
    with np.load(folder / "work.npz") as arrays:
        work = dict(arrays)
    if system == TWO_CORES:
        print(json.dumps({}), file=parent, flush=True)
        for _ in sys.stdin:
            print(json.dumps(two_cores(work)), file=parent, flush=True)
        return
    prepared = prepare(system, work)
    computed: dict[str, Any] = prepared.run()  # the warm-up: compiles, and shows what was computed
    np.savez(folder / f"{system}.npz", **computed)
    prepared.run()
    print(json.dumps(prepared.facts), file=parent, flush=True)
    for _ in sys.stdin:
        before, clock = cpu_seconds(), time.perf_counter()
        prepared.run()
        spent = {"cpu_seconds": cpu_seconds() - before, "seconds": time.perf_counter() - clock}
        answer = {f"{name}_per_client": value / len(work["sentences"]) for name, value in spent.items()}
        if prepared.peak is not None:
            answer["peak_flops"] = 2.0 * PEAK_SIZE**3 / min(prepared.peak() for _ in range(3))
        print(json.dumps(answer), file=parent, flush=True)


def cpu_seconds() -> float:
    """User and system time of this process, all its threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def version_of(package: str) -> str:
    from importlib.metadata import version

    return version(package)


# -- the comparison --------------------------------------------------------------------------------------------------


class Worker:
    """A system's process, pinned to its cores; waits without using CPU time until asked."""

    def __init__(self, system: str, python: str, folder: Path, cores: set[int], *, keeping: bool = True) -> None:
        """keeping: freed memory, as tacit does by itself (`compute.hardware`)."""
        command = [python, __file__, "--worker", system, "--folder", str(folder)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ONE_THREAD | (KEEPING if keeping else {}),
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        self.ready = self._answer(system)
        self.system = system

    def measure(self) -> dict[str, float]:
        """What one more cohort took."""
        self.ask()
        return self.answer()

    def ask(self) -> None:
        """Begin one more cohort."""
        assert self.process.stdin is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, float]:
        """What the cohort took that was asked for."""
        return self._answer(self.system)

    def _answer(self, system: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the {system} process ended with {self.process.wait()}; its message stands above.")
        return dict(json.loads(line))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def relative_difference(folder: Path, system: str) -> float:
    """||tacit's sum - pfl's sum|| / ||pfl's sum|| over all parameters."""
    with np.load(folder / f"{system}.npz") as ours, np.load(folder / "pfl_cifg.npz") as theirs:
        apart = sum(float(np.sum((ours[name] - theirs[name]).astype(np.float64) ** 2)) for name in theirs)
        size = sum(float(np.sum(theirs[name].astype(np.float64) ** 2)) for name in theirs)
    return float(np.sqrt(apart / size))


def compare(workers: list[Worker], pairs: int, folder: Path, words: float) -> None:
    """words: that a client predicts, on average."""
    measured: dict[str, list[dict[str, float]]] = {worker.system: [] for worker in workers}
    for turn in range(pairs):
        for worker in workers if turn % 2 == 0 else workers[::-1]:
            measured[worker.system].append(worker.measure())
    spent = {system: [turn["cpu_seconds_per_client"] for turn in turns] for system, turns in measured.items()}
    for worker in workers:
        middle = statistics.median(spent[worker.system])
        peaks = [turn["peak_flops"] for turn in measured[worker.system] if "peak_flops" in turn]
        shares = [words * OPERATIONS_PER_WORD / s / p for s, p in zip(spent[worker.system], peaks, strict=False)]
        figure(
            "simulation_throughput",
            system=worker.system,
            cpu_seconds_per_client=round(middle, 4),
            clients_per_cpu_second=round(1 / middle, 3),
            rounds=[round(seconds, 4) for seconds in spent[worker.system]],
            gflops=round(words * OPERATIONS_PER_WORD / middle / 1e9, 1),
            **({"peak_gflops": round(statistics.median(peaks) / 1e9, 1)} if peaks else {}),
            **({"share_of_peak": round(statistics.median(shares), 3)} if shares else {}),
            **worker.ready,
        )
    for ours in OURS:
        for peer in PEERS:
            if peer in spent and ours in spent:
                ratios = [theirs / mine for theirs, mine in zip(spent[peer], spent[ours], strict=True)]
                figure(
                    "times_as_many_clients_per_cpu_second",
                    system=ours,
                    than=peer,
                    ratio=round(statistics.median(ratios), 3),
                    pairs=[round(ratio, 3) for ratio in ratios],
                )
    for ours, bound in (("tacit", 1e-3), ("tacit_bfloat16", 1e-2)):
        if "pfl_cifg" in spent and ours in spent:
            apart = relative_difference(folder, ours)
            figure("same_sum_as_pfl_cifg", system=ours, relative_difference=apart, agrees=apart < bound)


def compare_cores(cores: list[int], pairs: int, clients: int, folder: Path) -> None:
    """Two workers of a process, and two processes with a core each, beside one process with one core."""
    shared = Worker(TWO_CORES, sys.executable, folder, set(cores))
    apart = [Worker("tacit", sys.executable, folder, {core}) for core in cores]
    gains: dict[str, list[float]] = {"workers": [], "processes": [], "products": []}
    used: dict[str, list[float]] = {"clients": [], "products": []}
    for _ in range(pairs):
        alone = [worker.measure() for worker in apart]
        turn = shared.measure()
        for worker in apart:
            worker.ask()
        rate = sum(1 / worker.answer()["seconds_per_client"] for worker in apart)
        seconds = statistics.mean(each["seconds_per_client"] for each in alone)  # of one core: neighbours differ
        products = statistics.mean(PRODUCTS * 2.0 * PEAK_SIZE**3 / each["peak_flops"] for each in alone)
        gains["workers"].append(seconds * clients / turn["clients"])
        gains["processes"].append(seconds * rate)
        gains["products"].append(products / turn["products"])
        for name, values in used.items():
            values.append(turn[f"{name}_cores_of_one"])
    for worker in (shared, *apart):
        worker.close()
    for told, by_name in (("two_cores_are_times_one_in_wall_clock", gains), ("cores_that_one_worker_uses", used)):
        for name, ratios in by_name.items():
            middle = round(statistics.median(ratios), 3)
            figure(told, of=name, ratio=middle, pairs=[round(ratio, 3) for ratio in ratios])
    share = [workers / processes for workers, processes in zip(gains["workers"], gains["processes"], strict=True)]
    figure(
        "workers_are_times_processes",
        ratio=round(statistics.median(share), 3),
        pairs=[round(each, 3) for each in share],
    )


def figure(name: str, **facts: Any) -> None:
    print(json.dumps({"figure": name, **facts}), flush=True)


def peers_are_there(python: str) -> bool:
    return subprocess.run([python, "-c", "import pfl, torch"], capture_output=True, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=("fixed", "blogs"), default="fixed")
    parser.add_argument("--cache", type=Path, help="of real text with a vocabulary of 10,000, for the workload blogs")
    parser.add_argument("--clients", type=int, default=16, help="of a cohort; a timed round trains all of them")
    parser.add_argument("--pairs", type=int, default=7, help="rounds in which every system is timed once")
    parser.add_argument("--peer-python", default=sys.executable, help="the interpreter that has pfl and torch")
    parser.add_argument("--peers-as-they-come", action="store_true", help="leave glibc's settings to them")
    parser.add_argument("--without-peers", action="store_true", help="time tacit alone")
    parser.add_argument("--cores-alone", action="store_true", help="time two cores beside one, and nothing else")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="to pin the systems to")
    parser.add_argument("--worker", choices=(*OURS, *PEERS, TWO_CORES), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        parent = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # whatever a library prints must not be taken for an answer
        work_for(parent, options.worker, options.folder)
        return
    if options.workload == "blogs" and options.cache is None:
        raise SystemExit("the workload blogs needs --cache: one made by tacit data import with 10,000 words.")
    if not (options.without_peers or options.cores_alone or peers_are_there(options.peer_python)):
        raise SystemExit(
            f"{options.peer_python} has no pfl and torch: pip install 'tacit[peers]', or give --peer-python "
            "an environment that has them, or time tacit alone with --without-peers."
        )
    real = options.workload == "blogs"
    sentences, counts = real_sentences(options.clients, options.cache) if real else fixed_sentences(options.clients)
    with tempfile.TemporaryDirectory() as name:
        measure_all(options, Path(name), sentences, counts)


def measure_all(options: argparse.Namespace, folder: Path, sentences: np.ndarray, counts: np.ndarray) -> None:
    write_work(folder / "work.npz", sentences, counts)
    words = float((sentences[:, :, 1:] != PAD).sum() / options.clients)
    figure(
        "machine",
        processor=platform.processor() or platform.machine(),
        cores=os.cpu_count(),
        load=[round(load, 2) for load in os.getloadavg()],
        date=datetime.now(UTC).date().isoformat(),
        core=options.core,
        workload=options.workload,
        clients=options.clients,
        sentences_per_client=round(float(counts.mean()), 1),
        words_per_client=round(words, 1),
        real_share_of_padded_words=round(words / (-(-counts // BATCH) * BATCH * WORDS).mean(), 3),
    )
    if not options.cores_alone:
        peers = () if options.without_peers else PEERS if options.workload == "blogs" else ("pfl_cifg", "pfl_lstm")
        workers = [
            *(Worker(system, sys.executable, folder, {options.core}) for system in OURS),
            *(
                Worker(system, options.peer_python, folder, {options.core}, keeping=not options.peers_as_they_come)
                for system in peers
            ),
        ]
        compare(workers, options.pairs, folder, words)
        for worker in workers:
            worker.close()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) == 2:
        compare_cores(cores, options.pairs, options.clients, folder)


if __name__ == "__main__":
    main()
