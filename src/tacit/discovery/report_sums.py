"""Which users answer which question: groups that share nobody, so that one user's reports are all in one layer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

    def group(self, begin: int, size: int) -> Users:
        """How many of the users begin..begin+size-1 hold each client's text: (clients,), summing to size."""
        if self.resampled:
            generator = np.random.default_rng([self.assignment, _WHOSE_TEXT, begin])
            return generator.multinomial(size, np.full(self.clients, 1 / self.clients)).astype(np.int64)
        order = np.random.default_rng([self.assignment, _ORDER]).permutation(self.clients)
        return np.bincount(order[begin : begin + size], minlength=self.clients).astype(np.int64)
