"""Ctrl-C whenever it comes: exit code 130, at most one line, never a traceback; and a training goes on afterwards."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.training.tiny import MECHANISMS, tiny_cache, tiny_toml, what_happened

from tacit.cli.interrupts import INTERRUPTED, STOPPED
from tacit.runs import Run

# The command as its script starts it. It says "begun" once the handler stands: before, Python has its own.
COMMAND = """
import os, signal
install = signal.signal
def said(*handler):
    signal.signal = install
    install(*handler)
    os.write(1, b"begun")
signal.signal = said
from tacit.cli import main
main()
"""
TREE = ("account", "tree", "--rounds", "2000", "--min-separation", "400", "--noise-multiplier", "7")


def interrupted(arguments: Sequence[object], seconds: float, after: str = "") -> tuple[int, str]:
    """Exit code and standard error of the command, to which SIGINT came so long after its first line, or after a line
    of standard error that begins with `after`.
    """
    command = [sys.executable, "-c", COMMAND, *(str(argument) for argument in arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(5) == "begun"
        if after:
            assert any(line.startswith(after) for line in process.stderr), f"no line begins with {after!r}"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate()
    return process.returncode, complaints


def check_quiet(code: int, complaints: str, run: Path | None = None) -> None:
    assert code in (0, INTERRUPTED, -signal.SIGINT), complaints  # ended before; here; while Python took itself down
    said = [
        line
        for line in complaints.splitlines()
        if not line.startswith(("round ", "training: ", "reading ", "warning: "))
    ]
    assert said in ([], [f"{STOPPED}."], [f"{STOPPED}, or `tacit resume {run}`."]), complaints


@pytest.mark.parametrize("seconds", [0.0, 0.1])
def test_a_command_that_still_loads_ends_at_once(seconds: float) -> None:
    assert interrupted(TREE, seconds) == (INTERRUPTED, "")


def test_where_it_is_ignored_it_stays_ignored() -> None:
    code = "import signal, tacit.cli.interrupts as own; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    code += "own.leave_at_once(); assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nobody_reading_what_it_says_changes_nothing() -> None:
    code = "import os, signal, tacit.cli.interrupts as own; own.leave_at_once(); own.will_say('stopped'); "
    code += "os.close(2); os.kill(os.getpid(), signal.SIGINT)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == INTERRUPTED


def test_it_is_heard_while_the_first_thread_computes_and_hears_nothing() -> None:
    """As in a compiler or a product of matrices: Python's handler would wait for the end, half a minute here."""
    code = "import hashlib, os, tacit.cli.interrupts as own; own.leave_at_once(); own.will_say('stopped'); "
    code += "os.write(1, b'begun'); hashlib.pbkdf2_hmac('sha256', b'key', b'salt', 100_000_000); os.write(1, b'ended')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.read(5) == b"begun"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        ended, complaints = process.communicate()
    assert (process.returncode, ended, complaints) == (INTERRUPTED, b"", b"stopped.\n")


@pytest.mark.parametrize("begun", [True, False], ids=["a run folder", "no run folder yet"])
def test_it_says_how_to_go_on(begun: bool, tmp_path: Path) -> None:
    run = tmp_path / "own run"
    run.mkdir()
    if begun:
        (run / "run.db").touch()
    code = """
import os, signal, sys
from pathlib import Path
from tacit.cli import interrupts
from tacit.cli.display import display
interrupts.leave_at_once()
with display(True, Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
"""
    done = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=False)
    more = f", or `tacit resume '{run}'`" if begun else ""
    assert (done.returncode, done.stderr) == (INTERRUPTED, f"{STOPPED}{more}.\n")


def test_it_says_so_in_the_signs_that_the_terminal_has() -> None:
    code = "import os, signal, tacit.cli.interrupts as own; own.leave_at_once(); own.will_say('stopped … niño ☕'); "
    code += "os.kill(os.getpid(), signal.SIGINT); signal.pause()"
    for encoding, said in (("utf-8", "stopped … niño ☕.\n"), ("latin-1", "stopped ... niño \\u2615.\n")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            stderr=subprocess.PIPE,
            check=False,
        )
        assert (done.returncode, done.stderr.decode(encoding)) == (INTERRUPTED, said)


# In `make nightly` at more instants.
more_often = pytest.mark.parametrize(
    "often", [pytest.param(4, marks=pytest.mark.long), pytest.param(20, marks=pytest.mark.nightly)]
)


@more_often
def test_an_account_is_interrupted_whenever(often: int) -> None:
    for hundredths in range(0, 60, 60 // often):
        check_quiet(*interrupted(TREE, hundredths / 100))


@more_often
def test_a_training_is_interrupted_whenever_and_goes_on_where_it_was(tmp_path: Path, often: int) -> None:
    """One folder for all tries: each goes on where the last was stopped, up to the bits of one that nobody stopped."""
    cache = tiny_cache(tmp_path / "cache")
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(tiny_toml(cache.path, privacy=MECHANISMS["blt"], rounds={"rounds": 40}), encoding="utf-8")
    stopped, whole = (("train", recipe, "--workers", 1, "--out", tmp_path / name) for name in ("stopped", "whole"))
    code, complaints = interrupted(stopped, 0.0, after="round 4/40 ")
    goes_on = f"{STOPPED}, or `tacit resume {tmp_path / 'stopped'}`.\n"
    assert code == INTERRUPTED and complaints.endswith(goes_on), complaints
    with Run.open(tmp_path / "stopped") as run:
        assert 0 < run.steps_done < 40
    for at in range(often):
        check_quiet(*interrupted(stopped, 4 * at / often), tmp_path / "stopped")
    for arguments in (stopped, whole):
        subprocess.run([sys.executable, "-m", "tacit", *map(str, arguments)], check=True)
    assert what_happened(tmp_path / "stopped") == what_happened(tmp_path / "whole")
