"""What devices without identities keep by themselves, and which participation follows from it.

Nobody logs who took part, so nobody can measure how often anyone came; what is known is the rule that every device
applies to itself, and when the rounds were. By round index a device that took part in round i refuses every round
before i + b: MinS and MaxP are known before training. By a timer it stays away for so many seconds, and how many rounds
that was follows from the times of the rounds. Sensitivity is over the rounds of one device, so that a device which
keeps the rule has the guarantee whatever the others do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tacit.errors import InputError
from tacit.privacy.measured_participation import timed_participation
from tacit.privacy.participation import Participation

LONGEST = 1e9  # seconds of a timer: 31 years


@dataclass(frozen=True, kw_only=True)
class DeviceSeparation:
    """A device that took part in a round takes part in none that comes fewer than `rounds` after it, in none for
    `timer_seconds`, and in `most` rounds of the run; None: it does not count these. Its timer begins while the round is
    open, before it sends anything.

    Raises: InputError where the first two are None, or one is no number to keep.
    """

    rounds: int | None = None
    timer_seconds: float | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if self.rounds is None and self.timer_seconds is None:
            raise InputError("devices that keep no separation may come in every round; give rounds, or timer_seconds.")
        for name in ("rounds", "most"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value < 1):
                raise InputError(f"{name}={value} is no number of rounds to keep; give a whole number of at least 1.")
        if self.timer_seconds is not None and not 0 < self.timer_seconds <= LONGEST:
            raise InputError(
                f"timer_seconds={self.timer_seconds} is no period; give seconds from above 0 to {LONGEST:g}."
            )

    def realised(self, finished: ArrayLike, *, began: float) -> Participation:
        """The most that a device which keeps it can have taken part in rounds that finished at these times.

        finished: (rounds,) Unix seconds, never falling; of the round index only their number counts. began: before the
        first round was opened to devices. A device took part in a round after the one before had finished and before it
        finished itself (the clock "upload" of `timed_participation`). Both rules bind every device, so the
        stronger of the two holds. Raises: InputError where the times fall, by which a timer cannot be counted.
        """
        bounds = []
        if self.rounds is not None:
            bounds.append(self.by_index(len(np.atleast_1d(finished))))
        if self.timer_seconds is not None:
            bounds.append(timed_participation(finished, timer=self.timer_seconds, clock="upload", began=began))
        return self._bounded(bounds)

    def by_index(self, rounds: int) -> Participation:
        """What is known of so many rounds before any of them: all but what the timer adds."""
        apart = min(self.rounds or 1, rounds)
        return self._bounded([Participation.worst_case(rounds=rounds, min_separation=apart)])

    def _bounded(self, bounds: Sequence[Participation]) -> Participation:
        """What several bounds on one device, and the count that it keeps, allow together."""
        most = min(each.max_participations for each in bounds)
        most = most if self.most is None else min(most, self.most)
        apart = max(each.min_separation for each in bounds)
        return Participation(
            rounds=bounds[0].rounds,
            min_separation=bounds[0].rounds if most == 1 else apart,
            max_participations=most,
        )
