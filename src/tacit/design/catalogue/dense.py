"""The optimal matrix where clients come once."""

from collections.abc import Sequence

from tacit.design.mechanism import DesignProblem, Mechanism, Parameters
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Dense


def _build(problem: DesignProblem) -> Dense:
    from tacit.design.dense import design_dense

    return design_dense(problem.participation, workload=problem.workload, progress=problem.progress)


def _once(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    """Only where clients come once."""
    return [Parameters()] if participation.effective.max_participations == 1 else []


DENSE = Mechanism(
    name="dense",
    says="the optimal matrix for one participation",
    explains="The optimal matrix (rms) where clients come once; for these rounds only. Takes seconds.",
    build=_build,
    any_workload=True,
    compared=_once,
    matrix=Dense,
    objective="rms",
)
