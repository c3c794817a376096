"""Compiled loops: kept where that is possible, and made anew where nothing can be written."""

import subprocess
import sys

import numba
import pytest

from tacit.compiled import compiled

# As in a container whose package and home cannot be written: numba finds no place.
NOWHERE = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
caching.CompileResultCacheImpl._locator_classes = []
from tacit.jobs.machine_checks import machine_code, noise
print(machine_code()["kept"], noise())
"""


@pytest.mark.long  # in a process that compiles all anew
def test_where_nothing_can_be_kept_loops_run_all_the_same() -> None:
    told = subprocess.check_output([sys.executable, "-c", NOWHERE], text=True)
    assert told.startswith("nowhere: let NUMBA_CACHE_DIR name a folder")
    assert "are those of the loops interpreted" in told


def test_what_else_is_wrong_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**options: object) -> None:
        raise RuntimeError("the compiler is broken")

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="the compiler is broken"):
        compiled(lambda: 0)
