"""What of a round's blobs may go, and when."""

from sqlalchemy import and_, select

from tacit.deployment.blobs import Blobs, model_name
from tacit.deployment.schema import rounds
from tacit.deployment.states import ABANDONED, RELEASED, Attempt
from tacit.deployment.store import Store


def remove_blobs(store: Store, blobs: Blobs, attempt: Attempt) -> None:
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
    for place in ("partials", "sealed", "totals"):
        for name in blobs.names(f"{place}/{attempt.task}"):
            blobs.delete(name)
    if not wanted:
        blobs.delete(model_name(attempt.model_digest))
