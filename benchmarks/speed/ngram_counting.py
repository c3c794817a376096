"""Kneser-Ney n-grams of order 5 on five million words take seconds and less than a gigabyte.

Each line is a process of its own: CPU-seconds of counting, of packing into a file's tables, and the peak of its memory
above what it held before. The text is made up: words of Zipf's frequencies in sentences of 12, each of which depends on
the two before it through a public hash, half of the time. It has more different n-grams than people's text.

    python benchmarks/speed/ngram_counting.py
    ... --cache caches/public5k     the words of a cache in place of made-up ones
    ... --words 1000000 --vocabulary 10000 --order 5    one line
    ... --peer PYTHON    beside knlm, as an interpreter that has it counts the same file
    ... --smoke          whether it works
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tacit.text.vocabulary import BOS, EOS, SPECIALS

SENTENCE = 12  # words
PEER = """
import json, resource, sys, time
import knlm
order, path = int(sys.argv[1]), sys.argv[2]
lines = [line.split() for line in open(path)]
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.process_time()
model = knlm.KneserNey(order, 4)
for line in lines:
    model.train(line)
model.optimize()
seconds = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
print(json.dumps({"counting": seconds, "packing": 0.0, "megabytes": peak / 1e3, "n-grams": 0}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=5_000_000)
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[5_000, 10_000])
    parser.add_argument("--order", type=int, nargs="+", default=[4, 5])
    parser.add_argument("--cache", type=Path, help="a cache of text, with its own vocabulary")
    parser.add_argument("--peer", help="a Python interpreter that has knlm")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.smoke:
        asked.words, asked.vocabulary, asked.order = 20_000, [500], [3]
    if asked.alone:
        print(json.dumps(measured(asked.words, asked.vocabulary[0], asked.order[0], asked.cache)))
        return
    print(
        f"{'words':>10} {'vocabulary':>10} {'order':>5} {'':8} {'counting':>9} {'packing':>8} {'MB':>6} {'n-grams':>11}"
    )
    for vocabulary in asked.vocabulary[: 1 if asked.cache else None]:
        for order in asked.order:
            own = [sys.executable, __file__, "--alone", f"--words={asked.words}", f"--vocabulary={vocabulary}"]
            own += [f"--order={order}", *([f"--cache={asked.cache}"] if asked.cache else [])]
            say(asked.words, vocabulary, order, "tacit", own)
            if asked.peer:
                with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
                    written(file.name, text(asked.words, vocabulary, asked.cache)[0])
                    say(asked.words, vocabulary, order, "knlm", [asked.peer, "-c", PEER, str(order), file.name])


def say(words: int, vocabulary: int, order: int, who: str, command: list[str]) -> None:
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    times = f"{found['counting']:8.1f}s {found['packing']:7.1f}s {found['megabytes']:6.0f} {found['n-grams']:11,}"
    print(f"{words:10,} {vocabulary:10,} {order:5} {who:8} {times}", flush=True)


def measured(words: int, vocabulary: int, order: int, cache: Path | None) -> dict[str, float]:
    from tacit.networks.ngram.kneser_ney import kneser_ney
    from tacit.networks.ngram.tables import NGramTables

    ids, size = text(words, vocabulary, cache)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    model = kneser_ney(ids, vocabulary=size, order=order, cutoffs=(1,) * (order - 1))
    counted = time.process_time()
    tables = NGramTables.packed(model)
    return {
        "counting": counted - began,
        "packing": time.process_time() - counted,
        "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) / 1e3,
        "n-grams": sum(len(level.words) for level in tables.levels),
    }


def text(words: int, vocabulary: int, cache: Path | None) -> tuple[np.ndarray, int]:
    """(ids of sentences one after another, how many ids there are)."""
    if cache is not None:
        from tacit.data import Cache
        from tacit.evaluation.trigram import text_of

        opened = Cache.open(cache)
        return text_of(opened, opened.clients("train"), words), opened.manifest.vocabulary.size
    random, sentences = np.random.default_rng(1), words // SENTENCE
    zipf = 1.0 / np.arange(1, vocabulary + 1)
    drawn = random.choice(vocabulary, (sentences, SENTENCE), p=zipf / zipf.sum())
    follows = random.random((sentences, SENTENCE)) < 0.5
    for at in range(2, SENTENCE):
        after = (drawn[:, at - 1] * 7919 + drawn[:, at - 2] * 104_729) % 997
        drawn[:, at] = np.where(follows[:, at], after % vocabulary, drawn[:, at])
    ids = np.full((sentences, SENTENCE + 2), EOS, np.int64)
    ids[:, 0], ids[:, 1:-1] = BOS, drawn + SPECIALS
    return ids.ravel(), vocabulary + SPECIALS


def written(path: str, ids: np.ndarray) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for sentence in np.split(ids, np.flatnonzero(ids == BOS))[1:]:
            file.write(" ".join(f"w{each}" for each in sentence[1:-1]) + "\n")


if __name__ == "__main__":
    main()
