"""`tacit decryptor` as a process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def decryptor(
    state: Path, operator: str, port: int = 0, *, least: int
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """(its line of a recipe, the process). least: reports below which it opens no sum."""
    words = [sys.executable, "-m", "tacit", "decryptor", "--state", str(state), "--least-reports", str(least)]
    words += ["--port", str(port), "--operator-key", operator]
    environment = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            identity, box, url = (process.stderr.readline().split()[-1] for _ in range(3))
            yield f"{url} {identity} {box}", process
        finally:
            process.send_signal(signal.SIGKILL)
