"""Who takes part this round: exactly the report goal, drawn among those whose min separation allows it.

The clock (when each client comes free, and how often it came) is carried state: it is saved with the
model, so that a resumed run keeps the promise that its Participation made.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ParticipationError
from tacit.privacy import Participation


class ParticipationClock(NamedTuple):
    """Per client of the population: the round in which it comes free again, and how often it came; int32 (clients,)."""

    free_at: NDArray[np.int32]
    times: NDArray[np.int32]


def start_clock(clients: int) -> ParticipationClock:
    """Nobody has come yet."""
    return ParticipationClock(np.zeros(clients, np.int32), np.zeros(clients, np.int32))


def check_population(participation: Participation, *, clients: int, report_goal: int) -> None:
    """Refuse before the first round what must fail in a later one.

    With N clients, m of them a round and min separation b, m*b clients are busy or chosen at any time, so m*b <= N;
    and n rounds of m reports need m*n <= N*k. Both are necessary. They suffice where k >= ceil(n/b); a smaller k may
    still starve a late round, depending on who was drawn, and `draw_cohort` says so then.
    Raises: ParticipationError naming what would fit.
    """
    b, k, n = participation.min_separation, participation.max_participations, participation.rounds
    goal = min(clients // min(b, n), clients * k // n)
    least_k = -(-report_goal * n // clients)
    busy = report_goal * min(b, n)
    ways = [f"report_goal <= {goal}"] if goal else []
    enough = f"at least {max(busy, -(-report_goal * n // k))} clients"
    if report_goal > clients:
        raise ParticipationError(
            f"report_goal={report_goal} is above the population of {clients} training clients; "
            f"use {_either([*ways, enough])}."
        )
    if busy > clients:
        also = f" with max_participations >= {least_k}" if least_k > k else ""
        ways = [f"min_separation <= {clients // report_goal}{also}", *ways, enough]
        raise ParticipationError(
            f"report_goal={report_goal} with min_separation={b} keeps {busy} clients busy, but the population has "
            f"{clients}; use {_either(ways)}."
        )
    if report_goal * n > clients * k:
        ways = [f"max_participations >= {least_k}", f"rounds <= {clients * k // report_goal}", *ways]
        raise ParticipationError(
            f"{n} rounds of report_goal={report_goal} need {report_goal * n} participations, but {clients} clients "
            f"with max_participations={k} give {clients * k}; use {_either(ways)}."
        )


def never_starves(participation: Participation, *, clients: int, report_goal: int) -> bool:
    """Whether every round finds its cohort, whoever is drawn; sufficient, and not necessary.

    When the last round begins, at most m*(min(b, n) - 1) clients came in the last b - 1 rounds, and those who came k
    times in the rounds before these are at most m*(n - b)/k; m must be left.
    """
    k, n = participation.max_participations, participation.rounds
    b = min(participation.min_separation, n)
    spent = 0 if k * b >= n else report_goal * (n - b) // k
    return report_goal * b + spent <= clients


def _either(ways: list[str]) -> str:
    return ", ".join(ways[:-1]) + " or " + ways[-1] if len(ways) > 1 else ways[0]


def draw_cohort(
    clock: ParticipationClock,
    participation: Participation,
    *,
    round: int,
    report_goal: int,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int64], ParticipationClock]:
    """Uniformly drawn numbers of `report_goal` clients, (report_goal,), in the order drawn, and the clock after them.

    Raises: ParticipationError when fewer are free; nobody is drawn then.
    """
    free = np.flatnonzero((clock.free_at <= round) & (clock.times < participation.max_participations))
    if len(free) < report_goal:
        raise _underfilled(clock, participation, round=round, report_goal=report_goal, free=len(free))
    cohort = generator.choice(free, report_goal, replace=False)
    free_at, times = clock.free_at.copy(), clock.times.copy()
    free_at[cohort] = round + min(participation.min_separation, participation.rounds)
    times[cohort] += 1
    return cohort, ParticipationClock(free_at, times)


def _underfilled(
    clock: ParticipationClock, participation: Participation, *, round: int, report_goal: int, free: int
) -> ParticipationError:
    """What happened, and what fits whoever is drawn."""
    clients, k, b = len(clock.times), participation.max_participations, participation.min_separation
    spent = int((clock.times >= k).sum())
    enough = -(-participation.rounds // b)
    ways = []
    if never_starves(replace(participation, max_participations=enough), clients=clients, report_goal=report_goal):
        ways.append(f"max_participations >= {enough}")
    goals = range(report_goal, 0, -1)
    goal = next((m for m in goals if never_starves(participation, clients=clients, report_goal=m)), None)
    ways += [f"report_goal <= {goal}"] if goal else []
    return ParticipationError(
        f"round {round} needs report_goal={report_goal} clients, but {free} of {clients} are free ({spent} have come "
        f"max_participations={k} times, the others less than min_separation={b} rounds ago); start a new run with "
        f"{_either([*ways, 'more clients'])}."
    )
