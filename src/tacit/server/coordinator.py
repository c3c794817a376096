"""A coordinator's process: it alone makes one run's rounds, by the job as ever with real devices as its collector."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import LeaseLost
from tacit.plurals import quantity
from tacit.progress import Advanced, Event, Noted, Warned
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import Plan, SignedPlan, TrainingPrivacy
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.served_bodies import matrix_file
from tacit.protocol.signing import digest
from tacit.recipe.deployment_section import DeploymentSection
from tacit.runs import Run
from tacit.server.jobs import job_of
from tacit.server.log.logged_run import keep_logged, note_build, plan_text, same_text
from tacit.server.log.transparency import TransparencyLog
from tacit.server.plans import plan_of
from tacit.server.rounds.decryptors import HttpDecryptor
from tacit.server.rounds.one_message_rounds import DecryptorTransport
from tacit.server.rounds.rounds import RoundTimes
from tacit.server.store import round_states
from tacit.server.store.blobs import BlobStore, model_name
from tacit.server.store.heartbeat import Heartbeat
from tacit.server.store.round_states import Lease
from tacit.server.store.store import Store
from tacit.statements.accounts import matrix_of

LEASE_S = 30.0  # that a coordinator is trusted to be alive without a sign
MINUTE = 60.0
TAKEN_OVER = 3  # the exit code of a coordinator whose run another took over; it is started again, and waits

log = logging.getLogger("tacit.server")


@dataclass(frozen=True, kw_only=True)
class CoordinatorSettings:
    """What a coordinator is told."""

    job: str  # TOML, with paths that are whole
    out: Path  # the run folder, gone on with where it is there
    store: str
    blobs: str
    key: Path  # of the operator
    enrolment: bool = False  # whether devices show tokens
    owner: str | None = None  # of the run's lease: whoever started the one before, and saw it end, need not wait


def coordinate(settings: CoordinatorSettings) -> None:
    """Until the run is finished. Raises: what its job does; StoreError; LeaseLost."""
    job = job_of(settings.job, where=f"what is served at '{settings.out}'")
    store, blobs, key = Store.open(settings.store), BlobStore.open(settings.blobs), OperatorKey.in_file(settings.key)
    times, transports = round_times(job.deployment), decryptors(job.deployment, key)
    collector = job.collector(store, blobs, key, times=times, decryptors=transports)
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    with job.begun(settings.out, collector, _told) as run:
        plan = plan_of(run, "tokens" if settings.enrolment else "none")
        note_build(run)
        signed = announce(run, plan, store, blobs, key, TransparencyLog.beside(store, key, settings.key))
    with _leased(store, plan.run, settings.owner) as lease:
        collector.serve(signed, lease)
        job.run(settings.out, collector, _told)
        round_states.finish_run(store, lease)
    store.close()


def announce(
    run: Run, plan: Plan, store: Store, blobs: BlobStore, key: OperatorKey, log: TransparencyLog
) -> SignedPlan:
    """The signed plan. Whatever a device has to see of it before the first round is there when this returns: the file
    of its matrix, the plan, its entry in the log. Once or again, and then with the text that was signed first, by
    whichever build. Raises: StoreError; InputError.
    """
    if isinstance(plan.privacy, TrainingPrivacy) and (matrix := matrix_of(run)) is not None:
        said, body = matrix_file(matrix)
        blobs.put(model_name(said.sha256), body)
    if (text := plan_text(run, plan)) is None and (entered := round_states.plan_of_run(store, plan.run)) is not None:
        text = same_text(SignedPlan.from_json(entered).document, plan, where=f"the store's run '{plan.run}'")
    signed = key.plan(plan.to_json() if text is None else text)
    name = digest(signed.document)
    about = {"population": plan.population, "kind": plan.kind, "plan": signed.to_json()}
    round_states.enter_run(store, plan.run, **about, plan_digest=name)
    keep_logged(run, signed, log.append(plan_entry(name)), key)
    return signed


def decryptors(section: DeploymentSection, key: OperatorKey) -> list[DecryptorTransport]:
    """Those that its file names, in its order."""
    return [HttpDecryptor(each.url, bytes.fromhex(each.identity), key) for each in section.named_decryptors()]


def round_times(section: DeploymentSection) -> RoundTimes:
    """How long rounds wait, as its file says."""
    return RoundTimes(
        over_selection=section.over_selection,
        selecting=section.selecting_minutes * MINUTE,
        reporting=section.reporting_minutes * MINUTE,
        pause=section.pause_minutes * MINUTE,
    )


@contextmanager
def _leased(store: Store, run: str, owner: str | None = None) -> Iterator[Lease]:
    """The run's lease, waited for, and renewed for as long as it is held; given back at the end.

    owner: of a lease that is taken at once, under a new term: one before it that lived yet would write nothing more.
    """
    while (lease := round_states.take_lease(store, run, seconds=LEASE_S, owner=owner)) is None:
        time.sleep(LEASE_S / 10)
    try:
        with Heartbeat(lambda: _renew(store, lease), every=LEASE_S / 5):
            yield lease
    finally:
        round_states.give_lease_back(store, lease)


def _renew(store: Store, lease: Lease) -> None:
    """A coordinator whose run another took over ends at once, whatever it is at. Raises: StoreError."""
    try:
        round_states.renew_lease(store, lease, seconds=LEASE_S)
    except LeaseLost as error:
        log.warning("%s", error)
        os._exit(TAKEN_OVER)


def _told(event: Event) -> None:
    """What the log has of a job."""
    match event:
        case Advanced(stage="training" | "asking layers", done=done, figures=figures):
            shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
            log.info("done: %s%s", quantity(done, "round"), f", {shown}" if shown else "")
        case Noted() | Warned():
            log.info("%s", event.message)
        case _:
            pass
