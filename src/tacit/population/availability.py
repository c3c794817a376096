"""When a device may be asked: charging, left alone and on an unmetered network, by its own local clock.

A local day has two halves, the day from 8 to 19 o'clock and the night from 19 to 8, and each half at most one session:
the time in which all three conditions hold. Sessions are a model, not measured ones: they are drawn independently from
half to half, weekdays are like Sundays, and a device keeps its habits (its usual hour, how often it charges) for good.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.errors import InputError
from tacit.population.hashed_randomness import draw, gaussian, uniform

HOUR = 3_600_000  # milliseconds, in which all simulated times are counted: whole numbers, so that ties are exact
DAY = 24 * HOUR
DAY_BEGINS, NIGHT_BEGINS = 8, 19  # o'clock
DAY_HALF, NIGHT_HALF = 11 * HOUR, 13 * HOUR
SHORTEST = HOUR // 60  # of a session
LOOKAHEAD = 28  # halves of days searched at once for the next session
NEVER = 2**62

TRAIT_NETWORK, TRAIT_ZONE, TRAIT_RHYTHM, TRAIT_CHARGER = 0, 1, 2, 3  # the last has one number for each half


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{name}={value} is no share; give a number from 0 to 1.")


@dataclass(frozen=True, kw_only=True)
class HalfDay:
    """The sessions of one half of the day.

    A device is on its charger with its own probability, drawn once for good (a power of a uniform number, with mean
    `charging`: some devices nearly always, some hardly ever), and is then left alone with probability `idle`. The
    session begins around `starts` o'clock by the device's clock, with deviation `starts_spread` hours from day to day,
    and lasts `hours` with deviation `hours_spread`. Draws end at 3.46 deviations; what sticks out of the half is cut
    off. InputError for values that mean nothing.
    """

    charging: float
    idle: float
    starts: float
    starts_spread: float
    hours: float
    hours_spread: float

    def __post_init__(self) -> None:
        for name in ("charging", "idle"):
            _check_share(name, getattr(self, name))
        for name in ("starts_spread", "hours_spread"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name}={getattr(self, name)} is no deviation; give hours, 0 or more.")
        if not 0 < self.hours <= 24:
            raise InputError(f"hours={self.hours} is no length of a session; give hours above 0 and at most 24.")
        if not 0 <= self.starts < 24:
            raise InputError(f"starts={self.starts} is no time of the day; give an hour from 0 to below 24.")


@dataclass(frozen=True, kw_only=True)
class Availability:
    """Who can be reached at all, and when.

    `zones` are (hours ahead of UTC, weight) pairs, and a device's clock is ahead of its zone's by a Gaussian
    of deviation `rhythm_spread` hours: early and late risers.

    The defaults have the shape of arXiv:1902.01046, Section 9: about four times as many devices at the best hour as at
    the worst, over the time zones of the United States. How many that are in all no paper says; a fifth of the
    devices on average is a guess that puts the timers and separations of arXiv:2305.18465, Table 1, within reach (see
    docs/populations.md). InputError where nobody would ever come.
    """

    unmetered: float = 0.9  # share of devices that have a network without a meter; the others never come
    night: HalfDay = HalfDay(charging=0.8, idle=0.7, starts=22.0, starts_spread=1.0, hours=8.5, hours_spread=1.5)
    day: HalfDay = HalfDay(charging=0.7, idle=0.6, starts=13.0, starts_spread=2.5, hours=5.0, hours_spread=1.5)
    rhythm_spread: float = 2.0
    zones: tuple[tuple[float, float], ...] = ((0.0, 1.0),)

    def __post_init__(self) -> None:
        _check_share("unmetered", self.unmetered)
        shares = [self.unmetered * half.charging * half.idle for half in (self.day, self.night)]
        if not max(shares) > 0:
            raise InputError(
                f"unmetered={self.unmetered}, charging={self.day.charging} by day and {self.night.charging} by night, "
                f"idle={self.day.idle} and {self.night.idle}: no device is ever available; raise what is 0."
            )
        for name, half, begins, length in (
            ("day", self.day, DAY_BEGINS, DAY_HALF),
            ("night", self.night, NIGHT_BEGINS, NIGHT_HALF),
        ):
            if not (half.starts - begins) % 24 * HOUR < length:
                ends = (begins + length // HOUR) % 24
                raise InputError(
                    f"{name}.starts={half.starts} is not in the {name}, which lasts from {begins} to {ends} o'clock; "
                    "give an hour in it."
                )
        if not 0 <= self.rhythm_spread <= 3:
            raise InputError(f"rhythm_spread={self.rhythm_spread} is no deviation between 0 and 3 hours; give one.")
        if not self.zones or not all(abs(hours) <= 14 and 0 <= weight < math.inf for hours, weight in self.zones):
            raise InputError(
                f"zones={self.zones} are no time zones; give (hours ahead of UTC within 14, weight) pairs."
            )
        if not sum(weight for _, weight in self.zones) > 0:
            raise InputError(f"zones={self.zones} weigh nothing together; give one of them a weight above 0.")


class Half(NamedTuple):
    """A HalfDay for the compiled loops; times in milliseconds from the beginning of the half."""

    power: float  # a uniform number to this power is how often a device charges
    idle: float
    begins: float
    begins_spread: float
    length: float
    length_spread: float


class Sessions(NamedTuple):
    """An Availability for the compiled loops."""

    traits: np.uint64  # keys
    present: np.uint64
    begin: np.uint64
    length: np.uint64
    unmetered: float
    zone_up_to: NDArray[np.float64]  # cumulative shares
    zone_ahead: NDArray[np.int64]  # milliseconds ahead of UTC
    rhythm: float
    day: Half
    night: Half


def sessions_of(
    availability: Availability, traits: np.uint64, keys: tuple[np.uint64, np.uint64, np.uint64]
) -> Sessions:
    """The same availability as numbers; `keys` are those of presence, begin and length."""
    weights = np.array([weight for _, weight in availability.zones])
    present, begin, length = keys
    return Sessions(
        traits=traits,
        present=present,
        begin=begin,
        length=length,
        unmetered=float(availability.unmetered),
        zone_up_to=np.cumsum(weights) / weights.sum(),
        zone_ahead=np.array([round(hours * HOUR) for hours, _ in availability.zones], np.int64),
        rhythm=float(availability.rhythm_spread * HOUR),
        day=_half(availability.day, DAY_BEGINS),
        night=_half(availability.night, NIGHT_BEGINS),
    )


def _half(half: HalfDay, begins: int) -> Half:
    return Half(
        power=1.0 / half.charging - 1.0 if half.charging > 0 else 0.0,  # the mean of u^a is 1 / (1 + a)
        idle=float(half.idle) if half.charging > 0 else 0.0,
        begins=float((half.starts - begins) % 24 * HOUR),
        begins_spread=float(half.starts_spread * HOUR),
        length=float(half.hours * HOUR),
        length_spread=float(half.hours_spread * HOUR),
    )


@compiled
def reachable(sessions: Sessions, device: int) -> bool:
    """Whether the device has a network on which it may ever come."""
    return uniform(draw(sessions.traits, device, TRAIT_NETWORK)) < sessions.unmetered


@compiled
def ahead_of_utc(sessions: Sessions, device: int) -> int:
    """The device's clock, its zone and its rhythm, in milliseconds ahead of UTC."""
    lot = uniform(draw(sessions.traits, device, TRAIT_ZONE))
    zone = 0
    while zone < sessions.zone_up_to.size - 1 and lot >= sessions.zone_up_to[zone]:
        zone += 1
    return int(sessions.zone_ahead[zone]) + int(sessions.rhythm * gaussian(draw(sessions.traits, device, TRAIT_RHYTHM)))


