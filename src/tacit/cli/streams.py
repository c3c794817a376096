"""Standard output and error that take whatever is printed: signs that an encoding lacks, and readers that left.

The one place where text meets the encoding of a stream. A sign that it lacks is written by its likeness in ASCII
(`<=` for ≤), and a letter that has none as JSON writes it, `\\u00f1`, as `records.visible` does with what a terminal
would obey. A stream that was closed before the command began, or whose reader is gone, takes what is written and loses
it: what a command does is not undone because nobody looks on.
"""

import codecs
import errno
import io
import os
import select
import stat
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# What tacit and those who write texts use, and how it is written where it cannot be; a test says that none is missing.
LIKENESS = {
    **dict.fromkeys("‐‑‒–—―−─━", "-"),
    **dict.fromkeys("‘’‚‛ʼ′", "'"),
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯", "+"),
    **dict.fromkeys("█▉▊▋▌▍▎▏", "#"),
    **dict.fromkeys("\u00a0\u2007\u202f", " "),
    **{"…": "...", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "×": "x", "±": "+/-", "·": ".", "•": "*"},
    **{
        "→": "->",
        "←": "<-",
        "↑": "up",
        "↓": "down",
        "✓": "yes",
        "✗": "no",
        "«": "<<",
        "»": ">>",
        "²": "^2",
        "√": "sqrt",
    },
}
LIKE = "tacit.like"  # the way to encode that `LIKENESS` describes, as Python's codecs know it
STANDARD = (0, 1, 2)  # input, output, error


def in_encoding(text: str, encoding: str) -> str:
    """The text with what this encoding lacks written in signs that it has."""
    return text if text.isascii() else text.encode(encoding, LIKE).decode(encoding)


def takes_all(stream: object) -> bool:
    """Whether every sign can be written to a stream; one without an encoding keeps text."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")


def open_streams() -> None:
    """From now on nothing that is printed fails for its signs, or because nobody reads it.

    For a process that is ours alone, before it opens a file: that would get the number of a standard stream that is
    closed, and what a library complains of would be written into it.
    """
    for descriptor in STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is this one
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    if sys.stdout in (None, sys.__stdout__):  # or else somebody's who collects it, as tests do
        sys.stdout = _Standard(1, sys.stdout)
    if sys.stderr in (None, sys.__stderr__):
        sys.stderr = _Standard(2, sys.stderr)


class _Standard(io.TextIOWrapper):
    """Standard output or error."""

    def __init__(self, descriptor: int, before: TextIO | None) -> None:
        super().__init__(
            io.BufferedWriter(_Descriptor(descriptor)),
            encoding=getattr(before, "encoding", "utf-8"),
            errors=LIKE,
            line_buffering=getattr(before, "line_buffering", False),
            write_through=getattr(before, "write_through", False),
        )

    @property
    def buffer(self) -> io.BufferedWriter:
        """None to be found: click would write UTF-8 to it wherever the encoding is ASCII."""
        raise AttributeError("text alone is written here")


class _Descriptor(io.FileIO):
    """The bytes of a standard stream; those that nobody reads are lost.

    Of standard error all that cannot be written are: there is nobody to tell. Of standard output a full disk is no
    reader that left, and raises.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._lost = {errno.EPIPE} | ({errno.EIO} if _is_device(descriptor) else set())  # a terminal that was closed
        self._may_fail = descriptor == 1

    def write(self, content: "ReadableBuffer", /) -> int:
        try:
            while (written := super().write(content)) is None:  # somebody made it not wait
                select.select([], [self], [])
        except OSError as error:
            _lose(self.fileno())
            if self._may_fail and error.errno not in self._lost:
                raise  # once: what is left of it must not fail again when the process ends
            return super().write(content)
        return written


def _is_device(descriptor: int) -> bool:
    return stat.S_ISCHR(os.fstat(descriptor).st_mode)


def _lose(descriptor: int) -> None:
    """What is written there from now on, by libraries too, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _alike(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(LIKENESS.get(sign) or _escaped(sign) for sign in lacking), error.end


def _escaped(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


codecs.register_error(LIKE, _alike)
