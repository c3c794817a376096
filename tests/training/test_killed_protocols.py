"""A process that trains on secure sums is killed with SIGKILL while a protocol is played, and resumed to the same bits.

At a chosen message here; at random instants in tests/test_kill_and_resume.py.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.training.tiny import tiny_cache, tiny_toml, what_happened

from tacit.compute import Hardware
from tacit.jobs.train.run import begin, carry_on
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.secure_aggregation.masked.server import MaskedServer
from tacit.secure_aggregation.one_message.decryptor import Decryptor
from tacit.secure_aggregation.one_message.server import OneMessageServer

ONE = Hardware(workers=1)
# The parties of a protocol, whose method is called so often in a run before its process is killed.
TRAINS = """
import os, runpy, signal, sys
from importlib import import_module
module, name, method, calls, *command = sys.argv[1:]
party = getattr(import_module(module), name)
whole, left = getattr(party, method), int(calls)
def killed(self, *message):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(self, *message)
setattr(party, method, killed)
sys.argv = ["tacit", *command]
runpy.run_module("tacit", run_name="__main__")
"""


LONG, NIGHTLY = pytest.mark.long, pytest.mark.nightly


@pytest.mark.parametrize(
    ("protocol", "party", "method", "calls"),
    [
        pytest.param("masks", MaskedServer, "advance", 3 * 5 + 4, id="masks, before unmasking", marks=LONG),
        pytest.param("masks", MaskedServer, "receive", 100, id="masks, a message", marks=NIGHTLY),
        pytest.param("one-message", OneMessageServer, "answer", 30, id="decryptors answer", marks=NIGHTLY),
        pytest.param("one-message", Decryptor, "receive", 150, id="a decryptor is asked", marks=LONG),
    ],
)
def test_a_run_killed_inside_a_protocol_resumes_to_the_same_bits(
    tmp_path: Path, protocol: str, party: type, method: str, calls: int
) -> None:
    text = tiny_toml(
        tiny_cache(tmp_path / "cache").path,
        privacy={"mechanism": {"name": "tree", "restarts": [3]}, "noise_multiplier": 0.3},
        clipping={"initial": 0.2},
        training_loss={"bound": 10.0},
        rounds={"rounds": 6, "report_goal": 6, "min_separation": 2, "max_participations": 3},
        evaluation={"every": 6, "clients": 1, "test_clients": 1, "sentences": 4},
        aggregation={"kind": "secure", "protocol": protocol, "protocol_clients": 5, "protocol_dropout": 0.1},
    )
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text)
    where = (party.__module__, party.__name__, method, str(calls))
    command = ("train", str(recipe), "--out", str(tmp_path / "killed"), "--workers", "1", "--anyway")
    died = subprocess.run([sys.executable, "-c", TRAINS, *where, *command], capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    with Run.open(tmp_path / "killed") as run:
        assert 0 < run.steps_done < 6
    for name in ("killed", "whole"):
        with begin(Recipe.from_toml(text), tmp_path / name, anyway=True) as run:
            carry_on(run, hardware=ONE)
    assert what_happened(tmp_path / "killed") == what_happened(tmp_path / "whole")
