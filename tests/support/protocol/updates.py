"""An update of the made-up run, plain and encoded."""

import numpy as np
from numpy.typing import NDArray
from tests.support.server.documents import PARAMETERS, a_task

from tacit.protocol.train import TrainDocument
from tacit.training.secure_updates import RoundEncoding

ENCODED = a_task(encoded=True, asked=True)


def an_update(norm: float = 1.5, seed: int = 0) -> NDArray[np.float32]:
    found = np.random.default_rng(seed).normal(size=PARAMETERS)
    return (found * norm / np.linalg.norm(found)).astype(np.float32)


def words(norm: float = 1.2, loss: float = 4.0, seed: int = 0) -> NDArray[np.uint32]:
    """What a simulated client encodes for ENCODED."""
    question = ENCODED.question(TrainDocument)
    assert question.encoded is not None
    secure = RoundEncoding(
        encoding=question.encoded.encoding(),
        signs=bytes.fromhex(question.encoded.signs),
        clip_estimate=question.clip_estimate,
        loss_bound=question.loss_bound,
        threshold=5,
    )
    assert secure.length == question.encoded.length
    update = an_update(norm, seed)
    return secure.encoded(update, norm=np.float32(norm), loss=np.float32(loss), seed=bytes(32), client=seed)
