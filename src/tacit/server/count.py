"""Questions for counts to real devices: as they get them, with what a round begins with: models, or a list of cells."""

from typing import Any, TypeAlias

import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.cell_list import ListedSum
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.device_part import StatisticsQuestion, SumsQuestion
from tacit.evaluation.counts.sums import SumQuestion
from tacit.evaluation.device_part import ModelsQuestion, StrategiesQuestion
from tacit.evaluation.personalize.gate import GatePolicy
from tacit.networks.language_model import parameter_count
from tacit.protocol.count import (
    CountDocument,
    EvaluateDocument,
    HistogramsDocument,
    PersonalizeDocument,
    PolicyDocument,
    RuleDocument,
)
from tacit.protocol.served_bodies import model_body

Computation: TypeAlias = ModelsQuestion | StrategiesQuestion | StatisticsQuestion | SumsQuestion


def document(question: CountQuestion | SumQuestion) -> tuple[HistogramsDocument, bytes]:
    """The question as devices get it, and the models. Raises: InputError for what only a simulation is asked."""
    if question.computation is None:
        raise InputError(
            "this is asked in a simulation alone; devices are asked about their text, models and personalization."
        )
    task = (
        CountDocument(kind="count", cells=question.layout.sizes, local_epsilon=None, norms=question.layout.norms)
        if isinstance(question, SumQuestion)
        else _document(question, question.computation)
    )
    listed = question.computation.cells if isinstance(question.computation, SumsQuestion) else None
    if isinstance(listed, ListedSum):
        return task, listed.listed.text.encode()
    return task, model_body(content_of(question.computation))


def _document(
    question: CountQuestion, computation: ModelsQuestion | StrategiesQuestion | StatisticsQuestion
) -> HistogramsDocument:
    """The task as its devices get it."""
    common: dict[str, Any] = {"cells": question.layout.sizes, "local_epsilon": question.local_epsilon}
    if isinstance(computation, StatisticsQuestion):
        return CountDocument(kind="count", norms=None, **common)
    common["parameters"] = tuple(parameter_count(each.network) for each in computation.networks)
    if isinstance(computation, ModelsQuestion):
        return EvaluateDocument(kind="evaluate", **common)
    policies = None if computation.policies is None else tuple(map(_policy, computation.policies))
    return PersonalizeDocument(kind="personalize", policies=policies, **common)


def content_of(computation: Computation) -> NDArray[np.float32]:
    """The parameters of all models, one after another (d,); of no model none."""
    models = [np.asarray(ravel_pytree(each.parameters)[0], np.float32) for each in computation.networks]
    return np.concatenate([np.zeros(0, np.float32), *models])


def _policy(policy: GatePolicy) -> PolicyDocument:
    rules = (None if rule is None else RuleDocument(strategy=rule.strategy, level=rule.level) for rule in policy.rules)
    return PolicyDocument(name=policy.name, cuts=policy.buckets.cuts, rules=tuple(rules))
