"""What may be said of each mechanism of the catalogue: the keys of a recipe and the options of a command."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from tacit.design.mechanism import Parameters, checked_least

BUFFERS = 4  # of a designed BLT, as in production (arXiv:2408.08868, Section 5)


@dataclass(frozen=True, kw_only=True)
class TreeParameters(Parameters):
    """Trees begin again where they are told to."""

    restarts: Annotated[tuple[int, ...], "Rounds at which a new tree begins, counted from 0: 128,1152."] = ()


@dataclass(frozen=True, kw_only=True)
class BltParameters(Parameters):
    """Numbers of one's own, or how many buffers."""

    ways: ClassVar = (("theta", "omega"), ("buffers",))
    theta: Annotated[tuple[float, ...] | None, "Decays of the buffers, in (0, 1]: 0.99,0.7."] = None
    omega: Annotated[tuple[float, ...] | None, "With their weights, above 0: 0.1,0.2."] = None
    buffers: Annotated[
        int | None, f"Or how many buffers of the model's size the noise keeps, to be designed; left out, {BUFFERS}."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_least("buffers", self.buffers)

    @property
    def is_wish(self) -> bool:
        """Unless the numbers are given."""
        return self.theta is None


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
    def is_wish(self) -> bool:
        """Unless the numbers are given."""
        return self.coefficients is None


@dataclass(frozen=True, kw_only=True)
class BandedParameters(CoefficientsParameters):
    """The coefficients, or how many."""

    ways: ClassVar = (("coefficients",), ("bands",))
    bands: Annotated[
        int | None, "Or how many, to be designed: so many vectors of the model's size, less one, are kept."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_least("bands", self.bands)


@dataclass(frozen=True, kw_only=True)
class InverseParameters(BandedParameters):
    """The coefficients of the inverse, or how many, and of which kind."""

    falling: Annotated[bool, "Design only C that falls: an exact sensitivity."] = False
