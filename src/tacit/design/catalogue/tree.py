"""Binary trees: as released, with Honaker's estimate, and with the best decoder."""

from tacit.design.mechanism import DesignProblem, Mechanism, in_full
from tacit.design.objective import Losses
from tacit.design.parameters import TreeParameters
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Dense, Matrix, Strategy


def _full_tree(problem: DesignProblem) -> Matrix:
    from tacit.design.dense import full_tree

    return full_tree(problem.participation.rounds)


def _full_tree_cost(strategy: Strategy, participation: Participation) -> Losses:
    """By the closed form of the best decoder: the matrix has an entry for each two rounds."""
    from tacit.design.dense import full_tree_losses

    return full_tree_losses(participation)


TREE = Mechanism(
    name="tree",
    says="binary tree, as released",
    explains="Binary-tree aggregation, one seed for each node.",
    build=in_full("tree"),
    parameters=TreeParameters,
    examples=(TreeParameters(), TreeParameters(restarts=(5,))),
    adapts=True,
    searched=True,
)
TREE_VARIANCE_REDUCED = Mechanism(
    name="tree-variance-reduced",
    says="the same, Honaker's estimate",
    explains="Binary-tree aggregation, estimated from all nodes below a node and not from one (Honaker).",
    build=in_full("tree-variance-reduced"),
    parameters=TreeParameters,
    examples=(TreeParameters(), TreeParameters(restarts=(5,))),
    adapts=True,
    searched=True,
)
TREE_FULL = Mechanism(
    name="tree-full",
    says="the nodes, decoded at best",
    explains="TreeAgg-Full: the tree's nodes with their best decoder, a dense matrix; for these rounds only.",
    build=_full_tree,
    matrix=Dense,
    cost=_full_tree_cost,
)
