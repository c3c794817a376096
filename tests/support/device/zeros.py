"""A trainer of devices that learns nothing, for processes that are to load neither JAX nor recipes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.train import TrainDocument


class Zeros:
    """Every report of its is of zeros; see Trainer."""

    def check(self, plan: Plan) -> None:
        """All can be done."""

    def prepare(self, plan: Plan, task: RoundTask, model: Any) -> Callable[[Any], ReportBody]:
        return lambda draw: ReportBody(np.zeros(task.question(TrainDocument).parameters, np.float32), True, None, None)
