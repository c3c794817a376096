"""A privacy filter lets through just the rounds whose real cost is reserved: held against all patterns there are."""

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.mechanisms.strategies import blts, falling, trees
from tests.support.privacy.every_pattern import worst_pattern

from tacit.errors import BudgetError
from tacit.federation.collector import Answered
from tacit.privacy import Guarantee, Independent, Participation
from tacit.privacy.composition import Composition, ReleasedSequence
from tacit.privacy.measured_participation import realised_participation
from tacit.privacy.separation import DeviceSeparation
from tacit.privacy.strategy import Dense, Strategy
from tacit.statements.ledger import CLIP_ESTIMATE, MODEL_UPDATE
from tacit.training import participation_so_far
from tacit.training.participation_so_far import ClientsSoFar, TimesSoFar
from tacit.training.privacy_filter import PrivacyFilter

CLIENTS = 5
NOBODY = np.zeros(0, np.int64)
strategies = st.one_of(
    st.just(Independent()), trees(), blts(), st.builds(lambda seed: Dense(falling(9, seed)), st.integers(0, 3))
)
cohorts = st.lists(st.sets(st.integers(0, CLIENTS - 1), min_size=1), min_size=1, max_size=9)


class Bringing:
    """A collector of made cohorts."""

    def __init__(self, cohorts: list[Any]) -> None:
        self.cohorts, self.asked = cohorts, 0

    def init(self) -> None:
        return None

    def collect(self, state: Any, question: Any, *, seed: bytes) -> tuple[Answered, Any]:
        self.asked += 1
        came = self.cohorts[question.round]
        clients = came if isinstance(came, int) else np.array(sorted(came), np.int64)
        return Answered(np.zeros(1), 1, clients), state


class Limited:
    """What is reserved, and no more."""

    def __init__(self, allowed: float) -> None:
        self.allowed, self.needed = allowed, 0.0

    def __call__(self, zcdp: float) -> None:
        if zcdp > self.allowed * (1 + 1e-9):
            raise BudgetError("nothing is left.")
        self.needed = max(self.needed, zcdp)


def planned(strategy: Strategy, participation: Participation, *, beside: bool = False) -> Composition:
    updates = Guarantee(participation=participation, strategy=strategy, clip_norm=1.0, noise_multiplier=2.0)
    counts = Guarantee(participation=participation, strategy=strategy, clip_norm=0.5, noise_multiplier=5.0)
    both = [
        ReleasedSequence(what=MODEL_UPDATE, guarantee=updates),
        ReleasedSequence(what=CLIP_ESTIMATE, guarantee=counts),
    ]
    return Composition(tuple(both[: 1 + beside]))


def let_through(filtered: PrivacyFilter, rounds: int) -> int:
    """How many rounds are released before the filter stops."""
    for round in range(rounds):
        try:
            filtered.collect(None, SimpleNamespace(round=round), seed=b"")  # type: ignore[arg-type]
        except BudgetError as error:
            assert f"before round {round} is released" in str(error)
            return round
    return rounds


@given(strategy=strategies, came=cohorts, apart=st.integers(1, 9), share=st.floats(0.2, 3.0), beside=st.booleans())
def test_what_is_let_through_costs_nobody_more_than_is_reserved(
    strategy: Strategy, came: list[set[int]], apart: int, share: float, beside: bool
) -> None:
    """Of every client's own pattern, and of every one as frequent as the log's: by all patterns there are."""
    rounds = 9
    plan = planned(strategy, Participation.worst_case(rounds, apart), beside=beside)
    reserve = Limited(max(share, 1.0) * plan.zcdp)
    filtered = PrivacyFilter(Bringing(came), ClientsSoFar(NOBODY, NOBODY), plan, reserve, run="run")
    done = let_through(filtered, len(came))
    loud = 1 / (2 * 2.0**2) + (1 / (2 * 5.0**2) if beside else 0.0)  # rho of a squared sensitivity of one

    def brute(rounds: int) -> tuple[float, float]:
        """(of the worst client as it came, of the worst as it might have)."""
        matrix = strategy.dense(rounds)
        log = [(at, client) for at in range(rounds) for client in came[at]]
        own = [
            float((matrix[:, [at for at, who in log if who == client]].sum(axis=1) ** 2).sum())
            for client in range(CLIENTS)
        ]
        happened = realised_participation(rounds, *map(np.array, zip(*log, strict=True)))
        return max(own) * loud, worst_pattern(matrix, happened) * loud

    if done:
        assert brute(done)[0] <= brute(done)[1] * (1 + 1e-9) <= reserve.allowed * (1 + 1e-6)
    if done < len(came):
        exact = all(each.guarantee.exact for each in plan.sequences)
        assert not exact or brute(done + 1)[1] > reserve.allowed
    assert reserve.needed <= reserve.allowed * (1 + 1e-9)


