"""A round's sum: what workers flushed, added up."""

from typing import Any

from tacit.aggregation import Counted, merged
from tacit.errors import StoreError
from tacit.federation.report_sums import sums_of
from tacit.protocol.bodies import sha256
from tacit.protocol.messages import RoundTask, Signed
from tacit.protocol.served_bodies import read_sum, sum_body
from tacit.server.store.blobs import BlobStore
from tacit.server.store.round_states import Attempt, Partial, Total


class NoSum(Exception):
    """A sum that is not bound; says why."""


def summed(blobs: BlobStore, found: Attempt, parts: list[Partial]) -> tuple[Any, Total]:
    """(the sum of the partial sums, what is to be bound), added up in the order of the workers' ids.

    Raises: NoSum where a blob is not what was flushed.
    """
    task = Signed.from_json(found.signed_task).read(RoundTask)
    try:
        total = merged(sums_of(task.asks.shape()), (_flushed(blobs, part, task) for part in parts))
    except StoreError as error:
        raise NoSum(str(error)) from error
    return total.values, Total(sha256(sum_body(total.values)), *total[1:])


def _flushed(blobs: BlobStore, part: Partial, task: RoundTask) -> Counted:
    values = read_sum(blobs.get(part.blob, digest=part.digest), task)
    return Counted(values, part.reports, part.short_updates, part.losses)
