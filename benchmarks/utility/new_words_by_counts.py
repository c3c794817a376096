"""From how many typists on a new word is found where candidates are counted behind a sealed sum, with central noise.

    python benchmarks/utility/new_words_by_counts.py --data DATA

made      1.6 million made users with one word each, as in `word_discovery.py --only multiplicities`, where a trie of
          local reports finds no word of 160 typists or fewer. Candidates are its words, and as many that nobody typed
corpora   the training clients of blogs-en and chat-en, each once, and what they typed beyond the 5,000 most frequent
          words of public text. Candidates are the next 45,000 words of that text: a public list

The list, a client's part of the sum, the noise and the threshold are the product's: `tacit vocab candidates`, `tacit
count --cells`, `tacit vocab extend`. Delta is 1e-6 for the made users, 1e-5 for the corpora. Prints one JSON line for
each population, epsilon and seed; `--table FILES` prints what such lines say, over the seeds: the share of words of so
many typists that was found, with a 95% Wilson interval. Only counts are printed, no word.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data import open_source
from tacit.data.parquet import read_texts
from tacit.data.unknown_words import TypedWords, read_typed_words
from tacit.evaluation.counts.release import guarantee_within
from tacit.federation.report_layout import clipped
from tacit.jobs.count.new_words import threshold
from tacit.mechanisms import add_independent_noise
from tacit.planning.counts import FINENESS
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.text.counted_words import count_words, most_frequent
from tacit.text.vocabulary import SPECIALS, Provenance

IntArray = NDArray[np.int64]
PUBLIC = ("public-forum-en.parquet", "public-novels-en.parquet")
CORPORA = ("blogs-en", "chat-en")
KNOWN, LISTED = 5_000, 50_000  # words that the vocabulary has, and with the candidates
HOLDERS = (1, 2, 3, 5, 7, 10, 14, 19, 20, 28, 40, 80, 160, 320, 640, 1280)  # buckets of typists begin here
USERS = 1_600_000
TYPISTS = (1, 5, 10, 19, 20, 40, 80, 160, 320, 640, 1280)  # of the made words, as word_discovery.py has them
MADE = {each: min(1_000, USERS // (4 * len(TYPISTS) * each)) for each in TYPISTS}  # words of each
WILSON = 1.959964
ORIGIN = Provenance(kind="public", description="public text")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of blogs-en, chat-en and the public text")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0, 8.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--words-each", type=int, default=1, help="candidates that a client counts in full")
    parser.add_argument("--table", type=Path, nargs="+", help="print a table of these files of lines")
    asked = parser.parse_args()
    if asked.table:
        rows = [json.loads(line) for file in asked.table for line in file.read_text().splitlines()]
        print("\n".join(table(rows)))
        return
    if asked.data is None:
        parser.error("--data is needed where anything is measured")
    for name, holders, sent, clients, delta in populations(asked.data, asked.words_each):
        for epsilon in asked.epsilons:
            for seed in asked.seeds:
                row = found(holders, sent, epsilon, delta, seed, asked.words_each)
                print(json.dumps({"population": name, "clients": clients, **row}), flush=True)


def populations(data: Path, words_each: int) -> Iterator[tuple[str, IntArray, IntArray, int, float]]:
    """(name, typists of each candidate (n,), the sum of what clients send (n,), clients, delta)."""
    unit = unit_of(words_each)
    holders = np.repeat(list(MADE), list(MADE.values()))
    holders = np.concatenate([holders, np.zeros_like(holders)])  # as many that nobody typed
    alone = int(clipped(np.array([unit]), float(FINENESS))[0])
    yield "made", holders, holders * alone, USERS, 1e-6
    counted = Counter[str]()
    for file in PUBLIC:
        counted.update(count_words(read_texts(data / file)))
    words = most_frequent(counted, size=LISTED + SPECIALS, provenance=ORIGIN).words
    known, listed = frozenset(words[:KNOWN]), {word: at for at, word in enumerate(words[KNOWN:])}
    for corpus in CORPORA:
        typed = read_typed_words(open_source(str(data / corpus)), count_words, known)
        yield corpus, *summed(typed, listed, unit), typed.clients, 1e-5


def summed(typed: TypedWords, listed: dict[str, int], unit: int) -> tuple[IntArray, IntArray]:
    """(typists of each candidate, the sum of what clients send): each candidate once a client, within the norm."""
    holders, sent = np.zeros(len(listed), np.int64), np.zeros(len(listed), np.int64)
    for client in range(typed.clients):
        own = np.array([listed[word] for word in typed.of(client) if word in listed], np.int64)
        holders[own] += 1
        sent[own] += clipped(np.full(len(own), unit), float(FINENESS))
    return holders, sent


def found(
    holders: IntArray, sent: IntArray, epsilon: float, delta: float, seed: int, words_each: int
) -> dict[str, Any]:
    guarantee = guarantee_within(float(FINENESS), zcdp=zcdp_for_epsilon(epsilon, delta))
    key = np.random.default_rng(seed).bytes(16)
    noised = np.rint(
        add_independent_noise(sent, stddev=guarantee.seed_stddev, key=key, purpose="evaluation histogram", round=0)
    )
    high = noised >= threshold(len(sent), guarantee.seed_stddev)
    buckets = {}
    for low, beyond in zip(HOLDERS, (*HOLDERS[1:], np.inf), strict=True):
        inside = (holders >= low) & (holders < beyond)
        if inside.any():
            buckets[str(low)] = [int(high[inside].sum()), int(inside.sum())]
    return {
        "epsilon": epsilon,
        "delta": delta,
        "seed": seed,
        "words_each": words_each,
        "candidates": len(sent),
        "stddev_typists": guarantee.seed_stddev / unit_of(words_each),
        "threshold_typists": threshold(len(sent), guarantee.seed_stddev) / unit_of(words_each),
        "found": buckets,
        "found_in_all": int(high.sum()),
        "nobody_typed": int((high & (holders == 0)).sum()),
    }


def unit_of(words_each: int) -> int:
    return int(FINENESS / words_each**0.5)


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for name in dict.fromkeys(row["population"] for row in rows):
        own = [row for row in rows if row["population"] == name]
        epsilons = sorted({row["epsilon"] for row in own})
        yield f"\n{name}: {own[0]['clients']:,} people, {own[0]['candidates']:,} candidates, {seeds_of(own)} seeds\n"
        yield "| typed by | words | " + " | ".join(f"epsilon {each:g}" for each in epsilons) + " |"
        yield "|---|--:|" + "---|" * len(epsilons)
        for low, (_, many) in own[0]["found"].items():
            shares = []
            for epsilon in epsilons:
                hits = [row["found"][low][0] for row in own if row["epsilon"] == epsilon]
                shares.append(wilson(sum(hits), many * len(hits)))
            yield f"| {low} | {many:,} | " + " | ".join(shares) + " |"
        ghosts = [sum(row["nobody_typed"] for row in own if row["epsilon"] == each) for each in epsilons]
        yield "| nobody, all seeds | | " + " | ".join(map(str, ghosts)) + " |"


def seeds_of(rows: Sequence[dict[str, Any]]) -> int:
    return len({row["seed"] for row in rows})


def wilson(hits: int, of: int) -> str:
    share, z = hits / of, WILSON
    middle, half = (
        (share + z * z / (2 * of)) / (1 + z * z / of),
        z * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5 / (1 + z * z / of),
    )
    return f"{share:.1%} ({max(0.0, middle - half):.1%} to {min(1.0, middle + half):.1%})"


if __name__ == "__main__":
    main()
