"""Short checkpoints stand on a whole one: fewer bytes, the same bits, and nothing is made up where one is missing."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file
from tests.support.journals import rewrite_each
from tests.support.training.tiny import MECHANISMS, tiny_cache, tiny_recipe, what_happened

from tacit.compute import Hardware
from tacit.errors import RunError
from tacit.jobs.train.run import begin, carry_on
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled
from tacit.training import states

AT = 7


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Runs of ten rounds, of which seven are done; every third state is whole."""
    place = tmp_path_factory.mktemp("begun")
    cache, made = tiny_cache(place / "cache").path, {}

    def of(mechanism: str) -> Path:
        if mechanism not in made:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(states, "EVERY", 3)
                recipe = tiny_recipe(cache, rounds={"rounds": 10}, privacy=MECHANISMS[mechanism])
                with begin(recipe, place / mechanism) as run:
                    carry_on(run, hardware=Hardware(workers=1), until=AT)
            made[mechanism] = place / mechanism
        return Path(made[mechanism])

    return of


@pytest.fixture
def path(begun: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy, at its seventh round: that one's state is whole; `to` plays on."""
    return Path(shutil.copytree(begun("blt"), tmp_path / "run"))


def to(path: Path, until: int | None = None) -> None:
    with Run.open(path) as run:
        carry_on(run, hardware=Hardware(workers=1), until=until)


def files(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "steps").iterdir())


def name(round: int) -> str:
    return f"round-{round:06d}.safetensors"


@pytest.mark.parametrize("mechanism", ["none", "independent", "banded-inverse"])
def test_where_no_buffers_are_carried_every_state_is_whole(begun: Callable[[str], Path], mechanism: str) -> None:
    for file in ("round-000005.safetensors", "round-000006.safetensors"):
        assert ".noise.first" not in load_file(begun(mechanism) / "steps" / file)
    assert files(begun(mechanism)) == [name(5), name(6)]


def test_between_two_whole_states_are_short_ones(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a whole one is kept as long as somebody stands on it."""
    monkeypatch.setattr(states, "EVERY", 3)
    assert files(path) == [name(5), name(6)]
    before, whole = (load_file(path / "steps" / name(round)) for round in (5, 6))
    assert ".noise.buffers" not in before and len(before[".noise.keys"]) == 2
    assert whole[".noise.buffers"].shape == (4, len(whole[".model"]))
    to(path, AT + 2)
    assert files(path) == [name(6), name(7), name(8)]
    last = load_file(path / "steps" / name(8))
    assert bytes(last[".noise.whole"]) == hashlib.sha256((path / "steps" / name(6)).read_bytes()).digest()
    assert last[".noise.keys"][1].tobytes() == load_file(path / "steps" / name(7))[".noise.keys"][0].tobytes()
    assert sum(array.nbytes for array in last.values()) < 0.4 * sum(array.nbytes for array in whole.values())


@pytest.mark.parametrize("stop", [AT, AT + 1])
def test_a_killed_run_has_the_files_of_one_that_was_not(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    monkeypatch.setattr(states, "EVERY", 3)
    shutil.copytree(path, tmp_path / "other")
    to(path, AT + 2)
    to(tmp_path / "other", stop)
    to(tmp_path / "other", AT + 2)
    for file in files(path):
        assert (path / "steps" / file).read_bytes() == (tmp_path / "other" / "steps" / file).read_bytes()


def test_runs_of_before_whose_states_are_all_whole_go_on(path: Path, tmp_path: Path) -> None:
    """From the seventh round, which is whole though it is none of every eight."""
    shutil.copytree(path, tmp_path / "other")
    to(path, AT + 1)
    assert ".noise.first" in load_file(path / "steps" / name(AT))
    for each in (path, tmp_path / "other"):
        to(each)
    assert what_happened(path) == what_happened(tmp_path / "other")


def with_state(path: Path, round: int, change: Callable[[dict[str, Any]], None]) -> None:
    """The state after a round is another, and the journal says so too: what no seal finds."""
    file = path / "steps" / name(round)
    arrays = load_file(file)
    change(arrays)
    save_file(arrays, file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()

    def renamed(entry: dict[str, Any]) -> dict[str, Any]:
        step = entry["step"]
        return {**entry, "step": {**step, "digest": digest}} if step["step"] == round else entry

    rewrite_each(path, "step", renamed)


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "the whole one is gone": (lambda path: (path / "steps" / name(6)).unlink(), "000006.* cannot be read"),
    "the whole one is torn": (lambda path: (path / "steps" / name(6)).write_bytes(b"torn"), "000006.* cannot be read"),
    "the whole one is another": (
        lambda path: shutil.copyfile(path / "steps" / name(7), path / "steps" / name(6)),
        "000006.* is not the state",
    ),
    "a key is another": (
        lambda path: with_state(path, 8, lambda state: state[".noise.keys"].__setitem__((1, 0), 77)),
        "000008.*does not come out as it was.*000006",
    ),
    "a key is missing": (
        lambda path: with_state(path, 8, lambda state: state.update({".noise.keys": state[".noise.keys"][:1].copy()})),
        "000008.*does not come out as it was",
    ),
    "it goes on from no step": (
        lambda path: with_state(path, 8, lambda state: state[".noise.whole"].__setitem__(0, 1)),
        "goes on from one that is no step of its run",
    ),
}


@pytest.mark.parametrize(("damage", "said"), REFUSED.values(), ids=REFUSED)
def test_what_a_short_state_stands_on_is_looked_at(
    path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], Any], said: str
) -> None:
    monkeypatch.setattr(states, "EVERY", 3)
    to(path, AT + 2)
    with Run.open(path) as run:
        reconciled(run)
    damage(path)
    with pytest.raises(RunError, match=said) as refusal:
        to(path)
    assert "restore" in str(refusal.value) and "\n" not in str(refusal.value)
