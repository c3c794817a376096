"""Randomness without state: a number for each (purpose, device, moment), the same in whatever order they are asked.

A simulated device needs no memory of what it is or was: its time zone, its speed and each night of its charger are
hashes, computed where they are needed. So twenty million devices take the memory of their timers alone, and a run that
is resumed sees the same devices. Pseudo-random and fixed by the seed: for simulations, never for noise.
"""

import numpy as np

from tacit.compiled import compiled

# The finaliser and the increments of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_G1, _G2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_S16, _S32, _S48, _LOW = np.uint64(16), np.uint64(32), np.uint64(48), np.uint64(0xFFFF)

SUM_MEAN, SUM_DEVIATION = 2.0 * 65535.0, ((2.0**32 - 1.0) / 3.0) ** 0.5  # of four uniform whole numbers below 2^16
GAUSSIAN_REACH = SUM_MEAN / SUM_DEVIATION  # 3.46: no draw lies further out


@compiled
def mix(bits: np.uint64) -> np.uint64:
    """64 bits to 64 bits, one to one: every bit depends on every bit."""
    bits = (bits ^ (bits >> _S30)) * _M1
    bits = (bits ^ (bits >> _S27)) * _M2
    return bits ^ (bits >> _S31)


@compiled
def draw(key: np.uint64, device: int, moment: int) -> np.uint64:
    """64 bits for one purpose (its key), device and moment."""
    return mix(mix(key + np.uint64(device) * _G1) ^ (np.uint64(moment) * _G2))


@compiled
def uniform(bits: np.uint64) -> float:
    """In [0, 1), from the upper 53 bits."""
    return float(bits >> _S11) * 2.0**-53


@compiled
def gaussian(bits: np.uint64) -> float:
    """Nearly Gaussian, mean 0, deviation 1, at most 3.46: four uniform numbers of 16 bits added up (Irwin-Hall)."""
    total = (bits & _LOW) + ((bits >> _S16) & _LOW) + ((bits >> _S32) & _LOW) + (bits >> _S48)
    return float((float(total) - SUM_MEAN) / SUM_DEVIATION)


@compiled
def below(bits: np.uint64, bound: int) -> int:
    """Uniform in 0 .. bound - 1 for a bound far below 2^32 (off by at most bound / 2^32), from the upper 32 bits."""
    return int(((bits >> _S32) * np.uint64(bound)) >> _S32)


def key_for(seed: int, purpose: str) -> np.uint64:
    """The key of a purpose: no two purposes share a draw."""
    bits = seed & 0xFFFFFFFFFFFFFFFF
    for letter in purpose.encode():
        bits = int(mix(np.uint64((bits * 257 + letter + 1) & 0xFFFFFFFFFFFFFFFF)))
    return np.uint64(bits)
