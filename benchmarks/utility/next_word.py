r"""Next words by public counts, private counts and a network: what each adds on held-out clients, and at which epsilon.

    python benchmarks/utility/next_word.py --cache caches/chat5k --ngrams pb-forum pb-novels pb-docs --runs runs/chat \
        --network net64 --public caches/public5k

Every arm is counted once a noise seed and client by client into RUNS/NAME.json, so that a killed benchmark goes on
where it was; `--table` prints what is there. Differences are to the tuned public n-gram, over the same clients;
intervals are 95% of a paired bootstrap over clients. The tuned n-gram is the strongest baseline that we know: the
shares of its texts, and of a network beside it, are those under which VALIDATION clients' text is likeliest, which is
not charged. All arms with
an epsilon know of clients what was released alone: the sums follow from public text, the shares from the counts.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from remembered_rows import remember_row

import tacit
from tacit.data import Cache
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.reader_accuracy import evaluate_reader, nats_of
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.files import write_whole
from tacit.keyboard.mixture import MixtureReader
from tacit.keyboard.phone_model import load_phone_model
from tacit.keyboard.suggest import Reader, Scores
from tacit.networks.metrics import TOP1
from tacit.networks.model_files import read_files
from tacit.networks.ngram.kneser_ney import likeliest_weight
from tacit.networks.ngram.merge import likeliest_shares, merged
from tacit.networks.ngram.reader import NGramReader, ngram_reader
from tacit.networks.ngram.tables import NGramTables
from tacit.planning.counts import sums_for

SENTENCES, LENGTH = 16, 20  # of each client that is evaluated
VALIDATION = 200  # clients by which the baseline is tuned
MOST_BYTES = 8_000_000  # of the n-grams of every arm
DELTA = 1e-5
DRAWS = 2000
WITHOUT_NOISE = 1e9  # rho of zCDP: less than one unit of noise
OWN = 0.7  # of the clients' own n-gram in the ceiling, as the prototype tuned it on validation clients
MEASURES = (TOP1, "top3_accuracy", "cross_entropy")
BASE = "public n-gram, tuned"
PUBLIC = "public n-gram, texts by their length"
FEWER = "public n-gram of fewer texts, tuned"
SHORT = ("top1", "top3", "nats")  # MEASURES, in remembered rows
LESS = {"ngram": BASE, "free": "tuned n-gram + public network", "fewer": FEWER}  # what remembered differences are to


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
    network: str | None = None  # the public one, or the one that was trained on clients' text
    seeds: int = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="clients' text, by the words of the n-gram model")
    parser.add_argument("--ngrams", type=Path, nargs="+", required=True, help="what `tacit ngram` wrote of each text")
    parser.add_argument("--fewer", type=Path, nargs="+", help="some of them, for an n-gram of these alone")
    parser.add_argument("--network", type=Path, help="a pre-training on that text; left out, no arm has a network")
    parser.add_argument("--public", type=Path, required=True, help="public text: it sets sums and the network's weight")
    parser.add_argument("--private", type=Path, help="a finished run of `tacit train` on these clients")
    parser.add_argument("--weight", type=float, help="of both networks, in place of what public text says")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=0, help="of the test split; 0 is all")
    parser.add_argument("--less", default=BASE, help="the model that differences are to")
    parser.add_argument("--table", action="store_true", help="print what is there and measure nothing")
    parser.add_argument("--remember", nargs=2, metavar=("FILE", "EXPERIMENT"), help="what is there, in remembered/FILE")
    asked = parser.parse_args()
    asked.runs.mkdir(parents=True, exist_ok=True)
    if not asked.table:
        measure(asked)
    if asked.remember:
        remember(asked, *asked.remember)
    print("\n".join(table(asked)))


def arms(asked: argparse.Namespace) -> list[Arm]:
    found = [Arm(BASE), Arm(PUBLIC), *([Arm(FEWER)] if asked.fewer else [])]
    networks: list[str | None] = [None]
    for name in ("public", "private"):
        if getattr(asked, "network" if name == "public" else "private") is not None:
            networks.append(name)
            found += [Arm(f"{name} network"), Arm(f"tuned n-gram + {name} network", network=name)]
    for network in networks:
        beside = "n-gram bent" if network is None else f"n-gram bent + {network} network"
        found += [
            Arm(f"{beside}, counts of epsilon {each:g}", epsilon=each, network=network, seeds=asked.seeds)
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
    if arm.epsilon is None:
        return reader_without_counts(asked, cache, arm)
    out = asked.runs / f"mixture-{arm.epsilon:g}-{arm.network}-{seed}"
    counts, beside = counted(asked, cache, arm.epsilon, seed), {}
    if arm.network is not None:
        beside = {"network": network_of(asked, arm.network), **weight_of(asked)}
    made = tacit.mix(asked.ngrams, out, counts=counts, **beside)
    print(made, file=sys.stderr, flush=True)
    return load_phone_model(out).reader


def reader_without_counts(asked: argparse.Namespace, cache: Cache, arm: Arm) -> Reader:
    if arm.name.endswith("network") and arm.network is None:
        return load_phone_model(network_of(asked, arm.name.split()[0])).reader
    if arm.name == PUBLIC:
        every = texts(asked.ngrams)
        return NGramReader(of_texts(every, [float(each.counted[0]) for each in every]))
    tuned = tuned_ngram(asked, cache, asked.fewer if arm.name == FEWER else asked.ngrams)
    if arm.network is not None:
        network = load_phone_model(network_of(asked, arm.network)).reader
        held_out = HeldOut.read(cache, cache.clients("validation")[:VALIDATION], sentences=SENTENCES, words=LENGTH)
        weight = likeliest_weight(*(np.exp(-nats_of(each, held_out)) for each in (NGramReader(tuned), network)))
        return MixtureReader(tuned, None, network, weight=weight)
    if arm.name in (BASE, FEWER):
        return NGramReader(tuned)
    own = asked.runs / "own"
    tacit.ngram(cache, own, cutoffs=(1, 1, 1), declared_public=True)
    return Both(load_phone_model(own).reader, NGramReader(tuned))


def network_of(asked: argparse.Namespace, name: str) -> Path:
    found: Path = asked.network if name == "public" else asked.private
    return found


def weight_of(asked: argparse.Namespace) -> dict[str, Any]:
    return {"public": asked.public} if asked.weight is None else {"weight": asked.weight}


def texts(folders: list[Path]) -> list[NGramTables]:
    return [ngram_reader(read_files(each)).tables for each in folders]


def of_texts(every: list[NGramTables], shares: list[float]) -> NGramTables:
    kept = [(each, share / sum(shares)) for each, share in zip(every, shares, strict=True) if share > 0]
    return merged([each for each, _ in kept], [share for _, share in kept], most_bytes=MOST_BYTES)


def tuned_ngram(asked: argparse.Namespace, cache: Cache, folders: list[Path]) -> NGramTables:
    """Of the shares under which validation clients' text is likeliest, by the models of the single texts; RUNS keeps
    them.
    """
    path, every = asked.runs / f"tuned-{len(folders)}.txt", texts(folders)
    if not path.is_file():
        held_out = HeldOut.read(cache, cache.clients("validation")[:VALIDATION], sentences=SENTENCES, words=LENGTH)
        of_each = np.stack([np.exp(-nats_of(NGramReader(each), held_out)) for each in every])
        shares = likeliest_shares(of_each, np.ones(of_each.shape[1]))
        write_whole(path, " ".join(map(str, np.where(shares < 0.01, 0, shares).tolist())).encode())
    return of_texts(every, [float(each) for each in path.read_text().split()])


def counted(asked: argparse.Namespace, cache: Cache, epsilon: float, seed: int) -> Path:
    out = asked.runs / f"counts-{epsilon:g}-{seed}"
    cost = ReleaseCost(zcdp=WITHOUT_NOISE) if np.isinf(epsilon) else ReleaseCost(epsilon=epsilon, delta=DELTA)
    if not (out / "report").is_dir():
        clients = len(cache.clients("train"))
        settings = CountSettings(
            sums=sums_for(Cache.open(asked.public), clients=clients, rho=cost.rho), split_name="train"
        )
        tacit.count(cache, out, settings=settings, release=cost, seed=seed)
    return out


Rows = NDArray[np.float64]  # (clients, 1 + MEASURES): predicted words, and the sum of each measure


def of_arm(asked: argparse.Namespace, arm: Arm) -> tuple[Rows, int] | None:
    """The mean over its seeds, and how many there are."""
    paths = [path for other, _, path in each_seed(asked) if other == arm and path.is_file()]
    if not paths:
        return None
    return np.mean([json.loads(path.read_bytes()) for path in paths], axis=0), len(paths)


def remember(asked: argparse.Namespace, file: str, experiment: str) -> None:
    """The totals of each arm and seed, and each arm less those of LESS that are there: means and intervals."""
    for arm, seed, path in each_seed(asked):
        if path.is_file():
            rows = np.array(json.loads(path.read_bytes()))
            values = (rows[:, 1:].sum(axis=0) / rows[:, 0].sum()).tolist()
            remember_row(file, experiment, arm.name, seed, dict(zip(SHORT, values, strict=True)))
    found = {arm.name: each[0] for arm in arms(asked) if (each := of_arm(asked, arm)) is not None}
    bases = {name: base for name, base in LESS.items() if base in found}
    for this in found:
        facts = {
            f"{short}_less_{other}": apart
            for other, base in bases.items()
            if this != base
            for short, apart in zip(SHORT, intervals(found[this], found[base]), strict=True)
        }
        remember_row(file, experiment, this, None, facts)


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
    head = ("model", "seeds", "top-1, %", "top-3, %", "nats", f"less the {asked.less}: top-1", "top-3", "nats")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    named = {arm.name: arm for arm in arms(asked)}
    base = of_arm(asked, named[asked.less]) if asked.less in named else None
    for arm in arms(asked):
        if (found := of_arm(asked, arm)) is None:
            continue
        rows, seeds = found
        top1, top3, nats = (rows[:, 1:].sum(axis=0) / rows[:, 0].sum()).tolist()
        row = [arm.name, str(seeds), f"{100 * top1:.2f}", f"{100 * top3:.2f}", f"{nats:.3f}"]
        if base is not None and arm.name != asked.less:
            for scale, digits, (mean, low, high) in zip(
                (100, 100, 1), (2, 2, 3), intervals(rows, base[0]), strict=True
            ):
                row.append(f"{scale * mean:+.{digits}f} ({scale * low:+.{digits}f} to {scale * high:+.{digits}f})")
        lines.append("| " + " | ".join([*row, *[""] * (len(head) - len(row))]) + " |")
    return lines


if __name__ == "__main__":
    main()
