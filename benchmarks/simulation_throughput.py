"""One core simulates more clients per CPU-second with tacit than with pfl-research.

Both train the same clients on the same text from the same parameters: vocabulary 10k, 64 sentences of 20 words a
client, batches of 16, one epoch of SGD, clip, sum. Each system is one process pinned to one core (the same one, in
turns), warmed up before it is timed; a figure is the CPU time of its process (all its threads) over the clients.
Systems run in rounds, one after another in each, and a ratio is the median of the rounds' own ratios.

tacit     shard_sum, clip and sum included
pfl_cifg  pfl's SimulatedBackend with FederatedAveraging over the same network by hand in torch (3 gates, the input
          projection hoisted out of the recurrence); its sum must equal tacit's
pfl_lstm  the same with torch's own LSTM with a projection (4 gates): the nearest stock module, a third more work

    python benchmarks/simulation_throughput.py                          with the extra `peers` installed
    python benchmarks/simulation_throughput.py --peer-python PATH       pfl and torch live in another environment
    python benchmarks/simulation_throughput.py --clients 2 --pairs 1    a smoke test

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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

SYSTEMS = ("tacit", "pfl_cifg", "pfl_lstm")
VOCABULARY, WIDTH, UNITS = 10_000, 96, 670
SENTENCES, WORDS, BATCH, RATE = 64, 20, 16, 0.5
CLIP = 0.2  # below the norm of a client's update here (0.3): clipping is part of the work and of the comparison
PAD, BOS, EOS, SPECIALS = 0, 1, 2, 4
ONE_THREAD = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


# -- the work, the same for everybody ------------------------------------------------------------------------------


def write_work(path: Path, clients: int) -> None:
    """Parameters (shapes as in tacit.keyboard.model.Cifg) and sentences: BOS, 19 words with Zipf's frequencies, EOS."""
    generator = np.random.default_rng(0)

    def uniform(limit: float, *shape: int) -> np.ndarray:
        return generator.uniform(-limit, limit, shape).astype(np.float32)

    words = VOCABULARY - SPECIALS
    zipf = 1.0 / np.arange(1, words + 1)
    sentences = np.empty((clients, SENTENCES, WORDS + 1), np.int32)
    sentences[:, :, 1:-1] = SPECIALS + generator.choice(words, (clients, SENTENCES, WORDS - 1), p=zipf / zipf.sum())
    sentences[:, :, 0], sentences[:, :, -1] = BOS, EOS
    np.savez(
        path,
        sentences=sentences,
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
    parameters: int
    version: str


def prepare_tacit(work: dict[str, np.ndarray]) -> Prepared:
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from tacit.keyboard.model import Cifg, loss
    from tacit.training import ClientTraining
    from tacit.training.client import ClientData, ClientWork, shard_sum

    sentences = work["sentences"]
    flat, unravel = ravel_pytree(Cifg(*(jnp.asarray(work[name]) for name in Cifg._fields)))
    data = ClientData(sentences, np.full(len(sentences), SENTENCES // BATCH, np.int32))
    settings = ClientTraining(batch_size=BATCH, learning_rate=RATE, sentences=SENTENCES, words=WORDS)
    client_work = ClientWork(loss=loss, unravel=unravel, cache=None, settings=settings)  # nothing is read from a disk

    def run() -> dict[str, np.ndarray]:
        total = shard_sum(client_work, flat, data, clip_norm=CLIP, device=jax.devices()[0]).total
        return {name: np.asarray(leaf) for name, leaf in unravel(total)._asdict().items()}

    return Prepared(run, flat.size, f"jax {jax.__version__}")


def torch_cifg(work: dict[str, np.ndarray]) -> Any:
    """The network of tacit.keyboard.model, written for torch's autograd."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, embedding

    class TorchCifg(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in work.items():
                if name != "sentences":
                    setattr(self, name, nn.Parameter(torch.from_numpy(value.copy())))

        def loss(self, inputs: Any, targets: Any) -> Any:
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
    cohort = len(sentences)
    module = network(work)
    module.metrics = None  # pfl wants the name to be there; nothing is evaluated here
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), 1.0))
    turn = iter(int(i % cohort) for i in range(10**9))  # everybody once a round, in order
    users = FederatedDataset(
        lambda user: PyTorchTensorDataset((sentences[user, :, :-1], sentences[user, :, 1:])), lambda: next(turn)
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
    return Prepared(run, parameters, f"pfl {version_of('pfl')}, torch {torch.__version__}")


def work_for(parent: Any, system: str, folder: Path) -> None:
    """A worker's life: prepare, warm up, save the sum, then one timed cohort for every line on stdin."""
    with np.load(folder / "work.npz") as arrays:
        work = dict(arrays)
    if system == "tacit":
        prepared = prepare_tacit(work)
    else:
        prepared = prepare_pfl(work, torch_cifg if system == "pfl_cifg" else torch_lstm)
    np.savez(folder / f"{system}.npz", **prepared.run())  # the warm-up: compiles, and shows what was computed
    prepared.run()
    print(json.dumps({"parameters": prepared.parameters, "version": prepared.version}), file=parent, flush=True)
    for _ in sys.stdin:
        before = cpu_seconds()
        prepared.run()
        spent = cpu_seconds() - before
        print(json.dumps({"cpu_seconds_per_client": spent / len(work["sentences"])}), file=parent, flush=True)


def cpu_seconds() -> float:
    """User and system time of this process, all its threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def version_of(package: str) -> str:
    from importlib.metadata import version

    return version(package)


# -- the comparison --------------------------------------------------------------------------------------------------


class Worker:
    """A system's process, pinned to one core; waits without using CPU time until asked."""

    def __init__(self, system: str, python: str, folder: Path, core: int) -> None:
        command = [python, __file__, "--worker", system, "--folder", str(folder)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD},
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        self.ready = self._answer(system)
        self.system = system

    def measure(self) -> float:
        """CPU seconds a client of one more cohort."""
        assert self.process.stdin is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return float(self._answer(self.system)["cpu_seconds_per_client"])

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


def relative_difference(folder: Path) -> float:
    """||tacit's sum - pfl's sum|| / ||pfl's sum|| over all parameters."""
    with np.load(folder / "tacit.npz") as ours, np.load(folder / "pfl_cifg.npz") as theirs:
        apart = sum(float(np.sum((ours[name] - theirs[name]).astype(np.float64) ** 2)) for name in theirs)
        size = sum(float(np.sum(theirs[name].astype(np.float64) ** 2)) for name in theirs)
    return float(np.sqrt(apart / size))


def compare(workers: list[Worker], pairs: int, folder: Path) -> None:
    spent: dict[str, list[float]] = {worker.system: [] for worker in workers}
    for turn in range(pairs):
        for worker in workers if turn % 2 == 0 else workers[::-1]:
            spent[worker.system].append(worker.measure())
    for worker in workers:
        middle = statistics.median(spent[worker.system])
        figure(
            "simulation_throughput",
            system=worker.system,
            cpu_seconds_per_client=round(middle, 4),
            clients_per_cpu_second=round(1 / middle, 3),
            rounds=[round(seconds, 4) for seconds in spent[worker.system]],
            **worker.ready,
        )
    for peer in SYSTEMS[1:]:
        if peer in spent:
            ratios = [theirs / ours for theirs, ours in zip(spent[peer], spent["tacit"], strict=True)]
            figure(
                "times_as_many_clients_per_cpu_second",
                than=peer,
                ratio=round(statistics.median(ratios), 3),
                pairs=[round(ratio, 3) for ratio in ratios],
            )
    if "pfl_cifg" in spent:
        apart = relative_difference(folder)
        figure("same_sum_as_pfl_cifg", relative_difference=apart, agrees=apart < 1e-3)


def figure(name: str, **facts: Any) -> None:
    print(json.dumps({"figure": name, **facts}), flush=True)


def peers_are_there(python: str) -> bool:
    return subprocess.run([python, "-c", "import pfl, torch"], capture_output=True, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=16, help="of a cohort; a timed round trains all of them")
    parser.add_argument("--pairs", type=int, default=7, help="rounds in which every system is timed once")
    parser.add_argument("--peer-python", default=sys.executable, help="the interpreter that has pfl and torch")
    parser.add_argument("--without-peers", action="store_true", help="time tacit alone")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="to pin the systems to")
    parser.add_argument("--worker", choices=SYSTEMS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        parent = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # whatever a library prints must not be taken for an answer
        work_for(parent, options.worker, options.folder)
        return
    if not options.without_peers and not peers_are_there(options.peer_python):
        raise SystemExit(
            f"{options.peer_python} has no pfl and torch: pip install 'tacit[peers]', or give --peer-python "
            "an environment that has them, or time tacit alone with --without-peers."
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_work(folder / "work.npz", options.clients)
        systems = SYSTEMS[:1] if options.without_peers else SYSTEMS
        figure(
            "machine",
            processor=platform.processor() or platform.machine(),
            cores=os.cpu_count(),
            load=[round(load, 2) for load in os.getloadavg()],
            date=datetime.now(UTC).date().isoformat(),
            clients=options.clients,
            core=options.core,
        )
        workers = [
            Worker(s, sys.executable if s == "tacit" else options.peer_python, folder, options.core) for s in systems
        ]
        compare(workers, options.pairs, folder)
        for worker in workers:
            worker.close()


if __name__ == "__main__":
    main()
