"""A sampler that has failed, devices that are only counted, and a process that is killed while it trains with it."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.support.training.tiny import cohorts_of, tiny_learner

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.federation.collector import Answered
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.runs.budget import PopulationBudget
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


def killed_after(what: type, method: str, times: int) -> None:
    """End this process as soon as the method has returned so often."""
    original, left = getattr(what, method), iter(range(times - 1))

    def dying(*given: Any, **named: Any) -> Any:
        found = original(*given, **named)
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(what, method, dying)


def main(recipe: str, out: str, when: str, times: int) -> None:
    """Train by the recipe until the process is killed."""
    killed_after(*{"raised": (PopulationBudget, "reserve_more"), "released": (Run, "commit")}[when], times)
    asked = Recipe.from_toml(Path(recipe).read_text(encoding="utf-8"))
    tacit.train(asked, out, sampler=TheSameAgain(), hardware=Hardware(workers=1), anyway=True)
