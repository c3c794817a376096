"""A round's sum: what workers flushed, added up."""

from typing import Any

import numpy as np

from tacit.deployment.blobs import Blobs
from tacit.deployment.bodies import read_sum, sha256, sum_body
from tacit.deployment.messages import SignedTask
from tacit.deployment.states import Attempt, Partial, Total
from tacit.errors import StoreError


class NoSum(Exception):
    """A sum that is not bound; says why."""


def summed(blobs: Blobs, found: Attempt, parts: list[Partial]) -> tuple[Any, Total]:
    """(the sum of the partial sums, what is to be bound), added up in the order of the workers' ids.

    Raises: NoSum where a blob is not what was flushed.
    """
    task = SignedTask.model_validate_json(found.signed_task).task
    sums = []
    for part in parts:
        try:
            sums.append(read_sum(blobs.get(part.blob, digest=part.digest), task))
        except StoreError as error:
            raise NoSum(str(error)) from error
    values = np.zeros_like(sums[0])
    for each in sums:
        values += each
    short = [part.short_updates for part in parts if part.short_updates is not None]
    losses = [part.losses for part in parts if part.losses is not None]
    total = Total(
        digest=sha256(sum_body(values)),
        reports=sum(part.reports for part in parts),
        short_updates=sum(short) if short else None,
        losses=sum(losses) if losses else None,
    )
    return values, total
