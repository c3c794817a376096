r"""Next words by public counts, private counts and a network: what each adds on held-out clients, and at which epsilon.

    python benchmarks/utility/next_word.py --cache caches/chat5k --ngram pb --runs runs/next-word \
        --network net64 --public caches/public5k

Every arm is counted once a noise seed and client by client into RUNS/NAME.json, so that a killed benchmark goes on
where it was; `--table` prints what is there. Differences are to the public n-gram, over the same clients; intervals are
95% of a paired bootstrap over clients. The norms of both sums are quantiles of the VALIDATION clients' norms, which is
not charged; nothing else looks at clients' text but the releases.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit.data import Cache
from tacit.evaluation.counts.device_part import StatisticSum
from tacit.evaluation.counts.statistics import TypedText
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.reader_accuracy import evaluate_reader
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.files import write_whole
from tacit.keyboard.phone_model import load_phone_model
from tacit.keyboard.suggest import Reader, Scores
from tacit.networks.metrics import TOP1

SENTENCES, LENGTH = 16, 20  # of each client that is evaluated
PAIRED_WORDS, UNIT = 1000, 16
DELTA = 1e-5
DRAWS = 2000
WITHOUT_NOISE = 1e9  # rho of zCDP: less than one unit of noise
OWN = 0.7  # of the clients' own n-gram in the ceiling, as the prototype tuned it on validation clients
MEASURES = (TOP1, "top3_accuracy", "cross_entropy")
BASE = "public n-gram"


class Both(NamedTuple):
    """Two readers, mixed; the first's weight is OWN. Only this benchmark has it: nothing private is in it."""

    first: Reader
    second: Reader

    def begin(self) -> tuple[Any, Any]:
        """See Reader."""
        return self.first.begin(), self.second.begin()

    def step(self, state: tuple[Any, Any], token: int) -> tuple[tuple[Any, Any], Scores]:
        """See Reader."""
        one, first = self.first.step(state[0], token)
        other, second = self.second.step(state[1], token)
        with np.errstate(divide="ignore"):
            mixed = np.log(OWN * np.exp(first) + (1 - OWN) * np.exp(second))
        return (one, other), mixed.astype(np.float32)


@dataclass(frozen=True)
class Arm:
    """A model that is measured once for each seed; an arm without noise has the seed 0 alone."""

    name: str
    epsilon: float | None = None  # of the counts; None: there are none
    network: bool = False
    seeds: int = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="clients' text, by the words of the n-gram model")
    parser.add_argument("--ngram", type=Path, required=True, help="what `tacit ngram` wrote of public text")
    parser.add_argument("--network", type=Path, help="a pre-training on that text; left out, no arm has a network")
    parser.add_argument("--public", type=Path, help="the cache whose validation part sets the network's weight")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quantile", type=float, default=0.25, help="of the validation clients' norms, to clip at")
    parser.add_argument("--clients", type=int, default=0, help="of the test split; 0 is all")
    parser.add_argument("--table", action="store_true", help="print what is there and measure nothing")
    asked = parser.parse_args()
    if asked.network is not None and asked.public is None:
        parser.error("--network needs --public, which sets its weight")
    asked.runs.mkdir(parents=True, exist_ok=True)
    if not asked.table:
        measure(asked)
    print("\n".join(table(asked)))


def arms(asked: argparse.Namespace) -> list[Arm]:
    found = [Arm(BASE)]
    networks = (False, True) if asked.network is not None else (False,)
    found += [Arm("public network"), Arm("n-gram + network", network=True)] if asked.network is not None else []
    for network in networks:
        beside = "n-gram and network bent, mixed" if network else "n-gram bent"
        found += [
            Arm(f"{beside}, epsilon {each:g}", epsilon=each, network=network, seeds=asked.seeds)
            for each in asked.epsilons
        ]
    return [
        *found,
        Arm("n-gram bent, counts without noise", epsilon=np.inf),
        Arm("the clients' own 4-gram + n-gram (ceiling, not private)"),
    ]


def each_seed(asked: argparse.Namespace) -> Iterator[tuple[Arm, int, Path]]:
    for arm in arms(asked):
        for seed in range(1, arm.seeds + 1):
            yield arm, seed, asked.runs / f"{arm.name.replace(' ', '-').replace(chr(39), '')}-{seed}.json"


def measure(asked: argparse.Namespace) -> None:
    cache = Cache.open(asked.cache)
    clients = cache.clients("test")[: asked.clients or None]
    held_out = HeldOut.read(cache, clients, sentences=SENTENCES, words=LENGTH)
    for arm, seed, path in each_seed(asked):
        if path.is_file():
            continue
        found = evaluate_reader(reader_of(asked, cache, arm, seed), held_out).clients
        rows = [[each.predicted, *(float(each.sums.get(name, 0)) for name in MEASURES)] for each in found]
        write_whole(path, json.dumps(rows).encode())
        print(
            f"{arm.name}, seed {seed}: {np.sum([row[1] for row in rows]) / np.sum([row[0] for row in rows]):.4f}",
            file=sys.stderr,
            flush=True,
        )


