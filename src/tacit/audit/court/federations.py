"""Faults of sums over clients: noise for more of them than came, and a sum that does not fit its integers."""

import math

import numpy as np

from tacit.audit.court.correlated import release
from tacit.audit.court.exhibit import Exhibit, Version

SAMPLED, CAME = 10, 5
LARGEST, EXAMPLES, NODES = (1 << 13) - 1, 60_000, 9


def _mean(noised_for: int) -> Version:
    """The mean of CAME clients' clipped updates; each adds its share of noise for so many of them.

    The shares' sum is to be noise of 1 clip norm on the sum, hence 1 / CAME on the mean, which one client moves by as
    much at most: mu is 1. The thread is a reviewer's remark on clients that drop out.
    """
    return Version(1.0, release(np.array([1 / CAME]), np.full((1, CAME), 1 / CAME / math.sqrt(noised_for))))


def _modular(bits: int) -> Version:
    """A secure sum of NODES clients' largest values, times their examples, in so many bits; then noise of mu = 1.

    The thread is of sums that come out wrong. That they tell of a client follows where a server adds noise to what was
    decoded: it is made for a client who moves the sum by one value, and a sum that wraps moves by all of them.
    """
    value = LARGEST * EXAMPLES
    without, within = ((NODES - missing) * value % (1 << bits) / value for missing in (1, 0))
    return Version(1.0, release(np.array([within - without]), np.eye(1)))


FEDERATIONS = (
    Exhibit(
        number=10,
        name="Flower: noise for all sampled clients, of whom half drop out",
        source="https://github.com/flwrlabs/flower/pull/1357",
        threat_model="the noisy mean of a round is seen, and how many clients came",
        measure="mu",
        law="normal",
        broken=_mean(SAMPLED),
        mended=_mean(CAME),
    ),
    Exhibit(
        number=11,
        name="Fed-BioMed: a secure sum that overflows 32 bits",
        source="https://github.com/fedbiomed/fedbiomed/issues/1210",
        threat_model="the decoded sum is seen after central noise; the other clients' values are known",
        measure="mu",
        law="normal",
        broken=_modular(32),
        mended=_modular(64),
    ),
)
