"""The CIFG word by word in NumPy, float32: a step is two products with a vector and the scores of all words.

Its slow twins are `suggest.Rereader`, which reads the sentence again, and `tests/keyboard/numpy_model.py`.
"""

from typing import NamedTuple

import numpy as np

from tacit.keyboard.cifg_parameters import CifgParameters
from tacit.keyboard.cifg_ragged import Reals, Weights

ONE = np.float32(1)


class CifgState(NamedTuple):
    """What the layer carries from word to word."""

    cell: Reals  # (H,)
    output: Reals  # (E,) the projection that is fed back


class CifgReader:
    """See `suggest.Reader`."""

    def __init__(self, parameters: CifgParameters) -> None:
        self._weights = Weights.of(parameters)

    def begin(self) -> CifgState:
        """See Reader: a zero state."""
        units, width = self._weights.projection.shape
        return CifgState(np.zeros(units, np.float32), np.zeros(width, np.float32))

    def step(self, state: CifgState, token: int) -> tuple[CifgState, Reals]:
        """See Reader."""
        weights = self._weights
        z = np.concatenate([weights.embedding[token], state.output]) @ weights.kernel + weights.bias
        update, candidate, emit = np.split(z, 3)
        cell = state.cell + _sigmoid(update) * (np.tanh(candidate) - state.cell)  # f = 1 - i
        output = (_sigmoid(emit) * np.tanh(cell)) @ weights.projection
        return CifgState(cell, output), weights.table @ output + weights.output_bias


def _sigmoid(z: Reals) -> Reals:
    """By tanh, which neither overflows nor needs two cases."""
    return np.asarray(np.float32(0.5) * (np.tanh(np.float32(0.5) * z) + ONE))
