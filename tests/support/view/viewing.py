"""A server of live pages as somebody starts it: the command, in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.waiting import PATIENCE

TOLD = re.compile(r"(http://\S+) shows ")


class Viewed(NamedTuple):
    """Where it listens, and which process it is."""

    url: str
    process: int


@contextmanager
def viewing(*folders: Path, arguments: tuple[str, ...] = (), **environment: str) -> Iterator[Viewed]:
    """While it runs; it ends by Ctrl-C, and says nothing of a traceback."""
    command = [sys.executable, "-m", "tacit", "view", *map(str, folders), "--port", "0", *arguments]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
        "COLUMNS": "300",
        **environment,
    }
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, encoding="utf-8", env=env)
    try:
        assert process.stderr
        line = process.stderr.readline()
        found = TOLD.search(line)
        assert found, line + process.stderr.read()
        yield Viewed(found[1], process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert "Traceback" not in said, said
