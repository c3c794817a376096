"""A disk that is really full (a small file system in memory), under a server and under a device."""

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.server.phones_server import ROUNDS, recipe_for_phones, served
from tests.support.device.operator import HOUR, NOON, Operator, a_plan, cache_of_one, once
from tests.support.waiting import until

import tacit
from tacit.errors import DeviceError
from tacit.recipe import Recipe
from tacit.server.serve import ServeResult

FULL_S = 5.0


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return recipe_for_phones(tmp_path_factory.mktemp("ours"))


@contextmanager
def small_disk(at: Path, kilobytes: int) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("file systems are mounted by root alone")
    at.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", at], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system in memory can be mounted here ({mounted.stderr.decode().strip()})")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def fill(disk: Path) -> Path:
    """A file that leaves no byte on it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    return ballast


@pytest.mark.long
def test_a_run_goes_on_when_there_is_room_again(recipe: Recipe, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 6000) as disk:
        out = disk / "served"
        with served(recipe, out) as server:
            until(lambda: len(server.released()) >= 2)
            ballast, before = fill(disk), len(server.released())
            threading.Event().wait(FULL_S)
            assert len(server.released()) <= before + 1, "what was written already may be released"
            ballast.unlink()
            until(lambda: server.ended)
        (done,) = server.ended
        assert isinstance(done, ServeResult) and done.finished, done
        assert server.released() == list(range(ROUNDS)), "each was released once"
        assert tacit.verify(out / "runs" / "tiny").holds


@pytest.mark.long
def test_a_device_sends_nothing_that_it_could_not_record(tmp_path: Path) -> None:
    cache, operator = cache_of_one(tmp_path / "cache"), Operator()
    words = cache.manifest.vocabulary.sha256
    plan = a_plan(words)
    with small_disk(tmp_path / "disk", 512) as disk:
        state = disk / "phone"
        once(operator, cache.path, state)  # makes the record
        ballast = fill(disk)
        operator.assign(plan, operator.task(plan, 0))
        with pytest.raises(DeviceError, match=r"make room|full"):
            once(operator, cache.path, state)
        assert not operator.received
        ballast.unlink()
        operator.answers.clear()
        operator.assign(plan, operator.task(plan, 1))
        turn = once(operator, cache.path, state, now=NOON + 2 * HOUR)
        assert turn.what == "reported", turn.says
        operator.assign(plan, operator.task(plan, 2))
        assert once(operator, cache.path, state, now=NOON + 4 * HOUR).what == "refused", (
            "the record knows what was sent"
        )
        assert len(operator.received) == 1
