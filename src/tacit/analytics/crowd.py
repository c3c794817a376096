"""Which users answer which question: groups that share nobody, so that one user's reports are all in one layer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ParticipationError

Users = NDArray[np.int64]

_ORDER, _WHOSE_TEXT = 0, 1  # streams of the assignment, apart from each other and from the devices' own


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """The users of a campaign, in groups one after another.

    Each client of the population is one user, in an order that `assignment` decides. With `resampled` there are as
    many users as are asked for, each with the text of a client drawn anew: a simulation of a larger population that
    looks like this one, for which no guarantee about the real clients follows.
    """

    clients: int
    assignment: int
    resampled: bool = False

    def check(self, needed: int, *, way_out: str) -> None:
        """ParticipationError where the population is too small to ask so many users once each."""
        if not self.clients:
            raise ParticipationError(
                "the population has no client, so nobody can be asked; give a source with clients."
            )
        if needed > self.clients and not self.resampled:
            raise ParticipationError(
                f"the campaign asks {needed:,} users, the population has {self.clients:,}; {way_out}"
            )

    def group(self, begin: int, size: int) -> Users:
        """How many of the users begin..begin+size-1 hold each client's text: (clients,), summing to size."""
        if self.resampled:
            generator = np.random.default_rng([self.assignment, _WHOSE_TEXT, begin])
            return generator.multinomial(size, np.full(self.clients, 1 / self.clients)).astype(np.int64)
        order = np.random.default_rng([self.assignment, _ORDER]).permutation(self.clients)
        return np.bincount(order[begin : begin + size], minlength=self.clients).astype(np.int64)
