"""The widths of bands that a comparison tries."""

from collections.abc import Sequence

from tacit.design.mechanism import Mechanism
from tacit.design.parameters import Parameters, width
from tacit.privacy.participation import Participation

FEW = 4  # bands where memory must be small


def most_bands(participation: Participation) -> int:
    """How wide a matrix may be whose columns of one client must not overlap: to the separation; where a client comes
    once, to the rounds.
    """
    limits = participation.effective
    return limits.min_separation if limits.max_participations > 1 else limits.rounds


def few(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    """Four bands."""
    return [mechanism.parameters_from({"bands": min(FEW, participation.rounds)})]


def wide(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    """As many bands as the separation."""
    return [mechanism.parameters_from({"bands": width(participation, None)})]


def few_and_wide(mechanism: Mechanism, participation: Participation) -> Sequence[Parameters]:
    """Both, the fewer first."""
    tried = {min(FEW, participation.rounds), width(participation, None)}
    return [mechanism.parameters_from({"bands": bands}) for bands in sorted(tried)]
