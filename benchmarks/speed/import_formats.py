"""A million clients whose rows stand anywhere in a file are imported in bounded memory, whatever the format.

Writes the same rows as JSON Lines, CSV, SQLite, Parquet and Arrow: `--rows` texts of twelve words for each of
`--clients` clients, no two texts of one client beside each other. Imports each in a fresh process, as `tacit data
import` does, and prints one JSON line: seconds by the clock and of the processor, peak memory, and which processor it
is. All caches have to be the same.

    python benchmarks/speed/import_formats.py --clients 1e6

Needs 2 GB of disk in the temporary folder (TMPDIR). `--grouped` puts a client's rows together, which needs no sorting.
"""

import argparse
import csv
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WORDS = 12  # of a text
LEXICON = 5_000
AT_ONCE = 100_000
STRIDE = 7_919  # a prime: the next row is of a client far away
QUERY = "SELECT client_id, text, timestamp FROM typed ORDER BY rowid"
Rows = list[tuple[str, str, int]]


def rows_of(clients: int, each: int, *, grouped: bool) -> Iterator[Rows]:
    """The same rows each time, some at once."""
    draw = np.random.default_rng(0)
    lexicon = np.array([f"word{number}" for number in range(LEXICON)])
    for begin in range(0, clients * each, AT_ONCE):
        numbers = np.arange(begin, min(begin + AT_ONCE, clients * each))
        owners = numbers // each if grouped else numbers * STRIDE % clients
        words = lexicon[(LEXICON * draw.random((len(numbers), WORDS)) ** 3).astype(int)]
        texts = [" ".join(row) + "." for row in words]
        names = [f"client-{owner:07d}" for owner in owners]
        yield list(zip(names, texts, (1_700_000_000 + numbers).tolist(), strict=True))


def write(folder: Path, clients: int, each: int, *, grouped: bool) -> dict[str, str]:
    """Each format once; what it is called for an import."""
    columns = ["client_id", "text", "timestamp"]
    schema = pa.schema({"client_id": pa.string(), "text": pa.string(), "timestamp": pa.int64()})
    with (
        (folder / "a.jsonl").open("w") as lines,
        (folder / "a.csv").open("w", newline="") as table,
        pq.ParquetWriter(folder / "a.parquet", schema) as parquet,
        pa.ipc.new_file(folder / "a.arrow", schema) as arrow,
        closing(sqlite3.connect(folder / "a.sqlite")) as database,
        database,
    ):
        database.execute("CREATE TABLE typed (client_id TEXT, text TEXT, timestamp INTEGER)")
        fields = csv.writer(table)
        fields.writerow(columns)
        for rows in rows_of(clients, each, grouped=grouped):
            lines.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
            fields.writerows(rows)
            database.executemany("INSERT INTO typed VALUES (?, ?, ?)", rows)
            batch = pa.table({name: list(of) for name, of in zip(columns, zip(*rows, strict=True), strict=True)})
            parquet.write_table(batch.cast(schema))
            arrow.write_table(batch.cast(schema))
    (folder / "words.txt").write_text("\n".join(f"word{number}" for number in range(LEXICON)))
    files = {name: str(folder / f"a.{name}") for name in ("jsonl", "csv", "parquet", "arrow")}
    return files | {"sqlite": f"sqlite:{folder / 'a.sqlite'}?{QUERY}"}


def measure(name: str, source: str, folder: Path) -> tuple[dict[str, object], object]:
    """One import in a fresh process, and what it made."""
    out, words, said = (str(folder / each) for each in (f"{name}.cache", "words.txt", f"{name}.json"))
    command = [sys.executable, "-m", "tacit", "data", "import", source, "--out", out, "--word-list", words, "--json"]
    begin = time.perf_counter()
    with open(said, "wb") as printed:
        child = subprocess.Popen(command, stdout=printed)
        _, status, used = os.wait4(child.pid, 0)  # what this child alone used
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begin
    if child.returncode:
        raise SystemExit(f"{name} failed.")
    facts, manifest = json.loads(Path(said).read_text()), json.loads((Path(out) / "manifest.json").read_text())
    return {
        "format": name,
        "clients": facts["clients"],
        "words": facts["words"],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_megabytes": round(used.ru_maxrss / 1024),
    }, manifest["files"]


def processor() -> str:
    """What the system calls it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def main() -> None:
    """Write, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=float, default=1e6)
    parser.add_argument("--rows", type=int, default=3, help="texts of a client")
    parser.add_argument("--grouped", action="store_true", help="a client's rows stand together")
    parser.add_argument("--formats", default="jsonl,csv,sqlite,parquet,arrow")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, made = Path(name), None
        sources = write(folder, int(arguments.clients), arguments.rows, grouped=arguments.grouped)
        for each in arguments.formats.split(","):
            figures, files = measure(each, sources[each], folder)
            print(json.dumps({"benchmark": "import_formats", **figures, "processor": processor()}), flush=True)
            if made not in (None, files):
                raise SystemExit(f"{each} gave another cache than the format before it.")
            made = files


if __name__ == "__main__":
    main()
