"""A device on 64-bit ARM, emulated: it predicts and trains what one here does, and takes part in a round beside others.

Bounds stand between what was measured (docs/device.md) and what would be another model.
"""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from tests.conftest import REPOSITORY

PROCESSORS = {"cortex-a72", "cortex-a76"}
MISSING = re.compile(r"^(qemu-aarch64|apt-get|dpkg-deb) is not installed.*", re.MULTILINE)
UNREACHED = re.compile(
    r"Temporary failure resolving|Could not resolve|Could not connect|Unable to connect|Unable to locate package"
    r"|Failed to fetch|NewConnectionError|NameResolutionError|Connection to \S+ timed out"
)
ROUNDING = 2e-5  # of log p, where products are of float32, or of integers and so exact: measured 6e-6


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The lines of the benchmark; skipped where it cannot be run."""
    script = REPOSITORY / "benchmarks" / "deployment" / "arm64_device.py"
    command = [sys.executable, script, "--sysroot", tmp_path_factory.mktemp("sysroot")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and (why := MISSING.search(done.stderr)):
        pytest.skip(why[0])
    if done.returncode and (why := UNREACHED.search(done.stderr)):
        pytest.skip(f"no packages for 64-bit ARM are reached ({why[0]})")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.nightly
def test_it_predicts_and_trains_what_a_device_here_does(measured: list[dict[str, Any]]) -> None:
    rows = {(row["processor"], row["numbers"]): row for row in measured if "numbers" in row}
    assert rows.keys() == {(each, numbers) for each in PROCESSORS for numbers in ("float32", "int8", "int4")}
    for (_, numbers), row in rows.items():
        assert row["contexts"] == 500 and row["other_first_word"] <= 5, row
        assert row["update_apart"] < 2e-5, row
        if (
            numbers == "int4"
        ):  # other kernels round what is multiplied otherwise; most of the rounding is of the weights
            assert row["mean_difference_of_log_p"] < 0.7 * row["from_float32_here"], row
            assert row["from_float32"] < 2 * row["from_float32_here"] and row["other_three_words"] <= 50, row
        else:
            assert row["largest_difference_of_log_p"] < ROUNDING and row["other_three_words"] == 0, row


@pytest.mark.nightly
def test_it_takes_part_in_a_round_beside_others(measured: list[dict[str, Any]]) -> None:
    """The round needs all three reports, so that its release says that this one was in the sum."""
    rounds = [row for row in measured if "reports" in row]
    assert {row["processor"] for row in rounds} == PROCESSORS
    assert all(row["reports"] == 3 and row["released"] and row["verified"] for row in rounds), rounds
