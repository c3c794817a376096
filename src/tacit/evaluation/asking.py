"""Who is asked: clients in a random order that anybody can draw again, so that the choice says nothing about anyone."""

import numpy as np
from numpy.typing import NDArray

PUBLIC_ORDER = 20_191_022  # the date of paper 5


def first_asked(clients: NDArray[np.int64], many: int) -> NDArray[np.int64]:
    """The first `many` of `clients` in the public order; all of them for 0."""
    order: NDArray[np.int64] = np.random.default_rng(PUBLIC_ORDER).permutation(clients)
    return order[: many or len(order)]
