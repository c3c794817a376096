"""What a strategy costs: the error of what is made of its releases, its sensitivity, and their product, the loss.

What is made of them is A (G + C^{-1} Z), A the workload: the lower-triangular matrix of ones for prefix sums, or what a
server does (`workload`). With seeds of variance 1 its noise has the variances of the rows of B = A C^{-1}. At equal
privacy the seeds scale with the sensitivity, so mechanisms compare by Error * sensitivity (arXiv:2408.08868, Equations
9 and 10).
"""

import math
from collections.abc import Iterator
from functools import singledispatch
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.design.blt_errors import blt_errors
from tacit.design.objective import Losses
from tacit.design.toeplitz_error import ToeplitzErrors
from tacit.design.workload import PREFIX, Workload
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity import sensitivity_bound_squared
from tacit.privacy.strategy import (
    Banded,
    BandedInverse,
    BandedToeplitz,
    Blt,
    Independent,
    Strategy,
    Toeplitz,
    Tree,
)

Array = NDArray[np.float64]

ROWS = 512  # rows of B computed at once: bounds the memory at 4 kB a round


def losses(strategy: Strategy, participation: Participation, workload: Workload = PREFIX) -> Losses:
    """What `strategy` costs under `participation`: exact, or with a proved bound of the sensitivity, which is said.

    For prefix sums independent of the number of rounds for Independent, Tree and Blt, linear in it for the other
    Toeplitz matrices, quadratic for Banded and cubic for Dense. The sensitivity is the same for every workload.
    """
    if workload == PREFIX:
        max_error, rms_error = prefix_errors(strategy, participation.rounds)
    else:
        max_error, rms_error, _ = workload_errors(strategy, workload, participation.rounds)
    squared, exact = sensitivity_bound_squared(strategy, participation)
    return Losses(max_error=max_error, rms_error=rms_error, sensitivity=math.sqrt(squared), exact=exact)


class Errors(NamedTuple):
    """Standard deviations for seeds of standard deviation 1: the largest of all rounds' models, their root mean square,
    and that of the last, which people get.
    """

    max: float
    rms: float
    last: float


def workload_errors(strategy: Strategy, workload: Workload, rounds: int, pull: float = 0.0) -> Errors:
    """The errors of A C^{-1} Z over `rounds` rounds, in units of the learning rate; exact.

    O(rounds x rounds of the cooldown) for Toeplitz matrices, quadratic for Banded and Tree and cubic for Dense.
    pull: the share of the model that the next mean takes back, see `Workload.states`; no design counts on it.
    """
    variances = np.concatenate(list(_variances(strategy, workload, rounds, pull)))
    return Errors(*(math.sqrt(each) for each in (variances.max(), variances.mean(), variances[-1])))


@singledispatch
def prefix_errors(strategy: Strategy, rounds: int) -> tuple[float, float]:
    """(max error, rms error) of the prefix sums of `rounds` rounds, for seeds of variance 1; exact.

    By the matrix, cubic in the rounds, for a strategy that has no closed form registered here.
    """
    return _row_errors(_variances(strategy, PREFIX, rounds), rounds)


@prefix_errors.register
def _(strategy: Independent, rounds: int) -> tuple[float, float]:
    return math.sqrt(rounds), math.sqrt((rounds + 1) / 2)


@prefix_errors.register
def _(strategy: Blt, rounds: int) -> tuple[float, float]:
    return blt_errors(strategy, rounds)


@prefix_errors.register(Toeplitz)
@prefix_errors.register(BandedToeplitz)
@prefix_errors.register(BandedInverse)
def _(strategy: Toeplitz | BandedToeplitz | BandedInverse, rounds: int) -> tuple[float, float]:
    """B is Toeplitz too, with the cumulative sums of C^{-1}'s column (arXiv:2408.08868, Proposition 3.3)."""
    squares = np.cumsum(strategy.inverse_column(rounds)) ** 2
    return math.sqrt(squares.sum()), math.sqrt(squares @ np.arange(squares.size, 0, -1) / squares.size)


@prefix_errors.register
def _(strategy: Banded, rounds: int) -> tuple[float, float]:
    return _row_errors(_variances(strategy, PREFIX, rounds), rounds)


def _row_errors(variances: Iterator[Array], rounds: int) -> tuple[float, float]:
    largest = total = 0.0
    for part in variances:
        largest, total = max(largest, float(part.max())), total + float(part.sum())
    return math.sqrt(largest), math.sqrt(total / rounds)


@singledispatch
def _variances(strategy: Strategy, workload: Workload, rounds: int, pull: float = 0.0) -> Iterator[Array]:
    """Of the rows of B, some at a time; by default by the matrix."""
    from scipy.linalg import solve_triangular

    matrix = strategy.dense(rounds)
    for queries in workload.blocks(rounds, ROWS, pull):
        end = queries.shape[1]
        rows = solve_triangular(matrix[:end, :end].T, queries.T, lower=False, overwrite_b=True)
        yield (rows**2).sum(axis=0)


