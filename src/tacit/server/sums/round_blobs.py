"""What of a round's blobs may go, and when."""

from collections.abc import Iterable

from sqlalchemy import and_, select

from tacit.server.store.blobs import BlobStore, model_name
from tacit.server.store.round_states import ABANDONED, RELEASED, Attempt
from tacit.server.store.schema import rounds
from tacit.server.store.store import Store

PLACES = ("partials", "sealed", "totals")  # each has a folder for a task


def sweep(store: Store, blobs: BlobStore, attempts: Iterable[Attempt]) -> None:
    """`remove_blobs` of those of these attempts of which there are any. Raises: StoreError."""
    tasks = {name.split("/")[1] for place in PLACES for name in blobs.names(place)}
    for each in attempts:
        if each.task in tasks:
            remove_blobs(store, blobs, each)


def remove_blobs(store: Store, blobs: BlobStore, attempt: Attempt) -> None:
    """Remove the sums of an attempt that is over, its sealed reports, and its model unless another round has it.

    Nothing of one that is not over: its partial sums and its total are all that there is. Raises: StoreError.
    """
    mine = rounds.c.task == attempt.task
    going = and_(rounds.c.model_digest == attempt.model_digest, rounds.c.state.not_in([RELEASED, ABANDONED]))
    with store.reading() as connection:
        state = connection.execute(select(rounds.c.state).where(mine)).scalar()
        if state not in (RELEASED, ABANDONED):
            return
        wanted = connection.execute(select(rounds.c.task).where(going)).first() is not None
    for place in PLACES:
        for name in blobs.names(f"{place}/{attempt.task}"):
            blobs.delete(name)
    if not wanted:
        blobs.delete(model_name(attempt.model_digest))
