"""SIGKILL for real, a handful of times; `benchmarks/deployment/kill_and_resume.py` does it fifty times."""

import json
import os
import subprocess
import sys

import pytest
from tests.conftest import OPTIMIZED, REPOSITORY


@pytest.mark.parametrize(
    ("mechanisms", "seed", "cycles"),
    [
        pytest.param("", "5", 4, id="first four", marks=pytest.mark.nightly),
        pytest.param("secure sums", "19", 2, id="secure sums", marks=pytest.mark.long),  # each of the two once
    ],
)
def test_killed_runs_resume_to_the_same_bits(mechanisms: str, seed: str, cycles: int) -> None:
    script = REPOSITORY / "benchmarks" / "deployment" / "kill_and_resume.py"
    asked = ("--cycles", str(cycles), "--seed", seed, "--mechanisms", mechanisms)
    optimized = os.environ | {"XLA_FLAGS": OPTIMIZED}
    done = subprocess.run([sys.executable, script, *asked], capture_output=True, text=True, env=optimized)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["identical"] == result["cycles"] == cycles and result["different"] == []
    assert result["kills"] >= cycles
