"""Each mechanism of the catalogue by its name, without its search: what may be said of it, and its strategy where that
says it all, in numbers or as a closed form.

This is what a device carries of the catalogue: it reckons with strategies that others designed. The same table says
what `tacit.design.catalogue` makes of such numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from tacit.design.parameters import (
    BandedParameters,
    BandsParameters,
    BltParameters,
    InverseParameters,
    LambdaParameters,
    Parameters,
    TreeParameters,
    width,
)
from tacit.design.square_root import prefix_root
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

InNumbers = Callable[[Any, Participation], Strategy]
"""(parameters that need no design, who takes part) -> their strategy, for prefix sums where the workload matters."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """The strategies of one mechanism: matrices for the rounds of one run, or `strategy` where nothing is searched."""

    parameters: type[Parameters] = Parameters
    strategy: InNumbers | None = None
    matrix: type[Matrix] | None = None


def _fixed(strategy: Strategy) -> Family:
    return Family(strategy=lambda given, participation: strategy)


def _lambda_cgd(given: LambdaParameters, participation: Participation) -> Strategy:
    assert given.coefficients is not None
    if len(given.coefficients) > 2:
        raise InputError(
            f"{len(given.coefficients)} coefficients were given, and lambda-cgd takes back a share of one seed; give 1 "
            "and minus that share, or take banded-inverse."
        )
    return BandedInverse(coefficients=given.coefficients)


def _root(given: BandsParameters, participation: Participation) -> Strategy:
    return BandedToeplitz(tuple(prefix_root(width(participation, given.bands)).tolist()))


def _inverse_root(given: BandsParameters, participation: Participation) -> Strategy:
    return BandedInverse(tuple(prefix_root(width(participation, given.bands), inverse=True).tolist()))


FAMILIES: Mapping[str, Family] = {
    "independent": _fixed(Independent()),
    "tree": Family(parameters=TreeParameters, strategy=lambda given, _: Tree(restarts=given.restarts)),
    "tree-variance-reduced": Family(
        parameters=TreeParameters, strategy=lambda given, _: Tree(restarts=given.restarts, variance_reduced=True)
    ),
    "blt": Family(parameters=BltParameters, strategy=lambda given, _: Blt(theta=given.theta, omega=given.omega)),
    **{f"blt-{name}": _fixed(strategy) for name, strategy in PUBLISHED_BLT.items()},
    "banded-toeplitz": Family(
        parameters=BandedParameters, strategy=lambda given, _: BandedToeplitz(coefficients=given.coefficients)
    ),
    "square-root": Family(parameters=BandsParameters, strategy=_root),
    "inverse-square-root": Family(parameters=BandsParameters, strategy=_inverse_root),
    "banded-inverse": Family(
        parameters=InverseParameters, strategy=lambda given, _: BandedInverse(coefficients=given.coefficients)
    ),
    "lambda-cgd": Family(parameters=LambdaParameters, strategy=_lambda_cgd),
    "tree-full": Family(matrix=Dense),
    "banded": Family(parameters=BandsParameters, matrix=Banded),
    "dense": Family(matrix=Dense),
}
"""In the order of tables, as in the catalogue."""


def in_numbers(name: str, parameters: Parameters, participation: Participation) -> Strategy | None:
    """The strategy that a mechanism's parameters say; None where it is a matrix, or still to be designed."""
    family = FAMILIES[name]
    if family.strategy is None or parameters.needs_design:
        return None
    return family.strategy(parameters, participation)


def checked_name(name: str) -> str:
    """Raises: InputError where no mechanism of the catalogue is called so."""
    if name not in FAMILIES:
        near = get_close_matches(name, FAMILIES, n=1)
        meant = f"; did you mean {near[0]}?" if near else "."
        raise InputError(f"mechanism {name!r} is none of {', '.join(FAMILIES)}{meant}")
    return name


def name_in(values: Mapping[str, Any], *, error: type[TacitError], where: str) -> str:
    """The name of a mechanism among plain values, whatever it is. Raises: `error` where there is none."""
    name = values.get("name")
    if not isinstance(name, str):
        raise error(f"{where} has {'no' if name is None else 'a wrong'} name; give one of {', '.join(FAMILIES)}.")
    return name


def without_name(values: Mapping[str, Any]) -> dict[str, Any]:
    """What plain values say beside the name: the parameters."""
    return {key: value for key, value in values.items() if key != "name"}


# -- a recipe's table [privacy.mechanism], for whoever does not trust who wrote it: nothing is searched for ------------


def matrix_kind(mechanism: Mapping[str, Any]) -> type[Matrix] | None:
    """The class of the strategy of a recipe's table [privacy.mechanism], where that is a matrix told number by number.

    Raises: InputError for a mechanism of one's own, whose code is not imported, and for what is none.
    """
    name, _ = _of_ours(mechanism)
    return FAMILIES[name].matrix


def strategy_in_numbers(mechanism: Mapping[str, Any], participation: Participation) -> Strategy:
    """The strategy of a recipe's table [privacy.mechanism]: its numbers have to be there, or be a closed form.

    Raises: InputError for a mechanism of one's own, a wish, a matrix, and what is none.
    """
    name, parameters = _of_ours(mechanism)
    found = in_numbers(name, parameters, participation)
    if found is None:
        raise InputError(
            f"mechanism {name!r} is not there in numbers, and designing it here could find others; give its "
            "coefficients (a resolved recipe has them), or a mechanism that is no matrix."
        )
    return found


def _of_ours(mechanism: Mapping[str, Any]) -> tuple[str, Parameters]:
    """The name of a mechanism of tacit's, and what is said of it."""
    name = mechanism.get("name")
    if isinstance(name, str) and ":" in name:
        raise InputError(f"mechanism {name!r} is code of somebody's own, which is not run here; name one of tacit's.")
    name = checked_name(name_in(mechanism, error=InputError, where="mechanism"))
    said = without_name(mechanism)
    return name, FAMILIES[name].parameters.from_values(said, mechanism=name, where="mechanism")
