"""Devices that seal what they report, and what must hold of their rounds."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tests.support.server.documents import PARAMETERS
from tests.support.server.fleet import KEY, TIMES, WORKERS, Fleet, a_training_task, update_of
from tests.support.server.sealing import Here, sealed_plan

from tacit.device.report_body import body_of
from tacit.federation.collector import Answered
from tacit.privacy.encoding_choice import encoding_within
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask, SignedTask
from tacit.protocol.one_message_shape import settings_of
from tacit.protocol.signing import digest
from tacit.secure_aggregation.one_message.decryptor_messages import KeySum, Vote
from tacit.secure_aggregation.secrets import seeded
from tacit.server.rounds.one_message_rounds import DecryptorTransport
from tacit.server.rounds.rounds import RoundTimes, ServedRounds
from tacit.server.store import assignments, round_states
from tacit.server.store.assignments import OpenRound, ReportAnswer
from tacit.server.store.store import Store
from tacit.server.sums import one_message_reports
from tacit.server.train import document
from tacit.training import TrainQuestion
from tacit.training.secure_updates import RoundEncoding

SEED, GOAL = bytes(32), 4
DRAW = seeded(b"devices of sealed rounds, for t.")


def encoding() -> RoundEncoding:
    return RoundEncoding(
        encoding=encoding_within(PARAMETERS, 1.0, GOAL),
        signs=bytes(range(32)),
        clip_estimate=0.5,
        loss_bound=8.0,
        threshold=GOAL,
    )


def a_task(round: int = 0) -> TrainQuestion:
    return a_training_task(round, goal=GOAL, secure=encoding())


def words_of(device: int) -> NDArray[np.uint32]:
    return encoding().encoded(
        update_of(device), norm=np.float32(0.5), loss=np.float32(device / 8), seed=SEED, client=device
    )


@dataclass
class SealedFleet(Fleet):
    """Devices that seal what they report."""

    decryptors: list[Here] = field(default_factory=list)
    transports: Sequence[DecryptorTransport] = ()  # to them; none: they are asked here
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plan = sealed_plan(self.decryptors, threshold=GOAL, run="sealed")
        signed, population = KEY.plan(self.plan).model_dump_json(), self.plan.population
        said = {"population": population, "kind": "train", "plan": signed, "plan_digest": digest(self.plan)}
        round_states.enter_run(self.store, self.plan.run, **said)

    def collector(self, times: RoundTimes = TIMES, store: Store | None = None) -> ServedRounds:
        self.clock.now += 100.0
        lease = round_states.take_lease(self.store, self.plan.run, seconds=60)
        assert lease is not None
        made = ServedRounds(
            store or self.store,
            self.blobs,
            KEY,
            document=document,
            times=times,
            decryptors=self.transports or self.decryptors,
            wait=self.wait,
        )
        made.serve(self.plan, lease)
        return made

    def device_comes(self, each: OpenRound) -> None:
        given = assignments.assign(self.store, each.task) if self.left else None
        if given is None:
            return
        self.left, self.number = self.left - 1, self.number + 1
        task = SignedTask.model_validate_json(each.signed_task).task
        body = self.sealed(task, self.number)
        if self.spooled(task, given.id, body) is ReportAnswer.RECEIVED:
            self.came.setdefault(each.task, []).append(self.number)

    def sealed(self, task: RoundTask, device: int) -> bytes:
        report = ReportBody(words_of(device), True, None, None)
        return body_of(self.plan, task, report, "", draw=DRAW)

    def spooled(self, task: RoundTask, assignment: str, body: bytes) -> ReportAnswer:
        """As a worker does."""
        assert task.sealed is not None
        one_message_reports.check(body, task.sealed, KEY.round_key(task.task))
        name = hashlib.sha256(body).hexdigest()
        return one_message_reports.report_store(
            self.store, self.blobs, body, task=task.task, assignment=assignment, worker=WORKERS[0], digest=name
        )

    def attempts(self) -> list[round_states.Attempt]:
        return round_states.attempts(self.store, self.plan.run)


def assert_sum_of(got: Answered, devices: list[int]) -> None:
    """To the bit the sum of what these devices encoded."""
    whole = np.sum([words_of(device) for device in devices], axis=0, dtype=np.uint32)
    total, short, losses = encoding().opened(whole, len(devices))
    assert np.asarray(got.values).tobytes() == total.tobytes()
    assert (got.reports, got.beside.get("short"), got.beside.get("bounded_loss")) == (len(devices), short, losses)


def assert_one_set_is_signed(fleet: SealedFleet) -> None:
    """Of each series of attempts, by each decryptor: by its folder, where every answer stands before it is given."""
    for decryptor in fleet.decryptors:
        votes = sorted((decryptor.folder / "rounds").glob("*.vote"))
        signed = {file.stem: Vote.from_bytes(file.read_bytes()).clients for file in votes}
        for file in (decryptor.folder / "rounds").glob("*.keysum"):
            assert KeySum.from_bytes(file.read_bytes()).clients == signed[file.stem]
    names = {settings_of(task.sealed).attempts.name.hex() for task in tasks(fleet) if task.sealed is not None}
    assert {file.stem for file in (fleet.decryptors[0].folder / "rounds").iterdir()} <= names


def tasks(fleet: SealedFleet) -> list[RoundTask]:
    return [SignedTask.model_validate_json(each.signed_task).task for each in fleet.attempts()]
