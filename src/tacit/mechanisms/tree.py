"""Tree noise: one seed per node of a binary tree over the rounds, plain or variance-reduced.

Released are all complete nodes, leaves included: with t counted from 1 in its tree, round t completes one
node at each level 0..v, where 2^v is the largest power of two that divides t, and draws their seeds in that
order. A restart begins a new tree; what the old one said last stays in the sum. The noise of PrivateSum_t is
the sum over the complete blocks of the binary digits of t, that of round t is the difference of two
prefix sums, PrivateSum_t - PrivateSum_{t-1}.

Plain: a block is its own node. Variance-reduced: a block is estimated from all nodes of its own subtree
("estimation from below", Honaker 2015; Kairouz et al. 2021, arXiv:2103.00039), which divides the noise
variance by up to two at the same guarantee, since the same nodes are released.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from tacit.mechanisms.stream import NoiseState, check_seeds, new_state
from tacit.privacy.strategy import Tree

Node = tuple[int, int]  # (first round, rounds covered), rounds 0-based


@dataclass(frozen=True)
class TreeStream:
    """Two seeds a round on average; a buffer for each level reached: the estimate of its last block."""

    strategy: Tree

    def seeds_in(self, round: int) -> int:
        """The nodes that this round completes: one more than the factors of two in its place in its tree."""
        place = round - self._beginning(round) + 1
        return (place & -place).bit_length()

    def init(self, dimension: int) -> NoiseState:
        """No buffers yet: (0, d)."""
        return new_state(0, dimension)

    def next(self, state: NoiseState, seeds: npt.NDArray[np.float32] | Array) -> tuple[Array, NoiseState]:
        """PrivateSum_t - PrivateSum_{t-1}.

        A round that completes level v reads levels 0..v-1, which are exactly the binary digits that carry,
        and writes level v. Those below were all written in the same tree, so a restart has nothing to clear.
        """
        check_seeds(self, state, seeds)
        levels = seeds.shape[0]
        missing = max(0, levels - state.buffers.shape[0])
        buffers = jnp.pad(state.buffers, ((0, missing), (0, 0))) if missing else state.buffers
        own = [np.float32(self._own_weight(level)) for level in range(levels)]
        noise, estimate = _complete(buffers, tuple(seeds), np.asarray(own))
        return noise, NoiseState(state.round + 1, _store(buffers, estimate, levels - 1))

    def dense(self, rounds: int) -> npt.NDArray[np.float64]:
        """(rounds, nodes): the difference of the weights that successive prefix sums give to the nodes."""
        column = {node: place for place, node in enumerate(self.nodes(rounds))}
        residuals = np.zeros((rounds, len(column)))
        before = np.zeros(len(column))
        for round in range(rounds):
            beginning = self._beginning(round)
            if round == beginning:
                before = np.zeros(len(column))
            prefix = np.zeros(len(column))
            for block in _blocks(beginning, round + 1 - beginning):
                for node, weight in self._estimate(block):
                    prefix[column[node]] += weight
            residuals[round] = prefix - before
            before = prefix
        return residuals

    def nodes(self, rounds: int) -> list[Node]:
        """All complete nodes of so many rounds, in the order in which their seeds are drawn."""
        return [(round + 1 - 2**level, 2**level) for round in range(rounds) for level in range(self.seeds_in(round))]

    def _beginning(self, round: int) -> int:
        return max((restart for restart in self.strategy.restarts if restart <= round), default=0)

    def _own_weight(self, level: int) -> float:
        """What a block's own node weighs in its estimate; its two halves' estimates together weigh the rest.

        With V_0 = 1 and V_l = 1/(1 + 1/(2 V_{l-1})) = 2^l/(2^(l+1) - 1) the variance of the best estimate of
        a block of 2^l rounds, inverse-variance weighting gives the own node (variance 1) exactly V_l.
        """
        return 2**level / (2 ** (level + 1) - 1) if self.strategy.variance_reduced else 1.0

    def _estimate(self, block: Node) -> Iterator[tuple[Node, float]]:
        """The weight of every node of the subtree in the estimate of a block."""
        start, size = block
        own = self._own_weight(size.bit_length() - 1)
        yield block, own
        if own < 1.0:
            for half in ((start, size // 2), (start + size // 2, size // 2)):
                for node, weight in self._estimate(half):
                    yield node, (1.0 - own) * weight


def _blocks(start: int, length: int) -> Iterator[Node]:
    """The complete blocks of the binary digits of `length`, largest first."""
    for level in reversed(range(length.bit_length())):
        if length >> level & 1:
            yield start, 2**level
            start += 2**level


@jax.jit
def _complete(buffers: Array, seeds: tuple[Array, ...], own: Array) -> tuple[Array, Array]:
    """The noise of the round, and the estimate of the largest block that it completes.

    Elementwise in a fixed order. The noise is that estimate less those of the blocks that it takes up.
    """
    estimate = seeds[0]  # a leaf is its own estimate
    taken_up = jnp.zeros_like(estimate)
    for level in range(1, len(seeds)):
        halves = buffers[level - 1] + estimate
        estimate = own[level] * seeds[level] + (1.0 - own[level]) * halves
        taken_up = taken_up + buffers[level - 1]
    return estimate - taken_up, estimate


@partial(jax.jit, donate_argnums=0)
def _store(buffers: Array, estimate: Array, level: int) -> Array:
    """Writes one buffer in place: apart from the estimate, which reads the buffers and would force a copy."""
    return buffers.at[level].set(estimate)