def reader_of(asked: argparse.Namespace, cache: Cache, arm: Arm, seed: int) -> Reader:
    if arm.name == BASE:
        return load_phone_model(asked.ngram).reader
    if arm.name == "public network":
        return load_phone_model(asked.network).reader
    if arm.epsilon is None and not arm.network:
        own = asked.runs / "own"
        tacit.ngram(cache, own, cutoffs=(1, 1, 1), declared_public=True)
        return Both(load_phone_model(own).reader, load_phone_model(asked.ngram).reader)
    out = asked.runs / f"mixture-{'counts' if arm.epsilon is None else f'{arm.epsilon:g}'}-{arm.network}-{seed}"
    counts = None if arm.epsilon is None else counted(asked, cache, arm.epsilon, seed)
    beside = {"network": asked.network, "public": asked.public} if arm.network else {}
    made = tacit.mix(asked.ngram, out, counts=counts, **beside)
    print(made, file=sys.stderr, flush=True)
    return load_phone_model(out).reader


def counted(asked: argparse.Namespace, cache: Cache, epsilon: float, seed: int) -> Path:
    out = asked.runs / f"counts-{epsilon:g}-{seed}"
    cost = ReleaseCost(zcdp=WITHOUT_NOISE) if np.isinf(epsilon) else ReleaseCost(epsilon=epsilon, delta=DELTA)
    tacit.count(
        cache,
        out,
        settings=CountSettings(sums=sums(asked, cache), split_name="train"),
        release=cost,
        seed=seed,
    )
    return out


def sums(asked: argparse.Namespace, cache: Cache) -> tuple[StatisticSum, StatisticSum]:
    """Words and pairs, each clipped at a quantile; units that give both the same part of the clip norm."""
    many = cache.manifest.vocabulary.size - 4
    of = partial(StatisticSum, norm=1.0)
    whole = (of(statistic="word_counts", words=many), of(statistic="word_pairs", words=min(many, PAIRED_WORDS)))
    norms = [
        [float(np.linalg.norm(each.counted(TypedText.from_cache(cache, int(client)))[1])) for each in whole]
        for client in cache.clients("validation")
    ]
    words, pairs = np.quantile(norms, asked.quantile, axis=0).tolist()
    units = (UNIT, round(UNIT * words / pairs))
    norms_of = (round(words, 1), round(pairs, 1))
    return tuple(  # type: ignore[return-value]
        StatisticSum(statistic=each.statistic, words=each.words, norm=norm, unit=unit)
        for each, norm, unit in zip(whole, norms_of, units, strict=True)
    )


Rows = NDArray[np.float64]  # (clients, 1 + MEASURES): predicted words, and the sum of each measure


def of_arm(asked: argparse.Namespace, arm: Arm) -> tuple[Rows, int] | None:
    """The mean over its seeds, and how many there are."""
    paths = [path for other, _, path in each_seed(asked) if other == arm and path.is_file()]
    if not paths:
        return None
    return np.mean([json.loads(path.read_bytes()) for path in paths], axis=0), len(paths)


def intervals(rows: Rows, base: Rows) -> list[tuple[float, float, float]]:
    """Of each measure the mean over words less the base's, and its 95% interval over clients."""
    random = np.random.default_rng(0)
    drawn = random.integers(0, len(rows), (DRAWS, len(rows)))
    times = np.stack([np.bincount(each, minlength=len(rows)) for each in drawn])
    difference, words = rows[:, 1:] - base[:, 1:], rows[:, 0]
    values = (times @ difference) / (times @ words)[:, None]
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    mean = difference.sum(axis=0) / words.sum()
    return list(zip(mean.tolist(), low.tolist(), high.tolist(), strict=True))


def table(asked: argparse.Namespace) -> list[str]:
    head = ("model", "seeds", "top-1, %", "top-3, %", "nats", "less the public n-gram: top-1", "top-3", "nats")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    base = of_arm(asked, Arm(BASE))
    for arm in arms(asked):
        if (found := of_arm(asked, arm)) is None:
            continue
        rows, seeds = found
        top1, top3, nats = (rows[:, 1:].sum(axis=0) / rows[:, 0].sum()).tolist()
        row = [arm.name, str(seeds), f"{100 * top1:.2f}", f"{100 * top3:.2f}", f"{nats:.3f}"]
        if base is not None and arm.name != BASE:
            for scale, digits, (mean, low, high) in zip(
                (100, 100, 1), (2, 2, 3), intervals(rows, base[0]), strict=True
            ):
                row.append(f"{scale * mean:+.{digits}f} ({scale * low:+.{digits}f} to {scale * high:+.{digits}f})")
        lines.append("| " + " | ".join([*row, *[""] * (len(head) - len(row))]) + " |")
    return lines


if __name__ == "__main__":
    main()
