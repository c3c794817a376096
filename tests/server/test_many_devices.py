"""A round of 500 devices at processes as users start them, where libraries may have threads of their own."""

import json
import os
import subprocess
import sys

import pytest
from tests.conftest import REPOSITORY

SCRIPT = REPOSITORY / "benchmarks" / "deployment" / "deployment_load.py"


@pytest.mark.long
def test_no_report_of_500_devices_is_lost_where_eight_threads_are_allowed() -> None:
    """Workers' checks of reports had them wait for one another until nobody said that it lived."""
    command = [sys.executable, str(SCRIPT), "--only", "round", "--parameters", "200000"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "8", "OMP_NUM_THREADS": "8"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    row = json.loads(done.stdout)
    assert (row["devices"], row["reports"], row["lost"], row["attempts"]) == (500, 500, 0, 1), row
    assert row["allowed"]["OPENBLAS_NUM_THREADS"] == "8"
    assert "silent" not in done.stderr and "does not answer" not in done.stderr, done.stderr
