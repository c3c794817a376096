"""Waiting for what another thread or process is to do, as long as a busy machine may take."""

import time
from collections.abc import Callable
from subprocess import Popen
from typing import Any

PATIENCE = 600.0  # seconds, after which something hangs


def until(true: Callable[[], object], *, alive: "Popen[Any] | None" = None, patience: float = PATIENCE) -> None:
    """Wait for what must come. alive: the process that is to do it, if it is another."""
    last = time.monotonic() + patience
    while not true():
        assert alive is None or alive.poll() is None, "who was to do it is no more"
        assert time.monotonic() < last, "it never came"
        time.sleep(0.02)
