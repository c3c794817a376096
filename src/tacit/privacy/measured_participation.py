"""Who came how often, measured after a run: from its log of who took part, or from the times at which rounds finished.

What was planned is an assumption, `Participation`; what happened has the same type.
"""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import AccountingError, InputError
from tacit.privacy.participation import Participation, whole

Clock: TypeAlias = Literal["finish", "upload"]


def realised_participation(rounds: int, round_of: ArrayLike, client_of: ArrayLike) -> Participation:
    """What happened: the smallest separation and the largest count found in the log of a run.

    `round_of` (p,) and `client_of` (p,) hold one entry per client and round it took part in, in any
    order; rounds count from 0. Where nobody came twice the separation is `rounds` and the count 1. Raises
    AccountingError where a client is logged twice in one round, InputError where the log is no such log.
    """
    rounds = whole("rounds", rounds, 1)
    when, who = _log(rounds, round_of, client_of)
    if when.size == 0:
        return Participation(rounds=rounds, min_separation=rounds, max_participations=1)
    order = np.lexsort((when, who))
    when, who = when[order], who[order]
    again = who[1:] == who[:-1]
    gaps = np.diff(when)[again]
    if gaps.size and gaps.min() == 0:
        at = int(np.flatnonzero(again & (np.diff(when) == 0))[0])
        raise AccountingError(
            f"client {who[at]} is logged twice in round {when[at]}, and a client contributes once to a round; "
            "its contributions of that round must be summed and clipped together."
        )
    counts = np.diff(np.flatnonzero(np.concatenate(([True], ~again, [True]))))
    separation = int(gaps.min()) if gaps.size else rounds
    return Participation(rounds=rounds, min_separation=separation, max_participations=int(counts.max()))


def timed_participation(
    finished: ArrayLike, *, timer: float, clock: Clock = "finish", began: float | None = None
) -> Participation:
    """What a timer allowed in a run, measured afterwards: MinS and MaxP of arXiv:2305.18465, Section 2.2.

    `finished` (rounds,) are the times in seconds at which the rounds finished, never falling; `timer` is the
    period in seconds for which a device stays away after it took part. A device that took part in round i may
    take part in round j if and only if finished[j] - finished[i] >= timer, so MinS (`rounds_between`) is the
    smallest number of rounds that finished within less than `timer` of an earlier one, over all windows that end
    before the log does, and MaxP the most participations that fit, coming back as soon as allowed. Exact,
    O(rounds log rounds). Where nobody could come twice the separation is `rounds` and the count 1.

    Ties are decided for the device: a round that finishes just as the timer runs out is open to it. `clock` says
    when a device's timer starts: with "finish" when its round finishes, which is how MinS is counted above; with
    "upload" when it uploads, and then as early as its round can have begun, when the round before finished; the
    first round when `began` says, in seconds too (left out: it is taken to be as long as the longest). A device
    whose clock starts at its upload comes back up to one round sooner, so "finish" would promise too much for it.
    InputError where the times fall, are not finite or missing, or the timer is not positive.
    """
    times = _round_times(finished)
    if isinstance(timer, bool) or not np.isfinite(timer) or timer <= 0:
        raise InputError(f"timer={timer} is no period; give the seconds for which a device stays away, above 0.")
    rounds = times.size
    starts = times
    if clock == "upload":
        first = times[0] - np.diff(times).max(initial=0.0) if began is None else began
        if not first <= times[0]:
            raise InputError(f"the first round began at {first:.15g} s and finished at {times[0]:.15g} s; mend it.")
        starts = np.concatenate(([first], times[:-1]))
    elif clock != "finish":
        raise InputError(f"clock={clock!r} is neither 'finish' nor 'upload'; say when a device's timer starts.")
    # A sum that was rounded up would hide a tie, so the last bit goes to the device.
    open_again = np.searchsorted(times, np.nextafter(starts + timer, -np.inf), side="left")
    returns = np.maximum(open_again, np.arange(1, rounds + 1))  # a tiny timer is still one round
    separations = (returns - np.arange(rounds))[returns < rounds]
    if not separations.size:
        return Participation(rounds=rounds, min_separation=rounds, max_participations=1)
    most, at = 1, int(returns[0])
    while at < rounds:
        most, at = most + 1, int(returns[at])
    return Participation(rounds=rounds, min_separation=int(separations.min()), max_participations=most)


def _round_times(finished: ArrayLike) -> NDArray[np.float64]:
    """The finishing times of all rounds, checked."""
    given = np.asarray(finished)
    if given.dtype.kind not in "iuf":  # a datetime64 of hours would be counted as seconds, and promise too much
        raise InputError(f"finished holds {given.dtype}, and times are seconds; give numbers, as timestamp() does.")
    times = given.astype(np.float64)
    if times.ndim != 1 or not times.size:
        raise InputError(f"finished has shape {times.shape}; give one time in seconds for each round, at least one.")
    if not np.isfinite(times).all():
        at = int(np.flatnonzero(~np.isfinite(times))[0])
        raise InputError(f"round {at} finished at {times[at]}, which is no time; give seconds for every round.")
    if (np.diff(times) < 0).any():
        at = int(np.flatnonzero(np.diff(times) < 0)[0])
        raise InputError(
            f"round {at + 1} finished at {times[at + 1]:.15g} s, before round {at} at {times[at]:.15g} s; give the "
            "times in the order of the rounds."
        )
    return times


def _log(rounds: int, round_of: ArrayLike, client_of: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two columns of a participation log, checked."""
    when, who = np.asarray(round_of), np.asarray(client_of)
    if when.ndim != 1 or when.shape != who.shape:
        raise InputError(
            f"round_of has shape {when.shape} and client_of {who.shape}; give one round and one client per "
            "participation, in two arrays of the same length."
        )
    for name, column in (("round_of", when), ("client_of", who)):
        if column.size and column.dtype.kind not in "iu":
            raise InputError(f"{name} holds {column.dtype}, and rounds and clients are numbered; give integers.")
    if when.size and (when.min() < 0 or when.max() >= rounds):
        wrong = int(when.min()) if when.min() < 0 else int(when.max())
        raise InputError(f"round {wrong} is logged, and {rounds} rounds are numbered 0 to {rounds - 1}.")
    return when.astype(np.int64), who.astype(np.int64)
