"""Cohorts keep the promise that was accounted, are drawn uniformly, and starve with a way out that works."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from tacit.errors import ParticipationError
from tacit.population.cohorts import check_population, draw_cohort, never_starves, start_clock
from tacit.privacy import Participation
from tacit.privacy.measured_participation import realised_participation


@st.composite
def participations(draw: st.DrawFn, most_rounds: int = 14) -> Participation:
    rounds = draw(st.integers(1, most_rounds))
    return Participation(
        rounds=rounds,
        min_separation=draw(st.integers(1, rounds + 2)),
        max_participations=draw(st.integers(1, rounds + 1)),
    )


def drawn(participation: Participation, clients: int, report_goal: int, seed: int = 0) -> list[list[int]]:
    """The cohorts of a whole run."""
    clock, generator, cohorts = start_clock(clients), np.random.default_rng(seed), []
    for round in range(participation.rounds):
        cohort, clock = draw_cohort(clock, participation, round=round, report_goal=report_goal, generator=generator)
        cohorts.append(cohort.tolist())
    return cohorts


def fits(participation: Participation, clients: int, report_goal: int) -> bool:
    try:
        check_population(participation, clients=clients, report_goal=report_goal)
    except ParticipationError:
        return False
    return True


def slow_free(participation: Participation, before: list[list[int]], clients: int) -> set[int]:
    """Who may come next, from the whole history: the twin of the clock."""
    free = set()
    for client in range(clients):
        came = [round for round, cohort in enumerate(before) if client in cohort]
        rested = not came or len(before) - came[-1] >= participation.min_separation
        if rested and len(came) < participation.max_participations:
            free.add(client)
    return free


@given(participations(), st.integers(1, 12), st.integers(1, 4), st.integers(0, 9))
def test_cohorts_are_drawn_from_all_who_may_come_and_nobody_else(
    participation: Participation, clients: int, report_goal: int, seed: int
) -> None:
    clock, generator = start_clock(clients), np.random.default_rng(seed)
    before: list[list[int]] = []
    for round in range(participation.rounds):
        free = slow_free(participation, before, clients)
        found = (clock.free_at <= round) & (clock.times < participation.max_participations)
        assert set(np.flatnonzero(found)) == free
        if len(free) < report_goal:
            with pytest.raises(ParticipationError, match=f"but {len(free)} of {clients} are free"):
                draw_cohort(clock, participation, round=round, report_goal=report_goal, generator=generator)
            return
        cohort, clock = draw_cohort(clock, participation, round=round, report_goal=report_goal, generator=generator)
        assert len(cohort) == len(set(cohort.tolist())) == report_goal
        assert set(cohort.tolist()) <= free
        before.append(cohort.tolist())
    happened = realised_participation(
        participation.rounds, np.repeat(np.arange(len(before)), report_goal), np.concatenate(before)
    )
    assert happened.max_participations <= participation.max_participations
    assert happened.min_separation >= min(participation.min_separation, participation.rounds)


@given(participations(), st.integers(1, 40), st.integers(1, 5), st.integers(0, 9))
def test_what_never_starves_never_starves(
    participation: Participation, clients: int, report_goal: int, seed: int
) -> None:
    assume(never_starves(participation, clients=clients, report_goal=report_goal))
    assert fits(participation, clients, report_goal), "what suffices is also what is necessary"
    assert len(drawn(participation, clients, report_goal, seed)) == participation.rounds


@given(st.integers(1, 20), st.integers(1, 22), st.integers(1, 60), st.integers(1, 6), st.integers(0, 3))
def test_when_only_the_separation_binds_what_passes_the_check_runs_through(
    rounds: int, separation: int, clients: int, report_goal: int, seed: int
) -> None:
    participation = Participation.worst_case(rounds=rounds, min_separation=separation)
    assume(fits(participation, clients, report_goal))
    assert never_starves(participation, clients=clients, report_goal=report_goal)
    assert len(drawn(participation, clients, report_goal, seed)) == rounds


def best_possible(participation: Participation, clients: int, report_goal: int) -> bool:
    """Whether those who rested longest, taken in turn, fill every round: the kindest draw there is."""
    before: list[list[int]] = []
    for _ in range(participation.rounds):
        free = slow_free(participation, before, clients)
        if len(free) < report_goal:
            return False
        flat = [client for cohort in before for client in cohort]
        before.append(sorted(free, key=lambda client: (flat.count(client), client))[:report_goal])
    return True


@given(participations(), st.integers(1, 12), st.integers(1, 5))
def test_nothing_is_refused_that_could_be_done(participation: Participation, clients: int, report_goal: int) -> None:
    assert fits(participation, clients, report_goal) or not best_possible(participation, clients, report_goal)


# -- every draw is as likely as another --------------------------------------------------------------------------------


def test_every_free_client_is_equally_likely_and_in_every_place() -> None:
    participation = Participation(rounds=100, min_separation=2, max_participations=50)
    clock = start_clock(9)
    clock.free_at[[2, 7]] = 1  # busy in round 0
    generator = np.random.default_rng(5)
    counts = np.zeros((3, 9))
    for _ in range(7000):
        cohort, _ = draw_cohort(clock, participation, round=0, report_goal=3, generator=generator)
        counts[np.arange(3), cohort] += 1
    assert (counts[:, [2, 7]] == 0).all()
    for place in np.delete(counts, [2, 7], axis=1):
        assert chisquare(place).pvalue > 0.001


def test_the_clock_given_is_not_changed() -> None:
    clock = start_clock(5)
    participation = Participation(rounds=4, min_separation=2, max_participations=2)
    cohort, after = draw_cohort(clock, participation, round=0, report_goal=2, generator=np.random.default_rng(0))
    assert not clock.free_at.any() and not clock.times.any()
    assert after.free_at[cohort].tolist() == [2, 2] and after.times.sum() == 2
    assert after.free_at.dtype == after.times.dtype == np.int32


def test_a_separation_beyond_all_numbers_means_once() -> None:
    participation = Participation.worst_case(rounds=3, min_separation=10**12)
    assert sorted(client for cohort in drawn(participation, 6, 2) for client in cohort) == list(range(6))


# -- the way out that a refusal names fits -----------------------------------------------------------------------------


def ways_out(message: str, participation: Participation, clients: int, report_goal: int) -> list[dict[str, Any]]:
    """The settings of each way that the message names, taken at its word; together with what stands beside it."""
    asked = {"participation": participation, "clients": clients, "report_goal": report_goal}
    found = []
    for part in re.split(r", | or ", message.rsplit("; ", 1)[1]):
        changes = dict(asked)
        for name, value in re.findall(r"(\w+) (?:<=|>=) (\d+)", part):
            if name == "report_goal":
                changes["report_goal"] = int(value)
            else:
                changes["participation"] = replace(changes["participation"], **{name: int(value)})
        for value in re.findall(r"at least (\d+) clients", part):
            changes["clients"] = int(value)
        if changes != asked:
            found.append(changes)
    return found


@given(participations(most_rounds=40), st.integers(1, 60), st.integers(1, 30))
def test_a_refusal_names_values_that_fit(participation: Participation, clients: int, report_goal: int) -> None:
    try:
        check_population(participation, clients=clients, report_goal=report_goal)
    except ParticipationError as refusal:
        message = str(refusal)
        assert "\n" not in message and "<= 0" not in message
        ways = ways_out(message, participation, clients, report_goal)
        assert ways, message
        for way in ways:
            assert fits(way["participation"], way["clients"], way["report_goal"]), (message, way)


def test_a_goal_above_the_population_is_refused_with_the_population() -> None:
    with pytest.raises(
        ParticipationError,
        match=r"report_goal=9 is above the population of 8 training clients; .* <= 8 or at least 9 clients",
    ):
        check_population(Participation.worst_case(rounds=1, min_separation=1), clients=8, report_goal=9)


def test_a_starving_separation_is_refused_in_one_sentence() -> None:
    participation = Participation.worst_case(rounds=100, min_separation=10)
    with pytest.raises(
        ParticipationError,
        match="report_goal=5 with min_separation=10 keeps 50 clients busy, but the population has 40; "
        "use min_separation <= 8 with max_participations >= 13, report_goal <= 4 or at least 50 clients",
    ):
        check_population(participation, clients=40, report_goal=5)


def test_a_promise_of_too_few_participations_is_refused() -> None:
    participation = Participation(rounds=100, min_separation=2, max_participations=3)
    with pytest.raises(
        ParticipationError,
        match="need 500 participations, but 40 clients with max_participations=3 give 120; "
        "use max_participations >= 13, rounds <= 24 or report_goal <= 1",
    ):
        check_population(participation, clients=40, report_goal=5)


@given(participations(most_rounds=20), st.integers(1, 40), st.integers(1, 8), st.integers(0, 4))
def test_a_run_that_starves_names_what_cannot(
    participation: Participation, clients: int, report_goal: int, seed: int
) -> None:
    """A late round may starve where max_participations binds; whatever the message names is run to the end."""
    assume(fits(participation, clients, report_goal))
    try:
        drawn(participation, clients, report_goal, seed)
    except ParticipationError as refusal:
        message = str(refusal)
        assert "\n" not in message
        for way in ways_out(message, participation, clients, report_goal):
            for other in range(5):
                assert drawn(way["participation"], way["clients"], way["report_goal"], other)


def test_a_late_round_starves_with_a_clear_error() -> None:
    """Three clients, two a round, each at most twice: if the same two come twice, the third is alone in round 2."""
    participation = Participation(rounds=3, min_separation=1, max_participations=2)
    check_population(participation, clients=3, report_goal=2)
    starved = []
    for seed in range(20):
        try:
            drawn(participation, 3, 2, seed)
        except ParticipationError as refusal:
            starved.append(str(refusal))
    assert starved and len(starved) < 20
    assert starved[0] == (
        "round 2 needs report_goal=2 clients, but 1 of 3 are free (2 have come max_participations=2 times, the others "
        "less than min_separation=1 rounds ago); start a new run with max_participations >= 3, report_goal <= 1 or "
        "more clients."
    )
