"""Fine-tuning nine strategies on a client costs little more than its arithmetic, and far less than padded batches do.

The grid of paper 5 (batches of 5, 10, 20 sentences; rates 0.01, 0.1, 1.0; one epoch) on clients of about 3,000 tokens
with the tied network of 1.4 M parameters: split by time, test, fine-tune, test again. Figures are CPU time of one
worker. Its floor is the arithmetic of the words that are really there, at the speed of a large product of matrices on
one core, measured between the rounds of the same run.

naive   the same strategies over the same sentences, written as one would first: one compiled call for each batch (a
        step by `cifg_loss.loss`, or `metrics.count`), every sentence padded to the longest allowed. It is
        timed on one learning rate, whose value costs nothing, in turns with tacit on the same strategies and client.

    python benchmarks/speed/personalization_throughput.py  text drawn at random, lengths as in web logs
    python benchmarks/speed/personalization_throughput.py --cache PATH         test clients of a cache of 10,000 words
    python benchmarks/speed/personalization_throughput.py --clients 1 --pairs 1    a smoke test

Prints one JSON line per figure. Run it on an otherwise idle machine; ten clients and five pairs take some minutes.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before NumPy: the peak and the work are one core's
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = str(os.cpu_count())
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from tacit.compute import Hardware  # noqa: E402
from tacit.compute.cores import Cores  # noqa: E402
from tacit.data import Cache, ClientText, VocabularyRecord, build_cache  # noqa: E402
from tacit.data.splits import Parts  # noqa: E402
from tacit.evaluation.personalize.outcomes import (  # noqa: E402
    WORDS,
    ClientOutcome,
    FineTuning,
    TemporalSplit,
    personalize_client,
)
from tacit.evaluation.personalize.population import personalize_clients  # noqa: E402
from tacit.networks.cifg.loss import loss  # noqa: E402
from tacit.networks.cifg.network import Cifg, CifgParameters  # noqa: E402
from tacit.networks.language_model import count  # noqa: E402
from tacit.networks.metrics import Counts  # noqa: E402
from tacit.networks.on_device import HeldModel, SgdStep, held  # noqa: E402
from tacit.text.vocabulary import BOS, EOS, OOV, PAD, SPECIALS  # noqa: E402

NETWORK = Cifg(tied=True)
BATCHES, RATES = (5, 10, 20), (0.01, 0.1, 1.0)
GRID = [FineTuning(batch_size=size, learning_rate=rate) for size in BATCHES for rate in RATES]
ONE_RATE = [FineTuning(batch_size=size) for size in BATCHES]
CACHE = [FineTuning(epochs=0, bigram=0.1)]
SPLIT = TemporalSplit()
POPULATION = 5_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, help="clients of its test split; text drawn at random without")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=5, help="clients that the naive loop runs, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache.open(options.cache) if options.cache else drawn(Path(folder) / "cache", options.clients)
        clients = [int(client) for client in cache.clients("test")[: options.clients]]
        measure(cache, clients, options.pairs)


def measure(cache: Cache, clients: list[int], pairs: int) -> None:
    model = NETWORK.init(jax.random.key(0))
    start, grid, one_rate, alone = held(NETWORK, model), steps(GRID), steps(ONE_RATE), steps(CACHE)
    personalize_client(start, cache, clients[0], one_rate, SPLIT, WORDS)  # compiles

    peaks, seconds, work, tokens, outcomes = [peak()], 0.0, 0.0, 0, []
    for client in clients:
        took, outcome = timed(partial(personalize_client, start, cache, client, grid, SPLIT, WORDS))
        if not isinstance(outcome, ClientOutcome):
            continue
        seconds += took
        work += arithmetic(outcome, GRID)
        tokens += sum(outcome.tokens_seen)
        outcomes.append(outcome)
        peaks.append(peak())
    each = seconds / (len(outcomes) * len(GRID))
    fastest = max(peaks)
    show("peak", "float32 product of 1,024 x 1,024 matrices, one core", gflops=fastest / 1e9)
    show(
        "tacit",
        "CPU-seconds of one strategy on one client, split, tests and a share of the global model's test included",
        cpu_seconds=each,
        clients=len(outcomes),
        tokens_trained_per_client_and_strategy=tokens / (len(outcomes) * len(GRID)),
        diverged=sum(sum(outcome.diverged) for outcome in outcomes),
    )
    show("floor", "arithmetic of the real words over the peak", share_of_peak=work / seconds / fastest)
    show(
        "population",
        f"CPU-hours of {len(GRID)} strategies on {POPULATION} such clients",
        hours=each * len(GRID) * POPULATION / 3600,
    )
    seconds = sum(
        timed(partial(personalize_client, start, cache, client, alone, SPLIT, WORDS))[0] for client in clients
    )
    show(
        "cache",
        "CPU-seconds of a cache of pairs of words on one client, without SGD, both tests included",
        cpu_seconds=seconds / len(clients),
    )
    scaling(model, cache, clients)
    against_naive(model, start, cache, clients[:pairs])


def steps(grid: list[FineTuning]) -> list[tuple[FineTuning, SgdStep]]:
    return [(how, how.step(NETWORK)) for how in grid]


def scaling(model: CifgParameters, cache: Cache, clients: list[int]) -> None:
    walls, outcomes = [], []
    for workers in (1, os.cpu_count() or 1):
        cores = Cores(Hardware(workers=workers))
        began = time.perf_counter()
        outcomes.append(personalize_clients(NETWORK, model, cache, clients, ONE_RATE, SPLIT, cores=cores))
        walls.append(time.perf_counter() - began)
    show(
        "workers",
        f"{os.cpu_count()} workers against one, wall clock",
        speedup=walls[0] / walls[1],
        same=outcomes[0] == outcomes[1],
    )


def against_naive(model: CifgParameters, start: HeldModel, cache: Cache, clients: list[int]) -> None:
    naive(model, cache, clients[0])  # compiles
    ratios, slow = [], []
    for client in clients:
        fast, _ = timed(partial(personalize_client, start, cache, client, steps(ONE_RATE), SPLIT, WORDS))
        took, _ = timed(partial(naive, model, cache, client))
        ratios.append(took / fast)
        slow.append(took / len(ONE_RATE))
    show(
        "naive", "CPU-seconds of one strategy on one client, padded, a call a batch", cpu_seconds=statistics.fmean(slow)
    )
    show(
        "ratio",
        "naive over tacit, median of pairs",
        ratio=statistics.median(ratios),
        least=min(ratios),
        most=max(ratios),
    )


# -- the naive loop --------------------------------------------------------------------------------------------------


@jax.jit
def naive_step(model: CifgParameters, batch: jax.Array, rate: jax.Array) -> CifgParameters:
    return jax.tree.map(lambda p, g: p - rate * g, model, jax.grad(loss)(model, batch))


naive_count = jax.jit(partial(count, NETWORK))


def naive(model: CifgParameters, cache: Cache, client: int) -> list[Any]:
    parts = SPLIT.parts(cache.timestamps(client))
    assert isinstance(parts, Parts)
    train = cache.padded(client, np.random.default_rng(client).permutation(parts.train), WORDS + 1)
    test = cache.padded(client, parts.test, WORDS + 1)

    def tested(model: CifgParameters) -> Any:
        return sum((naive_count(model, batch).host() for batch in padded(test, 20)), start=Counts())

    found = [tested(model)]
    for strategy in ONE_RATE:
        mine = model
        for batch in padded(train, strategy.batch_size):
            mine = naive_step(mine, batch, jnp.float32(strategy.learning_rate))
        found.append(tested(mine))
    return found


def padded(sentences: np.ndarray, size: int) -> Iterator[jax.Array]:
    """Batches of one shape: the last is filled up with empty sentences."""
    full = np.concatenate([sentences, np.zeros((-len(sentences) % size, sentences.shape[1]), np.int32)])
    return (jnp.asarray(full[at : at + size]) for at in range(0, len(full), size))


# -- what is measured ------------------------------------------------------------------------------------------------


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """(CPU-seconds of all threads, result)."""
    began = time.process_time()
    result = jax.block_until_ready(work())
    return time.process_time() - began, result


def peak() -> float:
    """Operations a second of a large product, the best of a few."""
    matrix = np.random.default_rng(0).random((1024, 1024), np.float32)
    matrix @ matrix
    return max(2 * 1024**3 / timed(lambda: matrix @ matrix)[0] for _ in range(5))


def arithmetic(outcome: ClientOutcome, grid: list[FineTuning]) -> float:
    """Multiplications and additions of the products that cannot be left out; exponentials and updates count nothing.

    A word forward is its gates (2E x 3H), its projection (H x E) and its scores (E x V); a word trained on costs three
    times that.
    """
    recurrent = 2 * (2 * NETWORK.embedding * 3 * NETWORK.units + NETWORK.units * NETWORK.embedding)
    scores = 2 * NETWORK.embedding * NETWORK.vocabulary
    test = outcome.test.baseline
    once = (test.words + test.ends) * (recurrent + scores)
    return (1 + len(grid)) * once + sum(outcome.tokens_seen) * 3 * (recurrent + scores)


def show(figure: str, what: str, **values: Any) -> None:
    rounded = {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in values.items()}
    print(
        json.dumps({"benchmark": "personalization_throughput", "figure": figure, "what": what, **rounded}), flush=True
    )


# -- text drawn at random --------------------------------------------------------------------------------------------


class Drawn:
    """Clients of about 190 sentences whose lengths are spread as in web logs: median 13, mean 16, a long tail."""

    description = "drawn at random"

    def __init__(self, clients: int) -> None:
        self.expected_clients = clients
        self.left_out: dict[str, int] = {}

    def clients(self) -> Iterator[ClientText]:
        random = np.random.default_rng(0)
        zipf = 1.0 / np.arange(1, NETWORK.vocabulary - SPECIALS + 1)
        for number in range(self.expected_clients):
            lengths = np.clip(random.lognormal(np.log(12.0), 0.7, 190), 1, WORDS - 1).astype(int)
            words = SPECIALS + random.choice(len(zipf), lengths.sum(), p=zipf / zipf.sum())
            words[random.random(len(words)) < 0.1] = OOV
            texts = [" ".join(map(str, sentence)) for sentence in np.split(words, np.cumsum(lengths)[:-1])]
            yield ClientText(client_id=str(number), texts=texts, timestamps=np.arange(len(texts)), split="test")


class Encoded:
    """What a tokenizer gives, of texts that are ids already."""

    def __init__(self, texts: Sequence[str]) -> None:
        rows = [[BOS, *map(int, text.split()), EOS] for text in texts]
        self.ids = np.array([id for row in rows for id in row], np.int32)
        self.lengths = np.array([len(row) for row in rows], np.int32)
        self.text_of = np.arange(len(rows), dtype=np.int32)
        assert PAD not in self.ids


def drawn(path: Path, clients: int) -> Cache:
    record = VocabularyRecord(
        size=NETWORK.vocabulary, sha256="0" * 64, lowercase=False, kind="word list", description="drawn", oov_id=OOV
    )
    return build_cache(Drawn(clients), Encoded, path, vocabulary=record, vocabulary_json="{}", tokenizer="ids")


if __name__ == "__main__":
    main()
