"""DP-lambdaCGD: a share of the last seed is taken back."""

from tacit.design.families import in_numbers
from tacit.design.mechanism import DesignProblem, Mechanism
from tacit.design.parameters import LambdaParameters
from tacit.privacy.strategy import Strategy


def _build(problem: DesignProblem) -> Strategy:
    if found := in_numbers("lambda-cgd", problem.parameters, problem.participation):
        return found
    from tacit.design.toeplitz import design_lambda_cgd

    return design_lambda_cgd(problem.participation, objective=problem.objective, workload=problem.workload)


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
