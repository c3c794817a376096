"""Strategy matrices number by number: what a plan says of one, its file, and which ones a device reckons with.

A device computes the sensitivity itself, from the numbers, so a matrix is bounded before it is fetched: in numbers, by
the protocol, and in what its worst pattern costs to find. With at most 2b bands for a separation of b, or with one
participation, that is a dynamic program, exact; otherwise a search in the memory of C^T C, exact where it closes, else
a proved upper bound (`privacy.sensitivity_matrix`).
"""

from collections.abc import Mapping

import numpy as np

from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Banded, Dense, Matrix
from tacit.protocol.bodies import read_matrix
from tacit.protocol.fields import MOST_MATRIX
from tacit.protocol.messages import MatrixFile

KINDS: Mapping[str, type[Matrix]] = {each.kind: each for each in (Banded, Dense)}
MOST_SEARCHED = 1024  # rounds of a matrix whose worst pattern is searched for: a second, 0.2 GB
LARGEST = 1e100  # of its numbers, in absolute value: squares and their sums are finite


def matrix_in(said: MatrixFile, body: bytes) -> Matrix:
    """The matrix of a file. Raises: InputError for another file, and for numbers that are no strategy matrix."""
    numbers = read_matrix(body, said.rounds, said.bands)
    with np.errstate(invalid="ignore"):
        at = np.argmax(~(np.abs(numbers) <= LARGEST))  # the first that is larger, or no number; or none, and the first
    if not abs(numbers.flat[at]) <= LARGEST:
        row, column = np.unravel_index(at, numbers.shape)
        raise InputError(f"its number [{row}, {column}] is {numbers.flat[at]:g}; give real ones up to {LARGEST:g}.")
    return KINDS[said.kind](numbers)  # type: ignore[call-arg]


def check_affordable(kind: type[Matrix], rounds: int, bands: int, participation: Participation) -> None:
    """That devices reckon with such a matrix for this participation. Raises: InputError."""
    what = f"a {kind.kind} matrix of {rounds:,} rounds"
    if rounds * bands > MOST_MATRIX:
        raise InputError(
            f"{what} and {bands:,} bands has {rounds * bands:,} numbers, and devices take {MOST_MATRIX:,}; ask for "
            "fewer rounds or bands, or take blt or banded-toeplitz."
        )
    if kind.is_searched(bands, participation) and rounds > MOST_SEARCHED:
        raise InputError(
            f"{what} and {bands:,} bands is met by more than neighbouring participations of a client, whose worst "
            f"pattern devices search for up to {MOST_SEARCHED:,} rounds; let bands be at most twice the separation, "
            "or take blt or banded-toeplitz."
        )
