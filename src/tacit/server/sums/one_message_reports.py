"""Sealed reports: each is a blob until its round is over, and a quorum of decryptors opens their sum, and no single
one.

A report is checked as far as that goes without opening it, written, and then counted, in this order: whoever was told
that it was received is in the sum, whichever process dies. A power cut may take some: they are lost then, and their
places others'.
"""

from typing import NamedTuple

from sqlalchemy import select

from tacit.errors import InputError
from tacit.protocol.contributed_noise import noise_margin
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.one_message_shape import seed_of, settings_of
from tacit.secure_aggregation.one_message.messages import OneMessageReport, OneMessageRound
from tacit.secure_aggregation.one_message.server import check_report, smallest_parameters
from tacit.secure_aggregation.secrets import public_key
from tacit.server.store import assignments
from tacit.server.store.assignments import COUNTED, ReportAnswer
from tacit.server.store.blobs import BlobStore, one_message_name
from tacit.server.store.schema import assignments as rows
from tacit.server.store.store import Store


class StoredReports(NamedTuple):
    """A sealed report that was counted."""

    assignment: str
    body_digest: str


def new_round(plan: Plan, task: RoundTask, *, series: int, private: bytes, least: int, most: int) -> OneMessageRound:
    """The settings of an attempt: sums of `least` to `most` reports, by the decryptors of the plan.

    task: of this attempt; series: of the round's attempts, of which decryptors open one. private: the server's key of
    it. Raises: InputError for what no sum holds.
    """
    said, shape = plan.aggregation, task.asks.shape()
    if shape.largest is None:
        raise InputError("a round of real numbers has no integers to be sealed.")
    many, margin = len(said.contributors), noise_margin(plan, task)
    return OneMessageRound(
        parameters=smallest_parameters(shape.length, shape.largest, most, contributors=many, margin=margin),
        dimension=shape.length,
        largest=shape.largest,
        report_goal=least,
        most_reports=most,
        corrupt=said.corrupt,
        decryptors=tuple(map(bytes.fromhex, said.keepers)),
        boxes=tuple(map(bytes.fromhex, said.boxes)),
        server=public_key(private),
        seed=seed_of(task),
        plan=bytes.fromhex(task.plan),
        round_index=task.round,
        series=series,
        contributors=tuple(map(bytes.fromhex, said.contributors)),
        margin=margin,
    )


def check(body: bytes | memoryview, sealed: str, private: bytes) -> None:
    """That it is whole, of this round, and signed by whoever made it. Raises: ProtocolError.

    private: the server's key of the attempt.
    """
    settings = settings_of(sealed)
    check_report(settings, private, OneMessageReport.from_bytes(body, round=settings.name))


def report_store(
    store: Store, blobs: BlobStore, body: bytes | memoryview, *, task: str, assignment: str, worker: str, digest: str
) -> ReportAnswer:
    """Keep a report that was checked, and count it, once for its assignment.

    digest: its SHA-256. Raises: StoreError.
    """
    name = one_message_name(task, assignment, digest)
    blobs.put(name, body, synced=False)
    answer = assignments.count(store, assignment, task=task, worker=worker, body_digest=digest)
    if answer in (ReportAnswer.OTHER, ReportAnswer.LATE):
        blobs.delete(name)
    return answer


def stored_reports(store: Store, task: str) -> list[StoredReports]:
    """The reports of a round that are counted, by assignment."""
    mine = select(rows.c.id, rows.c.body_digest).where(rows.c.task == task, rows.c.state == COUNTED)
    with store.reading() as connection:
        return [StoredReports._make(row) for row in connection.execute(mine.order_by(rows.c.id))]
