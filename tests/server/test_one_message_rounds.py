"""Sealed rounds: whoever is killed at whatever point, decryptors sign one set, and the sum is that of its devices."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.server.killed_coordinator import Killed, KilledAt
from tests.server.sealed_fleet import (
    DRAW,
    GOAL,
    SEED,
    SealedFleet,
    a_task,
    assert_one_set_is_signed,
    assert_sum_of,
    tasks,
    words_of,
)
from tests.support.secure_aggregation.lying_clients import LIES, Lie, report_of, shares_of_another_key
from tests.support.server.fleet import KEY, TIMES
from tests.support.server.sealing import decryptors_in
from tests.support.server.stores import quick_folder

from tacit.errors import ProtocolError, RunError, TrainingError
from tacit.protocol.messages import RoundTask
from tacit.protocol.one_message_shape import settings_of
from tacit.secure_aggregation.one_message.client import one_message_report
from tacit.secure_aggregation.one_message.decryptor_messages import Vote
from tacit.secure_aggregation.one_message.messages import OneMessageRound
from tacit.secure_aggregation.one_message.slots import Slots
from tacit.secure_aggregation.secrets import Identity
from tacit.server.rounds.rounds import RoundTimes, ServedRounds
from tacit.server.store import round_states
from tacit.server.train import document


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SealedFleet]:
    with quick_folder() as folder:
        yield SealedFleet(folder, decryptors=decryptors_in(tmp_path, count=2, least=GOAL))


def test_a_sealed_round_gives_the_sum_and_leaves_nothing(fleet: SealedFleet) -> None:
    collector = fleet.collector()
    got, _ = collector.collect((), a_task(), seed=SEED)
    (attempt,) = fleet.attempts()
    assert_sum_of(got, fleet.came[attempt.task])
    assert fleet.blobs.names("sealed")
    collector.released(0)
    assert fleet.blobs.names("") == []
    assert_one_set_is_signed(fleet)


def test_a_closed_sealed_round_needs_no_decryptor_again(fleet: SealedFleet) -> None:
    got, _ = fleet.collector().collect((), a_task(), seed=SEED)
    for each in fleet.decryptors:
        each.away = True
    again, _ = fleet.collector().collect((), a_task(), seed=SEED)
    assert np.asarray(got.values).tobytes() == np.asarray(again.values).tobytes()


@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
def test_a_coordinator_killed_at_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    killed_at_every(tmp_path, monkeypatch, after=after, first=2 if after else 4, stride=4)


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
def test_a_coordinator_killed_at_any_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    killed_at_every(tmp_path, monkeypatch, after=after, first=1, stride=1)


def killed_at_every(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after: bool, first: int, stride: int) -> None:
    for step in count(first, stride):
        with quick_folder() as folder:
            decryptors = decryptors_in(tmp_path / str(step), count=2, least=GOAL)
            fleet, died = SealedFleet(folder, decryptors=decryptors, at_once=6), False
            with monkeypatch.context() as patch:
                killed = KilledAt(fleet, step, after=after, patch=patch)
                try:
                    fleet.collector(store=killed.store).collect((), a_task(), seed=SEED)
                except Killed:
                    died = True
            got, _ = fleet.collector().collect((), a_task(), seed=SEED)
            (summed,) = [each for each in fleet.attempts() if each.total_digest]
            assert_sum_of(got, fleet.came[summed.task])
            assert_one_set_is_signed(fleet)
            fleet.store.close()
        if not died:
            assert step > 5
            return


@pytest.mark.parametrize("message", range(3 + GOAL))
def test_a_decryptor_killed_before_a_message_goes_on_to_the_sum(fleet: SealedFleet, message: int) -> None:
    killed: list[int] = []

    def dies(number: int) -> bool:
        if not killed and number == message:
            killed.append(number)
            return True
        return False

    fleet.decryptors[1].dies_at = dies
    got, _ = fleet.collector().collect((), a_task(), seed=SEED)
    assert killed == [message] and len(fleet.attempts()) == 1
    assert_sum_of(got, fleet.came[fleet.attempts()[0].task])
    assert_one_set_is_signed(fleet)


def test_without_a_quorum_the_round_is_given_up_and_made_again_with_others(fleet: SealedFleet) -> None:
    collector, wait = fleet.collector(replace(TIMES, attempts=1, opening=30.0)), fleet.wait

    def away(seconds: float) -> None:
        wait(seconds)
        fleet.decryptors[0].away = True

    collector._wait = away
    with pytest.raises(TrainingError, match="none of 1 attempt gave a sum"):
        collector.collect((), a_task(), seed=SEED)
    fleet.decryptors[0].away = False
    got, _ = fleet.collector().collect((), a_task(), seed=SEED)
    first, second = fleet.attempts()
    assert first.state == round_states.ABANDONED and "decryptor 0: it is away" in (first.why or "")
    assert not fleet.blobs.names(f"sealed/{first.task}")
    assert_sum_of(got, fleet.came[second.task])
    assert_one_set_is_signed(fleet)


def test_an_attempt_whose_set_nobody_signed_goes_on_in_its_series(fleet: SealedFleet) -> None:
    """Its devices come again for the price of one; who was given a place in it alone took part in no sum."""
    fleet.left = GOAL - 1
    times = replace(TIMES, attempts=1, selecting=5.0)
    with pytest.raises(TrainingError, match="none of 1 attempt "):
        fleet.collector(times).collect((), a_task(), seed=SEED)
    fleet.left = 1000
    got, _ = fleet.collector().collect((), a_task(), seed=SEED)
    first, second = (settings_of(task.sealed or "") for task in tasks(fleet))
    assert first.attempts == second.attempts and first.name != second.name
    (_, released) = fleet.attempts()
    assert got.participants == released.assigned
    assert_one_set_is_signed(fleet)


@pytest.mark.parametrize("signers", [1, 2])
def test_after_a_set_was_signed_other_devices_are_asked(fleet: SealedFleet, signers: int) -> None:
    """Of two decryptors both are needed: one that has signed is too many. It opens no sum of the series any more."""
    wait = fleet.wait

    def vanish(seconds: float) -> None:
        wait(seconds)
        for number, each in enumerate(fleet.decryptors):
            each.dies_at = (2 if number < signers else 1).__eq__  # before the agreement, or the set

    collector = fleet.collector(replace(TIMES, attempts=1, opening=30.0))
    collector._wait = vanish
    with pytest.raises(TrainingError, match="its sum could not be opened"):
        collector.collect((), a_task(), seed=SEED)
    for each in fleet.decryptors:
        each.dies_at = lambda message: False
    signed = [len(list((each.folder / "rounds").glob("*.vote"))) for each in fleet.decryptors]
    assert signed == [1] * signers + [0] * (2 - signers)
    got, _ = fleet.collector().collect((), a_task(), seed=SEED)
    first, second = (settings_of(task.sealed or "") for task in tasks(fleet))
    assert (first.series, second.series) == (0, 1)
    spent, released = fleet.attempts()
    assert got.participants == spent.assigned + released.assigned, "the first may have been opened"
    assert_one_set_is_signed(fleet)


def test_decryptors_that_say_for_ever_that_they_signed_are_believed_for_so_long(
    fleet: SealedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    vote = Vote(bytes(32), 0, bytes(32), bytes(64)).to_bytes()
    monkeypatch.setattr(fleet.decryptors[0], "ask", lambda messages: [vote])
    with pytest.raises(TrainingError, match="of every series of attempts decryptor 0 signed a set"):
        fleet.collector(replace(TIMES, attempts=3)).collect((), a_task(), seed=SEED)
    assert not fleet.attempts()


def test_no_device_works_for_decryptors_that_would_refuse(tmp_path: Path) -> None:
    with quick_folder() as folder:
        fleet = SealedFleet(folder, decryptors=decryptors_in(tmp_path, least=GOAL + 1))
        with pytest.raises(TrainingError, match=r"2 of 2 decryptors refuse.*no sum of fewer than 5 reports is opened"):
            fleet.collector().collect((), a_task(), seed=SEED)
        assert not fleet.attempts()


def test_decryptors_that_cannot_be_reached_are_waited_for_no_longer_than_devices(fleet: SealedFleet) -> None:
    fleet.decryptors[1].away = True
    collector, began = fleet.collector(replace(TIMES, selecting=50.0, pause=10.0)), fleet.clock.now
    with pytest.raises(
        TrainingError, match=r"not opened.*2 are needed \(decryptor 1: it is away.*See that the decryptors run"
    ):
        collector.collect((), a_task(), seed=SEED)
    assert 50.0 <= fleet.clock.now - began < 100.0 and not fleet.attempts()
    fleet.decryptors[1].away = False
    got, _ = collector.collect((), a_task(), seed=SEED)
    assert_sum_of(got, fleet.came[fleet.attempts()[0].task])


@pytest.mark.parametrize("damage", ["gone", "another"])
def test_a_report_that_a_power_cut_took_is_lost_and_its_place_anothers(
    fleet: SealedFleet, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    wait, taken = fleet.wait, list[str]()

    def cut(seconds: float) -> None:
        wait(seconds)
        if not taken and (names := fleet.blobs.names("sealed")):
            taken.append(names[0].rpartition("/")[2].partition("-")[0])  # its assignment
            if damage == "another":
                fleet.blobs.put(names[0], b"")
            else:
                fleet.blobs.delete(names[0])

    collector = fleet.collector()
    collector._wait = cut
    got, _ = collector.collect((), a_task(), seed=SEED)
    (attempt,) = fleet.attempts()
    assert (attempt.lost, attempt.counted, got.reports) == (1, GOAL, GOAL)
    assert "a sealed report is left out" in caplog.text and taken[0] not in caplog.text  # no assignment is logged


def test_blobs_that_came_after_their_round_was_over_are_swept(fleet: SealedFleet) -> None:
    collector = fleet.collector()
    collector.collect((), a_task(), seed=SEED)
    collector.released(0)
    late = fleet.attempts()[0].task
    fleet.blobs.put(f"sealed/{late}/{'0' * 32}-{'0' * 64}", b"late")  # by a worker that was killed before it counted it
    fleet.blobs.put(f"sealed/{'1' * 32}/{'0' * 32}-{'0' * 64}", b"of another run")
    fleet.collector()
    assert [name.split("/")[1] for name in fleet.blobs.names("sealed")] == ["1" * 32]


def test_below_the_goal_no_decryptor_is_asked_for_a_set(fleet: SealedFleet) -> None:
    fleet.left = GOAL - 1
    with pytest.raises(TrainingError, match="3 devices came while it was open, of 4 that it needs"):
        fleet.collector(RoundTimes(attempts=1, selecting=5.0, poll=1.0)).collect((), a_task(), seed=SEED)
    assert not [file for decryptor in fleet.decryptors for file in (decryptor.folder / "rounds").iterdir()]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[SealedFleet]:
    with quick_folder() as folder:
        yield SealedFleet(folder, decryptors=decryptors_in(tmp_path, count=3, least=GOAL))


@pytest.mark.parametrize("bad", [1, GOAL], ids=["first", "last"])
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_one_bad_device_costs_a_sealed_round_its_own_report(
    three: SealedFleet,
    bad: int,
    lie: Callable[[OneMessageRound, NDArray[np.uint32]], Lie],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It knows the protocol, and passes whatever a worker sees. In the same attempt another device takes its place."""
    seal, given = three.sealed, list[bytes]()

    def lies(task: RoundTask, device: int) -> bytes:
        if device != bad:
            return seal(task, device)
        assert task.sealed is not None
        settings, liar = settings_of(task.sealed), Identity(bytes([device]) * 32)
        given.append(liar.public)
        return report_of(settings, liar, lie(settings, words_of(device)), passes_server=True).to_bytes()

    three.sealed = lies  # type: ignore[method-assign]
    got, _ = three.collector().collect((), a_task(), seed=SEED)
    (attempt,) = three.attempts()
    assert (attempt.lost, attempt.counted, got.reports) == (1, GOAL, GOAL)
    assert attempt.most == math.ceil(TIMES.over_selection * GOAL) + 1, "another may be given its place"
    assert_sum_of(got, [device for device in three.came[attempt.task] if device != bad])
    assert f"the sealed report of {given[0].hex()[:16]} is left out: decryptor" in caplog.text
    assert_one_set_is_signed(three)


