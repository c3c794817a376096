"""What a decryptor adds to a round's sum of updates: a round of its own stream of the plan's mechanism."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.contributor.contributor import checked_file
from tacit.device.train_cost import planned_encoding, planned_updates, train_cost, train_matrix
from tacit.errors import InputError
from tacit.mechanisms.all_rounds import DecryptorNoiseStream, carrying_stream, with_noise_of
from tacit.privacy.shared_noise import of_one
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.train import TrainDocument
from tacit.secure_aggregation.noise import NoiseDecryptor, contribution


class TrainNoise:
    """Of one round of a training; see RunNoise.

    The noise of all rounds is one stream, whose state is in `folder`: a round has one name, and noise under no other.
    """

    def __init__(self, plan: Plan, task: RoundTask, matrix: bytes, folder: Path) -> None:
        """matrix: the file of the plan's matrix, empty where it has none.

        Raises: TaskRefused, InputError for a plan that promises nothing, and for a task that is not encoded as its plan
        is; ProtocolError for another matrix.
        """
        said, encoded = train_matrix(plan), task.question(TrainDocument).encoded
        cost = train_cost(plan, None if said is None else checked_file(matrix, said.sha256))
        assert encoded is not None  # it is sealed
        updates, several = planned_updates(cost), plan.aggregation
        encoding = planned_encoding(cost, encoded.parameters)
        self._encoding = with_noise_of(len(several.contributors), encoding, updates, honest=several.honest)
        if (
            encoded.encoding() != self._encoding.with_clip_norm(encoded.clip_norm)
            or encoded.length != self._encoding.dimension + 1
        ):
            raise InputError(
                f"round {task.round} of run {plan.run!r} encodes updates otherwise than its plan has it, so that noise "
                "of the plan's scale would be too little; ask the operator for a task in order."
            )
        one, strategy = of_one(updates, several.honest), cost.strategy
        stream = DecryptorNoiseStream(
            stream=carrying_stream(strategy),
            stddev=self._encoding.scale * one.seed_stddev,
            dimension=self._encoding.dimension,
        )
        self._round, self._length, self._signs = task.round, encoded.length, bytes.fromhex(encoded.signs)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        self._decryptor = NoiseDecryptor(folder, stream, self._encoding)

    @property
    def margin(self) -> int:
        """See RunNoise."""
        return self._encoding.margin_each

    def check(self, name: bytes) -> None:
        """See RunNoise."""
        self._decryptor.check(self._round, name=name, signs=self._signs)

    def draw(self, name: bytes) -> NDArray[np.uint32]:
        """See RunNoise; no noise stands behind the update's coordinates."""
        words = np.zeros(self._length, np.uint32)
        words[: self._encoding.dimension] = self._decryptor.noise(self._round, name=name, signs=self._signs)
        return contribution(words, bits=self._encoding.bits, margin=self.margin)
