"""The square roots of a workload, of C and of its inverse: closed forms."""

from tacit.design.bands import few_and_wide
from tacit.design.mechanism import DesignProblem, Mechanism
from tacit.design.parameters import BandsParameters, width
from tacit.privacy.strategy import BandedInverse, BandedToeplitz


def _root(problem: DesignProblem) -> BandedToeplitz:
    from tacit.design.toeplitz import banded_square_root

    return banded_square_root(width(problem.participation, problem.parameters.bands), problem.workload)


def _inverse_root(problem: DesignProblem) -> BandedInverse:
    from tacit.design.toeplitz import banded_inverse_square_root

    return banded_inverse_square_root(width(problem.participation, problem.parameters.bands), problem.workload)


SQUARE_ROOT = Mechanism(
    name="square-root",
    says="b bands, in closed form",
    explains="BSR: C begins like the square root of the prefix sums; a closed form.",
    build=_root,
    any_workload=True,
    parameters=BandsParameters,
    examples=(BandsParameters(bands=4), BandsParameters()),
    compared=few_and_wide,
)
INVERSE_SQUARE_ROOT = Mechanism(
    name="inverse-square-root",
    says="b bands of C^-1, in closed form",
    explains="BISR: C inverse begins like the inverse of the square root; a closed form.",
    build=_inverse_root,
    any_workload=True,
    parameters=BandsParameters,
    examples=(BandsParameters(bands=3),),
    compared=few_and_wide,
)
