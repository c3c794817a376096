"""Whether noise on this machine is what it is meant to be: a published vector, and the loops without a compiler."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import CTR, ECB

from tacit.mechanisms import ziggurat
from tacit.mechanisms.seeds import PIECE, SPARE, SPARES, WORDS, SeedVector

KEY = bytes(range(16))  # of the numbers that are compared; any other does
# NIST SP 800-38A, F.5.1 (CTR-AES128.Encrypt), the first block.
VECTOR_KEY = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
VECTOR_COUNTER = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
VECTOR_PLAIN = bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")
VECTOR_CIPHER = bytes.fromhex("874d6191b620e3261bef6864990db6ce")


def noise_fault() -> str | None:
    """What is wrong with the noise that this machine draws; None where nothing is. Takes a tenth of a second."""
    cipher = Cipher(AES128(VECTOR_KEY), CTR(VECTOR_COUNTER)).encryptor()
    if cipher.update(VECTOR_PLAIN) != VECTOR_CIPHER:
        return "AES-128 does not give the published vector of NIST SP 800-38A, F.5.1"
    drawn = np.empty(PIECE, np.float64)
    SeedVector(KEY).block(0).fill(drawn)
    if drawn.tobytes() != _interpreted().tobytes():
        return "compiled loops draw other numbers than the same loops interpreted"
    return None


def _words(use: int, count: int) -> npt.NDArray[np.uint64]:
    """The first words for a use, by encrypting the counters one by one."""
    counters = np.zeros(count // 2, [("use", ">u4"), ("vector", ">u4"), ("running", ">u8")])
    counters["use"], counters["running"] = use, np.arange(count // 2)
    blocks = Cipher(AES128(KEY), ECB()).encryptor().update(counters.tobytes())
    return np.frombuffer(blocks, "<u8").astype(np.uint64)


def _interpreted() -> npt.NDArray[np.float64]:
    """The first PIECE numbers, without machine code."""
    words, spare, numbers = _words(WORDS, PIECE), _words(SPARES, SPARE), np.empty(PIECE, np.float64)
    at, strips = np.empty((2, PIECE), np.intp)
    place: Callable[..., Any] = inspect.unwrap(ziggurat.place)
    settle: Callable[..., Any] = inspect.unwrap(ziggurat.settle)
    outside = place(words, numbers, at, strips)
    settle(words, numbers, at, strips, 0, outside, spare, 0)  # it needs a third of the spare words
    return numbers
