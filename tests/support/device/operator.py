"""An operator and a device in one process: what crosses between them is what would cross a network."""

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import tomli_w
from numpy.typing import NDArray
from tests.support.device.zeros import Zeros
from tests.support.training.tiny import tiny_cache, tiny_values

from tacit.data import Cache
from tacit.device.device import Device
from tacit.device.eligibility import Probe
from tacit.device.isolated import Children
from tacit.device.own_handlers import task_handlers
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.device.record import opened
from tacit.device.session import Machine, Session
from tacit.device.turn import SessionOutcome
from tacit.networks.cifg.network import Cifg
from tacit.privacy import Guarantee
from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_within
from tacit.privacy.gaussian import epsilon
from tacit.protocol.attestation import NOTHING, Attestation
from tacit.protocol.bounded_http import Server, connected
from tacit.protocol.log_proofs import leaf_of, plan_entry, root_of
from tacit.protocol.messages import (
    UNATTESTED,
    AggregationSettings,
    Content,
    Plan,
    RoundTask,
    Separation,
    ShownLog,
    Signed,
    SignedKeyRotation,
    SignedPlan,
    TrainingPrivacy,
    TreeHead,
)
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.served_bodies import model_body
from tacit.protocol.signing import digest
from tacit.protocol.train import EncodedSum, TrainDocument, Training
from tacit.recipe import Recipe
from tacit.secure_aggregation.one_message.messages import OneMessageRound

POPULATION = "keyboards"
SERVER = "http://127.0.0.1:8000"
NOON = 1_800_000_000.0
HOUR = 3600.0
DELTA = 1e-6
PARAMETERS = sum(int(np.prod(shape)) for shape in Cifg(vocabulary=60, embedding=8, units=16).shapes().values())
CLIENT = Training(epochs=1, batch_size=4, learning_rate=0.5, sentences=8, words=6, proximal=0.0, precision="float32")
PRIVATE: dict[str, Any] = {"mechanism": {"name": "blt-b400"}, "noise_multiplier": 6.0}


def cache_of_one(path: Path) -> Cache:
    return tiny_cache(path, {"train": 1})


def recipe_text(**sections: Any) -> str:
    rounds = {"rounds": 40, "report_goal": 6, "min_separation": 5}
    values = tiny_values(Path("cache"), **{"privacy": PRIVATE, "rounds": rounds, **sections})
    seed = sections.get("run", {}).get(
        "seed"
    )  # what every device knows makes no secret noise: none, unless it is asked
    return tomli_w.dumps({**values, "run": {} if seed is None else {"seed": seed}})


def privacy_of(text: str, guarantee: Guarantee | None = None, **changed: Any) -> TrainingPrivacy:
    """What the recipe promises, as an honest operator writes it."""
    recipe = Recipe.from_toml(text if guarantee is None else recipe_text())  # a lie is not read by whoever tells it
    found = recipe.guarantee() if guarantee is None else guarantee
    values: dict[str, Any] = {
        "kind": "training",
        "zcdp": found.zcdp,
        "epsilon": epsilon(found.zcdp, DELTA),
        "delta": DELTA,
        "clip_norm": recipe.privacy.clip_norm,
        "noise_multiplier": found.noise_multiplier,
        "mechanism": recipe.privacy.mechanism_name,
        "matrix": None,
        "report_goal": recipe.rounds.report_goal,
        "rounds": recipe.rounds.rounds,
        "max_participations": found.participation.max_participations,
    }
    return TrainingPrivacy(**values | changed)


def a_plan(vocabulary: str, *, text: str | None = None, privacy: dict[str, Any] | None = None, **changed: Any) -> Plan:
    text = recipe_text() if text is None else text
    values: dict[str, Any] = {
        "version": 2,
        "kind": "train",
        "population": POPULATION,
        "run": "run-1",
        "recipe": text,
        "code": "ab" * 32,
        "privacy": privacy_of(text, **(privacy or {})),
        "separation": Separation(rounds=5, timer_seconds=None, clock="start"),
        "aggregation": AggregationSettings(
            kind="plain", threshold=2, keepers=(), boxes=(), corrupt=0, contributors=(), honest=1
        ),
        "vocabulary": vocabulary,
        "attestation": UNATTESTED,
        "enrolment": "none",
    }
    return Plan(**values | changed)


