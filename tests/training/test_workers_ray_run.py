"""`tacit train --cluster`, killed and resumed, leaves the run folder of one machine that was left alone."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.training.tiny import tiny_cache, tiny_toml, what_happened
from tests.support.waiting import PATIENCE
from tests.training.ray_nodes import Nodes

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
pytest.importorskip("ray")


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    running = Nodes()
    yield running
    running.stop()


def tacit(*arguments: str) -> subprocess.Popen[str]:
    code = "from tacit.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(process: subprocess.Popen[str]) -> dict[str, object]:
    """What a command that succeeded printed as JSON, and nothing besides."""
    printed, complaints = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaints
    return dict(json.loads(printed))


@pytest.mark.long
def test_a_run_on_a_cluster_is_the_run_on_one_machine(nodes: Nodes, tmp_path: Path) -> None:
    cache, recipe = tiny_cache(tmp_path / "cache"), tmp_path / "tiny.toml"
    recipe.write_text(tiny_toml(cache.path))
    here, there = tmp_path / "here", tmp_path / "there"
    finished(tacit("train", str(recipe), "--out", str(here), "--json"))
    nodes.add()
    killed = tacit("train", str(recipe), "--out", str(there), "--json", "--cluster", nodes.address)
    while killed.poll() is None and not list(there.glob("steps/round-*.safetensors")):
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    assert killed.returncode == -9, "it had ended before it was killed: this test tests less"
    answer = finished(tacit("resume", str(there), "--json", "--cluster", nodes.address))
    assert answer["run"] == str(there)
    assert what_happened(there) == what_happened(here)


@pytest.mark.nightly
def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    cache, recipe = tiny_cache(tmp_path / "cache"), tmp_path / "tiny.toml"
    recipe.write_text(tiny_toml(cache.path))
    refused = tacit("train", str(recipe), "--out", str(tmp_path / "run"), "--cluster", "127.0.0.1:9")
    _, complaints = refused.communicate(timeout=PATIENCE)
    assert refused.returncode == 2
    assert complaints.startswith("error: no cluster answers at '127.0.0.1:9'") and "ray start --head" in complaints
