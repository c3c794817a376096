"""What a design makes small: one of two losses."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tacit.errors import InputError

Objective: TypeAlias = Literal["max", "rms"]

POWERS: dict[Objective, tuple[float, ...]] = {"rms": (1.0,), "max": (1.0, 8.0, 64.0, 256.0)}
"""The power means of the rows' variances that a search lowers one after another: the largest has no gradient."""


def checked_objective(objective: str) -> Objective:
    """InputError unless it is max or rms."""
    if objective == "max":
        return "max"
    if objective == "rms":
        return "rms"
    raise InputError(f"objective {objective!r} is neither max nor rms; max is the papers' choice for production.")


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Errors are standard deviations of the prefix sums for seeds of standard deviation 1; the sensitivity is in
    clip norms, and an upper bound where it is not `exact`.
    """

    max_error: float
    rms_error: float
    sensitivity: float
    exact: bool = True

    @property
    def max_loss(self) -> float:
        """The largest error of a prefix sum at 1/2-zCDP, in clip norms."""
        return self.max_error * self.sensitivity

    @property
    def rms_loss(self) -> float:
        """The root mean square error of the prefix sums at 1/2-zCDP, in clip norms."""
        return self.rms_error * self.sensitivity

    def of(self, objective: Objective) -> float:
        """The loss by that name."""
        return self.rms_loss if checked_objective(objective) == "rms" else self.max_loss
