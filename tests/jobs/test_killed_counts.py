"""SIGKILL while a text is counted, clients are, or parts are mixed: the same command ends with the same bytes then, and
what lies there meanwhile is a whole model or none.
"""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.support.training.tiny import tiny_cache
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.errors import InputError
from tacit.keyboard.phone_model import load_phone_model

COUNTED = ("word_counts:56 norm 4 unit 16", "word_pairs:20 norm 3 unit 16")
COMMANDS: dict[str, list[str]] = {
    "count": ["count", *COUNTED, *("--split-name", "train", "--epsilon", "8", "--seed", "2", "--data", "cache")],
    "ngram": ["ngram", "cache", "--cutoffs", "1,1,1", "--declared-public"],
    "mix": ["mix", "pb", "--counts", "counts"],
}

pytestmark = pytest.mark.rehearsed  # the second time, too: a rehearsal is one of the places where a run is killed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("killed")
    tiny_cache(at / "cache")
    for name, out in (("count", "counts"), ("ngram", "pb"), ("mix", "mixture")):
        done = CliRunner().invoke(app, placed(at, name, at / out))
        assert done.exit_code == 0, done.output
    return at


def placed(at: Path, name: str, out: Path) -> list[str]:
    """A command, with what it reads from this folder."""
    command = [*COMMANDS[name], "--out", str(out)]
    return [str(at / each) if each in ("cache", "pb", "counts") else each for each in command]


def runs(at: Path, kill: int, name: str, out: str) -> "subprocess.CompletedProcess[str]":
    """The command, killed at this change; 0: not at all."""
    asked = [sys.executable, "-m", "tests.jobs.killed_at", str(kill), *placed(at, name, Path(out))]
    return subprocess.run(asked, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def content(folder: Path, name: str) -> dict[str, bytes]:
    """Every file that is the same whenever it is made: of a run what it released, and its pages but for the folder's
    own name.
    """
    files = {str(each.relative_to(folder)): each for each in folder.rglob("*") if each.is_file()}
    kept = [each for each in files if name != "count" or each.startswith(("steps/", "report/sums"))]
    assert kept
    return {each: files[each].read_bytes() for each in kept}


def changes_of(made: Path, tmp_path: Path, name: str, known: dict[str, int] = {}) -> int:  # noqa: B006  (kept for all)
    if name not in known:
        whole = runs(made, 0, name, str(tmp_path / "whole"))
        assert whole.returncode == 0, whole.stderr
        known[name] = int(whole.stderr.rpartition("changes: ")[2])
    return known[name]


def killed_again(made: Path, tmp_path: Path, name: str, kill: int, old: Path | None) -> None:
    """Killed once, looked at, and then left alone."""
    first = {"count": "counts", "ngram": "pb", "mix": "mixture"}[name]
    out = tmp_path / f"{name}-{kill}"
    if old is not None:
        shutil.copytree(old, out)
    died = runs(made, kill, name, str(out))
    assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr
    if name != "count":
        try:
            load_phone_model(out)
        except InputError as error:
            assert "holds no model" in str(error), "neither damaged nor of two models"
        else:
            assert content(out, name) in (content(made / first, name), {} if old is None else content(old, name))
    again = CliRunner().invoke(app, placed(made, name, out))
    assert again.exit_code == 0, again.output
    assert content(out, name) == content(made / first, name)
    left = [str(each) for draft in tmp_path.glob(".*.draft") for each in (draft, *draft.rglob("*"))]
    assert not left, "what a killed process left is gone"
    if name == "count":
        assert tacit.verify(out).holds


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("part", [pytest.param(0.35, marks=pytest.mark.nightly), 0.85])
def test_a_command_that_is_killed_ends_the_same(name: str, part: float, made: Path, tmp_path: Path) -> None:
    changes = changes_of(made, tmp_path, name)
    killed_again(made, tmp_path, name, max(1, int(part * changes)), None)


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_at_any_change_ends_the_same(name: str, made: Path, tmp_path: Path) -> None:
    for kill in range(1, changes_of(made, tmp_path, name) + 1):
        killed_again(made, tmp_path, name, kill, None)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["ngram", "mix"])
def test_a_model_that_is_replaced_is_the_old_one_or_the_new_one(name: str, made: Path, tmp_path: Path) -> None:
    """An older model stands at the place; between both there may be none, and then the command is run again."""
    tacit.ngram(made / "cache", tmp_path / "old", cutoffs=(2, 2, 2), declared_public=True)
    for kill in range(1, changes_of(made, tmp_path, name) + 3):
        killed_again(made, tmp_path, name, kill, tmp_path / "old")
