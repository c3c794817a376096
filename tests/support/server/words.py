"""Devices of a test that are asked for words: their text, the words that they know, a served file, and their fleet."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from tests.support.server.fleet import TIMES, WORKERS
from tests.support.server.sealing import Here
from tests.support.server.stores import KEY, Clock, sqlite_store
from tests.support.training.tiny import WORDS

from tacit.data import Cache
from tacit.device.discover import DiscoverHandler
from tacit.device.own_text import OwnText
from tacit.device.report_body import body_of
from tacit.progress import silent
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask, Signed
from tacit.protocol.served_bodies import read_report
from tacit.protocol.signing import digest
from tacit.server.discover import ServedWords
from tacit.server.jobs import job_of
from tacit.server.plans import plan_of
from tacit.server.rounds.rounds import RoundTimes
from tacit.server.store import assignments, round_states
from tacit.server.store.assignments import OpenRound, ReportAnswer, open_rounds
from tacit.server.store.blobs import BlobStore, model_name
from tacit.server.store.store import Store
from tacit.server.sums import one_message_reports
from tacit.server.sums.partial_sums import PartialSums
from tacit.text.vocabulary import Provenance, Vocabulary

KNOWN = Vocabulary(words=WORDS[16:], provenance=Provenance(kind="public", description="40 of the words"))
EXACTLY = RoundTimes(**{**vars(TIMES), "over_selection": 1.0})  # nobody is asked whose report is not wanted
LAYERS = {"users_per_layer": 8, "prefixes": 30, "depth": 4}  # 32 devices


def words_toml(folder: Path, **changed: Any) -> str:
    """A served file whose groups are tiny; the vocabulary is put into the folder."""
    folder.mkdir(exist_ok=True)
    KNOWN.save(folder / "known.json")
    values: dict[str, Any] = {
        "kind": "discover",
        "name": "words",
        "vocabulary": str(folder / "known.json"),
        **LAYERS,
        "reports": {"local_epsilon": 2.0, "contributions": 1},
        "alphabet": {"characters": "abcdefghw"},
        "deployment": {"population": "keyboards", "devices": 40},
    }
    return tomli_w.dumps({**values, **changed})


def stream(seed: str) -> Callable[[int], bytes]:
    """Bytes that follow from a seed, one after another: in place of the operating system's."""
    at = 0

    def draw(count: int) -> bytes:
        nonlocal at
        at += count
        return hashlib.shake_256(seed.encode()).digest(at)[-count:] if count else b""

    return draw


@dataclass
class WordsFleet:
    """A store, its workers, and devices that come while the collector waits, each once: one for each client."""

    folder: Path
    cache: Cache
    clock: Clock = field(default_factory=Clock)
    order: Callable[[int], list[int]] = lambda round: []  # which clients come to a round; none: whoever is next
    draws: Callable[[int, int], Callable[[int], bytes]] = lambda round, client: stream(f"{round} {client}")
    lies: Callable[[int, Any], Any] = lambda client, report: report  # of what leaves a device
    came: dict[str, list[int]] = field(default_factory=dict)  # by task: whose report was taken
    later: list[tuple[int, RoundTask, ReportBody, str]] = field(default_factory=list)  # that will send again
    decryptors: list[Here] = field(default_factory=list)  # of sealed sums
    number: int = 0
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store, self.blobs = (
            sqlite_store(self.folder, self.clock),
            BlobStore.open(f"file://{self.folder / 'blobs'}"),
        )
        self.workers = {name: PartialSums(self.store, self.blobs, name, evicted=lambda: None) for name in WORKERS}
        self.plan: Plan | None = None

    def discovers(self, text: str, out: Path, *, store: Store | None = None, times: RoundTimes = EXACTLY) -> None:
        """As a coordinator does, from the beginning or on."""
        self.clock.now += 100.0
        job = job_of(text, where="words.toml")
        assert isinstance(job, ServedWords)
        collector = job.collector(
            store or self.store, self.blobs, KEY, times=times, decryptors=self.decryptors, wait=self.wait
        )
        with job.begun(out, collector, silent) as run:
            plan = self.plan = plan_of(run)
        signed, said = KEY.plan(plan.to_json()).model_dump_json(), {"population": plan.population, "kind": plan.kind}
        round_states.enter_run(self.store, plan.run, **said, plan=signed, plan_digest=digest(plan.to_json()))
        lease = round_states.take_lease(self.store, plan.run, seconds=60)
        assert lease is not None
        collector.serve(KEY.plan(plan.to_json()), lease)
        job.run(out, collector, silent)

    def wait(self, seconds: float) -> None:
        """Time passes, devices come, workers do what they do."""
        self.clock.now += seconds
        for worker in self.workers:
            assignments.seen(self.store, worker)
        again, self.later = self.later, []
        for sent in again:
            self.sends(*sent)
        for each in open_rounds(self.store):
            for client in self._next(each):
                self.device_comes(each, client)
        for sums in self.workers.values():
            sums.write_what_is_due(open_rounds(self.store), self.clock.now)

    def _next(self, each: OpenRound) -> list[int]:
        wanted = self.order(each.round)
        if wanted:
            return [] if each.assigned else wanted
        first, self.number = self.number, self.number + 3
        return [client for client in range(first, first + 3) if client < self.cache.manifest.clients]

    def device_comes(self, each: OpenRound, client: int) -> None:
        given = assignments.assign(self.store, each.task)
        if given is None:
            self.number -= 1  # another round will find it
            return
        task = Signed.from_json(each.signed_task).read(RoundTask)
        body = self.body_of(task, client, given.id)
        if task.sealed is not None:
            self.spooled(task, given.id, body, client)
            return
        made = self.lies(client, body)
        try:
            report = read_report(made, task.asks.shape(), given.id)
        except Exception as error:
            self.refused.append(str(error))
            assignments.give_back(self.store, given.id, task=each.task)
            return
        self.sends(client, task, report, given.id)

    def spooled(self, task: RoundTask, assignment: str, body: bytes, client: int) -> None:
        """As a worker does."""
        assert task.sealed is not None
        one_message_reports.check(body, task.sealed, KEY.round_key(task.task))
        where = {"task": task.task, "assignment": assignment, "worker": WORKERS[0]}
        said = hashlib.sha256(body).hexdigest()
        if (
            one_message_reports.report_store(self.store, self.blobs, body, **where, digest=said)
            is ReportAnswer.RECEIVED
        ):
            self.came.setdefault(task.task, []).append(client)

    def sends(self, client: int, task: RoundTask, report: ReportBody, assignment: str) -> None:
        """To one worker after another, and again later, as long as it is told that another is to have it."""
        workers, body = list(self.workers.values()), f"{client:064x}"
        for tried in range(len(workers)):
            answer = workers[(client + tried) % len(workers)].take(report, task, assignment, body)
            if answer is not ReportAnswer.ELSEWHERE:
                if answer is ReportAnswer.RECEIVED:
                    self.came.setdefault(task.task, []).append(client)
                return
        self.later.append((client, task, report, assignment))

    def body_of(self, task: RoundTask, client: int, assignment: str) -> bytes:
        """What the device of this client sends."""
        assert self.plan is not None
        content = self.blobs.get(model_name(task.content.sha256), digest=task.content.sha256)
        doing = DiscoverHandler(OwnText(self.cache.path, client, None))
        report = doing.prepare(self.plan, task, content).read(self.draws(task.round, client))
        assert report.values.dtype == np.uint32
        return body_of(self.plan, task, report, assignment, draw=os.urandom)

    def attempts(self) -> list[round_states.Attempt]:
        return round_states.attempts(self.store, "words")
