"""A recipe's table [privacy.mechanism] back to its strategy, for whoever does not trust who wrote it.

Nothing is searched for, and no module of anybody's is imported.
"""

from collections.abc import Mapping
from typing import Any

from tacit.design.families import FAMILIES, checked_name, in_numbers, name_in, without_name
from tacit.design.parameters import Parameters
from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Matrix, Strategy


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
