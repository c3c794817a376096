"""Buffered linear Toeplitz mechanisms: designed here, or published."""

from collections.abc import Sequence

from tacit.design.families import in_numbers
from tacit.design.mechanism import DesignProblem, Mechanism
from tacit.design.objective import Objective
from tacit.design.parameters import BUFFERS, BltParameters, Parameters
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import PUBLISHED_BLT, Blt, Strategy


def _build(problem: DesignProblem) -> Strategy:
    given: BltParameters = problem.parameters
    if found := in_numbers("blt", given, problem.participation):
        return found
    from tacit.design.blt import design_blt

    buffers = BUFFERS if given.buffers is None else given.buffers
    return design_blt(problem.participation, buffers=buffers, objective=problem.objective, workload=problem.workload)


def _robust(several: Sequence[Participation], objective: Objective, given: BltParameters) -> Blt:
    from tacit.design.blt import design_robust_blt

    return design_robust_blt(several, buffers=BUFFERS if given.buffers is None else given.buffers, objective=objective)


def _buffers(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    return [BltParameters(buffers=buffers) for buffers in (2, 3, BUFFERS)]


def _nothing(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    return ()


def _published(name: str, strategy: Blt) -> Mechanism:
    separation = name[1:]
    return Mechanism.fixed(
        f"blt-{name}",
        strategy,
        f"published, for b = {separation}",
        f"The published BLT that was designed for a separation of {separation} and 2,000 rounds.",
        compared=_nothing,
        searched=name == "b400",
    )


BLT = Mechanism(
    name="blt",
    says=f"{BUFFERS} buffers, designed here",
    explains="A buffered linear Toeplitz mechanism: a few buffers, any number of rounds.",
    build=_build,
    any_workload=True,
    robust=_robust,
    parameters=BltParameters,
    examples=(BltParameters(buffers=2), BltParameters(theta=(0.9, 0.5), omega=(0.1, 0.3))),
    compared=_buffers,
    searched=True,
)
PUBLISHED = tuple(_published(name, strategy) for name, strategy in PUBLISHED_BLT.items())
