"""Sealed reports: a sum of them opens with a quorum of decryptors, and no round but the plan's own is sealed for."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.device.operator import NOON, Operator, encoded_sum, once, sealed_plan

from tacit.data import Cache
from tacit.device.policy import Policy
from tacit.device.record import read_only
from tacit.errors import ProtocolError
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.one_message_shape import seed_of
from tacit.protocol.signing import digest
from tacit.secure_aggregation.one_message.messages import OneMessageReport as SealedReport
from tacit.secure_aggregation.one_message.messages import OneMessageRound
from tacit.secure_aggregation.one_message.simulation import OneMessageParties
from tacit.secure_aggregation.secrets import Words

ENCODED = encoded_sum()
LARGEST = 2 * ENCODED.encoding().largest
NO_UPDATE = np.full(ENCODED.length, LARGEST // 2, np.uint32)
NO_UPDATE[ENCODED.dimension :] = 1  # it counts as one


@dataclass
class Given:
    """A trainer that reports these words."""

    words: Words
    usable: bool = True

    def check(self, plan: Plan) -> None:
        """All can be done."""

    def prepare(self, plan: Plan, task: RoundTask, model: Any) -> Callable[[Any], ReportBody]:
        return lambda draw: ReportBody(self.words, self.usable, None, None)


@pytest.fixture
def parties(tmp_path: Path, words: str) -> OneMessageParties:
    return attempt(tmp_path, words, 3)


def attempt(folder: Path, words: str, seed: int) -> OneMessageParties:
    """At the first round of the plan that names the decryptors of the folder: another for another seed."""
    sizes = {"dimension": ENCODED.length, "largest": LARGEST, "seed": seed, "report_goal": 3}
    made = OneMessageParties.from_settings(3, folder / "decryptors", **sizes)
    plan = bytes.fromhex(digest(sealed_plan(words, made.settings).to_json()))
    return OneMessageParties.from_settings(3, folder / "decryptors", plan=plan, **sizes)


def assigned(operator: Operator, plan: Plan, settings: OneMessageRound, **changed: Any) -> None:
    sealed = settings.to_bytes().hex()
    operator.assign(plan, operator.task(plan, 0, encoded=ENCODED, sealed=sealed, **changed))


def opened(parties: OneMessageParties, bodies: list[bytes]) -> Words:
    """What server and decryptors make of the reports."""
    server, decryptors = parties.server, parties.decryptors
    deposits = [server.receive(body) for body in bodies]
    first = [server.propose, server.opening]
    proposal, opening = (each().to_bytes() for each in first)
    for messages in (lambda _: [opening, proposal], lambda at: [server.agreement().to_bytes(), *shares(deposits, at)]):
        for at, decryptor in enumerate(decryptors):
            for answer in [decryptor.receive(message) for message in messages(at)]:
                if answer is not None:
                    server.answer(answer.to_bytes())
    return server.opened()


def shares(deposits: Any, decryptor: int) -> list[bytes]:
    return [each[decryptor].to_bytes() for each in deposits]


def test_three_devices_reports_open_as_their_sum(
    parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan, draw = sealed_plan(words, parties.settings), np.random.default_rng(5)
    vectors = [NO_UPDATE.copy() for _ in range(3)]
    for vector in vectors:
        vector[: ENCODED.dimension] += draw.integers(0, 2, ENCODED.dimension, dtype=np.uint32)
    for number, vector in enumerate(vectors):
        assigned(operator, plan, parties.settings)
        turn = once(operator, cache.path, tmp_path / str(number), trainer=Given(vector))
        assert turn.what == "reported", turn.says
    bodies = [body for _, body in operator.received]
    assert len({SealedReport.from_bytes(body).client for body in bodies}) == 3
    np.testing.assert_array_equal(opened(parties, bodies), sum(vectors))


def test_no_key_of_a_device_comes_again(
    parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan, vector = sealed_plan(words, parties.settings), NO_UPDATE
    for number in (0, 1):  # the same device set up anew
        assigned(operator, plan, parties.settings)
        assert once(operator, cache.path, tmp_path / str(number), trainer=Given(vector)).what == "reported"
    first, second = (SealedReport.from_bytes(body) for _, body in operator.received)
    assert first.client != second.client and first.ephemeral != second.ephemeral


CHANGED: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "has a decryptor that its plan has not": (
        "is none of those that are trusted here",
        lambda settings: replace(settings, decryptors=(b"k" * 32, *settings.decryptors[1:])),
        {},
    ),
    "has another box": (
        "has another box of the decryptor",
        lambda settings: replace(settings, boxes=(b"b" * 32, *settings.boxes[1:])),
        {},
    ),
    "opens sums of two": ("report goal is 2", lambda settings: replace(settings, report_goal=2), {}),
    "is safe from fewer": ("is safe where 1 of its 4", lambda settings: settings, {"corrupt": 2}),
    "sums longer vectors": (
        "sums other vectors",
        lambda settings: replace(settings, dimension=settings.dimension + 1),
        {},
    ),
    "is of another plan": ("of another plan's", lambda settings: replace(settings, plan=bytes(32)), {}),
    "is of another round": ("settings of another round", lambda settings: replace(settings, round_index=1), {}),
    "has some of the decryptors": (
        "has 3 decryptors, and its plan 4",
        lambda settings: replace(settings, decryptors=settings.decryptors[:3], boxes=settings.boxes[:3]),
        {},
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_round_that(
    name: str, parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    why, change, of_plan = CHANGED[name]
    plan = sealed_plan(words, parties.settings, **of_plan)
    assigned(operator, plan, change(replace(parties.settings, plan=bytes.fromhex(digest(plan.to_json())))))
    is_refused(operator, cache, tmp_path, why)


def is_refused(operator: Operator, cache: Cache, tmp_path: Path, why: str) -> None:
    turn = once(operator, cache.path, tmp_path / "state", trainer=Given(NO_UPDATE))
    assert turn.what == "refused" and why in turn.says, turn.says
    assert not operator.received and turn.spent == 0


OF_NOISE = {
    "lacks whoever adds noise": ("does not contribute", {}, {}),
    "has the seed of another task": ("has not the seed of its own task", {"margin": 9}, {}),
}


@pytest.mark.parametrize("name", OF_NOISE)
def test_a_round_of_decryptors_noise_that(
    name: str, parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    why, of_round, of_plan = OF_NOISE[name]
    those = parties.settings.decryptors[:2]
    plan = sealed_plan(words, parties.settings, contributors=tuple(each.hex() for each in those), **of_plan)
    said = {"contributors": those, **of_round} if of_round else {}
    assigned(operator, plan, replace(parties.settings, plan=bytes.fromhex(digest(plan.to_json())), **said))
    is_refused(operator, cache, tmp_path, why)


@pytest.mark.parametrize("way", ["as planned", "longer integers", "another dimension"])
def test_an_update_is_encoded_as_contributors_of_noise_reckon(
    way: str, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    """With twice the scale an update would be twice as long as their noise is for; inflation alone does not tell."""
    found = encoded_sum(0.2)
    encoded = {
        "as planned": found,
        "longer integers": encoded_sum(0.2, scale=2 * found.scale, sigmas=5.0),
        "another dimension": encoded_sum(0.2, dimension=2 * found.dimension, length=2 * found.dimension + 1),
    }[way]
    largest = 2 * encoded.encoding().largest
    parties = OneMessageParties.from_settings(
        3, tmp_path / "decryptors", dimension=encoded.length, largest=largest, seed=3, report_goal=3
    )
    settings = replace(parties.settings, contributors=parties.settings.decryptors, margin=encoded.margin_each or 9)
    said = {"contributors": tuple(each.hex() for each in settings.decryptors)}
    plan = sealed_plan(words, settings, **said)
    task = operator.task(plan, 0, encoded=encoded, sealed=settings.to_bytes().hex())
    sealed = replace(settings, plan=bytes.fromhex(digest(plan.to_json())), seed=seed_of(task)).to_bytes().hex()
    operator.assign(plan, operator.task(plan, 0, encoded=encoded, sealed=sealed, task=task.task))
    nothing = np.full(encoded.length, largest // 2, np.uint32)
    nothing[encoded.dimension :] = 1
    turn = once(operator, cache.path, tmp_path / "state", trainer=Given(nothing))
    if way == "as planned":
        assert turn.what == "reported", turn.says
    else:
        assert turn.what == "refused" and "other integers of updates than its plan" in turn.says, turn.says
        assert not operator.received and turn.spent == 0


def test_noise_of_a_stranger_is_refused(
    parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    stranger = {"contributors": ("ab" * 32,)}
    with_seed_of_task(operator, sealed_plan(words, parties.settings, **stranger), parties.settings)
    is_refused(operator, cache, tmp_path, "which is none of its decryptors")


def test_a_plan_that_relies_on_more_than_may_be_honest_is_refused(
    parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    those = tuple(each.hex() for each in parties.settings.decryptors[:2])
    with_seed_of_task(operator, sealed_plan(words, parties.settings, contributors=those, honest=2), parties.settings)
    is_refused(operator, cache, tmp_path, "relies on 2 honest ones of 2 contributors")


def with_seed_of_task(operator: Operator, plan: Plan, settings: OneMessageRound) -> None:
    """Its first round, in which all is as noise of the plan's contributors wants it."""
    those = tuple(bytes.fromhex(key) for key in plan.aggregation.contributors)
    made = replace(settings, plan=bytes.fromhex(digest(plan.to_json())), contributors=those, margin=9)
    task = operator.task(plan, 0, encoded=ENCODED, sealed=made.to_bytes().hex())
    sealed = replace(made, seed=seed_of(task)).to_bytes().hex()
    operator.assign(plan, operator.task(plan, 0, encoded=ENCODED, sealed=sealed, task=task.task))


