"""Correlated noise, one round at a time: what one round adds, later rounds partly take back.

A stream turns fresh standard normal vectors (seeds) into the noise of each round for the strategy that it
declares; `tacit.privacy` computes from that strategy what the noise is worth. Adding a factorisation is one
file beside `blt.py` and one line in `stream_for`; `tests/contracts/test_noise_streams.py` says what it must
then hold to.
"""

from tacit.mechanisms.stream import NoiseState, NoiseStream, fresh_key, standard_normal_seeds, stream_for

__all__ = ["NoiseState", "NoiseStream", "fresh_key", "standard_normal_seeds", "stream_for"]
