"""Who asks next: devices check in one after the other, and only while the server listens does anybody look.

Once in every check-in period each device asks whether there is work, in an order drawn anew for each period (by runs
of neighbours where there are more than a hundred thousand). So to fill a round it is enough to walk along that order
from the moment the server listens until it has enough: nobody else is touched. `ready` keeps for each device a moment
before which it cannot be eligible: its timer, moved on to its next session when somebody looked. It says no in one
comparison, and where it does not the session itself is asked, so it changes the speed and nothing else.
"""

import heapq
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.population.availability import NEVER, Sessions, next_session
from tacit.population.hashed_randomness import below, draw
from tacit.population.work_model import Attempts, attempt

Moments: TypeAlias = NDArray[np.int64]  # milliseconds since the first round opened

RUNS = 1 << 16  # at least so many runs of neighbours are shuffled, where there are so many devices
CELL, PLACE, SHUFFLED = 0, 1, 2  # the cursor: period, place in its order, and the period that the order is of
NOBODY = -1


class LoopSettings(NamedTuple):
    """Population and server for the compiled loops; times in milliseconds."""

    sessions: Sessions
    attempts: Attempts
    order: np.uint64  # the key of the orders
    devices: int
    run: int  # neighbours that ask one after the other
    runs: int
    period: int  # in which every device asks once
    goal: int  # reports that a round takes
    places: int  # devices that may be at work or have reported, at any time of a round


def run_length(devices: int) -> int:
    """How many neighbours always ask one after the other: 1 below 131,072 devices."""
    return max(1, devices // RUNS)


@compiled
def shuffle(order: NDArray[np.int32], key: np.uint64, cell: int) -> None:
    """The order of the runs in one period, by its number alone (Fisher and Yates)."""
    for index in range(order.size):
        order[index] = index
    for index in range(order.size - 1, 0, -1):
        other = below(draw(key, index, cell), index + 1)
        order[index], order[other] = order[other], order[index]


@compiled
def first_place(settings: LoopSettings, moment: int) -> int:
    """The first place of a period that asks at `moment` of it or later; the places' number or more where none does."""
    return -(-moment * settings.runs * settings.run // settings.period)  # rounded up


@compiled
def seek(settings: LoopSettings, cursor: Moments, at: int) -> None:
    """Put the cursor at the first place whose moment is `at` or later."""
    cell = at // settings.period
    cursor[CELL] = cell
    cursor[PLACE] = first_place(settings, at - cell * settings.period)


@compiled
def next_check_in(
    settings: LoopSettings, ready: Moments, order: NDArray[np.int32], cursor: Moments, before: int
) -> tuple[int, int, int]:
    """(device, moment, end of its session) of the first eligible device that asks before `before`; NOBODY if none.

    Place p of a period's P places asks at floor(p * period / P) after its begin. The cursor moves behind the device.
    """
    places = settings.runs * settings.run
    each = settings.period / places
    while True:
        if cursor[PLACE] >= places:
            cursor[CELL] += 1
            cursor[PLACE] = 0
        if cursor[CELL] != cursor[SHUFFLED]:
            shuffle(order, settings.order, cursor[CELL])
            cursor[SHUFFLED] = cursor[CELL]
        opens = cursor[CELL] * settings.period
        stop = places if before - opens >= settings.period else max(0, first_place(settings, before - opens))
        base = cursor[PLACE] // settings.run * settings.run
        while cursor[PLACE] < stop:
            first = order[base // settings.run] * settings.run - base
            latest = opens + int((base + settings.run) * each) + 1  # not before any moment of this run of neighbours
            for place in range(cursor[PLACE], min(base + settings.run, settings.devices - first, stop)):
                device = first + place
                if ready[device] > latest:
                    continue
                at = opens + place * settings.period // places
                if ready[device] > at:
                    continue
                begins, ends = next_session(settings.sessions, device, at)
                if begins > at:
                    ready[device] = begins
                    continue
                cursor[PLACE] = place + 1
                return device, at, ends
            base += settings.run
            cursor[PLACE] = base
        if stop < places:
            cursor[PLACE] = stop
            return NOBODY, before, before


@compiled
def count_eligible(settings: LoopSettings, ready: Moments, at: int, stride: int) -> int:
    """How many of every `stride`-th device are eligible at a moment."""
    eligible = 0
    for device in range(0, settings.devices, stride):
        if ready[device] <= at:
            begins, _ = next_session(settings.sessions, device, at)
            if begins <= at:
                eligible += 1
            else:
                ready[device] = begins
    return eligible


@compiled
def fill_round(
    settings: LoopSettings, ready: Moments, order: NDArray[np.int32], cursor: Moments, opens: int, until: int
) -> tuple[Moments, NDArray[np.bool_], int]:
    """Run one round from `opens` to its last report: (attempts, uploads, finish).

    Row i of `attempts` (selected, 3) is (device, selected at, ended at), `uploads` (selected,) whether it ended with an
    upload. The server takes every eligible device that asks while fewer than `settings.places` are at work or have
    reported, so a device that drops out makes place for another; it finishes with the `settings.goal`-th report, NEVER
    where that does not come before `until`. Whoever uploads is not `ready` again until the caller says when.
    """
    attempts, uploads = np.empty((2 * settings.places, 3), np.int64), np.empty(2 * settings.places, np.bool_)
    reports, drops = [opens], [opens]  # heaps: of the first reports, the latest foremost; of the drop-outs to come
    reports.pop()
    drops.pop()
    count, working, finish = 0, 0, NEVER
    seek(settings, cursor, opens)
    while True:
        if working == settings.places:
            if not drops or drops[0] >= min(finish, until):
                break
            seek(settings, cursor, drops[0])
        device, at, session_ends = next_check_in(settings, ready, order, cursor, min(finish, until))
        if device == NOBODY:
            break
        while drops and drops[0] <= at:
            heapq.heappop(drops)
            working -= 1
        ends, uploaded = attempt(settings.attempts, device, at, session_ends)
        if count == uploads.size:
            attempts, uploads = _grown(attempts, uploads)
        attempts[count, 0], attempts[count, 1], attempts[count, 2], uploads[count] = device, at, ends, uploaded
        count += 1
        working += 1
        ready[device] = NEVER if uploaded else ends
        if not uploaded:
            heapq.heappush(drops, ends)
            continue
        if len(reports) < settings.goal:
            heapq.heappush(reports, -ends)
        else:
            heapq.heappushpop(reports, -ends)
        if len(reports) == settings.goal:
            finish = -reports[0]
    return attempts[:count].copy(), uploads[:count].copy(), finish


@compiled
def _grown(attempts: Moments, uploads: NDArray[np.bool_]) -> tuple[Moments, NDArray[np.bool_]]:
    """The same rows with room for as many again."""
    more, also = np.empty((2 * uploads.size, 3), np.int64), np.empty(2 * uploads.size, np.bool_)
    for row in range(uploads.size):  # one by one: to put a slice, numba compiles seconds of error messages
        for column in range(3):
            more[row, column] = attempts[row, column]
        also[row] = uploads[row]
    return more, also
