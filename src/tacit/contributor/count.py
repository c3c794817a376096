"""What a decryptor adds to a step's counts: a normal number of its own to each cell, rounded, new in every step."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.device.count import count_cost
from tacit.errors import InputError
from tacit.mechanisms.all_rounds import DecryptorNoiseStream, carrying_stream
from tacit.privacy.shared_noise import check_shared
from tacit.privacy.strategy import Independent
from tacit.protocol.contributed_noise import noise_margin, noise_of_one
from tacit.protocol.messages import Plan, RoundTask
from tacit.secure_aggregation.encoding import SEED_BYTES
from tacit.secure_aggregation.noise import NoiseDecryptor, Unrotated, contribution

NO_SIGNS = bytes(SEED_BYTES)


class CountNoise:
    """Of one step of a run that counts; see RunNoise. Steps share nothing, so each has a folder of its own."""

    def __init__(self, plan: Plan, task: RoundTask, matrix: bytes, folder: Path) -> None:
        """matrix: none. Raises: TaskRefused, InputError for a plan whose sums get no noise, or in shares too small."""
        count_cost(plan)
        deviation, length = noise_of_one(plan, task), task.asks.shape().length
        if deviation is None:
            raise InputError(f"devices of run {plan.run!r} randomise by themselves, and their sums get no noise.")
        check_shared(deviation, honest=plan.aggregation.honest, draws=length * plan.privacy.rounds)
        self._margin, cells = noise_margin(plan, task), Unrotated()
        stream = DecryptorNoiseStream(stream=carrying_stream(Independent()), stddev=deviation, dimension=length)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._decryptor = NoiseDecryptor(folder / f"step-{task.round:06d}", stream, cells)

    @property
    def margin(self) -> int:
        """See RunNoise."""
        return self._margin

    def check(self, name: bytes) -> None:
        """See RunNoise."""
        self._decryptor.check(0, name=name, signs=NO_SIGNS)

    def draw(self, name: bytes) -> NDArray[np.uint32]:
        """See RunNoise."""
        words = self._decryptor.noise(0, name=name, signs=NO_SIGNS)
        return contribution(words, bits=Unrotated.bits, margin=self._margin)
