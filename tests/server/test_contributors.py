"""Decryptors that add the noise of served rounds: of the right scale, once a round, whoever is killed, by no lie."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2
from tests.server.killed_coordinator import Killed, KilledAt
from tests.server.noised_fleet import GOAL, PARAMETERS, ROUNDS, NoisedFleet, plan_of
from tests.server.sealed_fleet import assert_one_set_is_signed
from tests.support.device.operator import CLIENT
from tests.support.secure_aggregation.lying_clients import random_shares, report_of
from tests.support.server.fleet import KEY, TIMES
from tests.support.server.over_http import over_http
from tests.support.server.sealing import Here, decryptors_in
from tests.support.server.stores import quick_folder

from tacit.contributor.train import TrainNoise
from tacit.errors import RoundAborted, TrainingError
from tacit.mechanisms.all_rounds import carrying_stream
from tacit.protocol.messages import Content, RoundTask, Signed, SignedPlan
from tacit.protocol.one_message_shape import settings_of
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import digest
from tacit.protocol.train import EncodedSum, TrainDocument
from tacit.recipe import Recipe
from tacit.secure_aggregation import decode
from tacit.secure_aggregation.one_message.decryptor_messages import NoiseRequest, Refusal
from tacit.secure_aggregation.one_message.messages import OneMessageReport, OneMessageRound
from tacit.secure_aggregation.secrets import Identity, Words
from tacit.secure_aggregation.wire import opened
from tacit.server.rounds.one_message_rounds import DecryptorAway, OneMessageOpening
from tacit.server.rounds.rounds import RoundTimes
from tacit.server.store import round_states
from tacit.server.sums.one_message_reports import new_round


@pytest.fixture(autouse=True)
def _same_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of a statistic can be seen again."""
    drawn = count()
    monkeypatch.setattr("tacit.mechanisms.all_rounds.fresh_key", lambda: bytes([7, next(drawn)]) + bytes(14))


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as made:
        yield made


