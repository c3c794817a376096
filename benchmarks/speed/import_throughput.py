"""Twenty million words import in under 90 seconds and 1.5 GB on two cores.

Makes a Parquet file of synthetic clients (words drawn from a Zipf law, sentences of about 12 words),
imports it in a fresh process as `tacit data import` does, and prints one JSON line: words per second
(the counting of the vocabulary included) and peak memory. `--parquet FILE --public FILE` measures real
text instead.
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
import pyarrow as pa
import pyarrow.parquet as pq

WORDS_PER_CLIENT = 3_000  # as in a corpus of blogs
LEXICON = 200_000
ZIPF = 1.1  # about the exponent of English, and about its share of words outside the first 10,000


def write_synthetic(folder: Path, words: int) -> tuple[Path, Path]:
    """Clients' text and public text of half the size, in files with one row of 300 words each."""
    generator = np.random.default_rng(0)
    letters = generator.choice(list("abcdefghijklmnopqrstuvwxyz"), (LEXICON, 12))
    lengths = 2 + (np.log2(np.arange(1, LEXICON + 1)) / 2).astype(int)  # frequent words are short
    lexicon = np.array(["".join(row[:length]) for row, length in zip(letters, lengths, strict=True)], object)
    weights = np.arange(1, LEXICON + 1) ** -ZIPF
    clients, public = folder / "clients.parquet", folder / "public.parquet"
    for path, count, owned in ((clients, words, True), (public, words // 2, False)):
        columns = {"text": pa.string()} | ({"client_id": pa.string()} if owned else {})
        with pq.ParquetWriter(path, pa.schema(list(columns.items()))) as writer:
            for client in range(count // WORDS_PER_CLIENT):
                drawn = lexicon[generator.choice(LEXICON, WORDS_PER_CLIENT, p=weights / weights.sum())]
                drawn[11::12] += "."
                texts = [" ".join(drawn[at : at + 300]) for at in range(0, WORDS_PER_CLIENT, 300)]
                named = {"client_id": [f"c{client}"] * len(texts)} if owned else {}
                writer.write_table(pa.table({"text": texts} | named))
    return clients, public


def measure(clients: str, public: list[str], folder: Path) -> dict[str, object]:
    """One import in a fresh process."""
    origins = [argument for path in public for argument in ("--vocabulary-from", path)]
    out = str(folder / "cache")
    command = [sys.executable, "-m", "tacit", "data", "import", clients, "--out", out, *origins, "--json"]
    begin = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    facts = json.loads(done.stdout)
    return {
        "benchmark": "import_throughput",
        "words": facts["words"],
        "clients": facts["clients"],
        "oov_rate": round(facts["oov_rate"], 4),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "words_per_second": round(facts["words"] / seconds),
        "peak_megabytes": round(used.ru_maxrss / 1024),
        "cache_bytes": facts["bytes"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million-words", type=float, default=20.0, help="size of the synthetic text")
    parser.add_argument("--parquet", help="clients' text (a file or a prefix) instead of synthetic text")
    parser.add_argument("--public", action="append", default=[], help="public text for the vocabulary; repeatable")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.parquet:
            clients, public = arguments.parquet, arguments.public
        else:
            paths = write_synthetic(folder, int(arguments.million_words * 1e6))
            clients, public = str(paths[0]), [str(paths[1])]
        print(json.dumps(measure(clients, public, folder)))


if __name__ == "__main__":
    main()
