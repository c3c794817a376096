"""Real devices as a `Collector` of evaluations: a step's task out, the sum of one unit in a cell a histogram back."""

from functools import partial
from typing import Any

import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.errors import InputError, RunError
from tacit.evaluation.counts.collect import Counted, HistogramTask
from tacit.evaluation.on_device import ModelsAsked, StrategiesAsked
from tacit.evaluation.personalize.gate import Policy
from tacit.jobs.devices import RealDevices
from tacit.networks.language_model import parameter_count
from tacit.protocol.bodies import model_body
from tacit.protocol.count import EvaluateAsked, HistogramsAsked, PersonalizeAsked, PolicyAsked, RuleAsked
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
            asked=self.asked(task.step, body, _document(task, task.asks)),
            content=body,
            goal=task.devices,
            least=task.devices,
            check=partial(_check, task),
        )
        values, total, came = self.sum_of(wanted)
        counts, answered = task.layout.opened(values)
        everybody = np.full(len(task.histograms), total.reports)
        return Counted(counts, everybody if answered is None else answered, came)


def _document(task: HistogramTask, asks: ModelsAsked | StrategiesAsked) -> HistogramsAsked:
    """The task as its devices get it."""
    common: dict[str, Any] = {
        "cells": task.layout.sizes,
        "local_epsilon": task.local_epsilon,
        "parameters": tuple(parameter_count(each.network) for each in asks.networks),
    }
    if isinstance(asks, ModelsAsked):
        return EvaluateAsked(kind="evaluate", **common)
    policies = None if asks.policies is None else tuple(map(_policy, asks.policies))
    return PersonalizeAsked(kind="personalize", policies=policies, **common)


def content_of(asks: ModelsAsked | StrategiesAsked) -> NDArray[np.float32]:
    """The parameters of all models, one after another (d,)."""
    return np.concatenate([np.asarray(ravel_pytree(each.parameters)[0], np.float32) for each in asks.networks])


def _policy(policy: Policy) -> PolicyAsked:
    rules = (None if rule is None else RuleAsked(strategy=rule.strategy, level=rule.level) for rule in policy.rules)
    return PolicyAsked(name=policy.name, cuts=policy.buckets.cuts, rules=tuple(rules))


def _check(task: HistogramTask, values: Any, total: Total) -> None:
    """See Wanted. Raises: InputError for a sum that no honest reports have."""
    task.layout.check_sum(values, total.reports)
