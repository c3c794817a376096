"""What mechanisms of bands share: what may be said of them, and the widths that a comparison tries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from tacit.design.mechanism import Mechanism, Parameters, checked_least
from tacit.errors import InputError
from tacit.privacy.participation import Participation

FEW = 4  # bands where memory must be small


@dataclass(frozen=True, kw_only=True)
class BandsParameters(Parameters):
    """How many bands, of what is a closed form or a matrix."""

    bands: Annotated[int | None, "Coefficients that are not zero; left out, as many as the separation."] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_least("bands", self.bands)


@dataclass(frozen=True, kw_only=True)
class CoefficientsParameters(Parameters):
    """The coefficients of the first column."""

    coefficients: Annotated[
        tuple[float, ...] | None, "The coefficients, from the diagonal down: 1.0,0.5,0.375; left out, designed."
    ] = None

    @property
    def needs_design(self) -> bool:
        """Unless the numbers are given."""
        return self.coefficients is None


@dataclass(frozen=True, kw_only=True)
class BandedParameters(CoefficientsParameters):
    """The coefficients, or how many."""

    ways: ClassVar = (("coefficients",), ("bands",))
    bands: Annotated[
        int | None,
        "Or how many, to be designed; so many vectors of the model's size, less one, are kept. Left out, as many as "
        "the separation.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_least("bands", self.bands)


def width(participation: Participation, bands: int | None) -> int:
    """As many bands as the separation where nobody says how many. Raises: InputError for more than there are rounds."""
    if bands is not None and bands > participation.rounds:
        raise InputError(f"bands={bands} are more than the {participation.rounds} rounds; give at most as many.")
    return min(participation.min_separation, participation.rounds) if bands is None else bands


def few(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    """Four bands."""
    return [mechanism.given({"bands": min(FEW, participation.rounds)})]


def wide(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    """As many bands as the separation."""
    return [mechanism.given({"bands": width(participation, None)})]


def few_and_wide(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    """Both, the fewer first."""
    tried = {min(FEW, participation.rounds), width(participation, None)}
    return [mechanism.given({"bands": bands}) for bands in sorted(tried)]
