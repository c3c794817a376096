"""A store gives 500 devices a second their task on SQLite, and 1,000 on PostgreSQL: a transaction each, or together.

    python benchmarks/deployment/deployment_store.py [--devices 4000] [--threads 4]

Only the store's part: no HTTP, no signature, no model. PostgreSQL is begun in a folder of its own where its programs
are installed. One JSON line for each figure; CPU seconds are of this process, without the database server's.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests/deployment begins the PostgreSQL

from tests.support.server.stores import opened_round, postgresql, postgresql_programs, with_run

from tacit.server.store.assignments import (
    ArrivedReport,
    Assigned,
    ReportAnswer,
    assign,
    assign_all,
    receive,
    receive_all,
)
from tacit.server.store.store import Store

TOGETHER = 16  # devices of one transaction: what waits in a worker while another is on its way


def measured(what: str, database: str, threads: int, act: Callable[[int], object], times: int, each: int = 1) -> None:
    """Print what a second was done, where so many threads together `act` so often, of `each` every time."""
    began, used = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        assert all(pool.map(act, range(times)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    figure = {"what": what, "database": database, "threads": threads, "a_second": round(each * times / seconds)}
    print(json.dumps({**figure, "cpu_microseconds_each": round(1e6 * cpu / times / each)}), flush=True)


def measure(url: str, devices: int, threads: int) -> None:
    """Assignments, then reports received."""
    store = Store.open(url)
    found = opened_round(store, with_run(store, seconds=300), goal=devices, most=devices)
    given: list[Assigned] = []

    def assigned(_: int) -> bool:
        each = assign(store, found.task)
        if each is not None:
            given.append(each)
        return each is not None

    def received(number: int) -> bool:
        worker, body = f"{number % 2:032x}", f"{number:064x}"
        answer = receive(store, given[number].id, task=found.task, worker=worker, body_digest=body)
        return answer is ReportAnswer.RECEIVED

    database = url.partition(":")[0]
    measured("assignments", database, threads, assigned, devices)
    measured("reports received", database, threads, received, devices)
    more = opened_round(store, with_run(store, "es-b", seconds=300), goal=devices, most=devices).task
    places: list[Assigned] = []

    def assigned_together(_: int) -> bool:
        some = [each for each in assign_all(store, more, [None] * TOGETHER) if isinstance(each, Assigned)]
        places.extend(some)
        return len(some) == TOGETHER

    def received_together(number: int) -> bool:
        came = [
            ArrivedReport(each.id, f"{number:064x}") for each in places[number * TOGETHER : (number + 1) * TOGETHER]
        ]
        answers = receive_all(store, came, task=more, worker=f"{number % 2:032x}")
        return set(answers) == {ReportAnswer.RECEIVED}

    times = devices // TOGETHER
    measured(f"assignments, {TOGETHER} in a transaction", database, threads, assigned_together, times, TOGETHER)
    measured(f"reports received, {TOGETHER} at once", database, threads, received_together, times, TOGETHER)
    store.close()


@contextmanager
def databases() -> Iterator[list[str]]:
    """URLs of empty ones."""
    programs = postgresql_programs()
    with TemporaryDirectory() as folder:
        urls = [f"sqlite:///{folder}/store.db"]
        if programs is None:
            print("PostgreSQL is not installed; only SQLite is measured", file=sys.stderr)
            yield urls
            return
        with postgresql(programs) as server:
            yield [*urls, server.new_database()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--devices", type=int, default=4000)
    parser.add_argument("--threads", type=int, default=4)
    asked = parser.parse_args()
    with databases() as urls:
        for each in urls:
            measure(each, asked.devices, asked.threads)