def test_a_decryptor_that_was_away_checks_when_it_is_back(fleet: SealedFleet) -> None:
    seal, wait, seen = fleet.sealed, fleet.wait, list[int]()

    def lies(task: RoundTask, device: int) -> bytes:
        if device != 2:
            return seal(task, device)
        assert task.sealed is not None
        settings = settings_of(task.sealed)
        lie = shares_of_another_key(settings, words_of(device))
        return report_of(settings, Identity(bytes(32)), lie, passes_server=True).to_bytes()

    def away(seconds: float) -> None:
        wait(seconds)
        seen.append(fleet.attempts()[0].counted)
        for each in fleet.decryptors:
            each.away = len(seen) < 3

    fleet.sealed, collector = lies, fleet.collector()  # type: ignore[method-assign]
    collector._wait = away
    got, _ = collector.collect((), a_task(), seed=SEED)
    (attempt,) = fleet.attempts()
    assert attempt.lost == 1 and got.reports == GOAL
    assert_sum_of(got, [device for device in fleet.came[attempt.task] if device != 2])


def test_a_clients_second_report_takes_no_place(fleet: SealedFleet) -> None:
    """A device that was given two places and sends one client's report twice is in the sum once."""
    first: list[bytes] = []
    seal = fleet.sealed

    def twice(task: RoundTask, device: int) -> bytes:
        if device == 2:
            return first[0]
        body = seal(task, device)
        if device == 1:
            first.append(body)
        return body

    fleet.sealed = twice  # type: ignore[method-assign]
    got, _ = fleet.collector().collect((), a_task(), seed=SEED)
    (attempt,) = fleet.attempts()
    assert attempt.lost == 1 and attempt.counted == GOAL
    assert_sum_of(got, [device for device in fleet.came[attempt.task] if device != 2])


