"""Everything random in a run besides the noise: a pure function of (key, purpose, round).

The noise has its own counter-based generator (`mechanisms.stream`). What is drawn here (who comes, which sentences, the
initial model) carries no guarantee, so a seed derived by SHA-256 is all it needs to be independent of the noise.
"""

import hashlib

import numpy as np


def generator_for(key: bytes, purpose: str, round: int = 0) -> np.random.Generator:
    """A generator that nobody else uses: equal arguments, equal draws."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(seed_for(key, purpose, round), "little")))


def seed_for(key: bytes, purpose: str, round: int = 0) -> bytes:
    """32 bytes for a worker that may not know the key: neither the noise nor another purpose's draws follow from it."""
    return hashlib.sha256(b"tacit " + key + f" {purpose} {round}".encode()).digest()


def key_from_seed(seed: int) -> bytes:
    """The 128-bit key of a run whose seed was fixed by hand: reproducible, hence not private."""
    return hashlib.sha256(f"tacit fixed seed {seed}".encode()).digest()[:16]
