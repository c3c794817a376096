"""A sampler that has failed, and devices that are only counted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.support.training.tiny import cohorts_of, tiny_learner

from tacit.data import Cache
from tacit.federation.collector import Answered
from tacit.recipe import Recipe
from tacit.training import TrainQuestion
from tacit.training.one_by_one import DevicesOneByOne


@dataclass(frozen=True)
class TheSameAgain:
    """In every round the first clients, whatever was planned."""

    def init(self, clients: int, *, report_goal: int) -> Any:
        return np.zeros(1)

    def draw(
        self, clock: Any, *, round: int, report_goal: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.int64], Any]:
        return np.arange(report_goal), clock


class Phones(DevicesOneByOne):
    """Devices with text of their own, which tell nobody who they are."""

    broadcasts = True

    def __init__(self, theirs: Cache, asked: Recipe) -> None:
        learner, plan = tiny_learner(theirs), asked.plan()
        super().__init__(learner, cohorts_of(learner, plan, b"another key 1234"))

    def collect(self, state: Any, question: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        answered, after = super().collect(state, question, seed=seed)
        return answered._replace(clients=answered.participants, diagnostics=None), after
