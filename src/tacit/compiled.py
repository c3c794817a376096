"""Loops as machine code: the one way in which numba is used here."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled_with(*, kept: bool = True, **options: Any) -> Callable[[Function], Function]:
    """A decorator that compiles a function with these options of numba's.

    The machine code is made when the function is first called and kept between processes; Python's lock is let go.
    Where it can be kept nowhere (a package and a home that cannot be written, as in a container), every process makes
    it anew, which `tacit doctor` says. Not `kept` is what calls code of its own making, which numba would keep once
    more for every process and never find again.
    """

    def decorated(function: Function) -> Function:
        made: Function
        try:
            made = numba.njit(nogil=True, cache=kept, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            made = numba.njit(nogil=True, **options)(function)
        return made

    return decorated


def compiled(function: Function) -> Function:
    """The same function as machine code, without fast mathematics: every operation is rounded as NumPy rounds it."""
    return compiled_with()(function)
