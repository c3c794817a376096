"""BandToep: bands of C that are designed, or given."""

from tacit.design.bands import few_and_wide
from tacit.design.families import in_numbers
from tacit.design.mechanism import DesignProblem, Mechanism
from tacit.design.parameters import BandedParameters, width
from tacit.privacy.strategy import Strategy


def _build(problem: DesignProblem) -> Strategy:
    given: BandedParameters = problem.parameters
    if found := in_numbers("banded-toeplitz", given, problem.participation):
        return found
    from tacit.design.toeplitz import design_banded_toeplitz

    bands = width(problem.participation, given.bands)
    return design_banded_toeplitz(
        problem.participation, bands=bands, objective=problem.objective, workload=problem.workload
    )


BANDED_TOEPLITZ = Mechanism(
    name="banded-toeplitz",
    says="b bands, designed here",
    explains="BandToep: the best so many falling coefficients of C; any number of rounds.",
    build=_build,
    any_workload=True,
    parameters=BandedParameters,
    # Beyond the separation the others come out as zeros.
    examples=(BandedParameters(bands=3), BandedParameters(bands=7), BandedParameters(coefficients=(1.0, 0.5, 0.25))),
    compared=few_and_wide,
)
