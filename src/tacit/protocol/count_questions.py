"""Questions about models as documents, and back: what a run asks of devices in all its steps, and in one.

What stays the same in a run stands in its plan, as TOML: the networks, and the settings of the job under its own names.
A device makes the same questions of it as the server (`evaluation.in_plan`), so that both know what lies where in a
report.
"""

from typing import Any, TypeAlias

import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.collect import HistogramTask
from tacit.evaluation.device_part import ModelsAsked, Network, StrategiesAsked
from tacit.evaluation.personalize.gate import Policy
from tacit.networks.language_model import parameter_count
from tacit.protocol.count_messages import (
    EvaluateAsked,
    PersonalizeAsked,
    PolicyAsked,
    RuleAsked,
)

Asks: TypeAlias = ModelsAsked | StrategiesAsked
Reals: TypeAlias = NDArray[np.float32]


def document_of(task: HistogramTask) -> EvaluateAsked | PersonalizeAsked:
    """The task as its devices get it. Raises: InputError for what no device can be asked."""
    asks = task.asks
    if asks is None:
        raise InputError("this is asked in a simulation alone; devices are asked about models and personalization.")
    parameters = tuple(parameter_count(each.network) for each in networks_of(asks))
    common: dict[str, Any] = {
        "cells": task.layout.sizes,
        "local_epsilon": task.local_epsilon,
        "parameters": parameters,
    }
    if isinstance(asks, ModelsAsked):
        return EvaluateAsked(kind="evaluate", **common)
    policies = None if asks.policies is None else tuple(map(_document, asks.policies))
    return PersonalizeAsked(kind="personalize", policies=policies, **common)


def networks_of(asks: Asks) -> tuple[Network, ...]:
    """The models, in the order in which the content has them."""
    return asks.models if isinstance(asks, ModelsAsked) else (asks.model,)


def content_of(asks: Asks) -> Reals:
    """The parameters of all models, one after another (d,)."""
    flat = [np.asarray(ravel_pytree(each.parameters)[0], np.float32) for each in networks_of(asks)]
    return np.concatenate(flat)


def _document(policy: Policy) -> PolicyAsked:
    rules = tuple(
        None if rule is None else RuleAsked(strategy=rule.strategy, level=rule.level) for rule in policy.rules
    )
    return PolicyAsked(name=policy.name, cuts=policy.buckets.cuts, rules=rules)
