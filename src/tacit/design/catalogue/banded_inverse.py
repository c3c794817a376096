"""BandInvMF: bands of the inverse of C that are designed, or given."""

from tacit.design.bands import few
from tacit.design.families import in_numbers
from tacit.design.mechanism import DesignProblem, Mechanism
from tacit.design.parameters import BANDS, InverseParameters
from tacit.privacy.strategy import Strategy


def _build(problem: DesignProblem) -> Strategy:
    given: InverseParameters = problem.parameters
    if found := in_numbers("banded-inverse", given, problem.participation):
        return found
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