def test_numbers_beyond_all_slots_void_their_attempt_and_no_other(
    fleet: SealedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no check tells: the right key, whole and signed. Decryptors signed the set, so the next is for others."""
    seal = fleet.sealed

    def lies(task: RoundTask, device: int) -> bytes:
        if device != 2 or task.sealed is None:
            return seal(task, device)
        settings = settings_of(task.sealed)
        with monkeypatch.context() as patch:
            patch.setattr(Slots, "check", lambda *_, **__: None)
            words = np.full(settings.dimension, (1 << settings.slots.width) - 1, np.uint32)
            return one_message_report(settings, Identity(SEED), words, draw=DRAW).to_bytes()

    fleet.sealed = lies  # type: ignore[method-assign]
    got, _ = fleet.collector().collect((), a_task(), seed=SEED)
    spoilt, released = fleet.attempts()
    assert 2 in fleet.came[spoilt.task] and "the sum does not open" in (spoilt.why or "")
    assert_sum_of(got, fleet.came[released.task])
    assert got.participants == spoilt.assigned + released.assigned
    assert [settings_of(task.sealed or "").series for task in tasks(fleet)] == [0, 1]
    assert_one_set_is_signed(fleet)


def test_what_is_no_report_of_the_round_is_not_counted(fleet: SealedFleet) -> None:
    collector, bodies = fleet.collector(), list[bytes]()
    seal = fleet.sealed

    def forged(task: RoundTask, device: int) -> bytes:
        body = bytearray(seal(task, device))
        if device == 1:
            body[-1] ^= 1
        return bytes(body)

    fleet.sealed, wait = forged, fleet.wait  # type: ignore[method-assign]

    def refused(seconds: float) -> None:
        try:
            wait(seconds)
        except ProtocolError as error:
            bodies.append(str(error).encode())

    collector._wait = refused
    got, _ = collector.collect((), a_task(), seed=SEED)
    assert len(bodies) == 1
    assert_sum_of(got, fleet.came[fleet.attempts()[0].task])


def test_a_collector_without_the_decryptors_of_its_plan_is_refused(fleet: SealedFleet) -> None:
    lease = round_states.take_lease(fleet.store, fleet.plan.run, seconds=60)
    assert lease is not None
    with pytest.raises(RunError, match="names 2 decryptors, and 0 are known here"):
        ServedRounds(fleet.store, fleet.blobs, KEY, document=document).serve(KEY.plan(fleet.plan.to_json()), lease)
