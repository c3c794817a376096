"""DP-lambdaCGD: a share of the last seed is taken back."""

from dataclasses import dataclass
from typing import Annotated

from tacit.design.bands import CoefficientsParameters
from tacit.design.mechanism import DesignProblem, Mechanism
from tacit.errors import InputError
from tacit.privacy.strategy import BandedInverse


@dataclass(frozen=True, kw_only=True)
class LambdaParameters(CoefficientsParameters):
    """The share, as the coefficients of the inverse."""

    coefficients: Annotated[
        tuple[float, ...] | None, "1 and minus the share that is taken back: 1.0,-0.9; left out, the best share."
    ] = None


def _build(problem: DesignProblem) -> BandedInverse:
    coefficients = problem.parameters.coefficients
    if coefficients is None:
        from tacit.design.toeplitz import design_lambda_cgd

        return design_lambda_cgd(problem.participation, objective=problem.objective, workload=problem.workload)
    if len(coefficients) > 2:
        raise InputError(
            f"{len(coefficients)} coefficients were given, and lambda-cgd takes back a share of one seed; give 1 "
            "and minus that share, or take banded-inverse."
        )
    return BandedInverse(coefficients=coefficients)


LAMBDA_CGD = Mechanism(
    name="lambda-cgd",
    says="takes back part of the last noise",
    explains="DP-lambdaCGD: take back a share of the last seed, the best share; one seed drawn again, nothing kept.",
    build=_build,
    any_workload=True,
    parameters=LambdaParameters,
    examples=(LambdaParameters(),),
    searched=True,
)
