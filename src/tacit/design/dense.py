"""Strategies without structure: the best matrix for one participation, and the tree's nodes as one triangle.

Both are made for n rounds, keep n^2 numbers and say nothing about a round after the last.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.design.losses import prefix_errors
from tacit.design.objective import Losses
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity import sensitivity
from tacit.privacy.strategy import Dense, Tree
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

Array = NDArray[np.float64]

GAP = 1e-7  # the squared error is proved to exceed the least possible one by no more than this share
STEPS = 500
STAGE = "designing a dense matrix"
MEMORY = 6  # steps that Anderson's extrapolation combines


def design_dense(participation: Participation, *, workload: Workload = PREFIX, progress: Progress = silent) -> Dense:
    """The lower-triangular matrix with columns of norm 1 and least rms error: optimal when clients come once.

    Minimises tr(M X^{-1}), M = A^T A for the workload A, X = C^T C with unit diagonal. Its dual is to maximise, over
    weights y > 0, 2 tr(R) - sum(y) with R = (Y^{1/2} M Y^{1/2})^{1/2}; y = diag(R) at the optimum (arXiv:2202.08312).
    For prefix sums the inverse of Y^{1/2} M Y^{1/2} is tridiagonal, because M^{-1} = D D^T, so a step costs O(n^2), not
    O(n^3) as by the singular values of A Y^{1/2} for other workloads: a second at 400 rounds, minutes at 2,000.
    The dual value bounds the error from below: the search ends when the bound is within 1e-7. `progress` is told
    the steps, with the gap so far. InputError where a client may come more than once: which matrix is best then is
    not known.
    """
    if participation.effective.max_participations > 1:
        raise InputError(
            f"max_participations={participation.effective.max_participations}, and the dense matrix is optimal for "
            "clients that come once; design a banded one, or set the separation to the number of rounds."
        )
    rounds = participation.rounds
    logs = np.log(np.sqrt(workload.arriving(rounds)))
    matrix = None if workload == PREFIX else workload.models(np.eye(rounds))
    points: list[Array] = []
    moves: list[Array] = []
    best_gap, best = np.inf, np.eye(rounds)
    progress(StageBegan(STAGE))
    for step in range(1, STEPS + 1):
        weights = np.exp(logs)
        values, vectors = _prefix_root(weights) if matrix is None else _root(matrix, weights)
        diagonal = (vectors**2) @ values
        gap = _gap(workload, weights, values, vectors, diagonal)
        if gap < best_gap:
            best_gap, best = gap, (vectors / diagonal[:, None] ** 0.5) * np.sqrt(values)
        progress(Advanced(STAGE, step, {"gap": best_gap}))
        if best_gap < GAP:
            break
        points, moves = [*points[1 - MEMORY :], logs], [*moves[1 - MEMORY :], np.log(diagonal) - logs]
        logs = _extrapolated(points, moves)
    progress(StageEnded(STAGE))
    return Dense(_triangle(best @ best.T))


def full_tree(rounds: int) -> Dense:
    """TreeAgg-Full: the triangle L with L^T L = N^T N, N (nodes, rounds) the nodes of the tree over all rounds.

    The optimal decoder of the released nodes, B = A N^+ (arXiv:2103.00039 and its dense baseline in arXiv:2408.08868,
    Table 3), has the errors of A L^{-1}, and one client moves N and L alike. Its sensitivity is therefore that of
    the tree, which `full_tree_losses` takes exactly.
    """
    if rounds < 1:
        raise InputError(f"rounds={rounds} is no run; give at least 1.")
    nodes = Tree().dense(rounds)
    return Dense(_triangle(nodes.T @ nodes))


def full_tree_losses(participation: Participation) -> Losses:
    """What TreeAgg-Full costs: errors of the optimal decoder, exact sensitivity of the tree."""
    max_error, rms_error = prefix_errors(full_tree(participation.rounds), participation.rounds)
    return Losses(max_error=max_error, rms_error=rms_error, sensitivity=sensitivity(Tree(), participation))


def _root(matrix: Array, weights: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of R: the singular ones of A Y^{1/2}."""
    _, values, rows = np.linalg.svd(matrix * np.sqrt(weights))
    return values, rows.T


def _prefix_root(weights: Array) -> tuple[Array, Array]:
    """The same for prefix sums: the inverse square is the tridiagonal Y^{-1/2} D D^T Y^{-1/2}."""
    from scipy.linalg import eigh_tridiagonal

    scale = 1 / np.sqrt(weights)
    diagonal = np.full(weights.size, 2.0)
    diagonal[0] = 1.0
    squares, vectors = eigh_tridiagonal(diagonal * scale**2, -scale[1:] * scale[:-1])
    return 1 / np.sqrt(squares), vectors


def _gap(workload: Workload, weights: Array, values: Array, vectors: Array, diagonal: Array) -> float:
    """How far the columns-normalised X = diag(R)^{-1/2} R diag(R)^{-1/2} is from the dual bound, as a share.

    X^{-1} = G G^T for G = diag(R)^{1/2} V values^{-1/2}.
    """
    noise = workload.models((np.sqrt(diagonal)[:, None] * vectors) / np.sqrt(values))
    primal = float(np.einsum("ij,ij->", noise, noise))
    dual = 2 * values.sum() - weights.sum()
    return primal / dual - 1 if dual > 0 else np.inf


def _extrapolated(points: list[Array], moves: list[Array]) -> Array:
    """Anderson's (1965): the combination of the last points whose moves cancel best, moved once more."""
    following = points[-1] + moves[-1]
    if len(points) == 1:
        return following
    turns = np.diff(np.array(moves), axis=0)
    strides = np.diff(np.array(points), axis=0) + turns
    share = np.linalg.lstsq(turns.T, moves[-1], rcond=1e-10)[0]
    return np.asarray(following - share @ strides)


def _triangle(gram: Array) -> Array:
    """The lower triangle L with L^T L = gram: Cholesky's read backwards."""
    return np.ascontiguousarray(np.linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1].T)
