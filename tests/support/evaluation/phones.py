"""Devices in this process, asked as real ones are: each computes its own cell, and tells nobody who it is."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tacit.data import Cache
from tacit.device.count import randomized
from tacit.evaluation.counts.collect import CountQuestion
from tacit.federation.collector import Answered
from tacit.jobs.devices import RealDevices
from tacit.recipe.deployment_section import DeploymentSection


class Phones:
    """A collector over the clients of a cache, in this order, none of whom comes twice."""

    def __init__(self, cache: Cache, clients: Iterable[int], *, away: int = 0, seed: int = 0) -> None:
        """away: devices of each step that come and never report."""
        self._cache, self._coming, self._away = cache, iter(clients), away
        self._generator = np.random.default_rng(seed)
        self.devices = RealDevices(name="asked", deployment=DeploymentSection(population="phones", devices=1000))
        self.told: list[int] = []
        self.asked: list[CountQuestion] = []
        self.counts: list[Any] = []

    def init(self) -> Any:
        return ()

    def collect(self, state: Any, task: CountQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        self.asked.append(task)
        layout = task.layout
        total = np.zeros(layout.length, np.uint32)
        assert task.computation is not None
        for _ in range(task.devices):
            cells = task.computation.cells_of(self._cache, next(self._coming))
            local = layout.local_epsilon is not None
            report = randomized(layout, cells, self._generator) if local else layout.counted(cells)
            layout.check(report)
            total += report
        self.counts.append(layout.opened(total, task.devices).counts)
        return Answered(total, task.devices, task.devices + self._away), state

    def released(self, step: int) -> None:
        self.told.append(step)
