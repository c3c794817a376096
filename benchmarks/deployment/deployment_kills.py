"""A thousand kills of all that a server of real devices is made of: no round is released twice, or below its goal.

Runs of 20 rounds each, by `tacit serve` with two workers and 200 devices on real sockets: on PostgreSQL in the clear,
on PostgreSQL sealed by three decryptors, on SQLite in the clear, in turn. At random moments one of these is ended with
SIGKILL and begun again: the server, a worker, the coordinator, a decryptor; or one of PostgreSQL's connections is
terminated, or PostgreSQL itself stopped as if it was killed, and started. After each run is checked: every round
released once, none below its goal, one model a round in the eyes of all devices, nobody in two rounds that are too
near or paying twice for one, the ledger equal to what devices saw, the statement verified.

    ... --log kills.jsonl --kills 1000  an hour or two; the same command goes on
    python benchmarks/deployment/deployment_kills.py --log kills.jsonl --minutes 12     as many as fit
    python benchmarks/deployment/deployment_kills.py --log kills.jsonl --kills 0        only the table

The log has a line for each run that ended, with its seed; a run that a breach ended is kept in a folder that is named.
"""

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the servers that are killed are those of the tests

from tests.support.server.killed_servers import ROUNDS, Played
from tests.support.server.stores import MEMORY, PostgreSQL, postgresql, postgresql_programs

KINDS = ("PostgreSQL", "PostgreSQL, sealed", "SQLite")
MOST = 40  # kills in one run: it has to end
WAIT = (0.2, 2.5)  # seconds between two of them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True, help="what was done, a line a run; gone on with")
    parser.add_argument("--kills", type=int, default=1000, help="how many in all, of runs before included")
    parser.add_argument("--minutes", type=float, default=None, help="begin no run after so long")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.log.read_text().splitlines()] if given.log.exists() else []
    began = time.monotonic()
    with server() as database:
        while sum(row["killed"] for row in rows) < given.kills:
            if given.minutes is not None and time.monotonic() - began > 60 * given.minutes:
                break
            row = one_run(len(rows), sum(row["killed"] for row in rows), given.kills, database)
            rows.append(row)
            with given.log.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(table(rows))


@contextmanager
def server() -> Iterator[PostgreSQL | None]:
    """One in a folder of its own; None where no PostgreSQL is installed: all runs are on SQLite then."""
    programs = postgresql_programs()
    if programs is None:
        print("PostgreSQL is not installed; all runs are on SQLite", file=sys.stderr)
        yield None
        return
    with postgresql(programs) as found:
        yield found


def one_run(seed: int, before: int, wanted: int, database: PostgreSQL | None) -> dict[str, Any]:
    """What the log has of it. Raises: AssertionError where something did not hold; its folder is left then."""
    kind = KINDS[seed % len(KINDS)] if database is not None else KINDS[2]
    folder = Path(mkdtemp(prefix=f"tacit-kills-{seed}-", dir=MEMORY if MEMORY.is_dir() else None))
    sealed, uses = kind.endswith("sealed"), None if kind == KINDS[2] else database
    played = Played(folder, seed, sealed=sealed, database=uses)
    print(f"run {seed} ({kind}) in {folder}", file=sys.stderr, flush=True)

    def told(what: str) -> None:
        print(f"\r{before + played.kills.total()} of {wanted} kills: {what:12}", end="", file=sys.stderr, flush=True)

    played.play(most=min(MOST, max(1, wanted - before)), wait=WAIT, told=told)
    shutil.rmtree(folder)
    kills = played.kills
    print(
        f"\rrun {seed}: {kills.total()} kills in {played.seconds:.0f} s, all checks hold", file=sys.stderr, flush=True
    )
    return {
        "seed": seed,
        "kind": kind,
        "killed": kills.total(),
        "kills": dict(kills),
        "released": ROUNDS,
        "abandoned": played.abandoned,
        "seconds": round(played.seconds, 1),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """What was killed how often in runs of each kind, and what became of their rounds."""
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    killed: Counter[tuple[str, str]] = Counter()
    for row in rows:
        killed.update({(what, row["kind"]): count for what, count in row["kills"].items()})
    lines = ["| | " + " | ".join([*kinds, "all"]) + " |", "|---" + "|--:" * (len(kinds) + 1) + "|"]

    def line(name: str, counts: list[int]) -> None:
        lines.append(f"| {name} | " + " | ".join(f"{count:,}" for count in [*counts, sum(counts)]) + " |")

    for what in ("server", "worker", "coordinator", "decryptor", "connection", "database"):
        line(f"{what} killed", [killed[what, kind] for kind in kinds])
    for name, key in (
        ("kills", "killed"),
        ("rounds released, each once", "released"),
        ("attempts abandoned", "abandoned"),
    ):
        line(name, [sum(row[key] for row in rows if row["kind"] == kind) for kind in kinds])
    line("runs whose checks all hold", [sum(row["kind"] == kind for row in rows) for kind in kinds])
    line("seconds", [round(sum(row["seconds"] for row in rows if row["kind"] == kind)) for kind in kinds])
    return "\n".join(lines)


if __name__ == "__main__":
    main()
