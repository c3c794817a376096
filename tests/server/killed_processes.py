"""Processes that a test kills: `python -m tests.server.killed_processes worker|coordinator STORE FOLDER [...]`.

A worker plays its devices too: each reports an update whose first coordinate is a quarter, so that a sum tells of how
many reports it is. A coordinator plays rounds and commits each to a file, as training does to a run folder.
"""

import json
import os
import secrets
import sys
import time
from pathlib import Path

import numpy as np
from tests.support.server.documents import PARAMETERS, a_plan
from tests.support.server.stores import KEY

from tacit.errors import LeaseLost, StoreError
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import RoundTask, Signed
from tacit.protocol.signing import digest
from tacit.server.store import assignments, round_states
from tacit.server.store.assignments import ReportAnswer, open_rounds
from tacit.server.store.blobs import BlobStore
from tacit.server.store.store import Store
from tacit.server.sums.partial_sums import PartialSums

QUARTER = 0.25
LEASE_S = 2.0


def work(store: Store, blobs: BlobStore) -> None:
    """A worker and its devices, for ever."""
    name, buried = secrets.token_hex(16), list[bool]()
    sums = PartialSums(store, blobs, name, evicted=lambda: buried.append(True))
    draw = np.random.default_rng()
    while not buried:
        try:
            assignments.seen(store, name)
            for each in open_rounds(store):
                device_comes(store, sums, each, draw)
            sums.write_what_is_due(open_rounds(store), store.now())
        except StoreError:
            pass
        time.sleep(0.01)


def device_comes(store: Store, sums: PartialSums, each: assignments.OpenRound, draw: np.random.Generator) -> None:
    """It takes a place, and mostly reports."""
    given = assignments.assign(store, each.task)
    if given is None or draw.random() < 0.2:
        return
    update = draw.uniform(-0.01, 0.01, PARAMETERS).astype(np.float32)
    update[0] = QUARTER
    task = Signed.from_json(each.signed_task).read(RoundTask)
    if sums.take(ReportBody(update, True, None, None), task, given.id, secrets.token_hex(32)) is ReportAnswer.ELSEWHERE:
        assignments.give_back(store, given.id, task=each.task)  # a device of the other worker takes the place


def coordinate(store: Store, blobs: BlobStore, committed: Path, rounds: int) -> None:
    """The rounds that the file lacks; each is in it, on disk, before the next is asked about."""
    from tests.support.server.fleet import a_training_task

    from tacit.server.rounds.rounds import RoundTimes, ServedRounds
    from tacit.server.train import document

    plan = a_plan()
    signed = KEY.plan(plan.to_json()).model_dump_json()
    round_states.enter_run(
        store, plan.run, population="es", kind="train", plan=signed, plan_digest=digest(plan.to_json())
    )
    while (lease := round_states.take_lease(store, plan.run, seconds=LEASE_S)) is None:
        time.sleep(0.1)
    times = RoundTimes(over_selection=4.0, selecting=5.0, reporting=3.0, closing=2.0, pause=0.0, silence=1.0, poll=0.02)

    def wait(seconds: float) -> None:
        round_states.renew_lease(store, lease, seconds=LEASE_S)
        time.sleep(seconds)

    collector = ServedRounds(store, blobs, KEY, document=document, times=times, wait=wait)
    collector.serve(KEY.plan(plan.to_json()), lease)
    done = [json.loads(line) for line in committed.read_text().splitlines()] if committed.exists() else []
    if done:
        collector.released(done[-1]["round"])
    for round in range(len(done), rounds):
        task = a_training_task(round, goal=6, clip_estimate=None, loss_bound=None)
        got, _ = collector.collect((), task, seed=bytes(32))
        attempt = next(
            each for each in round_states.attempts(store, plan.run) if each.round == round and each.total_digest
        )
        row = {"round": round, "reports": got.reports, "first": float(got.values[0]), "digest": attempt.total_digest}
        with open(committed, "a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        collector.released(round)


def main(role: str, url: str, folder: str, *given: str) -> None:
    """One process."""
    store, blobs = Store.open(url), BlobStore.open(f"file://{folder}/blobs")
    if role == "worker":
        work(store, blobs)
    else:
        try:
            coordinate(store, blobs, Path(folder) / "committed", int(given[0]))
        except (LeaseLost, StoreError) as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
