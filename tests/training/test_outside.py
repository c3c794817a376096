"""Rounds of devices outside of this process: nothing is shown to them before its release is on disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.training.tiny import cohorts_of, tiny_cache, tiny_learner, tiny_recipe, what_happened

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import TrainingError
from tacit.federation.collector import Answered
from tacit.jobs.train.job import train
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.training import TrainQuestion
from tacit.training.one_by_one import DevicesOneByOne

ONE = Hardware(workers=1)


class Killed(BaseException):
    """What ends a process at once: nothing catches it."""


class Outside(DevicesOneByOne):
    """Notes at each task how many rounds are on disk, and each release that it is told of; killed where it is asked."""

    broadcasts = True

    def __init__(self, cache: Cache, asked: Recipe, folder: Path, dies: Callable[[str, int], bool]) -> None:
        learner, plan = tiny_learner(cache), asked.plan()
        super().__init__(learner, cohorts_of(learner, plan, b"another key 1234"))
        self._folder, self._dies = folder, dies
        self.seen: list[tuple[int, int]] = []  # (round of a task, rounds on disk when it was made)
        self.told: list[int] = []

    def collect(self, state: Any, task: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        with Run.open(self._folder) as run:
            self.seen.append((task.round, run.steps_done))
        if self._dies("asked", task.round):
            raise Killed
        return super().collect(state, task, seed=seed)

    def released(self, round: int) -> None:
        with Run.open(self._folder) as run:
            assert run.steps_done > round, "told before it is on disk"
        if self._dies("released", round):
            raise Killed
        self.told.append(round)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def test_a_model_is_shown_only_when_its_ledger_row_is_on_disk(cache: Cache, tmp_path: Path) -> None:
    asked = tiny_recipe(cache.path)
    outside = Outside(cache, asked, tmp_path / "run", lambda when, round: False)
    train(asked, tmp_path / "run", hardware=ONE, collector=outside)
    assert outside.seen == [(round, round) for round in range(9)]
    assert outside.told == list(range(9))


def test_a_collector_that_stays_inside_is_told_too_while_the_writing_overlaps(cache: Cache, tmp_path: Path) -> None:
    asked = tiny_recipe(cache.path)
    inside = Outside(cache, asked, tmp_path / "run", lambda when, round: False)
    inside.broadcasts = False
    train(asked, tmp_path / "run", hardware=ONE, collector=inside)
    assert inside.told == list(range(9))
    assert (8, 7) in inside.seen, "the row of a round is written beside the next one"


@pytest.mark.parametrize("where", ["asked", "released"])
def test_killed_between_a_row_and_its_mark_it_is_told_again_and_nothing_else_changes(
    cache: Cache, tmp_path: Path, where: str
) -> None:
    asked = tiny_recipe(cache.path)
    whole = Outside(cache, asked, tmp_path / "whole", lambda when, round: False)
    train(asked, tmp_path / "whole", hardware=ONE, collector=whole)
    parts = Outside(cache, asked, tmp_path / "parts", lambda when, round: (when, round) == (where, 4))
    with pytest.raises(Killed):
        train(asked, tmp_path / "parts", hardware=ONE, collector=parts)
    with Run.open(tmp_path / "parts") as run:
        assert run.steps_done == (4 if where == "asked" else 5)
        assert run.steps_done == (parts.told or [-1])[-1] + (1 if where == "asked" else 2)
    again = Outside(cache, asked, tmp_path / "parts", lambda when, round: False)
    train(asked, tmp_path / "parts", hardware=ONE, collector=again)
    assert again.told[0] == (3 if where == "asked" else 4), "the last released round once more"
    assert again.told[1:] == list(range(again.told[0] + 1, 9))
    assert what_happened(tmp_path / "parts") == what_happened(tmp_path / "whole")


class Nameless(DevicesOneByOne):
    """Says how many took part, and not who."""

    def collect(self, state: Any, task: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        collected, after = super().collect(state, task, seed=seed)
        return collected._replace(clients=collected.participants, diagnostics=None), after


def test_a_number_of_devices_is_no_log_unless_they_keep_a_separation(cache: Cache, tmp_path: Path) -> None:
    asked = tiny_recipe(cache.path)
    learner, plan = tiny_learner(cache), asked.plan()
    nameless = Nameless(learner, cohorts_of(learner, plan, b"another key 1234"))
    with pytest.raises(TrainingError, match=r"a number of devices and not which.*\[deployment\]"):
        train(asked, tmp_path / "run", hardware=ONE, collector=nameless)
    with Run.open(tmp_path / "run") as run:
        assert run.steps_done == 0 and np.size(run.participations()[0]) == 0
