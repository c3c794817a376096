"""Rows of clients that stand in any order, put together client by client in bounded memory.

Rows are kept in memory up to RUN_BYTES, sorted by client, and written to a file without a name (the system forgets it
with the process, however that ends). What comes out is cut between clients, so that of all runs together no more than
about RUN_BYTES are in memory at once; a client that alone has more is in memory whole, as every client is.
"""

import mmap
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import SourceError
from tacit.extras import when_used

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = when_used("pyarrow")

RUN_BYTES = 1 << 27  # of Arrow's memory; a sort takes about twice that beside
SAMPLE = 1_000  # rows between two that stand for them, where it is decided what is read together
PIECE = 20_000  # rows of a run that are written together


def by_client(tables: Iterable["pa.Table"]) -> Iterator["pa.Table"]:
    """The same rows sorted by client_id (by code points), a client's in the order they came.

    Raises: SourceError where the disk has no room; as the tables do.
    """
    runs: list[pa.Table] = []
    waiting: list[pa.Table] = []
    numbered = held = 0
    for table in tables:
        rows = np.arange(numbered, numbered + len(table))
        waiting.append(table.append_column("row", pa.array(rows)))  # keeps a client's rows in order
        numbered, held = numbered + len(table), held + table.nbytes
        if held >= RUN_BYTES:
            runs.append(_written(_sorted(waiting)))
            waiting, held = [], 0
    if not runs:
        if waiting:
            yield _sorted(waiting)
        return
    if waiting:
        runs.append(_written(_sorted(waiting)))
        waiting = []
    yield from _merged(runs)


def _sorted(tables: list["pa.Table"]) -> "pa.Table":
    table = pa.concat_tables(tables, promote_options="default")
    return table.sort_by([("client_id", "ascending"), ("row", "ascending")])


def _written(run: "pa.Table") -> "pa.Table":
    """The run as it stands on disk, mapped."""
    try:
        with tempfile.TemporaryFile() as file:
            with pa.ipc.new_file(file, run.schema) as writer:
                writer.write_table(run, max_chunksize=PIECE)
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise SourceError(
            f"rows of clients that are not together are sorted in {tempfile.gettempdir()}, which failed "
            f"({error.strerror}); make room there, or set TMPDIR to a folder that has it."
        ) from error
    return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()


def _merged(runs: list["pa.Table"]) -> Iterator["pa.Table"]:
    """Everything up to one client, then up to another ..., each sorted."""
    starts = [0] * len(runs)
    for last in _cuts(runs):
        ends = [len(run) if last is None else _up_to(run, last) for run in runs]
        pieces = [run.slice(start, end - start) for run, start, end in zip(runs, starts, ends, strict=True)]
        starts = ends
        if any(map(len, pieces)):
            yield _sorted(pieces)


def _cuts(runs: list["pa.Table"]) -> Iterator[str | None]:
    """The last client of each part of about RUN_BYTES; None for the end."""
    sampled = [
        (run["client_id"][at].as_py(), weight)
        for run, weight in ((run, SAMPLE * run.nbytes / max(len(run), 1)) for run in runs)
        for at in range(0, len(run), SAMPLE)
    ]
    held = 0.0
    for name, weight in sorted(sampled):
        if held + weight > RUN_BYTES and held:
            yield name
            held = 0.0
        held += weight
    yield None


def _up_to(run: "pa.Table", last: str) -> int:
    """How many rows of a sorted run are of clients up to this one."""
    names = run["client_id"]
    return bisect_right(range(len(names)), last, key=lambda at: names[at].as_py())
