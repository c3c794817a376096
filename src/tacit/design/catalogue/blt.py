"""Buffered linear Toeplitz mechanisms: designed here, or published."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from tacit.design.mechanism import DesignProblem, Mechanism, Parameters, checked_least
from tacit.design.objective import Objective
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import PUBLISHED_BLT, Blt

BUFFERS = 4  # of a designed BLT, as in production (arXiv:2408.08868, Section 5)


@dataclass(frozen=True, kw_only=True)
class BltParameters(Parameters):
    """Numbers of one's own, or how many buffers."""

    ways: ClassVar = (("theta", "omega"), ("buffers",))
    theta: Annotated[tuple[float, ...] | None, "Decays of the buffers, in (0, 1]: 0.99,0.7."] = None
    omega: Annotated[tuple[float, ...] | None, "With their weights, above 0: 0.1,0.2."] = None
    buffers: Annotated[
        int | None, f"Or how many buffers of the model's size the noise keeps, to be designed; left out, {BUFFERS}."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_least("buffers", self.buffers)

    @property
    def needs_design(self) -> bool:
        """Unless the numbers are given."""
        return self.theta is None


def _build(problem: DesignProblem) -> Blt:
    given: BltParameters = problem.parameters
    if given.theta is not None and given.omega is not None:
        return Blt(theta=given.theta, omega=given.omega)
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
