"""A device's turn, driven step by step: what it asks, writes and waits for is written down; it may die after any step.

The session and the record are the real ones. Text, training, network, clock and randomness are a test's.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.device.policy import Policy
from tacit.device.record import DeviceRecord, opened
from tacit.device.session import Machine, Session
from tacit.device.task_handler import SEED_BYTES, TaskHandler
from tacit.device.train import TrainHandler, encoding_of
from tacit.device.turn import Pause, SessionOutcome
from tacit.errors import ServerError, TaskRefused
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.requests import Answer, Ask

UPDATE = (0.0625, -0.125, 0.0, 0.03125)  # shorter than the clip norm of the plans here
VOCABULARY, WORDS = "cd" * 32, 60
NOON = 1_800_000_000.0
CODE = "of-a-test-no-secret-0001"


@dataclass
class Text:
    """Of a device with these words, of which nothing is read."""

    words: int = WORDS
    vocabulary: str = VOCABULARY

    def check_vocabulary(self, plan: Plan) -> None:
        if plan.vocabulary != self.vocabulary:
            raise TaskRefused(f"run {plan.run!r} has other words than this device.")

    def check(self) -> None:
        """It has text."""


@dataclass
class Trainer:
    """Trains to one update; or fails, or comes to no number."""

    does: str
    read: bool = False  # the text

    def check(self, plan: Plan) -> None:
        """All can be done."""

    def prepare(self, plan: Plan, task: RoundTask, model: Any) -> Callable[[Any], ReportBody]:
        encoding = encoding_of(task)

        def trained(draw: Any) -> ReportBody:
            self.read = True
            if self.does == "fails":
                raise RuntimeError("the text cannot be read")
            update = np.array(UPDATE, np.float32)
            if self.does == "not finite":
                update[0] = np.nan
            if encoding is not None:
                zero = np.float32(0)
                words = encoding.encoded(update, norm=zero, loss=zero, seed=draw(SEED_BYTES), client=0)
                return ReportBody(words, True, None, None)
            return ReportBody(update, self.does != "not finite", None, None)

        return trained


class Died(BaseException):
    """The device's process was ended."""


@dataclass
class Steps:
    """What happened in a turn, in order. dies_after: so many steps, after which nothing happens any more."""

    dies_after: int | None = None
    said: list[dict[str, Any]] = field(default_factory=list)
    draws: list[str] = field(default_factory=list)

    def __call__(self, **step: Any) -> None:
        self.check()
        self.said.append(step)

    def check(self) -> None:
        """Raises: Died, where the process is over."""
        if self.dies_after is not None and len(self.said) >= self.dies_after:
            raise Died


class _Noted:
    """A record whose changes are written down."""

    def __init__(self, record: DeviceRecord, steps: Steps) -> None:
        self._record, self._steps = record, steps
        self._deciding: list[dict[str, Any]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)

    def keep_log(self, shown: Any) -> None:
        self._steps.check()
        longer = len(shown.entries) > len(self._record.log)
        self._record.keep_log(shown)
        if longer:
            self._steps(write="log", entries=len(shown.entries))

    def keep_tokens(self, kept: Any) -> None:
        self._steps.check()
        self._record.keep_tokens(kept)
        left = kept.get("left")
        left = None if left is None else len(left)
        self._steps(write="tokens", epoch=kept["epoch"], asked="asked" in kept, left=left)

    def key_rotation(self, key: str, shown: Any) -> None:
        self._steps.check()
        self._record.key_rotation(key, shown)
        self._steps(write="pinned key", key=key)

    def disbelieve(self, shown: Any) -> None:
        self._steps.check()
        self._record.disbelieve(shown)
        self._steps(write="another log", entries=len(shown.entries))

    @contextmanager
    def deciding(self) -> Iterator[None]:
        self._steps.check()
        self._deciding = []
        with self._record.deciding():
            yield
        for step in self._deciding:  # on disk from here on
            self._steps(**step)
        self._deciding = None

    def take_part(self, task: RoundTask, **said: Any) -> None:
        self._record.take_part(task, **said)
        assert self._deciding is not None
        what = {"run": task.run, "plan": task.plan, "round": task.round, "task": task.task}
        self._deciding.append({"write": "participation", **what, "at": said["at"], "zcdp": said["zcdp"]})

    def received(self, task: RoundTask) -> None:
        self._steps.check()
        self._record.received(task)
        self._steps(write="received", task=task.task)

    def never_left(self, task: RoundTask) -> None:
        self._steps.check()
        self._record.never_left(task)
        self._steps(write="taken back", task=task.task)


