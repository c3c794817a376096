"""Devices of a training in this process, as a server knows them: without identities."""

from collections.abc import Callable
from typing import Any

from tests.support.training.tiny import cohorts_of, tiny_learner

from tacit.data import Cache
from tacit.federation.collector import Answered
from tacit.recipe import Recipe
from tacit.training import TrainQuestion
from tacit.training.one_by_one import DevicesOneByOne

DEPLOYED = {"population": "phones", "devices": 40}


class Killed(BaseException):
    """What ends a process at once: nothing catches it."""


class Phones(DevicesOneByOne):
    """Devices with text of their own, which keep the separation and tell nobody who they are."""

    broadcasts = True

    def __init__(self, theirs: Cache, asked: Recipe, dies: Callable[[int], bool] = lambda round: False) -> None:
        learner, plan = tiny_learner(theirs), asked.plan()
        super().__init__(learner, cohorts_of(learner, plan, b"another key 1234"))
        self._dies = dies

    def collect(self, state: Any, task: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        if self._dies(task.round):
            raise Killed
        collected, after = super().collect(state, task, seed=bytes(32))  # real devices draw their own randomness
        return collected._replace(clients=collected.participants, diagnostics=None), after
