"""The buffered linear Toeplitz matrices that cost least (in work)."""

from collections.abc import Sequence

from tacit.design.losses import Objective
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Blt


def design_blt(participation: Participation, *, buffers: int, objective: Objective = "max") -> Blt:
    """The BLT of least loss for one participation."""
    raise NotImplementedError


def design_robust_blt(participations: Sequence[Participation], *, buffers: int, objective: Objective = "max") -> Blt:
    """One BLT for several participations."""
    raise NotImplementedError
