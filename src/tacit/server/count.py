"""Real devices as a `Collector` of evaluations: a step's task out, the sum of one unit in a cell a histogram back."""

from functools import partial
from typing import Any

import numpy as np

from tacit.errors import InputError, RunError
from tacit.evaluation.counts.collect import Counted, HistogramTask
from tacit.jobs.devices import RealDevices
from tacit.protocol.bodies import model_body
from tacit.protocol.count_questions import content_of, document_of
from tacit.server.rounds.rounds import ServedRounds, Wanted
from tacit.server.store.round_states import Total


class ServedHistograms(ServedRounds):
    """Steps of real devices that are asked about models, a round each; see `tacit.evaluation.counts.collect.Collector`.

    A group is whoever comes first: each device answers the run once, and sees to that by itself.
    """

    broadcasts = True  # models leave this machine
    _whom: RealDevices | None = None

    def asks(self, devices: RealDevices) -> None:
        """Say whom it asks, before it does."""
        self._whom = devices

    @property
    def devices(self) -> RealDevices:
        """Whom it asks. Raises: RunError before it was said."""
        if self._whom is None:
            raise RunError("this collector knows no devices yet; `tacit serve` says which.")
        return self._whom

    def collect(self, task: HistogramTask) -> Counted:
        """See Collector. Raises: what `ServedRounds.sum_of` does."""
        if task.asks is None:
            raise InputError("this is asked in a simulation alone; devices are asked about models and personalization.")
        body = model_body(content_of(task.asks))
        wanted = Wanted(
            asked=self.asked(task.step, body, document_of(task)),
            content=body,
            goal=task.devices,
            least=task.devices,
            check=partial(_check, task),
        )
        values, total, came = self.sum_of(wanted)
        counts, answered = task.layout.opened(values)
        everybody = np.full(len(task.histograms), total.reports)
        return Counted(counts, everybody if answered is None else answered, came)


def _check(task: HistogramTask, values: Any, total: Total) -> None:
    """See Wanted. Raises: InputError for a sum that no honest reports have."""
    task.layout.check_sum(values, total.reports)