@_variances.register
def _(strategy: Banded, workload: Workload, rounds: int, pull: float = 0.0) -> Iterator[Array]:
    """Row t of B solves C^T b = row t of A; nothing beyond round t matters."""
    from scipy.linalg import solve_banded

    columns = strategy.leading(rounds)
    bands = columns.shape[1]
    for queries in workload.blocks(rounds, ROWS, pull):
        end = queries.shape[1]
        # LAPACK keeps a diagonal in each row, the main one last: entry (j, j+i) of C^T is columns[j, i].
        upper = np.zeros((bands, end))
        for offset in range(min(bands, end)):
            upper[bands - 1 - offset, offset:] = columns[: end - offset, offset]
        rows = solve_banded((0, bands - 1), upper, queries.T, overwrite_ab=True, overwrite_b=True)
        yield (rows**2).sum(axis=0)


@_variances.register(Independent)
@_variances.register(Toeplitz)
@_variances.register(BandedToeplitz)
@_variances.register(BandedInverse)
@_variances.register(Blt)
def _(
    strategy: Independent | Toeplitz | BandedToeplitz | BandedInverse | Blt,
    workload: Workload,
    rounds: int,
    pull: float = 0.0,
) -> Iterator[Array]:
    """With a pull by the column of B while the rate stays, by its rows where it falls."""
    column = np.eye(1, rounds)[0] if isinstance(strategy, Independent) else strategy.inverse_column(rounds)
    if not pull:
        yield ToeplitzErrors(rounds, workload).variances(np.cumsum(column))
    elif workload.cooldown:
        padded = np.append(column[::-1], np.zeros(rounds - 1))
        rows = (padded[rounds - 1 - at :][:rounds] for at in range(rounds))
        yield np.array([row @ row for row in workload.states(rows, rounds, pull)])
    else:
        yield np.cumsum(np.array(list(workload.states(column, rounds, pull))) ** 2)


@_variances.register
def _(strategy: Tree, workload: Workload, rounds: int, pull: float = 0.0) -> Iterator[Array]:
    yield np.array([row @ row for row in workload.states(_added(strategy, rounds), rounds, pull)])


def _added(tree: Tree, rounds: int) -> Iterator[Array]:
    """What each round adds to the noise of the prefix sums, by the seeds of the nodes (nodes,).

    A round that completes a block takes the place of the two that it is made of, as digits carry; its estimate is that
    of `prefix_errors`, in which its own node weighs 2^h / (2^(h+1) - 1).
    """
    begins = [0, *(at for at in tree.restarts if at < rounds), rounds]
    places = (place for begin, end in pairwise(begins) for place in range(1, end - begin + 1))
    carried = [(place & -place).bit_length() - 1 for place in places]
    node, last = 0, list[Array]()  # the estimate of the last block of each height
    for top in carried:
        estimate, added = np.zeros((2, rounds + sum(carried)))
        estimate[node] = 1.0
        for height in range(1, top + 1):
            own = 2.0**height / (2.0 ** (height + 1) - 1) if tree.variance_reduced else 1.0
            added -= last[height - 1]
            estimate = (1.0 - own) * (last[height - 1] + estimate)
            estimate[node + height] = own
        last[top:] = [estimate, *last[top + 1 :]]
        node += top + 1
        yield added + estimate


@prefix_errors.register
def _(tree: Tree, rounds: int) -> tuple[float, float]:
    """A prefix sum adds one estimate for each binary digit of the round's place in its tree, and what the trees
    before said last.

    A block of 2^h rounds is its own node, variance 1; variance-reduced it is estimated from its whole subtree,
    variance 2^h / (2^(h+1) - 1) (Honaker 2015; arXiv:2103.00039, Appendix D).
    """
    begins = [0, *(at for at in tree.restarts if at < rounds)]
    earlier = largest = total = 0.0
    for begin, end in zip(begins, [*begins[1:], rounds], strict=True):
        length = end - begin
        heights = np.arange(length.bit_length())
        variance = 2.0**heights / (2.0 ** (heights + 1) - 1) if tree.variance_reduced else np.ones(heights.size)
        largest = max(largest, earlier + max(_of_digits(place, variance) for place in _richest(length)))
        total += length * earlier + math.fsum(
            count * each for count, each in zip(_digits_up_to(length), variance, strict=True)
        )
        earlier += _of_digits(length, variance)
    return math.sqrt(largest), math.sqrt(total / rounds)


def _of_digits(number: int, worth: Array) -> float:
    return math.fsum(each for height, each in enumerate(worth) if number >> height & 1)


def _richest(length: int) -> Iterator[int]:
    """Among 1..length the numbers that no other exceeds digit by digit: one digit cleared, all below it set."""
    yield length
    for height in range(length.bit_length()):
        if length >> height & 1 and length >> height > 0:
            yield (length >> height << height) - 1


def _digits_up_to(length: int) -> Iterator[int]:
    """How many of 1..length have the binary digit of each height."""
    for height in range(length.bit_length()):
        half = 1 << height
        whole, rest = divmod(length + 1, 2 * half)
        yield whole * half + max(0, rest - half)
