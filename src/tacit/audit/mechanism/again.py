"""Noise that is drawn again: a round played twice because its process was killed, and two runs of one key.

Who sees both releases takes one from the other. If their noise is the same, what is left is the difference of the sums.
"""

from dataclasses import dataclass

import jax
import numpy as np
from numpy.typing import NDArray

from tacit.audit.mechanism.case import Sums
from tacit.audit.mechanism.streams import NoisedSums, Released, key_of
from tacit.mechanisms import NoiseState, stream_for
from tacit.mechanisms.keys import ROUND_KEY_BYTES
from tacit.privacy import Guarantee
from tacit.privacy.strategy import Independent

OTHERS = 0.25  # of the clip norm: what a cohort without the canary adds
RESUMED = "sees a round that was released, lost in a kill, and played again with another cohort; the canary is in one"
TWICE = "sees all sums of two runs that have one key; the canary is in the first"


@dataclass(frozen=True)
class Resumed:
    """Independent noise of which the round of the canary's second coming is lost, and played again from the keys kept.

    Released are all rounds, and last what the lost one had released, of a cohort without the canary. With carried noise
    a lost release would tell of it, which no guarantee covers: so a round is released only once it is on disk.
    """

    guarantee: Guarantee

    def __call__(self, contributions: Sums, seed: int) -> Released:
        """See `Release`: a row more than rounds."""
        runs = contributions.shape[1]
        lost = np.full(runs, OTHERS * self.guarantee.clip_norm, np.float32)
        stream, rows = stream_for(Independent()), []
        keys: list[NDArray[np.uint8]] = []

        def play(state: NoiseState, total: Released) -> tuple[Released, NoiseState]:
            noised, after = stream.add_noise(
                state,
                jax.device_put(total),
                stddev=self.guarantee.seed_stddev,
                key=key_of(seed),
                purpose="model update",
            )
            return np.asarray(noised), after

        state = stream.init(runs)
        for round, total in enumerate(contributions):
            if round == self.guarantee.participation.min_separation:
                released_and_lost, _ = play(state, lost)
                kept = np.array(keys[::-1]).reshape(-1, ROUND_KEY_BYTES)
                state = stream.replayed(stream.init(runs), kept)
            released, state = play(state, total)
            rows.append(released)
            keys.append(state.keys[0])
        return np.array([*rows, released_and_lost])


@dataclass(frozen=True)
class OneKeyTwice:
    """Two runs with one key; in the second the others add something else, and the canary nothing."""

    guarantee: Guarantee

    def __call__(self, contributions: Sums, seed: int) -> Released:
        """See `Release`: the rows of the first run, then those of the second."""
        play = NoisedSums(self.guarantee)
        others = np.full_like(contributions, OTHERS * self.guarantee.clip_norm)
        return np.concatenate([play(contributions, seed), play(others, seed)])
