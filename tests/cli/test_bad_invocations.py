"""Whatever a command is given that it cannot take is refused: one line, exit code 2, nothing raw, nothing left."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.bad_invocations import Call, bad_calls, world
from typer.testing import CliRunner

from tacit.cli.commands import app
from tacit.records import visible

FEW, MANY = 100, 1_300  # calls of the default suite and of the long one, spread over all commands
TOGETHER = 20  # calls, after which the folder is looked at
LONGEST = 120  # seconds after which a call hangs, on a machine however busy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current folder of every call, with what is right and what is wrong in it."""
    at, before = tmp_path_factory.mktemp("bad"), Path.cwd()
    os.chdir(at)
    world(at)
    yield at
    os.chdir(before)


def test_a_few_bad_invocations(folder: Path) -> None:
    calls = bad_calls(folder)
    faults = _faults(calls[:: len(calls) // FEW])
    assert not faults, "\n".join(faults)


@pytest.mark.long
def test_bad_invocations_of_every_command_and_option(folder: Path) -> None:
    calls = bad_calls(folder)
    faults = _faults(calls[:: len(calls) // MANY])
    assert not faults, "\n".join(faults)


def _faults(calls: list[Call]) -> list[str]:
    """What is wrong with what was said, call by call, and what was left in the folder; nothing where all is as it
    should be.
    """
    found, before = [], _content()
    for at in range(0, len(calls), TOGETHER):
        together = calls[at : at + TOGETHER]
        for call in together:
            complaints = _complaints(call)
            found += [f"{call.words}: {'; '.join(complaints)}"] * bool(complaints)
        after = _content()  # to look takes three times as long as a call
        other = [name for name in sorted(before.keys() | after.keys()) if before.get(name, 0) != after.get(name, 0)]
        found += [f"one of {[call.words for call in together]} left or changed {other}"] * bool(other)
        before = after
    return found


def _complaints(call: Call) -> list[str]:
    with _hanging_after(LONGEST):
        result = CliRunner().invoke(app, list(call.words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return [f"a traceback: {result.exception!r}"]
    complaints = [] if result.exit_code in call.codes else [f"exit code {result.exit_code}"]
    if visible(result.output) != result.output:
        complaints.append("control characters")
    if result.exit_code == 2 and (result.stdout or not _one_error(result.stderr)):
        complaints.append(f"said {result.output!r}")
    return complaints


def _one_error(said: str) -> bool:
    """One sentence at the end; warnings may stand before it."""
    *before, last = said.splitlines()
    return last.startswith("error: ") and all(line.startswith("warning: ") for line in before) and said.endswith("\n")


def _content() -> dict[str, Any]:
    """Every file below the current folder with its size and time, but for locks and what SQLite keeps beside a run."""
    files = [
        Path(above) / name
        for above, folders, names in os.walk(".")
        for name in [*folders, *names]
        if name not in ("lock", "run.db-shm", "run.db-wal")
    ]
    return {str(each): None if each.is_dir() else (each.stat().st_size, each.stat().st_mtime_ns) for each in files}


@contextmanager
def _hanging_after(seconds: int) -> Iterator[None]:
    def hang(*_: object) -> None:
        raise AssertionError(f"still at it after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
