"""Free coordinates for buffered linear Toeplitz matrices: any row of positive gaps is one, so nothing needs a barrier.

The decays of C and C^{-1} interlace, 1 >= theta_1 > theta_hat_1 > theta_2 > ... > theta_d > theta_hat_d
(arXiv:2408.08868, Section 2.4), and with them the matrix is given:

    omega_j = prod_i |theta_j - theta_hat_i| / prod_{i != j} |theta_j - theta_i|        [Algorithm 5]

and -omega_hat_i likewise. Coordinates are the 2d gaps. All but the last make the nodes
t_1 < ... < t_{2d-1}, whose exp(-t) are theta_1, theta_hat_1, ..., theta_d. The last places theta_hat_d, which may be
negative: the weights sum to the sum of all theta_j - theta_hat_j, and the coefficients of C decrease just while that
is at most 1. So theta_d - theta_hat_d is the share 1 - exp(-gap) of what the other weights leave.

Differences of decays are built from the gaps between them and never by subtraction: all of this is accurate to a
few units in the last place, however close decays lie to each other or to 1.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Candidates:
    """Rows of gaps (..., 2d) > 0 read as BLTs.

    `decay` (..., d) is -log theta, `inverse_gap` (..., d) is 1 - theta_hat, `limit` (..., 1) is the product of all
    (1 - theta_j)/(1 - theta_hat_j), `omega` (..., d), and `inverse_step` (..., d) is -omega_hat/(1 - theta_hat).
    """

    gaps: Array
    decay: Array
    inverse_gap: Array
    limit: Array
    omega: Array
    inverse_step: Array
    _below: Array  # exp(-t_b) of each pair a < b of nodes before the last
    _apart: Array  # exp(-t_a) - exp(-t_b) of each pair
    _room: Array  # what the other weights leave of 1 to the last step down

    @classmethod
    def from_gaps(cls, gaps: Array) -> Self:
        """gaps (..., 2d), all positive."""
        layout = _layout(gaps.shape[-1] // 2)
        times = np.cumsum(gaps[..., :-1], axis=-1)
        fallen = np.exp(-times)
        fallen = np.concatenate((np.ones_like(fallen[..., :1]), fallen), axis=-1)
        inner = -np.expm1(-(gaps[..., :-1] @ layout.between)) * fallen[..., layout.first]
        room = inner[..., layout.up].sum(-1, keepdims=True) + fallen[..., -1:]
        step = room * -np.expm1(-gaps[..., -1:])
        apart = np.concatenate((inner, inner[..., layout.to_last] + step, step), axis=-1)
        weights = np.exp(np.log(apart) @ layout.weights)
        buffers = layout.buffers
        return cls(
            gaps=gaps,
            decay=times[..., 0::2],
            inverse_gap=apart[..., layout.from_one],
            limit=weights[..., :1],
            omega=weights[..., 1 : buffers + 1],
            inverse_step=weights[..., buffers + 1 :],
            _below=fallen[..., layout.second],
            _apart=apart,
            _room=room,
        )

    def slope(
        self, in_decay: Array, in_inverse_gap: Array, in_limit: Array, in_omega: Array, in_inverse_step: Array
    ) -> Array:
        """The chain rule, from derivatives in `decay`, in `inverse_gap` and in the logarithms of `limit`, `omega` and
        `inverse_step` to those in the logarithms of the gaps (..., 2d).
        """
        layout = _layout(self.gaps.shape[-1] // 2)
        inside = len(layout.first)
        in_apart = np.concatenate((in_limit, in_omega, in_inverse_step), axis=-1) @ layout.weights.T / self._apart
        in_apart[..., layout.from_one] += in_inverse_gap
        in_inner, in_outer = in_apart[..., :inside], in_apart[..., inside:]
        in_step = in_outer.sum(-1, keepdims=True)
        kept = np.exp(-self.gaps[..., -1:])
        in_room = in_step * (1.0 - kept)
        in_inner[..., layout.to_last] += in_outer[..., :-1]
        in_inner[..., layout.up] += in_room
        in_times = np.zeros_like(self.gaps[..., :-1])
        in_times[..., 0::2] = in_decay
        in_times[..., -1:] -= in_room * self._below[..., -1:]
        # A gap before both nodes scales their difference down, one between them widens it by exp(-t_b).
        in_gaps = np.cumsum(in_times[..., ::-1], axis=-1)[..., ::-1]
        in_gaps = in_gaps + (in_inner * self._below) @ layout.between.T
        in_gaps -= (in_inner * self._apart[..., :inside]) @ layout.before.T
        return np.concatenate((in_gaps, in_step * self._room * kept), axis=-1) * self.gaps


@dataclass(frozen=True)
class _Layout:
    """Pairs a < b of the nodes 0, 1, ..., 2d, those with b = 2d last: node 0 is the number 1, odd nodes are thetas,
    even ones theta_hats.
    """

    buffers: int
    first: Places  # a and
    second: Places  # b of the pairs before the last node
    between: Array  # (2d - 1, pairs): the gaps from a to b,
    before: Array  # and those up to a
    weights: Array  # (pairs, 2d + 1): the powers of the differences in limit, omega, inverse_step
    up: Places  # the pairs (theta_hat_{j-1}, theta_j): the room above each theta
    to_last: Places  # the pairs (a, theta_d)
    from_one: Places  # the pairs (1, theta_hat_i)


@lru_cache
def _layout(buffers: int) -> _Layout:
    end = 2 * buffers
    inner = [(a, b) for b in range(end) for a in range(b)]
    pairs = [*inner, *((a, end) for a in range(end))]
    place = {pair: at for at, pair in enumerate(pairs)}
    between, before = np.zeros((end - 1, len(inner))), np.zeros((end - 1, len(inner)))
    weights = np.zeros((len(pairs), end + 1))
    for at, (a, b) in enumerate(inner):
        before[:a, at], between[a:b, at] = 1.0, 1.0
    for at, (a, b) in enumerate(pairs):
        if a == 0:
            weights[at, 0] = 1.0 if b % 2 else -1.0
            if b % 2 == 0:
                weights[at, buffers + b // 2] = -1.0
            continue
        for node in (a, b):
            column = (node + 1) // 2 if node % 2 else buffers + node // 2
            weights[at, column] = 1.0 if (a + b) % 2 else -1.0
    return _Layout(
        buffers=buffers,
        first=np.array([a for a, _ in inner], dtype=np.intp),
        second=np.array([b for _, b in inner], dtype=np.intp),
        between=between,
        before=before,
        weights=weights,
        up=np.array([place[2 * j, 2 * j + 1] for j in range(buffers)]),
        to_last=np.array([place[a, end - 1] for a in range(end - 1)]),
        from_one=np.array([place[0, 2 * i] for i in range(1, buffers + 1)]),
    )
