"""A recurrent network word by word in NumPy, float32: what a phone does, without JAX."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.networks.recurrent.cell import Cell
from tacit.process_limits import products_by_one_thread

FloatArray: TypeAlias = NDArray[np.float32]
HALF, ONE = np.float32(0.5), np.float32(1)


class NumpyArrays:
    """See `Arrays`; of one word, so that rows are (width,)."""

    def rows(self, table: FloatArray, ids: int) -> FloatArray:
        """See Arrays."""
        return np.asarray(table[ids])

    def affine(
        self,
        rows: FloatArray | tuple[FloatArray, ...],
        matrix: FloatArray,
        bias: FloatArray | None = None,
        *,
        turned: bool = False,
    ) -> FloatArray:
        """See Arrays."""
        left = np.concatenate(rows) if isinstance(rows, tuple) else rows
        product = matrix @ left if turned else left @ matrix
        return product if bias is None else product + bias

    def split(self, rows: FloatArray, parts: int) -> tuple[FloatArray, ...]:
        """See Arrays; `np.split` takes ten times as long."""
        width = len(rows) // parts
        return tuple(rows[at : at + width] for at in range(0, len(rows), width))

    def sigmoid(self, rows: FloatArray) -> FloatArray:
        """See Arrays: by tanh, which neither overflows nor needs two cases."""
        return np.asarray(HALF * (np.tanh(HALF * rows) + ONE))

    def tanh(self, rows: FloatArray) -> FloatArray:
        """See Arrays."""
        return np.tanh(rows)


NUMPY = NumpyArrays()


class RecurrentReader:
    """See `suggest.Reader`. Its slow reference is `suggest.Rereader`, which reads the sentence again."""

    def __init__(self, cell: Cell, weights: Mapping[str, NDArray[Any]]) -> None:
        """weights: by name, of the cell's shapes."""
        self._cell, self._start = cell, {name: np.zeros(width, np.float32) for name, width in cell.states().items()}
        # A matrix with a column a word is kept by word: its product is then one with rows that lie together.
        self._p: dict[str, FloatArray] = {
            name: np.array(value, np.float32, order="F" if value.shape[-1:] == (cell.vocabulary,) else "C")
            for name, value in weights.items()
        }

    def begin(self) -> dict[str, FloatArray]:
        """See Reader: zero states."""
        return self._start

    def step(self, state: Mapping[str, FloatArray], token: int) -> tuple[Mapping[str, FloatArray], FloatArray]:
        """See Reader. Several threads on products of this size wait more than they compute."""
        with products_by_one_thread():
            after, features = self._cell.step(NUMPY, self._p, state, self._cell.read(NUMPY, self._p, token))
            return after, self._cell.scores(NUMPY, self._p, features)