def fleet_of(folder: Path, tmp_path: Path, decryptors: int = 3, **how: object) -> NoisedFleet:
    return NoisedFleet(folder, decryptors=decryptors_in(tmp_path, count=decryptors, least=GOAL), **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(("mechanism", "honest"), [("blt-b400", 1), ("tree", 1), ("blt-b400", 2)])
def test_a_served_sum_has_the_noise_of_all_decryptors_and_the_server_adds_none(
    folder: Path, tmp_path: Path, mechanism: str, honest: int
) -> None:
    """Its variance is K/h times what is accounted; one, K, K/h^2 and K/sqrt(h) times are told from it."""
    fleet = fleet_of(folder, tmp_path, honest=honest, mechanism=mechanism)
    collector, strategy = fleet.collector(), fleet.rounds.updates.strategy
    assert strategy is not None
    state, sums = fleet.first_state(collector), []
    assert state.noise is None and state.decryptors == ()
    for round in range(ROUNDS):
        before = np.asarray(state.model)
        noise, state = fleet.released(collector, state, round)
        sums.append(noise)
        assert not np.array_equal(state.model, before)
    rows = np.linalg.norm(carrying_stream(strategy).dense(ROUNDS), axis=1)
    dense = carrying_stream(strategy).dense(ROUNDS)
    for noise, row in zip(np.array(sums, np.float64), rows, strict=True):
        square = float(np.square(noise / (fleet.rounds.updates.seed_stddev * row)).sum())
        low, high = chi2.ppf(1e-6, noise.size), chi2.ppf(1 - 1e-6, noise.size)
        assert low < square / (3 / honest) < high
        wrong = {1, 3, 3 / honest**2, 3 / honest**0.5, 2, 4} - {3 / honest}
        assert not any(low < square / each < high for each in wrong)
    whole = np.array(sums, np.float64)
    covariance = whole @ whole.T / whole.shape[1] / (3 / honest * fleet.rounds.updates.seed_stddev**2)
    np.testing.assert_allclose(covariance, dense @ dense.T, rtol=0, atol=0.15 * rows.max() ** 2)


def drawn_by(fleet: NoisedFleet) -> NDArray[np.float32]:
    """What all decryptors add in the round that was asked for last, drawn again from what is on their disks."""
    task = Signed.from_json(fleet.attempts()[-1].signed_task).read(RoundTask)
    encoded = task.question(TrainDocument).encoded
    assert task.sealed is not None and encoded is not None
    encoding, total = encoded.encoding(), np.zeros(encoded.dimension, np.uint32)
    for each in fleet.decryptors:
        noise = TrainNoise(fleet.plan, task, b"", each.folder / "noise" / digest(fleet.plan.to_json()))
        words = noise.draw(settings_of(task.sealed).name)[: encoded.dimension]
        total += words - np.uint32(noise.margin)
    within = total & np.uint32(encoding.modulus - 1)
    return decode(within, encoding, signs=bytes.fromhex(encoded.signs), reports=0)


def named(fleet: NoisedFleet) -> list[int]:
    """How many rounds each decryptor has given a name."""
    files = [each.folder / "noise" / digest(fleet.plan.to_json()) / "rounds.json" for each in fleet.decryptors]
    return [json.loads(file.read_text())["rounds"] if file.exists() else 0 for file in files]


@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
def test_a_coordinator_killed_at_a_transaction_asks_for_the_same_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    for step in count(2 if after else 4, 5):
        with quick_folder() as folder:
            fleet, died = fleet_of(folder, tmp_path / str(step), 2), False
            with monkeypatch.context() as patch:
                killed = KilledAt(fleet, step, after=after, patch=patch)
                collector = fleet.collector(store=killed.store)
                try:
                    fleet.released(collector, fleet.first_state(collector), 0)
                except Killed:
                    died = True
            if any(each.state == round_states.RELEASED for each in fleet.attempts()):
                assert not died or step > 5
            else:
                collector = fleet.collector()
                noise, _ = fleet.released(collector, fleet.first_state(collector), 0)
                np.testing.assert_array_equal(noise, drawn_by(fleet))
            assert named(fleet) == [1, 1] and len([each for each in fleet.attempts() if each.total_digest]) == 1
            assert_one_set_is_signed(fleet)
            fleet.store.close()
        if not died:
            assert step > 5
            return


@pytest.mark.parametrize("message", range(6))
def test_a_decryptor_killed_before_a_message_gives_the_same_noise(folder: Path, tmp_path: Path, message: int) -> None:
    fleet, killed = fleet_of(folder, tmp_path, 2), list[int]()

    def dies(number: int) -> bool:
        fleet.decryptors[0].seen.append(b"")
        if not killed and len(fleet.decryptors[0].seen) > 2 * message:
            killed.append(number)
            return True
        return False

    fleet.decryptors[0].dies_at = dies
    collector = fleet.collector()
    noise, _ = fleet.released(collector, fleet.first_state(collector), 0)
    assert killed and len(fleet.attempts()) == 1 and named(fleet) == [1, 1]
    np.testing.assert_array_equal(noise, drawn_by(fleet))


def test_a_second_attempt_gets_no_noise_and_the_run_ends(folder: Path, tmp_path: Path) -> None:
    """Two sums of other devices with one round's noise would differ by what the devices differ by, in the clear."""
    fleet = fleet_of(folder, tmp_path, 2)
    collector = fleet.collector()
    state = fleet.first_state(collector)
    wanted = OneMessageOpening.opened

    def spoilt(opening: OneMessageOpening) -> object:
        wanted(opening)
        raise RoundAborted("it was spoilt.")

    OneMessageOpening.opened = spoilt  # type: ignore[method-assign,assignment]
    try:
        with pytest.raises(TrainingError, match=r"decryptors gave their noise for it.*it was spoilt.*run ends"):
            fleet.released(collector, state, 0)
    finally:
        OneMessageOpening.opened = wanted  # type: ignore[method-assign]
    came = fleet.number
    with pytest.raises(TrainingError, match=r"round 0 is not opened.*round 0 is called .* equal noise on two sums"):
        fleet.released(fleet.collector(), state, 0)
    assert fleet.number == came and named(fleet) == [1, 1], "no device works for it"


def test_an_attempt_with_too_few_devices_costs_no_noise(folder: Path, tmp_path: Path) -> None:
    fleet = fleet_of(folder, tmp_path, 2, left=GOAL - 1)
    collector = fleet.collector(RoundTimes(attempts=1, selecting=5.0, poll=1.0))
    state = fleet.first_state(collector)
    with pytest.raises(TrainingError, match="1 device came while it was open"):
        fleet.released(collector, state, 0)
    assert named(fleet) == [0, 0]
    fleet.left = 100
    noise, _ = fleet.released(fleet.collector(), state, 0)
    np.testing.assert_array_equal(noise, drawn_by(fleet))


def test_a_contributor_that_is_away_is_waited_for(folder: Path, tmp_path: Path) -> None:
    """Before devices work no longer than for them; for a sum with noise in it, however long."""
    fleet = fleet_of(folder, tmp_path, 4)
    fleet.decryptors[3].away = True
    collector = fleet.collector(replace(TIMES, selecting=50.0, pause=10.0))
    state = fleet.first_state(collector)
    with pytest.raises(
        TrainingError, match=r"not opened.*without the noise of each contributor \(decryptor 3: it is away"
    ):
        fleet.released(collector, state, 0)
    assert not fleet.attempts() and named(fleet) == [0] * 4
    fleet.decryptors[3].away = False
    asked, since = Here.ask, list[float]()

    def goes(decryptor: Here, messages: Iterable[bytes]) -> list[bytes]:
        sent = list(messages)
        wanted = opened(sent[0])[0] == NoiseRequest.kind and NoiseRequest.from_bytes(sent[0]).give
        away = decryptor is fleet.decryptors[3] and (not since or fleet.clock.now < since[0] + 45)
        if wanted and away:
            since.append(fleet.clock.now)
            raise DecryptorAway("it is away.")
        return asked(decryptor, sent)

    Here.ask = goes  # type: ignore[method-assign]
    try:
        noise, _ = fleet.released(fleet.collector(replace(TIMES, opening=20.0)), state, 0)
    finally:
        Here.ask = asked  # type: ignore[method-assign]
    assert len(fleet.attempts()) == 1 and fleet.clock.now > since[0] + 45
    np.testing.assert_array_equal(noise, drawn_by(fleet))


@pytest.mark.parametrize("gone", ["all", "rounds.json"])
def test_a_contributor_that_lost_its_state_ends_the_run(folder: Path, tmp_path: Path, gone: str) -> None:
    fleet = fleet_of(folder, tmp_path, 2)
    collector = fleet.collector()
    _, state = fleet.released(collector, fleet.first_state(collector), 0)
    kept = fleet.decryptors[1].folder / "noise" / digest(fleet.plan.to_json())
    if gone == "all":
        shutil.rmtree(kept)
    else:
        (kept / gone).unlink()
    with pytest.raises(TrainingError, match="noise cannot go on, and with it the run"):
        fleet.released(fleet.collector(), state, 1)


def signed_task(fleet: NoisedFleet, **encoded: object) -> Signed:
    """Of round 0, as a server would have it sealed; `encoded` says otherwise than the plan."""
    encoding = fleet.rounds.encoding(PARAMETERS)
    assert encoding is not None
    said = {**dataclasses.asdict(encoding), "signs": "ab" * 32, "length": encoding.dimension + 1, "threshold": GOAL}
    question = TrainDocument(
        kind="train",
        parameters=PARAMETERS,
        client=CLIENT,
        clip_norm=encoding.clip_norm,
        clip_estimate=None,
        loss_bound=None,
        encoded=EncodedSum(**{**said, **encoded}),
    )
    task = RoundTask(
        run=fleet.plan.run,
        plan=digest(fleet.plan.to_json()),
        round=0,
        attempt=0,
        task="12" * 16,
        content=Content(sha256="56" * 32, bytes=300, path="/v1/models/" + "56" * 32),
        asks=question,
        sealed=None,
        opens=1.0,
        deadline=2.0,
    )
    settings = new_round(fleet.plan, task, series=0, private=KEY.round_key(task.task), least=GOAL, most=GOAL)
    return KEY.signed(task.model_copy(update={"sealed": settings.to_bytes().hex()}))


def request_for(signed: Signed, plan: SignedPlan, *, give: bool = True, matrix: bytes = b"") -> bytes:
    sealed = signed.read(RoundTask).sealed
    assert sealed is not None
    texts = (each.to_json().encode() for each in (plan, signed))
    return NoiseRequest(settings_of(sealed).name, int(give), *texts, matrix).to_bytes()


def answered(decryptor: Here, request: bytes) -> str:
    """Why nothing is given; nothing where it is."""
    (answer,) = decryptor.ask([request])
    return Refusal.from_bytes(answer).reason.decode() if opened(answer)[0] == Refusal.kind else ""


def test_one_report_a_round_and_the_same_bytes_when_asked_again(folder: Path, tmp_path: Path) -> None:
    fleet = fleet_of(folder, tmp_path, 2)
    decryptor, plan = fleet.decryptors[0], KEY.plan(fleet.plan.to_json())
    request = request_for(signed_task(fleet), plan)
    assert decryptor.ask([request_for(signed_task(fleet), plan, give=False)]) == [] and named(fleet) == [0, 0]
    (first,) = decryptor.ask([request])
    decryptor.restart()
    assert decryptor.ask([request]) == [first]
    other = signed_task(fleet).read(RoundTask).model_copy(update={"task": "34" * 16, "sealed": None})
    settings = new_round(fleet.plan, other, series=0, private=KEY.round_key(other.task), least=GOAL, most=GOAL)
    again = KEY.signed(other.model_copy(update={"sealed": settings.to_bytes().hex()}))
    assert "equal noise on two sums" in answered(decryptor, request_for(again, plan))
    (decryptor.folder / "noise" / digest(fleet.plan.to_json()) / "report").unlink()
    assert "equal noise on two sums" in answered(decryptor, request_for(again, plan))


LIES = {
    "half the scale": ({"scale": 0.5}, "encodes updates otherwise than its plan"),
    "half the clip norm": ({"clip_norm": 0.5}, "encodes updates otherwise than its plan"),
    "half the margin": ({"margin_each": 0.5}, "encodes updates otherwise than its plan"),
    "fewer deviations": ({"sigmas": 0.9}, "encodes updates otherwise than its plan"),
    "other lengths": ({"parameters": 0.5}, ""),
}


@pytest.mark.parametrize("name", LIES)
def test_noise_is_given_for_the_plans_encoding_alone(folder: Path, tmp_path: Path, name: str) -> None:
    """With a smaller scale it would be smaller than what it is to hide."""
    fleet = fleet_of(folder, tmp_path, 2)
    encoding = fleet.rounds.encoding(PARAMETERS)
    factors, why = LIES[name]
    lie = {key: type(getattr(encoding, key))(getattr(encoding, key) * factor) for key, factor in factors.items()}
    if name == "other lengths":
        with pytest.raises(ValueError, match="another number of parameters"):
            signed_task(fleet, **lie)
        return
    said = answered(fleet.decryptors[0], request_for(signed_task(fleet, **lie), KEY.plan(fleet.plan.to_json())))
    assert why in said and named(fleet) == [0, 0], said


CHANGED: dict[str, tuple[Callable[[OneMessageRound], OneMessageRound], str]] = {
    "a smaller margin": (lambda settings: replace(settings, margin=settings.margin // 2), "only where it is small"),
    "a larger margin": (lambda settings: replace(settings, margin=2 * settings.margin), "or hidden worse"),
    "another task's seed": (lambda settings: replace(settings, seed=bytes(32)), "has not the seed of its own task"),
    "less noise": (
        lambda settings: replace(settings, contributors=settings.contributors[:1]),
        "does not contribute",
    ),
    "fewer corrupt": (lambda settings: replace(settings, corrupt=1), "is safe where 1 of its 3"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_noise_is_given_in_the_settings_that_follow_from_plan_and_task_alone(
    folder: Path, tmp_path: Path, name: str
) -> None:
    """A server that signs a true plan and a true task chooses the settings yet; nothing is drawn for others."""
    fleet, (change, why) = fleet_of(folder, tmp_path, 3), CHANGED[name]
    if name == "fewer corrupt":
        fleet.plan = plan_of(fleet.recipe, corrupt=2)
    signed, plan = signed_task(fleet), KEY.plan(fleet.plan.to_json())
    task = signed.read(RoundTask)
    assert task.sealed is not None and fleet.decryptors[1].ask([request_for(signed, plan, give=False)]) == []
    changed = change(settings_of(task.sealed))
    lie = KEY.signed(task.model_copy(update={"sealed": changed.to_bytes().hex()}))
    assert why in answered(fleet.decryptors[0], request_for(lie, plan)) and named(fleet) == [0] * 3


def test_what_the_operator_did_not_sign_gets_no_noise(folder: Path, tmp_path: Path) -> None:
    fleet, stranger = fleet_of(folder, tmp_path, 2), OperatorKey(bytes(31) + b"\x01")
    decryptor, signed, plan = fleet.decryptors[0], signed_task(fleet), KEY.plan(fleet.plan.to_json())
    weaker = fleet.plan.model_copy(update={"run": "another"})
    for request, why in (
        (request_for(signed, stranger.plan(fleet.plan.to_json())), "not signed by the operator"),
        (request_for(stranger.signed(signed.read(RoundTask)), plan), "not signed by the operator"),
        (request_for(signed, KEY.plan(weaker.to_json())), "is of another plan"),
        (NoiseRequest(bytes(32), 1, b"{}", b"{}", b"").to_bytes(), "no signed plan"),
    ):
        assert why in answered(decryptor, request), why
    decryptor.operator = None
    decryptor.restart()
    assert "adds noise for no operator" in answered(decryptor, request_for(signed, plan))
    assert named(fleet) == [0, 0]


def test_a_plan_without_this_decryptor_gets_none_of_its_noise(folder: Path, tmp_path: Path) -> None:
    fleet = fleet_of(folder, tmp_path, 3)
    fleet.plan = plan_of(fleet.recipe, contributors=fleet.plan.aggregation.contributors[1:])
    said = answered(fleet.decryptors[0], request_for(signed_task(fleet), KEY.plan(fleet.plan.to_json())))
    assert "names others who add noise" in said


def test_a_plan_that_relies_on_more_than_may_be_honest_gets_none(folder: Path, tmp_path: Path) -> None:
    """The noise of each would be too little for what the plan promises."""
    fleet = fleet_of(folder, tmp_path, 3)
    fleet.plan = plan_of(fleet.recipe, honest=3)
    said = answered(fleet.decryptors[0], request_for(signed_task(fleet), KEY.plan(fleet.plan.to_json())))
    assert "honest_decryptors=3 of 3 decryptors, of whom 1 may work with the server" in said


@pytest.mark.parametrize("honest", [1, 2])
def test_what_is_accounted_is_that_of_the_simulation_and_of_a_server_alone(
    folder: Path, tmp_path: Path, honest: int
) -> None:
    fleet = fleet_of(folder, tmp_path, 3, honest=honest)
    alone = fleet.recipe.model_copy(update={"deployment": None})
    section = {"kind": "secure", "decryptors": 3, "honest_decryptors": honest}
    simulated = Recipe.model_validate({**alone.model_dump(mode="json", exclude_none=True), "aggregation": section})
    assert fleet.rounds.guarantee == alone.plan().guarantee == simulated.plan().guarantee
    assert fleet.rounds.encoding(PARAMETERS) == simulated.plan().encoding(PARAMETERS)


def test_decryptors_add_noise_over_http(folder: Path, tmp_path: Path) -> None:
    fleet = fleet_of(folder, tmp_path, 2)
    fleet.transports = [over_http(each.desk) for each in fleet.decryptors]
    collector = fleet.collector()
    noise, _ = fleet.released(collector, fleet.first_state(collector), 0)
    np.testing.assert_array_equal(noise, drawn_by(fleet))


def test_noise_that_does_not_fit_names_its_contributor_and_ends_the_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device's report would be left out; without a contributor's there is no sum."""
    fleet = fleet_of(folder, tmp_path, 2)
    collector = fleet.collector()
    state = fleet.first_state(collector)

    def of_random_shares(settings: OneMessageRound, identity: Identity, vector: Words) -> OneMessageReport:
        return report_of(settings, identity, random_shares(settings, vector), passes_server=True)

    monkeypatch.setattr("tacit.contributor.contributor.one_message_report", of_random_shares)
    with pytest.raises(TrainingError, match=r"decryptors gave their noise for it.*the noise of the contributor"):
        fleet.released(collector, state, 0)
