"""What a recurrent network says of itself, in terms that NumPy, JAX and ONNX have in common.

N rows (words of several sentences, or one word: then that axis is missing), V words in the vocabulary.
"""

from collections.abc import Mapping
from typing import Any, Protocol

# (N, width): an array, or the name of one in a graph. `+`, `-` and `*` take two of one shape, a parameter (width,), or
# a number.
Rows = Any
Named = Mapping[str, Any]  # rows or parameters, by their names


class Arrays(Protocol):
    """A library of arrays, as far as a cell needs one."""

    def rows(self, table: Any, ids: Any) -> Rows:
        """The rows of a table (V, width) with some ids (N,)."""
        ...

    def affine(self, rows: Rows | tuple[Rows, ...], matrix: Any, bias: Any = None, *, turned: bool = False) -> Rows:
        """rows @ matrix (width, m) + bias (m,). Several rows stand side by side; turned: the matrix is (m, width)."""
        ...

    def split(self, rows: Rows, parts: int) -> tuple[Rows, ...]:
        """The rows in parts of the same width."""
        ...

    def sigmoid(self, rows: Rows) -> Rows:
        """1 / (1 + exp(-x)) of each number."""
        ...

    def tanh(self, rows: Rows) -> Rows:
        """The hyperbolic tangent of each number."""
        ...


class Cell(Protocol):
    """A recurrent network's parameters, and what it does with a word. p: the parameters by name, arrays of `to`."""

    @property
    def vocabulary(self) -> int:
        """V."""
        ...

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each parameter by name; they are float32."""
        ...

    def states(self) -> dict[str, int]:
        """The width of each state that is carried from word to word; zero before the first."""
        ...

    def read(self, to: Arrays, p: Named, ids: Any) -> Rows:
        """What is known of words (N,) without their sentences: in training, of all of them at once."""
        ...

    def step(self, to: Arrays, p: Named, states: Named, read: Rows) -> tuple[Named, Rows]:
        """(the states after a word, the features that its scores are made of)."""
        ...

    def scores(self, to: Arrays, p: Named, features: Rows) -> Rows:
        """The scores (N, V) of the next word."""
        ...
