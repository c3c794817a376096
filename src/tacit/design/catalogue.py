"""Every mechanism by its one name: what may be said of it, and how its strategy is made.

Recipes, `tacit design`, `tacit account`, plans and the contract tests go through MECHANISMS; a factorization of one's
own is a line in it, or `name = "package.module:MECHANISM"` in a recipe (docs/extending.md). What searches for a
design is imported by the function that asks for it: most who read the catalogue design nothing.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from tacit.design.mechanism import ChosenMechanism, Mechanism, Parameters, imported
from tacit.design.objective import Losses, Objective
from tacit.design.parameters import (
    BUFFERS,
    BandedParameters,
    BandsParameters,
    BltParameters,
    CoefficientsParameters,
    InverseParameters,
    TreeParameters,
)
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError, TacitError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import (
    PUBLISHED_BLT,
    Banded,
    BandedInverse,
    BandedToeplitz,
    Blt,
    Dense,
    Independent,
    Matrix,
    Strategy,
    Tree,
)
from tacit.progress import Progress

FEW = 4  # bands where memory must be small

# -- strategies --------------------------------------------------------------------------------------------------------


def _width(participation: Participation, bands: int | None) -> int:
    """As many bands as the separation where nobody says how many. Raises: InputError for more than there are rounds."""
    if bands is not None and bands > participation.rounds:
        raise InputError(f"bands={bands} are more than the {participation.rounds} rounds; give at most as many.")
    return min(participation.min_separation, participation.rounds) if bands is None else bands


def _tree(participation: Participation, objective: Objective, given: TreeParameters, progress: Progress) -> Strategy:
    return Tree(restarts=given.restarts)


def _reduced(participation: Participation, objective: Objective, given: TreeParameters, progress: Progress) -> Strategy:
    return Tree(restarts=given.restarts, variance_reduced=True)


def _blt(
    participation: Participation,
    objective: Objective,
    given: BltParameters,
    progress: Progress,
    workload: Workload = PREFIX,
) -> Strategy:
    if given.theta is not None and given.omega is not None:
        return Blt(theta=given.theta, omega=given.omega)
    from tacit.design.blt import design_blt

    buffers = BUFFERS if given.buffers is None else given.buffers
    return design_blt(participation, buffers=buffers, objective=objective, workload=workload)


def _robust_blt(several: Sequence[Participation], objective: Objective, given: BltParameters) -> Strategy:
    from tacit.design.blt import design_robust_blt

    return design_robust_blt(several, buffers=BUFFERS if given.buffers is None else given.buffers, objective=objective)


def _toeplitz(
    participation: Participation,
    objective: Objective,
    given: BandedParameters,
    progress: Progress,
    workload: Workload = PREFIX,
) -> Strategy:
    if given.coefficients is not None:
        return BandedToeplitz(coefficients=given.coefficients)
    from tacit.design.toeplitz import design_banded_toeplitz

    bands = _width(participation, given.bands)
    return design_banded_toeplitz(participation, bands=bands, objective=objective, workload=workload)


def _inverse(
    participation: Participation,
    objective: Objective,
    given: InverseParameters,
    progress: Progress,
    workload: Workload = PREFIX,
) -> Strategy:
    if given.coefficients is not None:
        return BandedInverse(coefficients=given.coefficients)
    from tacit.design.toeplitz import design_banded_inverse

    bands = min(BUFFERS + 1, participation.rounds) if given.bands is None else given.bands
    return design_banded_inverse(
        participation, bands=bands, objective=objective, falling=given.falling, workload=workload
    )


def _lambda(
    participation: Participation,
    objective: Objective,
    given: CoefficientsParameters,
    progress: Progress,
    workload: Workload = PREFIX,
) -> Strategy:
    if given.coefficients is None:
        from tacit.design.toeplitz import design_lambda_cgd

        return design_lambda_cgd(participation, objective=objective, workload=workload)
    if len(given.coefficients) > 2:
        raise InputError(
            f"{len(given.coefficients)} coefficients were given, and lambda-cgd takes back a share of one seed; give 1 "
            "and minus that share, or take banded-inverse."
        )
    return BandedInverse(coefficients=given.coefficients)


def _root(
    participation: Participation,
    objective: Objective,
    given: BandsParameters,
    progress: Progress,
    workload: Workload = PREFIX,
) -> Strategy:
    from tacit.design.toeplitz import banded_square_root

    return banded_square_root(_width(participation, given.bands), workload)


def _inverse_root(
    participation: Participation,
    objective: Objective,
    given: BandsParameters,
    progress: Progress,
    workload: Workload = PREFIX,
) -> Strategy:
    from tacit.design.toeplitz import banded_inverse_square_root

    return banded_inverse_square_root(_width(participation, given.bands), workload)


def _banded(
    participation: Participation,
    objective: Objective,
    given: BandsParameters,
    progress: Progress,
    workload: Workload = PREFIX,
) -> Matrix:
    from tacit.design.banded import design_banded

    bands = participation.min_separation if given.bands is None else given.bands
    return design_banded(participation, bands=bands, objective=objective, workload=workload, progress=progress)


def _dense(
    participation: Participation,
    objective: Objective,
    given: Parameters,
    progress: Progress,
    workload: Workload = PREFIX,
) -> Matrix:
    from tacit.design.dense import design_dense

    return design_dense(participation, workload=workload, progress=progress)


def _full_tree(participation: Participation, objective: Objective, given: Parameters, progress: Progress) -> Matrix:
    from tacit.design.dense import full_tree

    return full_tree(participation.rounds)


def _full_tree_cost(strategy: Strategy, participation: Participation) -> Losses:
    """By the closed form of the best decoder: the matrix has an entry for each two rounds."""
    from tacit.design.dense import full_tree_losses

    return full_tree_losses(participation)


# -- what a comparison tries -------------------------------------------------------------------------------------------


def _widths(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    """Four bands, and as many as the separation."""
    wide = _width(participation, None)
    return [mechanism.given({"bands": bands}) for bands in sorted({min(FEW, participation.rounds), wide})]


def _few(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    return [mechanism.given({"bands": min(FEW, participation.rounds)})]


def _wide(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    return [mechanism.given({"bands": _width(participation, None)})]


def _buffers(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    return [BltParameters(buffers=buffers) for buffers in (2, 3, BUFFERS)]


def _once(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    """Only where clients come once."""
    return [Parameters()] if participation.effective.max_participations == 1 else []


def _not(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    return []


# -- the catalogue -----------------------------------------------------------------------------------------------------

INDEPENDENT = Mechanism.fixed(
    "independent",
    Independent(),
    "fresh noise every round",
    "Fresh noise every round: what all the others are measured against.",
    adapts=True,
)
TREE = Mechanism(
    name="tree",
    says="binary tree, as released",
    explains="Binary-tree aggregation, one seed for each node.",
    build=_tree,
    parameters=TreeParameters,
    examples=(TreeParameters(), TreeParameters(restarts=(5,))),
    adapts=True,
)
TREE_VARIANCE_REDUCED = Mechanism(
    name="tree-variance-reduced",
    says="the same, Honaker's estimate",
    explains="Binary-tree aggregation, estimated from all nodes below a node and not from one (Honaker).",
    build=_reduced,
    parameters=TreeParameters,
    examples=(TreeParameters(), TreeParameters(restarts=(5,))),
    adapts=True,
)
TREE_FULL = Mechanism(
    name="tree-full",
    says="the nodes, decoded at best",
    explains="TreeAgg-Full: the tree's nodes with their best decoder, a dense matrix; for these rounds only.",
    build=_full_tree,
    matrix=Dense,
    cost=_full_tree_cost,
)
BLT = Mechanism(
    name="blt",
    says=f"{BUFFERS} buffers, designed here",
    explains="A buffered linear Toeplitz mechanism: a few buffers, any number of rounds.",
    build=_blt,
    build_for=_blt,
    parameters=BltParameters,
    examples=(BltParameters(buffers=2), BltParameters(theta=(0.9, 0.5), omega=(0.1, 0.3))),
    compared=_buffers,
    build_robust=_robust_blt,
)
PUBLISHED = tuple(
    Mechanism.fixed(
        f"blt-{name}",
        blt,
        f"published, for b = {name[1:]}",
        f"The published BLT that was designed for a separation of {name[1:]} and 2,000 rounds.",
        compared=_not,
    )
    for name, blt in PUBLISHED_BLT.items()
)
BANDED_TOEPLITZ = Mechanism(
    name="banded-toeplitz",
    says="b bands, designed here",
    explains="BandToep: the best so many falling coefficients of C; any number of rounds.",
    build=_toeplitz,
    build_for=_toeplitz,
    parameters=BandedParameters,
    # Beyond the separation the others come out as zeros.
    examples=(BandedParameters(bands=3), BandedParameters(bands=7), BandedParameters(coefficients=(1.0, 0.5, 0.25))),
    compared=_widths,
)
SQUARE_ROOT = Mechanism(
    name="square-root",
    says="b bands, in closed form",
    explains="BSR: C begins like the square root of the prefix sums; a closed form.",
    build=_root,
    build_for=_root,
    parameters=BandsParameters,
    examples=(BandsParameters(bands=4), BandsParameters()),
    compared=_widths,
)
INVERSE_SQUARE_ROOT = Mechanism(
    name="inverse-square-root",
    says="b bands of C^-1, in closed form",
    explains="BISR: C inverse begins like the inverse of the square root; a closed form.",
    build=_inverse_root,
    build_for=_inverse_root,
    parameters=BandsParameters,
    examples=(BandsParameters(bands=3),),
    compared=_widths,
)
BANDED_INVERSE = Mechanism(
    name="banded-inverse",
    says=f"{BUFFERS + 1} bands of C^-1, designed here",
    explains="BandInvMF: the best so many coefficients of C inverse; any number of rounds.",
    build=_inverse,
    build_for=_inverse,
    parameters=InverseParameters,
    examples=(InverseParameters(bands=4, falling=True), InverseParameters(coefficients=(1.0, -0.5))),
    compared=_few,
)
LAMBDA_CGD = Mechanism(
    name="lambda-cgd",
    says="takes back part of the last noise",
    explains="DP-lambdaCGD: take back a share of the last seed, the best share; one seed drawn again, nothing kept.",
    build=_lambda,
    build_for=_lambda,
    parameters=CoefficientsParameters,
    examples=(CoefficientsParameters(),),
)
BANDED = Mechanism(
    name="banded",
    says="b bands, every entry free",
    explains="BandMF: a banded matrix with every entry free; for these rounds only. Takes seconds to minutes.",
    build=_banded,
    build_for=_banded,
    parameters=BandsParameters,
    examples=(BandsParameters(),),
    compared=_wide,
    matrix=Banded,
    objective="rms",
)
DENSE = Mechanism(
    name="dense",
    says="the optimal matrix for one participation",
    explains="The optimal matrix (rms) where clients come once; for these rounds only. Takes seconds.",
    build=_dense,
    build_for=_dense,
    compared=_once,
    matrix=Dense,
    objective="rms",
)

MECHANISMS: dict[str, Mechanism] = {
    each.name: each
    for each in (
        INDEPENDENT,
        TREE,
        TREE_VARIANCE_REDUCED,
        BLT,
        *PUBLISHED,
        BANDED_TOEPLITZ,
        SQUARE_ROOT,
        INVERSE_SQUARE_ROOT,
        BANDED_INVERSE,
        LAMBDA_CGD,
        TREE_FULL,
        BANDED,
        DENSE,
    )
}
"""Every mechanism by its name; one's own may be added."""


def mechanism_named(name: str) -> Mechanism:
    """The mechanism of that name, or at `package.module:NAME`; InputError where there is none."""
    if ":" in name:
        return imported(name)
    if name not in MECHANISMS:
        near = get_close_matches(name, MECHANISMS, n=1)
        meant = f"; did you mean {near[0]}?" if near else "."
        raise InputError(f"mechanism {name!r} is none of {', '.join(MECHANISMS)}{meant}")
    return MECHANISMS[name]


def chosen(
    values: Mapping[str, Any], *, error: type[TacitError] = InputError, where: str = "mechanism"
) -> ChosenMechanism:
    """The mechanism that plain values say: its `name`, and its parameters beside it.

    Raises: `error` naming the key that is unknown or of the wrong kind; InputError where they contradict each other.
    """
    name = values.get("name")
    if not isinstance(name, str):
        raise error(f"{where} has {'no' if name is None else 'a wrong'} name; give one of {', '.join(MECHANISMS)}.")
    mechanism = mechanism_named(name)
    parameters = mechanism.given(
        {key: value for key, value in values.items() if key != "name"}, error=error, where=where
    )
    return ChosenMechanism(mechanism=mechanism, parameters=parameters, path=name if ":" in name else None)