def encoded_sum(clip_norm: float = 0.2, *, more: int = 0, **changed: Any) -> EncodedSum:
    found = encoding_within(PARAMETERS, clip_norm, 6)
    names: dict[str, Any] = {name: getattr(found, name) for name in Encoding.__dataclass_fields__}
    values = {**names, "signs": "ef" * 32, "length": found.dimension + 1 + more, "threshold": 3}
    return EncodedSum(**values | changed)


@dataclass
class Operator:
    """Signs plans and tasks, and answers a device's requests; `answers` are given one after another, then "idle"."""

    key: OperatorKey = field(default_factory=lambda: OperatorKey(bytes(range(32))))
    model: NDArray[np.float32] = field(default_factory=lambda: np.linspace(-0.1, 0.1, PARAMETERS, dtype=np.float32))
    answers: list[Any] = field(default_factory=list)
    received: list[tuple[str, bytes]] = field(default_factory=list)  # (assignment, body), the first of each
    given_back: list[str] = field(default_factory=list)  # assignments
    asked: list[httpx.Request] = field(default_factory=list)
    before_receipt: Callable[[str], httpx.Response | None] = lambda assignment: None
    before: Callable[[], None] = lambda: None  # a request is looked at
    log: list[str] = field(default_factory=list)  # the entries of the transparency log
    key_rotation: SignedKeyRotation | None = None  # to its key, from the one before
    files: dict[str, bytes] = field(default_factory=dict)  # besides the model, by the digest that they are asked by
    plans: dict[str, SignedPlan] = field(default_factory=dict)  # what is served for a digest
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def task(self, plan: Plan, round: int, **changed: Any) -> RoundTask:
        body = model_body(self.model)
        sha256 = hashlib.sha256(body).hexdigest()
        opens = changed.pop("opens", NOON + round * 2 * HOUR)
        values: dict[str, Any] = {
            "run": plan.run,
            "plan": digest(plan.to_json()),
            "round": round,
            "attempt": 0,
            "task": f"{next(self.numbers):032x}",
            "content": Content(sha256=sha256, bytes=len(body), path=f"/v1/models/{sha256}"),
            "sealed": None,
            "opens": opens,
            "deadline": opens + HOUR,
        }
        assert isinstance(plan.privacy, TrainingPrivacy)
        asks: dict[str, Any] = {
            "kind": "train",
            "parameters": len(self.model),
            "client": CLIENT,
            "clip_norm": plan.privacy.clip_norm,
            "clip_estimate": None,
            "loss_bound": None,
            "encoded": None,
        }
        own = {name: changed.pop(name) for name in asks.keys() & changed.keys()}
        return RoundTask(**{**values, "asks": TrainDocument(**asks | own)} | changed)

    def assign(self, plan: Plan, task: RoundTask, *, by: OperatorKey | None = None) -> None:
        """Give this task at the next check-in."""
        signer = by or self.key
        self.give(signer.plan(plan.to_json()), signer.signed(task))

    def give(self, plan: SignedPlan, task: Signed, *, logged: bool = True) -> None:
        """plan: what is served for the digest in the task."""
        self.plans[task.read(RoundTask).plan] = plan
        if logged and plan_entry(digest(plan.document)) not in self.log:
            self.log.append(plan_entry(digest(plan.document)))
        answer = {
            "answer": "assignment",
            "assignment": f"{next(self.numbers):032x}",
            "secret": "ab" * 32,
            "signed_task": task.model_dump(mode="json"),
        }
        self.answers.append(httpx.Response(200, json=answer))

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.before()
        self.asked.append(request)
        path = request.url.path
        if path == "/v1/check-in":
            idle = httpx.Response(200, json={"answer": "come_back", "after_s": 60.0, "before_s": 120.0})
            answer: httpx.Response = self.answers.pop(0) if self.answers else idle
            return answer
        if path.startswith("/v1/models/"):
            name = path.rpartition("/")[2]
            return httpx.Response(200, content=self.files.get(name) or model_body(self.model))
        if path.startswith("/v1/plans/"):
            return self.shown_plan(path.rpartition("/")[2])
        if path == "/v1/key/hand-over" and self.key_rotation is not None:
            return httpx.Response(200, json=self.key_rotation.model_dump(mode="json"))
        if path == "/v1/log":
            entries = self.shown_entries()
            if not entries:
                return self.none("the log has no entries yet.")
            return httpx.Response(200, content=shown_log(self.key, entries).to_json())
        if path == "/v1/key/hand-over":
            return self.none("the operator has the key that it always had.")
        assert path.startswith("/v1/reports/"), path
        if request.method == "DELETE":
            self.given_back.append(path.rpartition("/")[2])
            return httpx.Response(204)
        return self.take(path.rpartition("/")[2], request.read(), request.headers["X-Content-SHA256"])

    def take(self, assignment: str, body: bytes, sha256: str) -> httpx.Response:
        assert hashlib.sha256(body).hexdigest() == sha256
        if assignment not in dict(self.received):
            self.received.append((assignment, body))
        assert dict(self.received)[assignment] == body, "another body for one assignment"
        instead = self.before_receipt(assignment)
        if instead is not None:
            return instead
        return httpx.Response(200, json=self.key.receipt(assignment, sha256).model_dump(mode="json"))

    def shown_plan(self, name: str) -> httpx.Response:
        if name not in self.plans:
            return self.none("no run has this plan.")
        return httpx.Response(200, json=self.plans[name].model_dump(mode="json"))

    def shown_entries(self) -> list[str]:
        """Of the log, as it is shown now."""
        return self.log

    @staticmethod
    def none(detail: str) -> httpx.Response:
        return httpx.Response(404, json={"type": "tacit:not-found", "title": "none", "status": 404, "detail": detail})

    def told(self) -> list[dict[str, Any]]:
        """What devices sent when they checked in."""
        return [json.loads(each.content) for each in self.asked if each.url.path == "/v1/check-in"]


