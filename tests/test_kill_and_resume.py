"""SIGKILL for real, a handful of times; `benchmarks/kill_and_resume.py` does it fifty times."""

import json
import subprocess
import sys

import pytest
from tests.conftest import REPOSITORY


@pytest.mark.parametrize(
    ("mechanisms", "seed"),
    [
        pytest.param("", "5", id="first four", marks=pytest.mark.nightly),
        pytest.param("secure sums", "19", id="secure sums", marks=pytest.mark.long),
    ],
)
def test_killed_runs_resume_to_the_same_bits(mechanisms: str, seed: str) -> None:
    script = REPOSITORY / "benchmarks" / "kill_and_resume.py"
    asked = ("--cycles", "4", "--seed", seed, "--mechanisms", mechanisms)
    done = subprocess.run([sys.executable, script, *asked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["identical"] == result["cycles"] == 4 and result["different"] == []
    assert result["kills"] >= 4
