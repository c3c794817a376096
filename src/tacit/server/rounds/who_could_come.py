"""Whether a round can fill: how many devices it needs, how many could come, and what to say where they are too few.

Nobody counts devices by name, since they have none here. Who could come is counted by enrolment codes, one a device,
and by check-ins: whoever is sent away comes back once in a known time (`http/pace_steering.py`).
"""

from tacit.plurals import quantity
from tacit.server.http.check_in_rates import told
from tacit.server.http.pace_steering import period_of
from tacit.server.store.store import Store

SEEN = 3.0  # times that each device should have come before its absence is told
LEAST_S = 20.0  # and so many seconds at least: devices may be starting


def needed(goal: int, separation: int, rounds: int) -> int:
    """Devices without which rounds cannot all fill: `goal` others in each of so many rounds in a row."""
    return goal * max(1, min(separation, rounds))


def too_few_codes(run: str, *, codes: int, needs: int, goal: int) -> str | None:
    """What to say of a run whose devices are enrolled; None where there are enough."""
    if codes >= needs:
        return None
    return (
        f"'{run}' cannot fill its rounds: at most {quantity(codes, 'device')} could come, by the enrolment codes, and "
        f"{needs:,} are needed for {quantity(goal, 'report')} a round at its separation; give more codes, or a lower "
        "rounds.report_goal or rounds.min_separation."
    )


def devices_seen(store: Store, population: str) -> float | None:
    """About how many devices of a population check in, as who looked last counts them; None where nobody did."""
    last = max(told(store, population), key=lambda row: row.at, default=None)
    return None if last is None else last.devices


def waits_in_vain(
    *, came: int, least: int, waited: float, seen: float | None, separation: int | None, needs: int
) -> str | None:
    """What to say of a round that waits for devices, each of which should have come by now; None where it may yet fill.

    came: devices that have its task, of `least` that it needs. waited: seconds since it opened. seen: devices that
    check in. separation: rounds that one stays away; None: it counts none. needs: devices of the whole run.
    """
    if came >= least or seen is None or waited < max(LEAST_S, SEEN * period_of(seen)):
        return None
    apart = (
        f" A device stays away for {quantity(separation - 1, 'round')} after its own, so {needs:,} that may take part "
        "are needed."
        if separation is not None and separation > 1
        else ""
    )
    return (
        f"cannot fill with those who come: {came:,} of {quantity(least, 'device')} took part in {waited:.0f} s, in "
        f"which each of about {seen:,.0f} that check in came {SEEN:.0f} times.{apart} Some keep their text to judge "
        "models by, or wait. Start more devices, or begin another run with a lower rounds.report_goal or "
        "rounds.min_separation."
    )
