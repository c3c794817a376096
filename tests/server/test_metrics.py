"""Counts that the workers of a machine share, whichever of them is asked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.server.metrics import SHARED, forget_process

WORKER = """
import sys
from tacit.server.metrics import Metrics
metrics = Metrics()
metrics.check_ins.labels("come_back").inc(3)
metrics.held.set(2)
sys.stdout.write(metrics.text().decode())
"""


def test_what_workers_counted_is_added_up_and_what_a_dead_one_held_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SHARED, str(tmp_path))

    def ask() -> tuple[int, str]:
        process = subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True, env=os.environ)
        return process.pid, process.communicate()[0]

    first, text = ask()
    assert 'tacit_check_ins_total{answer="come_back"} 3.0' in text and "tacit_reports_unwritten 2.0" in text
    forget_process(first)
    _, text = ask()
    assert 'tacit_check_ins_total{answer="come_back"} 6.0' in text and "tacit_reports_unwritten 2.0" in text
