"""Sealed rounds of devices that die, vanish and lie where nobody can see it: honest sums, and nobody pays twice."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.server.loopback import TIMES, Loopback, loopback, reports_of, swarming
from tests.support.server.sealing import Here, decryptors_in
from tests.support.server.stores import quick_folder
from tests.support.server.swarmed import APART, SEPARATION, a_task, settings_of
from tests.support.waiting import until
from tests.swarm import DrawnReports, Fault, SwarmFaults, SwarmLog, SwarmSettings
from tests.swarm.faults import SEALED
from tests.swarm.log import RECEIVED, overcharged, rounds_apart

from tacit.aggregation import merged
from tacit.secure_aggregation.one_message.decryptor_messages import Deposit
from tacit.secure_aggregation.wire import opened
from tacit.server.store import round_states

GOAL, ROUNDS = 6, 3
TOO_FEW = "of 6 that it needs"
MANY = replace(
    TIMES, over_selection=3.5
)  # of 21, of which each reports with a chance of 2/3, fewer than 6 hardly ever do


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as found:
        yield found


def check_sum(server: Loopback, settings: SwarmSettings, log: SwarmLog, round: int) -> None:
    """The round's sum is to the bit that of honest reports, each of another device."""
    task = a_task(round, GOAL, encoded=True)
    got, _ = server.collector.collect((), task, seed=bytes(32))
    counted = server.those("counted", round)
    until(lambda: counted <= {part.assignment for part in log.parts})
    parts = [part for part in log.parts if part.assignment in counted]
    assert len(parts) == len({part.device for part in parts}) == got.reports == GOAL
    assert {part.fault for part in parts} <= {None, Fault.REPLAY.value}
    assert task.secure is not None
    words = merged(task.secure.sums, (each.values for each in reports_of(settings, server, round, parts)))
    np.testing.assert_array_equal(got.values, task.secure.opened(words, GOAL)[0])
    server.collector.released(round)


def check_prices(log: SwarmLog, *, apart: int) -> None:
    """Of honest devices: one for each round, however many attempts at it they were in."""
    honest = [part for part in log.parts if part.fault is None]
    assert not overcharged(honest)
    assert (rounds_apart(honest) or apart) >= apart


def before_its_first_proposal(decryptor: Here) -> Callable[[int], bool]:
    """When a decryptor dies that has checked all reports of a round."""
    killed = iter([True])

    def dies(message: int) -> bool:
        checked = sum(opened(data)[0] == Deposit.kind for data in decryptor.seen)
        return message == 1 and checked >= GOAL and next(killed, False)

    return dies


def test_the_same_devices_come_again_to_an_attempt_that_was_not_opened_and_pay_once(folder: Path) -> None:
    """There are no others: with a price for each attempt, or one attempt for each device, no sum would come."""
    decryptors = decryptors_in(folder, count=3)
    for each in decryptors:
        each.dies_at = before_its_first_proposal(each)
    times = replace(TIMES, over_selection=1.0, reporting=60.0, opening=0.0)
    with loopback(folder, decryptors=decryptors, separation=SEPARATION, times=times) as server:
        settings = settings_of(server, GOAL, SwarmFaults())
        with swarming(settings) as log:
            check_sum(server, settings, log, 0)
        first, second = round_states.attempts(server.store, server.plan.run)
    assert first.state == round_states.ABANDONED and first.counted == GOAL
    for device in range(GOAL):
        tasks = [part.task for part in log.parts if part.device == device and part.how == RECEIVED]
        assert tasks == [first.task, second.task]
    assert {part.spent for part in log.received(second.task)} == {1.0}
    check_prices(log, apart=APART)


def test_a_third_die_and_a_tenth_lie_in_sealed_rounds(folder: Path) -> None:
    """What a server can see is refused, and what decryptors find wrong is left out: no report voids a sum."""
    with loopback(folder, decryptors=decryptors_in(folder, count=3), separation=SEPARATION, times=MANY) as server:
        faults = SwarmFaults(die=0.3, byzantine=0.1, kinds=(*SEALED, Fault.CUT, Fault.REPLAY), lose=0.02, skew_s=0.5)
        settings = settings_of(server, 60, faults, seed=16, reports=DrawnReports(16))  # with bad ones of each kind
        with swarming(settings) as log:
            for round in range(ROUNDS):
                check_sum(server, settings, log, round)
        found = round_states.attempts(server.store, server.plan.run)
    given_up = [each.why or "" for each in found if each.state == round_states.ABANDONED]
    assert len(found) - len(given_up) == ROUNDS
    assert all(TOO_FEW in why for why in given_up), given_up
    check_prices(log, apart=APART)
