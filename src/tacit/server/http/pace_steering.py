"""When devices without work come back: often enough to fill rounds, seldom enough for a server, spread evenly.

Of N devices that each come once in T seconds, N / T come in a second. T is the shortest of at least LEAST_S with which
no more than CHECK_INS come: ten devices on a desk are asked every few seconds, a hundred million about once a day. Each
draws its time uniformly from T / 2 to 3 T / 2, so that devices which were sent away together do not return together.
Shape: arXiv:1902.01046, Section 2.3.

N is counted, and guessed only before there was anything to count. Who was told to come back in T is away until then,
and is one device, so N is the number of those who are away: of the answers of age a the share P(U > a / T), U uniform
on [1/2, 3/2], whatever T was when they were given (Little's law, with the waits known). Devices that never return leave
the count with their time. Whoever asks without waiting counts as many, so T follows the count no further than WRONG
times what the recipe says.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

CHECK_INS = 1000.0  # a second, of a whole population: a tenth of what two cores answer (docs/results/deployment.md)
LEAST_S, MOST_S = 6.0, 172_800.0  # of T; what more than two days apart comes hardly ever finds a round
UNKNOWN_S = 30.0  # T of a population whose runs, and whose size, are not known (yet)
OVER = 1.5  # of T: by then who was sent away is due
STEP = 0.05  # relative: T is told anew when it is off by more
PARTS = 64  # of T: answers given within one are of one age
WRONG = 30.0  # times: by so much there may be more devices than the recipe says
DOUBT = 100.0  # devices: so many must have been expected before their absence speaks against the guess


class Window(NamedTuple):
    """From when until when to come back, in seconds from now."""

    after: float
    before: float


def window_of(period: float) -> Window:
    """In which devices come back that are to come once in so many seconds."""
    return Window(period / 2, OVER * period)


def period_of(devices: float) -> float:
    """T, in seconds, of a population of about so many; 0: not known."""
    return UNKNOWN_S if not devices else min(MOST_S, max(LEAST_S, devices / CHECK_INS))


def away(age: float) -> float:
    """P(U > age): the share that is still away when so much of T has passed since it was sent away."""
    return min(1.0, max(0.0, OVER - age))


def unseen(age: float) -> float:
    """The share of a population that was not seen when so much of T has passed, if it came evenly before: the integral
    of `away` from there on.
    """
    return 1 - age if age <= 0.5 else max(0.0, OVER - age) ** 2 / 2


class SharedRates(NamedTuple):
    """What a worker tells others of a population; `known` is what all of them together make of it."""

    away: float  # devices that it sent away and that are not due
    unseen: float  # devices that it was told of when it began, and that nobody has seen since


NOBODY = SharedRates(0.0, 0.0)


@dataclass
class _Sent:
    """Answers that were given within a short time, with one window."""

    since: float
    until: float
    count: int

    def away(self, now: float, period: float) -> float:
        return self.count * away((now - (self.since + self.until) / 2) / period)


class PaceSteering:
    """Of one population, as one worker sees it. Times are a steady clock's, in seconds.

    `sent` is counted up by whoever answers; all else is looked at now and then (`look`), by one thread.
    """

    def __init__(self, now: float, guess: float, *, others: SharedRates = NOBODY) -> None:
        """guess: devices besides those that other workers have sent away."""
        self.sent = 0  # answers, ever
        self.others, self.most = others, math.inf  # most: devices for which T is set
        self.devices = guess + others.away
        self.period = period_of(self.devices)
        self._began, self._guess, self._first = now, guess, period_of(guess)
        self._counted, self._looked = 0, now
        self._groups = list[tuple[float, _Sent]]()  # T and who was told it, the oldest first

    def look(self, now: float) -> SharedRates:
        """Count who is away, and set T by it."""
        new, since = self.sent - self._counted, self._looked
        self._counted, self._looked = self._counted + new, now
        if new:
            self._add(new, since, now)
        self._groups = [each for each in self._groups if each[1].away(now, each[0]) > 0]
        mine = sum(group.away(now, period) for period, group in self._groups)
        all_away = mine + self.others.away
        left = self._left(now, all_away)
        self.devices = all_away + max(left, self.others.unseen)
        period = period_of(min(max(self.devices, 1.0), self.most))
        if abs(period - self.period) > STEP * self.period:
            self.period = period
        return SharedRates(mine, left)

    def _left(self, now: float, seen: float) -> float:
        """What is left of the guess. It decays as the guessed devices check in, and shrinks in the ratio of the `seen`
        devices to those expected by now.
        """
        age = (now - self._began) / self._first
        expected = self._guess * (1 - unseen(age))
        return self._guess * unseen(age) * min(1.0, (DOUBT + seen) / (DOUBT + expected))

    def _add(self, count: int, since: float, now: float) -> None:
        if self._groups:
            period, last = self._groups[-1]
            if period == self.period and now - last.since <= period / PARTS:
                last.until, last.count = now, last.count + count
                return
        self._groups.append((self.period, _Sent(since, now, count)))
