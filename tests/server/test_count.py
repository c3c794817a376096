"""A served query in processes of its own: `tacit serve` with a file of kind "evaluate", devices, and what is left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w
from tests.support.evaluation.typists import typists_and_model
from tests.support.waiting import until

import tacit
from tacit.runs import Run

PORT = 8741
ASKED = {
    "kind": "evaluate",
    "name": "how-good",
    "models": ["model"],
    "clients": 2,
    "sentences": 4,
    "words": 6,
    "deployment": {
        "population": "default",
        "devices": 40,
        "selecting_minutes": 4,
        "reporting_minutes": 4,  # a device holds its report back for a quarter of both, however soon it is computed
        "pause_minutes": 0.01,
    },
    "release": {"zcdp": 1.0, "delta": 1e-6},
}

PATIENCE = 900.0  # seconds, on a busy machine


@pytest.mark.long
def test_devices_are_asked_by_a_server_and_a_statement_verifies(tmp_path: Path) -> None:
    typists_and_model(tmp_path, 4)
    (tmp_path / "asked.toml").write_text(tomli_w.dumps(ASKED))
    tacit_ = [sys.executable, "-m", "tacit"]

    def begin(log: str, *command: str) -> "subprocess.Popen[str]":
        with (tmp_path / log).open("w") as said:
            return subprocess.Popen(
                [*tacit_, *command], stdout=said, stderr=said, cwd=tmp_path, env=dict(os.environ), text=True
            )

    server = begin("serve.log", "serve", "asked.toml", "--out", "served", "--workers", "1", "--port", str(PORT))
    devices = []
    try:
        until((tmp_path / "served" / "operator.pub").exists, alive=server, patience=PATIENCE)
        key = (tmp_path / "served" / "operator.pub").read_text().strip()
        for client in (0, 1):
            where = ["--server", f"http://127.0.0.1:{PORT}", "--operator-key", key, "--data", "cache"]
            own = ["--client", str(client), "--state", f"device-{client}", "--first-time"]
            devices.append(begin(f"device-{client}.log", "device", *where, *own))
        assert server.wait(PATIENCE) == 0, (tmp_path / "serve.log").read_text()
    finally:
        for each in (*devices, server):
            each.terminate()
            each.wait(PATIENCE)
    for client in (0, 1):
        assert "the operator signed for it" in (tmp_path / f"device-{client}.log").read_text()
    run = tmp_path / "served" / "runs" / "how-good"
    with Run.open(run) as found:
        assert found.finished and found.counts().tolist() == [2]
    assert tacit.verify(run / "report" / "statement.json", run=run).holds
    page = (run / "report" / "report.md").read_text()
    assert "2 devices of the population default were asked" in page and str(tmp_path) not in page