def participations(state: Path) -> list[tuple[int, float]]:
    """(round, what its run has cost with it) of each."""
    with read_only(state, now=NOON) as record:
        return [(each["round"], each["zcdp"]) for each in record.participations()]


def test_attempts_of_one_series_cost_what_one_costs_and_one_of_them_opens(
    parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    """A server that had the first opened gets nothing of the second, in which the same devices reported."""
    second, plan = attempt(tmp_path, words, 4), sealed_plan(words, parties.settings)
    assert second.settings.name != parties.settings.name
    assert second.settings.attempts == parties.settings.attempts
    spent = []
    for number in range(3):
        for each in (parties, second):
            assigned(operator, plan, each.settings)
            turn = once(operator, cache.path, tmp_path / str(number), trainer=Given(NO_UPDATE))
            assert turn.what == "reported", turn.says
            spent.append(turn.spent)
        assert participations(tmp_path / str(number)) == [(0, turn.spent)]
    assert len(set(spent)) == 1 and spent[0] > 0
    bodies = [body for _, body in operator.received]
    np.testing.assert_array_equal(opened(parties, bodies[::2]), 3 * NO_UPDATE)
    second.decryptors = parties.decryptors
    with pytest.raises(ProtocolError, match="was not opened here"):
        opened(second, bodies[1::2])


def test_an_attempt_comes_once_and_another_series_not_at_all(
    parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan, state = sealed_plan(words, parties.settings), tmp_path / "state"
    assigned(operator, plan, parties.settings)
    before = once(operator, cache.path, state, trainer=Given(NO_UPDATE))
    for settings, why in (
        (parties.settings, "has reported in the round"),  # two of its reports would be in one sum
        (
            replace(parties.settings, series=1, seed=bytes(32)),
            "took part in round 0, and two of its rounds are 5 apart",
        ),
    ):
        assigned(operator, plan, settings)
        turn = once(operator, cache.path, state, trainer=Given(NO_UPDATE))
        assert turn.what == "refused" and why in turn.says, turn.says
    assert len(operator.received) == 1 and participations(state) == [(0, before.spent)]


def test_no_more_attempts_than_the_owner_allows(
    parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan, said = sealed_plan(words, parties.settings), []
    for number in range(4):
        assigned(operator, plan, replace(parties.settings, seed=bytes([number]) * 32))
        policy = Policy(most_attempts=3)
        said.append(once(operator, cache.path, tmp_path / "state", trainer=Given(NO_UPDATE), policy=policy))
    assert [turn.what for turn in said] == [*["reported"] * 3, "refused"]
    assert "took part in 3 attempts at it, and most_attempts=3" in said[-1].says


def test_what_is_no_round_is_refused(
    parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    plan = sealed_plan(words, parties.settings)
    operator.assign(plan, operator.task(plan, 0, encoded=ENCODED, sealed="ab" * 500))
    turn = once(operator, cache.path, tmp_path / "state", trainer=Given(NO_UPDATE))
    assert turn.what == "refused" and "is not as its plan says" in turn.says


def test_what_is_not_finite_is_sealed_as_the_zero_update(
    parties: OneMessageParties, operator: Operator, words: str, cache: Cache, tmp_path: Path
) -> None:
    """Nobody could leave it out of the sum, and a refusal would tell of the text."""
    plan, zeros = sealed_plan(words, parties.settings), np.zeros(ENCODED.length, np.uint32)
    for number in range(3):
        assigned(operator, plan, parties.settings)
        trainer = Given(NO_UPDATE if number else zeros, usable=bool(number))
        turn = once(operator, cache.path, tmp_path / str(number), trainer=trainer)
        assert turn.what == "reported" and ("is not finite" in turn.says) == (not number), turn.says
    np.testing.assert_array_equal(opened(parties, [body for _, body in operator.received]), 3 * NO_UPDATE)
