"""BandMF: a banded matrix with every entry free."""

from tacit.design.bands import wide
from tacit.design.mechanism import DesignProblem, Mechanism
from tacit.design.parameters import BandsParameters
from tacit.privacy.strategy import Banded


def _build(problem: DesignProblem) -> Banded:
    from tacit.design.banded import design_banded

    bands = problem.parameters.bands
    return design_banded(
        problem.participation,
        bands=problem.participation.min_separation if bands is None else bands,
        objective=problem.objective,
        workload=problem.workload,
        progress=problem.progress,
    )


BANDED = Mechanism(
    name="banded",
    says="b bands, every entry free",
    explains="BandMF: a banded matrix with every entry free; for these rounds only. Takes seconds to minutes.",
    build=_build,
    any_workload=True,
    parameters=BandsParameters,
    examples=(BandsParameters(),),
    compared=wide,
    matrix=Banded,
    objective="rms",
)
