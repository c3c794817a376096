"""The one table of mechanisms, and its entries by name."""

from collections.abc import Mapping
from typing import Any

from tacit.design.catalogue.banded import BANDED
from tacit.design.catalogue.banded_inverse import BANDED_INVERSE
from tacit.design.catalogue.banded_toeplitz import BANDED_TOEPLITZ
from tacit.design.catalogue.blt import BLT, PUBLISHED
from tacit.design.catalogue.dense import DENSE
from tacit.design.catalogue.independent import INDEPENDENT
from tacit.design.catalogue.lambda_cgd import LAMBDA_CGD
from tacit.design.catalogue.square_root import INVERSE_SQUARE_ROOT, SQUARE_ROOT
from tacit.design.catalogue.tree import TREE, TREE_FULL, TREE_VARIANCE_REDUCED
from tacit.design.families import checked_name, name_in, without_name
from tacit.design.mechanism import ChosenMechanism, Mechanism, imported
from tacit.errors import InputError, TacitError

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
"""Every mechanism by its name, in the order of tables, which also decides between equal losses."""


def mechanism_named(name: str) -> Mechanism:
    """The mechanism of that name, or at `package.module:NAME`; InputError where there is none."""
    if ":" in name:
        return imported(name)
    return MECHANISMS[checked_name(name)]


def chosen(
    values: Mapping[str, Any], *, error: type[TacitError] = InputError, where: str = "mechanism"
) -> ChosenMechanism:
    """The mechanism that plain values say: its `name`, and its parameters beside it.

    Raises: `error` naming the key that is unknown or of the wrong kind; InputError where they contradict each other.
    """
    name = name_in(values, error=error, where=where)
    mechanism = mechanism_named(name)
    parameters = mechanism.parameters_from(without_name(values), error=error, where=where)
    return ChosenMechanism(mechanism=mechanism, parameters=parameters, path=name if ":" in name else None)
