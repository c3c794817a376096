"""Which stream makes the noise of which strategy: the one place that knows them all."""

from collections.abc import Callable
from typing import Any

from tacit.mechanisms.banded_inverse import BandedInverseStream
from tacit.mechanisms.blt import BltStream
from tacit.mechanisms.independent import IndependentStream
from tacit.mechanisms.stream import NoiseStream
from tacit.mechanisms.substitution import SubstitutionStream
from tacit.mechanisms.tree import TreeStream
from tacit.privacy.strategy import BandedInverse, Blt, Independent, Strategy, Tree

STREAMS: dict[type[Strategy], Callable[[Any], NoiseStream]] = {
    Independent: IndependentStream,
    Tree: TreeStream,
    Blt: BltStream,
    BandedInverse: BandedInverseStream,
}
"""Streams that know better than forward substitution, which serves every strategy that is not listed."""


def stream_for(strategy: Strategy) -> NoiseStream:
    """The stream of a strategy: the one listed for its class, else forward substitution through its rows."""
    return STREAMS.get(type(strategy), SubstitutionStream)(strategy)
