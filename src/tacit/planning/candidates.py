"""The mechanisms that a plan can choose from: how each gets its strategy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType

from tacit.design.blt import design_blt
from tacit.design.losses import Objective
from tacit.design.toeplitz import banded_square_root, design_banded_inverse, design_banded_toeplitz, design_lambda_cgd
from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import PUBLISHED_BLT, Independent, Strategy, Tree

BUFFERS = 4  # of a designed BLT, as in production (arXiv:2408.08868, Section 5)
Build = Callable[[Participation, Objective], Strategy]


@dataclass(frozen=True)
class Mechanism:
    """A mechanism by name: `says` describes it in a few words, `build` makes its strategy for a participation."""

    name: str
    says: str
    build: Build

    @classmethod
    def fixed(cls, name: str, strategy: Strategy, says: str = "") -> "Mechanism":
        """One strategy whatever the participation."""
        return cls(name, says, partial(_always, strategy))

    def strategy(self, participation: Participation, objective: Objective) -> Strategy:
        """The strategy for this participation; one that was designed before is remembered."""
        return _built(self.build, participation, objective)


@lru_cache(maxsize=4096)
def _built(build: Build, participation: Participation, objective: Objective) -> Strategy:
    return build(participation, objective)


def _always(strategy: Strategy, participation: Participation, objective: Objective) -> Strategy:
    return strategy


def _blt(participation: Participation, objective: Objective) -> Strategy:
    return design_blt(participation, buffers=BUFFERS, objective=objective)


def _bands(participation: Participation) -> int:
    return min(participation.min_separation, participation.rounds)


def _square_root(participation: Participation, objective: Objective) -> Strategy:
    return banded_square_root(_bands(participation))


def _banded_toeplitz(participation: Participation, objective: Objective) -> Strategy:
    return design_banded_toeplitz(participation, bands=_bands(participation), objective=objective)


def _banded_inverse(participation: Participation, objective: Objective) -> Strategy:
    return design_banded_inverse(participation, bands=min(BUFFERS + 1, participation.rounds), objective=objective)


def _lambda_cgd(participation: Participation, objective: Objective) -> Strategy:
    return design_lambda_cgd(participation, objective=objective)


def _catalogue() -> Mapping[str, Mechanism]:
    known = [
        Mechanism.fixed("independent", Independent(), "fresh noise every round"),
        Mechanism.fixed("tree", Tree(), "binary tree, as released"),
        Mechanism.fixed("tree-reduced", Tree(variance_reduced=True), "the same, Honaker's estimate"),
        Mechanism("blt", f"{BUFFERS} buffers, designed here", _blt),
        *(Mechanism.fixed(f"blt-{name}", blt, f"published, for b = {name[1:]}") for name, blt in PUBLISHED_BLT.items()),
        Mechanism("banded-toeplitz", "b bands, designed here", _banded_toeplitz),
        Mechanism("banded-square-root", "b bands, in closed form", _square_root),
        Mechanism("banded-inverse", f"{BUFFERS + 1} bands of C^-1, designed here", _banded_inverse),
        Mechanism("lambda-cgd", "takes back part of the last noise", _lambda_cgd),
    ]
    return MappingProxyType({each.name: each for each in known})


MECHANISMS = _catalogue()


def mechanism_named(name: str) -> Mechanism:
    """The mechanism of that name; InputError where there is none."""
    if name not in MECHANISMS:
        raise InputError(f"mechanism {name!r} is none of {', '.join(MECHANISMS)}.")
    return MECHANISMS[name]