def shown_log(key: OperatorKey, entries: Sequence[str]) -> ShownLog:
    """These entries under a head of theirs."""
    root = root_of(map(leaf_of, entries)).hex()
    return ShownLog(head=key.signed(TreeHead(size=len(entries), root=root)), entries=tuple(entries))


@dataclass
class Wire(httpx.BaseTransport):
    """Requests to a function, whose answers arrive as from a network: their bytes are there when they are read."""

    answer: Callable[[httpx.Request], httpx.Response]
    closed: int = 0  # times

    def close(self) -> None:
        self.closed += 1

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        found = self.answer(request)
        if not found.is_stream_consumed:  # made of a stream
            return found
        return httpx.Response(found.status_code, headers=found.headers, stream=httpx.ByteStream(found.content))


@dataclass
class Clock:
    """A device's clock, which sleeping moves on."""

    now: float = NOON

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def once(
    operator: Operator,
    data: Path,
    state: Path,
    *,
    now: float | Clock = NOON,
    policy: Policy = Policy(),  # noqa: B008  (frozen)
    first_time: bool = True,
    journal: Path | None = None,
    trainer: Any = None,
    text: OwnText | None = None,
    probes: Sequence[Probe] = (),
    key: str | None = None,
    draw: Callable[[int], bytes] = os.urandom,
    population: str = POPULATION,
    servers: Attestation = NOTHING,
    code: str | None = None,
    children: Children | None = None,
) -> SessionOutcome:
    """One turn of a device made of its parts; by default it has taken part nowhere before and learns nothing.

    children: that do the work of its tasks, in place of a trainer here.
    """
    own = text or OwnText(data, None, policy.temporal_split)
    clock = now if isinstance(now, Clock) else Clock(now)
    with (
        connected(Server.from_url(SERVER), through=Wire(operator)) as connection,
        opened(state, journal, now=clock(), first_time=first_time, budget_zcdp=policy.budget_zcdp) as record,
    ):
        record.pin(key or operator.key.public)
        session = Session(
            record=record,
            policy=policy,
            handlers=task_handlers(own, trainer or Zeros()) if children is None else children.handlers,
            population=population,
            probes=probes,
            machine=Machine(clock=clock, steady=clock, sleep=clock.sleep, draw=draw),
            servers=servers,
            code=code,
        )
        return Device(session, connection, children).session()


SEED = bytes(range(32))


SECURE = {"aggregation": {"kind": "secure"}}

ENCODED = AggregationSettings(kind="encoded", threshold=3, keepers=(), boxes=(), corrupt=0, contributors=(), honest=1)


def sealed_plan(words: str, settings: OneMessageRound, **changed: Any) -> Plan:
    said: dict[str, Any] = {
        "kind": "sealed",
        "threshold": 3,
        "keepers": tuple(each.hex() for each in settings.decryptors),
        "boxes": tuple(each.hex() for each in settings.boxes),
        "corrupt": settings.corrupt,
        "contributors": (),
        "honest": 1,
    }
    return a_plan(words, text=recipe_text(**SECURE), aggregation=AggregationSettings(**said | changed))
