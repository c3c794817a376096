"""Backup and restore, as docs/deploy.md says: copied while the server is up, destroyed, put back, gone on with."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.phones_server import ROUNDS, recipe_for_phones, served
from tests.support.waiting import until

import tacit
from tacit.errors import StoreError
from tacit.recipe import Recipe
from tacit.server.serve import ServeResult


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return recipe_for_phones(tmp_path_factory.mktemp("ours"))


def copied(out: Path, to: Path) -> None:
    """The page's commands, in Python: the store by SQLite's own backup, the rest file by file."""
    to.mkdir()
    with closing(sqlite3.connect(out / "store.db")) as store, closing(sqlite3.connect(to / "store.db")) as copy:
        store.backup(copy)
    for name in ("operator.key", "operator.log"):
        shutil.copy2(out / name, to / name)
    for name in ("blobs", "runs"):
        shutil.copytree(out / name, to / name)


@pytest.mark.nightly
def test_what_was_copied_while_the_server_was_up_is_gone_on_with(recipe: Recipe, tmp_path: Path) -> None:
    out = tmp_path / "served"
    with served(recipe, out) as server:
        until(lambda: len(server.released()) >= 2)
        server.asks("POST", "/admin/runs/tiny/pause")
        until(lambda: server.open_rounds() == 0)
        copied(out, tmp_path / "copy")
        before = server.released()
        assert len(before) < ROUNDS
    shutil.rmtree(out)
    shutil.copytree(tmp_path / "copy", out)
    with served(recipe, out) as server:
        assert server.asks("GET", "/admin/runs").json()["runs"][0]["paused"]
        server.asks("POST", "/admin/runs/tiny/resume")
        until(lambda: len(server.released()) >= len(before) + 2)
    assert server.released() == list(range(len(server.released()))), "each was released once"
    kept = tmp_path / "kept"
    shutil.copytree(out / "runs", kept)
    shutil.rmtree(out / "runs")
    shutil.copytree(tmp_path / "copy" / "runs", out / "runs")
    with served(recipe, out, devices=False) as server:
        until(lambda: server.ended)
    (refused,) = server.ended
    assert isinstance(refused, StoreError) and "restored from an older copy" in str(refused)
    shutil.rmtree(out / "runs")
    shutil.copytree(kept, out / "runs")
    shutil.rmtree(out / "blobs")  # with the model and the sums of whatever round is in progress
    with served(recipe, out) as server:
        until(lambda: server.ended)
    (done,) = server.ended
    assert isinstance(done, ServeResult) and done.finished, done
    assert server.released() == list(range(ROUNDS))
    assert tacit.verify(out / "runs" / "tiny").holds
