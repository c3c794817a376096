"""How much noise one contributor adds to a round, by its plan: a server leaves room for it, a contributor draws it."""

import math

from tacit.errors import InputError
from tacit.privacy.shared_noise import margin_of
from tacit.protocol.messages import Plan, RoundTask


def noise_of_one(plan: Plan, task: RoundTask) -> float | None:
    """Standard deviation of one contributor's noise in each cell of the counts; None where nothing is counted.

    Raises: InputError for a round that the plan does not have.
    """
    if task.round >= plan.privacy.rounds:
        raise InputError(f"round {task.round} is beyond the {plan.privacy.rounds} rounds of its plan.")
    whole = plan.privacy.deviation(task.round)
    return None if whole is None else whole / math.sqrt(plan.aggregation.honest)


def noise_margin(plan: Plan, task: RoundTask) -> int:
    """The largest magnitude of one contributor's noise in a cell of the round's sum; 0 where there are none.

    Raises: InputError as `noise_of_one`.
    """
    many, one = len(plan.aggregation.contributors), noise_of_one(plan, task)
    if not many:
        return 0
    if one is None:
        return task.asks.margin
    return margin_of(one, draws=task.asks.shape().length * plan.privacy.rounds * many)