@dataclass
class Scripted:
    """What comes for one request: an answer, or none. body: text, or the bytes of a file."""

    status: int | None  # None: no answer came
    body: bytes = b""
    unsent: bool = False  # no connection came about

    def to_plain(self, name: Callable[[bytes], str]) -> dict[str, Any]:
        if self.status is None:
            return {"no answer": "no connection" if self.unsent else "the connection broke"}
        return {"status": self.status, "body": name(self.body)}


def driven(
    folder: Path,
    answers: Sequence[Scripted] | Callable[[Ask], Scripted],
    steps: Steps,
    *,
    now: float,
    key: str,
    policy: Mapping[str, Any],
    trainer: str = "trains",
    handlers: Mapping[str, TaskHandler] | None = None,
    first_time: bool = True,
    code: str | None = None,
    draw: Callable[[int], bytes] | None = None,
    name: Callable[[bytes], str] = lambda body: "",
) -> SessionOutcome | None:
    """One turn, to its end or the device's; None where it died. The clock stands but for what the device waits.

    answers: all, in order; or what answers each request. handlers: in place of one that trains by `trainer`.
    """
    clock, left, tried = [now], [] if callable(answers) else list(answers), 0
    text: Any = Text()
    does = {"train": TrainHandler(text, Trainer(trainer))} if handlers is None else handlers

    def drawn(size: int) -> bytes:
        assert draw is not None
        found = draw(size)
        steps.draws.append(found.hex())
        return found

    rules = Policy(**policy)
    with opened(
        folder / "state", folder / "journal", now=now, first_time=first_time, budget_zcdp=rules.budget_zcdp
    ) as record:
        if record.operator is None:
            record.pin(key if record.only_operator() is None else str(record.only_operator()))
        noted: Any = _Noted(record, steps)
        session = Session(
            record=noted,
            policy=rules,
            handlers=does,
            population="es",
            machine=Machine(clock=lambda: clock[0], steady=lambda: clock[0], sleep=lambda seconds: None, draw=drawn),
            code=code,
        )
        turn = session.turn()
        try:
            step: Ask | Pause = next(turn)
            while True:
                if isinstance(step, Pause):
                    if not tried:
                        steps(wait=[step.seconds, step.seconds])
                        clock[0] += step.seconds
                    else:
                        steps(wait=[2.0 ** (tried - 2), 2.0 ** (tried - 1)])
                        clock[0] += 2.0 ** (tried - 1)
                    step = turn.send(None)
                    continue
                tried += step.path.startswith("/v1/reports/") and step.method == "POST"
                steps(ask=_asked(step, name))
                came = answers(step) if callable(answers) else left.pop(0)
                steps(answer=came.to_plain(name))
                if isinstance(answer := _answered(step, came), ServerError):
                    step = turn.throw(answer)
                else:
                    step = turn.send(answer)
        except StopIteration as end:
            assert not left, "answers are left"
            outcome: SessionOutcome = end.value
            return outcome
        except Died:
            return None
        finally:
            turn.close()


def _asked(ask: Ask, name: Callable[[bytes], str]) -> dict[str, Any]:
    said: dict[str, Any] = {"method": ask.method, "path": ask.path}
    if ask.body:
        said["body"] = name(ask.body) if ask.path.startswith("/v1/reports/") else json.loads(ask.body)
    if ask.headers:
        said["headers"] = dict(sorted(ask.headers.items()))
    return said


def _answered(ask: Ask, came: Scripted) -> Answer | ServerError:
    """As the transport has it: a file is taken by its digest alone."""
    if came.status is None:
        return ServerError("the connection broke", unsent=came.unsent)
    if ask.file is not None and came.status == 200:
        if len(came.body) != ask.file.size or hashlib.sha256(came.body).hexdigest() != ask.file.sha256:
            return ServerError("another file came than the one that was asked for.")
    elif ask.file is not None:
        return ServerError(f"the server answers {came.status}")
    return Answer(came.status, {}, came.body)


def standing(folder: Path, now: float, policy: Mapping[str, Any]) -> dict[str, Any]:
    """What the record has now, as `tacit device --show` would: nothing is written."""
    rules = Policy(**policy)
    with opened(folder / "state", folder / "journal", now=now, budget_zcdp=rules.budget_zcdp) as record:
        record.pin(str(record.only_operator()))
        parts = [
            {name: each[name] for name in ("run", "plan", "round", "at", "zcdp", "received")}
            for each in record.participations()
        ]
        return {
            "operator": record.operator,
            "participations": parts,
            "log": len(record.log),
            "disbelieves": record.disbelieves,
            "spent": record.spent(),
        }
