"""The CIFG word by word in NumPy, float32: a step is two products with a vector and the scores of all words.

Its slow twins are `suggest.Rereader`, which reads the sentence again, and `tests/networks/numpy_model.py`.
"""

from typing import NamedTuple

import numpy as np

from tacit.errors import InputError
from tacit.networks.cifg.parameters import CifgParameters, CifgSize
from tacit.networks.cifg.ragged import Reals, Weights
from tacit.networks.model_files import ModelFiles
from tacit.records import from_plain

ONE = np.float32(1)


class CifgState(NamedTuple):
    """What the layer carries from word to word."""

    cell: Reals  # (H,)
    output: Reals  # (E,) the projection that is fed back


class CifgReader:
    """See `suggest.Reader`."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    @classmethod
    def of(cls, parameters: CifgParameters) -> "CifgReader":
        """A copy of the parameters in NumPy."""
        return cls(Weights.of(parameters))

    def begin(self) -> CifgState:
        """See Reader: a zero state."""
        units, width = self._weights.projection.shape
        return CifgState(np.zeros(units, np.float32), np.zeros(width, np.float32))

    def step(self, state: CifgState, token: int) -> tuple[CifgState, Reals]:
        """See Reader."""
        weights = self._weights
        z = np.concatenate([weights.embedding[token], state.output]) @ weights.kernel + weights.bias
        units = len(state.cell)
        update, candidate, emit = z[:units], z[units : 2 * units], z[2 * units :]  # np.split takes ten times as long
        cell = state.cell + _sigmoid(update) * (np.tanh(candidate) - state.cell)  # f = 1 - i
        output = (_sigmoid(emit) * np.tanh(cell)) @ weights.projection
        return CifgState(cell, output), weights.table @ output + weights.output_bias


def reader_of_files(files: ModelFiles) -> CifgReader:
    """See `phone_model.LIGHT_READERS`. Raises: InputError where the files are not of one network."""
    try:
        size = from_plain(CifgSize, files.settings, where="model")
    except InputError as error:
        raise InputError(f"the model in '{files.folder}' cannot be built: {error}") from error
    found = {name: (array.shape, array.dtype.name) for name, array in files.weights.items()}
    if found != {name: (shape, "float32") for name, shape in size.shapes().items()}:
        raise files.apart()
    embedding, kernel, bias, projection, output, output_bias = (files.weights[name] for name in size.shapes())
    table = embedding if size.tied else np.ascontiguousarray(output.T)
    return CifgReader(Weights(embedding, kernel, bias, projection, table, output_bias))


def _sigmoid(z: Reals) -> Reals:
    """By tanh, which neither overflows nor needs two cases."""
    return np.asarray(np.float32(0.5) * (np.tanh(np.float32(0.5) * z) + ONE))
