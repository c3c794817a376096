"""A run's states on disk. The noise buffers, most of a state, are written every few rounds only.

Between two whole checkpoints stand short ones, with the keys of the rounds since in place of the buffers: those follow
from the seeds, so whoever goes on from a short one draws the seeds of a few rounds again and has the same bits.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.errors import RunError
from tacit.mechanisms import NoiseState
from tacit.runs import Run, StepEntry
from tacit.training.checkpoint import Arrays, as_state, forget_old_checkpoints, leaves, read_checkpoint
from tacit.training.rounds import Replay, TrainingState

KEPT = 2  # checkpoints: the last, and the one before, whose model may still be under evaluation
EVERY = 8  # rounds to a whole checkpoint: drawing again at most 7 rounds' seeds takes less time than one round trains
COMPARED = 4096  # columns of the buffers of which a short checkpoint has the digest


class Short(NamedTuple):
    """What stands for the state of the noise in a short checkpoint."""

    round: NDArray[np.int32]  # () as in NoiseState
    whole: NDArray[np.uint8]  # (32,) SHA-256 of the checkpoint with the buffers
    keys: NDArray[np.uint8]  # (rounds since that one, 32), the last first
    first: NDArray[np.uint8]  # (32,) SHA-256 of the first columns of the buffers, (buffers, COMPARED)


LIKE = Short(np.zeros((), np.int32), *(np.zeros(shape, np.uint8) for shape in (32, (0, 32), 32)))


class States:
    """Writes the states of a run's rounds, one after another, and finds them again. Rounds are whole by their number,
    so that a run that was killed has the files of one that was not.
    """

    def __init__(self, run: Run, replay: Replay | None) -> None:
        """again: plays rounds of the model updates' noise from their keys, be it the server's or a decryptor's; None:
        there is no noise.
        """
        self._run, self._replay = run, replay
        self._whole: StepEntry | None = None  # the last with all buffers
        self._keys: list[list[bytes]] = []  # of each noise: of the rounds since, the last first

    def snapshot(self, state: TrainingState, round: int) -> Arrays:
        """What is to be written of the state after a round, as it is now. The round before has been `committed`."""
        noises = _noises(state)
        if self._whole is None or round % EVERY == 0 or not any(noise.buffers.size for noise in noises):
            self._whole, self._keys = None, [[] for _ in noises]
            return leaves(state)
        for keys, noise in zip(self._keys, noises, strict=True):
            keys.insert(0, bytes(noise.keys[0]))
        whole = np.frombuffer(bytes.fromhex(self._whole.digest), np.uint8)
        shorts = [
            Short(
                round=noise.round,
                whole=whole,
                keys=np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 32),
                first=_first(noise),
            )
            for keys, noise in zip(self._keys, noises, strict=True)
        ]
        return leaves(_with_noises(state, shorts))

    def committed(self, row: StepEntry) -> None:
        """The step of the state taken last is in the journal; what nobody needs any more goes."""
        if self._whole is None:
            self._whole = row
        forget_old_checkpoints(self._run.path / "steps", keep=KEPT, also=[self._whole.file])

    def model(self, row: StepEntry) -> Array:
        """The flat model after a step, (d,). Raises: RunError as `read_checkpoint` does."""
        return jnp.asarray(read_checkpoint(self._run.path / "steps" / row.file, row.digest)[".model"])

    def last(self, row: StepEntry, like: TrainingState) -> TrainingState:
        """The state after the last step. Raises: RunError as `load_checkpoint` does, also for the whole checkpoint
        that a short one goes on from; or where the buffers came out otherwise than they were.
        """
        path = self._run.path / "steps" / row.file
        arrays, noises = read_checkpoint(path, row.digest), _noises(like)
        shortened = _with_noises(like, [LIKE] * len(noises))
        if self._replay is None or not noises or set(arrays) != set(leaves(shortened)):
            self._whole, self._keys = row, [[] for _ in noises]
            found: TrainingState = as_state(arrays, like, path)
            return found
        found = as_state(arrays, shortened, path)
        shorts: Any = _noises(found)
        self._whole = self._before(shorts[0], path)
        self._keys = [[bytes(key) for key in short.keys] for short in shorts]
        whole = self._run.path / "steps" / self._whole.file
        then = _noises(as_state(read_checkpoint(whole, self._whole.digest), like, whole))
        again = [self._replay(noise, short.keys) for noise, short in zip(then, shorts, strict=True)]
        for noise, short in zip(again, shorts, strict=True):
            if noise.round != short.round or bytes(_first(noise)) != bytes(short.first):
                raise RunError(
                    f"the noise of '{path}' does not come out as it was, drawn again from '{whole}': go on on a "
                    "machine and with versions like those that the run began with, or restore the run folder from a "
                    "copy."
                )
        return cast(TrainingState, _with_noises(found, again))

    def _before(self, short: Short, path: Path) -> StepEntry:
        digest = bytes(short.whole).hex()
        for row in self._run.steps():
            if row.digest == digest:
                return row
        raise RunError(f"the checkpoint '{path}' goes on from one that is no step of its run; restore it from a copy.")


def _noises(state: TrainingState) -> Sequence[NoiseState]:
    """The states of the model updates' noise: the server's one, or each decryptor's, or none."""
    return state.decryptors if state.noise is None else [state.noise]


def _with_noises(state: TrainingState, noises: Sequence[Any]) -> Any:
    """The state with as many others in their places."""
    return state._replace(decryptors=tuple(noises)) if state.noise is None else state._replace(noise=noises[0])


def _first(noise: NoiseState) -> NDArray[np.uint8]:
    """SHA-256 of what the first columns carry: another processor's, or other versions', rounding is seen in it."""
    return np.frombuffer(hashlib.sha256(noise.buffers[:, :COMPARED].tobytes()).digest(), np.uint8)