@compiled
def session_in(sessions: Sessions, device: int, number: int) -> tuple[int, int]:
    """The session of half `number` by the device's local clock: (begin, end), equal where there is none.

    Half 2k is the day from 8 o'clock of day k, half 2k + 1 the night that follows.
    """
    by_night = number % 2
    half = sessions.night if by_night else sessions.day
    opens = (number // 2) * DAY + (NIGHT_BEGINS if by_night else DAY_BEGINS) * HOUR
    closes = opens + (NIGHT_HALF if by_night else DAY_HALF)
    if half.idle == 0.0:
        return opens, opens
    charges = uniform(draw(sessions.traits, device, TRAIT_CHARGER + by_night)) ** half.power
    if uniform(draw(sessions.present, device, number)) >= charges * half.idle:
        return opens, opens
    begin = opens + int(max(0.0, half.begins + half.begins_spread * gaussian(draw(sessions.begin, device, number))))
    lasts = int(
        max(float(SHORTEST), half.length + half.length_spread * gaussian(draw(sessions.length, device, number)))
    )
    return min(begin, closes), min(begin + lasts, closes)


@compiled
def next_session(sessions: Sessions, device: int, at: int) -> tuple[int, int]:
    """(begin, end) in UTC of the first session that ends after `at`.

    (NEVER, NEVER) for a device without a network; where no session begins in the next 14 days, an empty one at the
    end of what was searched: nothing comes before it.
    """
    if not reachable(sessions, device):
        return NEVER, NEVER
    ahead = ahead_of_utc(sessions, device)
    local = at + ahead - DAY_BEGINS * HOUR
    number = 2 * (local // DAY) + (1 if local % DAY >= DAY_HALF else 0)
    for searched in range(number, number + LOOKAHEAD):
        begin, end = session_in(sessions, device, searched)
        if end > begin and end - ahead > at:
            return begin - ahead, end - ahead
    opens = ((number + LOOKAHEAD) // 2) * DAY + DAY_BEGINS * HOUR + (number % 2) * DAY_HALF - ahead
    return opens, opens
