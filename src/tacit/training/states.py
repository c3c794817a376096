"""A run's states on disk. The noise buffers, most of a state, are written every few rounds only.

Between two whole checkpoints stand short ones, with the keys of the rounds since in place of the buffers: those follow
from the seeds, so whoever goes on from a short one draws the seeds of a few rounds again and has the same bits.
"""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.errors import RunError
from tacit.mechanisms import NoiseState, NoiseStream
from tacit.runs import Run, Step
from tacit.training.checkpoint import Arrays, as_state, forget_old_checkpoints, leaves, read_checkpoint
from tacit.training.rounds import TrainingState

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

    def __init__(self, run: Run, stream: NoiseStream | None) -> None:
        """stream: of the model updates' noise; None: there is none."""
        self._run, self._stream = run, stream
        self._whole: Step | None = None  # the last with all buffers
        self._keys: list[bytes] = []  # of the rounds since, the last first

    def taken(self, state: TrainingState, round: int) -> Arrays:
        """What is to be written of the state after a round, as it is now. The round before has been `committed`."""
        noise = state.noise
        if noise is None or self._whole is None or round % EVERY == 0 or not noise.buffers.size:
            self._whole, self._keys = None, []
            return leaves(state)
        self._keys.insert(0, bytes(noise.keys[0]))
        short = Short(
            round=noise.round,
            whole=np.frombuffer(bytes.fromhex(self._whole.digest), np.uint8),
            keys=np.frombuffer(b"".join(self._keys), np.uint8).reshape(-1, 32),
            first=_first(noise),
        )
        return leaves(_with_noise(state, short))

    def committed(self, row: Step) -> None:
        """The step of the state taken last is in the journal; what nobody needs any more goes."""
        if self._whole is None:
            self._whole = row
        forget_old_checkpoints(self._run.path / "steps", keep=KEPT, also=[self._whole.file])

    def model(self, row: Step) -> Array:
        """The flat model after a step, (d,). Raises: RunError as `read_checkpoint` does."""
        return jnp.asarray(read_checkpoint(self._run.path / "steps" / row.file, row.digest)[".model"])

    def last(self, row: Step, like: TrainingState) -> TrainingState:
        """The state after the last step. Raises: RunError as `load_checkpoint` does, also for the whole checkpoint
        that a short one goes on from; or where the buffers came out otherwise than they were.
        """
        path = self._run.path / "steps" / row.file
        arrays, shortened = read_checkpoint(path, row.digest), _with_noise(like, LIKE)
        if self._stream is None or set(arrays) != set(leaves(shortened)):
            self._whole, self._keys = row, []
            found: TrainingState = as_state(arrays, like, path)
            return found
        found = as_state(arrays, shortened, path)
        short: Any = found.noise
        self._whole, self._keys = self._before(short, path), [bytes(key) for key in short.keys]
        whole = self._run.path / "steps" / self._whole.file
        then: NoiseState = as_state(read_checkpoint(whole, self._whole.digest), like, whole).noise
        noise = self._stream.again(then, short.keys)
        if noise.round != short.round or bytes(_first(noise)) != bytes(short.first):
            raise RunError(
                f"the noise of '{path}' does not come out as it was, drawn again from '{whole}': go on on a machine "
                "and with versions like those that the run began with, or restore the run folder from a copy."
            )
        return found._replace(noise=noise)

    def _before(self, short: Short, path: Path) -> Step:
        digest = bytes(short.whole).hex()
        for row in self._run.steps():
            if row.digest == digest:
                return row
        raise RunError(f"the checkpoint '{path}' goes on from one that is no step of its run; restore it from a copy.")


def _with_noise(state: TrainingState, noise: Any) -> Any:
    return state._replace(noise=noise)


def _first(noise: NoiseState) -> NDArray[np.uint8]:
    """SHA-256 of what the first columns carry: another processor's, or other versions', rounding is seen in it."""
    return np.frombuffer(hashlib.sha256(noise.buffers[:, :COMPARED].tobytes()).digest(), np.uint8)