@given(came=cohorts, kept=st.integers(0, 9))
def test_a_log_that_is_counted_on_says_what_the_whole_log_says(came: list[set[int]], kept: int) -> None:
    log = [(at, client) for at, cohort in enumerate(came) for client in cohort]
    when, who = (np.array(column, np.int64) for column in zip(*log, strict=True))
    kept = min(kept, len(came))
    counted = ClientsSoFar(when[when < kept], who[when < kept])
    for round in range(kept, len(came)):
        counted.add(round, np.array(sorted(came[round])))
        seen = when <= round
        assert counted.participation(round + 1) == realised_participation(round + 1, when[seen], who[seen])


def test_what_is_planned_is_never_refused_and_costs_no_look_at_the_budget() -> None:
    plan = planned(Dense(falling(9)), Participation(rounds=9, min_separation=3, max_participations=3))
    reserve = Limited(plan.zcdp)
    came = [{round % 3} for round in range(9)]
    assert let_through(PrivacyFilter(Bringing(came), ClientsSoFar(NOBODY, NOBODY), plan, reserve, run="run"), 9) == 9
    exact = planned(Independent(), Participation(rounds=9, min_separation=3, max_participations=3))
    nobody = Limited(0.0)
    assert let_through(PrivacyFilter(Bringing(came), ClientsSoFar(NOBODY, NOBODY), exact, nobody, run="run"), 9) == 9


@given(
    hours=st.lists(st.floats(0.5, 60.0), min_size=1, max_size=9), timer=st.floats(1.0, 100.0), share=st.floats(1.0, 2.0)
)
def test_devices_that_wait_are_accounted_by_the_time_that_is_written(
    hours: list[float], timer: float, share: float
) -> None:
    """Rounds that take longer than planned let devices come more often; nobody is asked where that is known before."""
    separation = DeviceSeparation(timer_seconds=timer * 3600.0)
    plan = planned(Independent(), Participation.worst_case(9, 3))
    reserve, now = Limited(share * plan.zcdp), [0.0]
    collector = Bringing([4] * len(hours))
    filtered = PrivacyFilter(collector, TimesSoFar([], separation, began=0.0), plan, reserve, run="run")
    written: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(participation_so_far, "time", SimpleNamespace(time=lambda: now[0]))
        for round, took in enumerate(hours):
            before = collector.asked
            original = collector.collect

            def later(*given: Any, took: float = took, original: Any = original, **named: Any) -> Any:
                now[0] += took * 3600.0
                return original(*given, **named)

            patch.setattr(collector, "collect", later)
            try:
                filtered.collect(None, SimpleNamespace(round=round), seed=b"")  # type: ignore[arg-type]
            except BudgetError:
                if collector.asked == before:  # known before anybody was asked
                    soonest = separation.realised([*written, now[0]], began=0.0)
                    assert plan.with_participation(soonest).zcdp > reserve.allowed
                break
            finally:
                patch.setattr(collector, "collect", original)
            assert filtered.finished == now[0]
            written.append(now[0])
            spent = plan.with_participation(separation.realised(written, began=0.0)).zcdp
            assert spent <= reserve.allowed * (1 + 1e-9)


def test_a_round_more_of_many_clients_costs_less_than_the_log_again() -> None:
    """After a thousand rounds of 1,000 of 200,000 clients: counted on, not sorted anew."""
    draw = np.random.default_rng(1)
    when = np.repeat(np.arange(1000), 1000)
    who = np.concatenate([draw.choice(200_000, 1000, replace=False) for _ in range(1000)])
    log, began = ClientsSoFar(when, who), time.process_time()
    realised_participation(1000, when, who)
    anew, began = time.process_time() - began, time.process_time()
    for round in range(1000, 1010):
        log.add(round, np.arange(round, round + 1000))
        log.participation(round + 1)
    assert time.process_time() - began < anew  # ten rounds
