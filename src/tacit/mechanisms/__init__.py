"""Correlated noise, one round at a time: what one round adds, later rounds partly take back.

A stream says what each round does with fresh standard normal vectors (seeds) and with the vectors that it carries;
`tacit.privacy` computes from its strategy what the noise is worth. A new strategy streams by forward
substitution; a stream of its own is one file beside `blt.py` and one line in `registry.py`, and
`tests/contracts/test_noise_streams.py` says what it must then hold to.
"""

from tacit.mechanisms.independent import add_independent_noise
from tacit.mechanisms.keys import fresh_key, round_key
from tacit.mechanisms.seeds import standard_normal_seeds
from tacit.mechanisms.stream import NoiseState, NoiseStream
from tacit.mechanisms.streams import stream_for

__all__ = [
    "NoiseState",
    "NoiseStream",
    "add_independent_noise",
    "fresh_key",
    "round_key",
    "standard_normal_seeds",
    "stream_for",
]
