"""What may be said of mechanisms: the parameters of each, which are keys of a recipe and options of a command."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Self

from tacit.errors import InputError, TacitError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Strategy
from tacit.records import from_plain

BUFFERS = 4  # of a designed BLT, as in production (arXiv:2408.08868, Section 5)
BANDS = BUFFERS + 1  # of an inverse that is designed: it keeps as many vectors as a BLT


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What may be said of a mechanism: each field is a key of a recipe and an option of a command.

    A field's type is `Annotated` with what it means, in a few words. Fields that are None were not given.
    """

    ways: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """The ways to say which strategy of its family it is: at most one of them, whole."""

    def __post_init__(self) -> None:
        begun = [way for way in self.ways if any(getattr(self, name) is not None for name in way)]
        if len(begun) > 1:
            choices = ", or ".join(" with ".join(way) for way in self.ways)
            raise InputError(f"{choices} say which strategy it is, and several are given; give one of them.")
        if begun and any(getattr(self, name) is None for name in begun[0]):
            raise InputError(f"{' and '.join(begun[0])} come together; give both.")

    @property
    def needs_design(self) -> bool:
        """Whether the strategy is still to be designed: searched for, so that another machine could find other last
        digits. A run keeps the numbers that were found.
        """
        return False

    def settled(self, strategy: Strategy) -> Self:
        """The same wish with the numbers of the strategy that was designed for it."""
        return type(self)(**strategy.numbers())

    @classmethod
    def from_values(
        cls, values: Mapping[str, Any], *, mechanism: str, error: type[TacitError] = InputError, where: str = ""
    ) -> Self:
        """From plain values, said of a mechanism. Raises: `error` naming the key, InputError where they contradict."""
        names = [each.name for each in fields(cls)]
        foreign = sorted(values.keys() - set(names))
        if foreign:
            raise error(
                f"{where or 'parameter'}{'.' if where else ' '}{foreign[0]} does not belong to mechanism "
                f"'{mechanism}', which takes {', '.join(names) or 'nothing'}; drop it."
            )
        return from_plain(cls, dict(values), error=error, where=where)

    def to_plain(self) -> dict[str, Any]:
        """What was given, and what has a default, for TOML."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
            if value is not None
        }


def checked_least(name: str, value: int | None, minimum: int = 1) -> None:
    """InputError unless a number was left out or is at least `least`."""
    if value is not None and value < minimum:
        raise InputError(f"{name}={value} is below {minimum}; give at least {minimum}, or leave it out.")


@dataclass(frozen=True, kw_only=True)
class TreeParameters(Parameters):
    """Trees begin again where they are told to."""

    restarts: Annotated[
        tuple[int, ...], "Rounds at which a new tree begins, counted from 0: 128,1152; each costs privacy."
    ] = ()


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
    def needs_design(self) -> bool:
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


@dataclass(frozen=True, kw_only=True)
class InverseParameters(BandedParameters):
    """The coefficients of the inverse, or how many, and of which kind."""

    bands: Annotated[int | None, f"Or how many, to be designed; left out, {BANDS}."] = None
    falling: Annotated[bool, "Design only C that falls: an exact sensitivity."] = False


@dataclass(frozen=True, kw_only=True)
class LambdaParameters(CoefficientsParameters):
    """The share, as the coefficients of the inverse."""

    coefficients: Annotated[
        tuple[float, ...] | None, "1 and minus the share that is taken back: 1.0,-0.9; left out, the best share."
    ] = None


def width(participation: Participation, bands: int | None) -> int:
    """As many bands as the separation where nobody says how many. Raises: InputError for more than there are rounds."""
    if bands is not None and bands > participation.rounds:
        raise InputError(f"bands={bands} are more than the {participation.rounds} rounds; give at most as many.")
    return min(participation.min_separation, participation.rounds) if bands is None else bands
