"""BandInvMF: bands of the inverse of C that are designed, or given."""

from dataclasses import dataclass
from typing import Annotated

from tacit.design.bands import BandedParameters, few
from tacit.design.catalogue.blt import BUFFERS
from tacit.design.mechanism import DesignProblem, Mechanism
from tacit.privacy.strategy import BandedInverse

BANDS = BUFFERS + 1  # so that it keeps as many vectors as a BLT


@dataclass(frozen=True, kw_only=True)
class InverseParameters(BandedParameters):
    """The coefficients of the inverse, or how many, and of which kind."""

    bands: Annotated[int | None, f"Or how many, to be designed; left out, {BANDS}."] = None
    falling: Annotated[bool, "Design only C that falls: an exact sensitivity."] = False


def _build(problem: DesignProblem) -> BandedInverse:
    given: InverseParameters = problem.parameters
    if given.coefficients is not None:
        return BandedInverse(coefficients=given.coefficients)
    from tacit.design.toeplitz import design_banded_inverse

    return design_banded_inverse(
        problem.participation,
        bands=min(BANDS, problem.participation.rounds) if given.bands is None else given.bands,
        objective=problem.objective,
        falling=given.falling,
        workload=problem.workload,
    )


BANDED_INVERSE = Mechanism(
    name="banded-inverse",
    says=f"{BANDS} bands of C^-1, designed here",
    explains="BandInvMF: the best so many coefficients of C inverse; any number of rounds.",
    build=_build,
    any_workload=True,
    parameters=InverseParameters,
    examples=(InverseParameters(bands=4, falling=True), InverseParameters(coefficients=(1.0, -0.5))),
    compared=few,
)
