"""SIGKILL for real, a handful of times; `benchmarks/kill_and_resume.py` does it fifty times."""

import json
import subprocess
import sys

import pytest
from tests.conftest import REPOSITORY


@pytest.mark.long
def test_killed_runs_resume_to_the_same_bits() -> None:
    script = REPOSITORY / "benchmarks" / "kill_and_resume.py"
    done = subprocess.run([sys.executable, script, "--cycles", "4", "--seed", "5"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["identical"] == result["cycles"] == 4 and result["different"] == []
    assert result["kills"] >= 4
