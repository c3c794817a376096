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

import numpy as np
import numpy.typing as npt

from tacit.mechanisms.step import Keep, NoiseStep
from tacit.mechanisms.stream import NoiseStream
from tacit.privacy.strategy import Tree

Node = tuple[int, int]  # (first round, rounds covered), rounds 0-based


@dataclass(frozen=True)
class TreeStream(NoiseStream):
    """Two seeds a round on average; a buffer for each level reached: the estimate of its last block."""

    strategy: Tree
    carries = np.float32

    def seeds_in(self, round: int) -> int:
        """The nodes that this round completes: one more than the factors of two in its place in its tree."""
        place = round - self._beginning(round) + 1
        return (place & -place).bit_length()

    def step(self, round: int) -> NoiseStep:
        """PrivateSum_t - PrivateSum_{t-1}: the estimate of the block completed, less those of the blocks it takes up.

        A round that completes level v reads levels 0..v-1, which are exactly the binary digits that carry,
        and writes level v. Those below were all written in the same tree, so a restart has nothing to clear.
        """
        top = self.seeds_in(round) - 1
        of_nodes: list[float] = [1.0]  # a leaf is its own estimate
        of_blocks: list[float] = []
        for level in range(1, top + 1):
            own = self._own_weight(level)
            of_nodes = [(1.0 - own) * weight for weight in of_nodes] + [own]
            of_blocks = [(1.0 - own) * weight for weight in [*of_blocks, 1.0]]
        return NoiseStep(
            seeds=tuple(of_nodes),
            buffers=tuple(weight - 1.0 for weight in of_blocks),
            then=Keep(slot=top, seeds=tuple(of_nodes), buffers=tuple(of_blocks)),
        )

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
