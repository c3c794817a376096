"""The mechanism that costs least for a participation: what a recipe gets that names none, or names "best".

Every mechanism of the catalogue is designed for the participation as `tacit design compare` does, and their losses are
compared: the standard deviation of the noisiest prefix sum (or the root mean square of all) at equal privacy. Public
numbers alone go in, so the choice costs nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from tacit.design.catalogue import MECHANISMS
from tacit.design.mechanism import ChosenMechanism, DesignProblem, Mechanism, Parameters, cost_of_any
from tacit.design.objective import Losses, Objective
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError, TacitError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Strategy

MATRIX_ROUNDS = 512  # beyond, a matrix takes longer to design than most runs of a newcomer take to train
MOST_MODELS = 128  # that a mechanism may remember: 1.2 GB for 2.4 million parameters
CLOSE = 1.01  # times the least loss: what nobody sees in a model; among those this close, the least memory is best


@dataclass(frozen=True, kw_only=True)
class BestParameters(Parameters):
    """Nothing can be said of it."""

    @property
    def needs_design(self) -> bool:
        """Whether the strategy is still to be chosen."""
        return True


@dataclass(frozen=True, kw_only=True)
class DesignCandidate:
    """A mechanism designed for the participation, what it costs and how many models it remembers."""

    chosen: ChosenMechanism
    strategy: Strategy
    losses: Losses
    memory: int


@dataclass(frozen=True, kw_only=True)
class BestMechanism:
    """What was chosen, and all that could be had for the participation, the least loss first."""

    participation: Participation
    objective: Objective
    workload: Workload
    chosen: ChosenMechanism
    strategy: Strategy
    candidates: tuple[DesignCandidate, ...]

    def why(self) -> str:
        """The choice and its reason, for a run's settings and report."""
        loss = {each.chosen.name: each.losses.of(self.objective) for each in self.candidates}
        own, planned = loss[self.chosen.name], self.participation.effective
        least = min(loss.values())
        reason = "the least" if own == least else f"{own / least - 1:.1%} above the least, with less memory"
        of_what = "" if self.workload == PREFIX else " of what the server makes of the means"
        others = ", ".join(f"{name} {of / own:.3g}" for name, of in loss.items() if name != self.chosen.name)
        return (
            f"{self.chosen.name} was chosen: its {self.objective} error{of_what} over {planned.rounds} rounds, "
            f"separation {planned.min_separation} and at most {planned.max_participations} participations is {reason}; "
            f"in multiples of it, at equal privacy: {others}."
        )


@lru_cache(maxsize=8)
def best_mechanism(
    participation: Participation, objective: Objective = "max", matrices: bool = True, workload: Workload = PREFIX
) -> BestMechanism:
    """The mechanism of least loss for `participation`, or the one that remembers least among those within 1% of it.

    Left out are matrices for more than 512 rounds, or all of them (matrices=False), and what remembers more than 128
    models; for another workload than prefix sums, what has no design for it too. Of each mechanism the largest that
    `compared` names is tried, since fewer bands or buffers cost more. Deterministic: ties are broken by the order of
    the catalogue. Takes seconds. Raises: InputError where no mechanism can be had.
    """
    found = sorted(
        _candidates(participation, objective, matrices, workload), key=lambda each: each.losses.of(objective)
    )
    if not found:
        raise InputError(
            f"no mechanism can be had for {participation.rounds} rounds; name one of {', '.join(MECHANISMS)}."
        )
    close = [each for each in found if each.losses.of(objective) <= CLOSE * found[0].losses.of(objective)]
    best = min(close, key=lambda each: each.memory)  # the first of the least
    return BestMechanism(
        participation=participation,
        objective=objective,
        workload=workload,
        chosen=best.chosen,
        strategy=best.strategy,
        candidates=tuple(found),
    )


def _candidates(
    participation: Participation, objective: Objective, matrices: bool, workload: Workload
) -> Iterator[DesignCandidate]:
    width = min(participation.min_separation, participation.rounds)
    too_large = not matrices or participation.rounds > MATRIX_ROUNDS or width > MOST_MODELS
    for mechanism in MECHANISMS.values():
        tried = mechanism.compared(mechanism, participation)
        if not tried or (mechanism.matrix is not None and too_large):
            continue
        chosen = ChosenMechanism(mechanism=mechanism, parameters=tried[-1])
        try:
            strategy = chosen.strategy(participation, objective, workload=workload)
            plain = workload == PREFIX  # else of the strategy as it is: an entry's own cost is of prefix sums
            losses = (mechanism.cost if plain else partial(cost_of_any, workload=workload))(strategy, participation)
        except TacitError:  # it cannot be had for this participation, as a comparison says in full
            continue
        memory = strategy.memory(participation.rounds)
        if memory <= MOST_MODELS:
            yield DesignCandidate(chosen=chosen, strategy=strategy, losses=losses, memory=memory)


def _build(problem: DesignProblem) -> Strategy:
    return best_mechanism(problem.participation, problem.objective, workload=problem.workload).strategy


BEST = Mechanism(
    name="best",
    says="the least loss of all",
    explains="The mechanism of the catalogue with the least loss for the participation.",
    build=_build,
    any_workload=True,
    parameters=BestParameters,
)
"""What a recipe's `[privacy.mechanism]` means where it is left out; not in the catalogue, whose entries it compares."""
