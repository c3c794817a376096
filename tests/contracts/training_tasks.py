"""Tasks of a round, as every collector is given them."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from tacit.privacy.encoding_choice import encoding_within
from tacit.training import Learner, RoundPlan, TrainQuestion
from tacit.training.secure_updates import RoundEncoding

KEY, SEED = bytes(range(16)), bytes(32)


def task_of(learner: Learner, plan: RoundPlan, round: int = 0, **changes: Any) -> TrainQuestion:
    task = TrainQuestion(
        round=round,
        model=jnp.asarray(learner.start),
        client=plan.client,
        clip_norm=0.2,
        clip_estimate=0.25,
        report_goal=plan.report_goal,
        loss_bound=4.0,
    )
    return replace(task, **changes)


def encoded(task: TrainQuestion, learner: Learner) -> TrainQuestion:
    """The same task, for updates that are encoded."""
    encoding = encoding_within(len(learner.start), task.clip_norm, task.report_goal)
    how = RoundEncoding(
        encoding=encoding, signs=bytes(32), clip_estimate=task.clip_estimate, loss_bound=task.loss_bound
    )
    return replace(task, secure=how)
