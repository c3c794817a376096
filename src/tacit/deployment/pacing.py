"""When devices without work come back: often enough to fill rounds, seldom enough for a server, spread evenly.

Of N devices that each come once in T seconds, N / T come in a second. T is the shortest of at least LEAST_S with which
no more than CHECK_INS come: ten devices on a desk are asked every few seconds, a hundred million about once a day. Each
draws its time uniformly from T / 2 to 3 T / 2, so that devices which were sent away together do not return together.
Shape: arXiv:1902.01046, Section 2.3.
"""

from typing import NamedTuple

CHECK_INS = 1000.0  # a second, of a whole population: a tenth of what two cores answer (docs/results/deployment.md)
LEAST_S, MOST_S = 6.0, 172_800.0  # of T; what more than two days apart comes hardly ever finds a round
UNKNOWN_S = 30.0  # T of a population whose runs, and whose size, are not known (yet)


class Window(NamedTuple):
    """From when until when to come back, in seconds from now."""

    after: float
    before: float


def window(devices: int) -> Window:
    """For devices of a population of about so many; 0: not known."""
    period = UNKNOWN_S if not devices else min(MOST_S, max(LEAST_S, devices / CHECK_INS))
    return Window(period / 2, 1.5 * period)
