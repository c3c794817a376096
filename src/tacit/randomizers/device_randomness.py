"""The randomness of a device: every bit from the operating system's cryptographic generator, none from a seed."""

import ctypes
import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_word: Any = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_half: Any = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_real: Any = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


class _BitFunctions(ctypes.Structure):
    """NumPy's `bitgen_t`, the documented C interface between a bit generator and a Generator."""

    _fields_ = (
        ("state", ctypes.c_void_p),
        ("next_uint64", _word),
        ("next_uint32", _half),
        ("next_double", _real),
        ("next_raw", _word),
    )


Source: TypeAlias = Callable[[int], bytes]  # so many random bytes


class OperatingSystemBits(np.random.BitGenerator):
    """A NumPy bit generator without a state: each word is asked of the operating system when it is needed.

    It cannot be seeded, saved or repeated, unless a test gives it another source of bytes. `words` gives many at once
    (some 40 million a second); what NumPy draws one at a time comes at about a million a second, which is plenty for
    one device.
    """

    def __init__(self, source: Source = os.urandom) -> None:
        self._source = source
        super().__init__(0)  # NumPy insists on a seed; nothing ever reads it
        pointer_of: Any = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        functions: Any = _BitFunctions.from_address(pointer_of(self.capsule, b"BitGenerator"))
        # Kept here because C holds bare pointers to them.
        self._kept: tuple[Callable[..., Any], ...] = (
            _word(lambda _: self._number(8)),
            _half(lambda _: self._number(4)),
            _real(lambda _: (self._number(8) >> 11) * 2.0**-53),
        )
        functions.next_uint64, functions.next_uint32, functions.next_double = self._kept
        functions.next_raw = self._kept[0]

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Independent uniform 64-bit words, (count,)."""
        return np.frombuffer(self._source(8 * count), dtype=np.uint64)

    def _number(self, count: int) -> int:
        return int.from_bytes(self._source(count), "little")


def device_generator(source: Source = os.urandom) -> np.random.Generator:
    """The generator a device answers with: the operating system's, for every draw. source: of random bytes; another one
    in tests alone.

    A simulation may pass a seeded NumPy Generator instead, and has to say so: whoever knows a seed can take the
    noise away again.
    """
    return np.random.Generator(OperatingSystemBits(source))


def random_words(generator: np.random.Generator, count: int) -> npt.NDArray[np.uint64]:
    """Independent uniform 64-bit words from any generator, (count,)."""
    source = generator.bit_generator
    if isinstance(source, OperatingSystemBits):
        return source.words(count)
    return generator.integers(0, 2**64 - 1, size=count, dtype=np.uint64, endpoint=True)
