"""Rounds of a small population, and all their states."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tests.support.training.tiny import (
    collector_of,
    first_state,
)

from tacit.mechanisms import NoiseState
from tacit.mechanisms.keys import RoundKey
from tacit.training import Learner, RoundPlan
from tacit.training.cohort import Workers
from tacit.training.rounds import RoundOutcome, TrainingState, run_round

KEY = bytes(range(16))  # fixed: what fails must fail for everybody


def rounds_of(
    learner: Learner, plan: RoundPlan, workers: Workers, count: int
) -> tuple[list[TrainingState], list[RoundOutcome]]:
    """The states before the first round and after each, copied before a mechanism reuses their memory."""
    state, collector = first_state(learner, plan), collector_of(learner, plan, workers, KEY)
    states, outcomes = [jax.tree.map(np.array, state)], []
    for round in range(count):
        state, outcome = run_round(state, round, plan=plan, key=KEY, collector=collector)
        states.append(jax.tree.map(np.array, state))
        outcomes.append(outcome)
    return states, outcomes


def last_key(noise: NoiseState | None) -> bytes:
    """What the seeds of the round before were drawn from; some key where there were none."""
    return bytes(16) if noise is None else RoundKey(bytes(np.asarray(noise.keys)[0])).seeds


def flat_loss(model: Any, sentences: Any) -> Any:
    """A loss without slope: every update is zero, and what the model does is the noise."""
    return jnp.float32(0.0) * jnp.sum(model.bias)
