"""Keys from a terminal one by one, as they are pressed; whatever happens, the terminal is left as it was."""

import codecs
import os
import re
import select
import signal
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

# A key is a character, or what terminals send for keys without one (ECMA-48, section 5.4; SS3 as of the VT100).
# Alt and a digit come as an escape and the digit.
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[@-~]|\x1b[0-9]|[\s\S]")
_UNFINISHED = re.compile(r"\x1b(\[[0-?]*[ -/]*|O)?\Z")
TOGETHER = 0.05  # seconds within which a terminal sends the rest of such a key
# What is pasted stands between these, where a terminal was asked for it and knows how (xterm's mode 2004).
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
_ASK, _ASK_NO_MORE = b"\x1b[?2004h", b"\x1b[?2004l"
_PASTED_TEXT = re.compile(rf"{re.escape(PASTE)}([\s\S]*?){re.escape(PASTED)}")
LONGEST = 32  # characters of what is sent for one key
ALL_OF_IT = 2.0  # seconds without more of what is pasted, after which no more comes
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Pasted(str):
    """Text that was pasted, line ends and all."""


def keys_pressed(
    terminal: int,
    *,
    draw: Callable[[], object],
    again: Callable[[], float | None] = lambda: None,
    encoding: str = "utf-8",
) -> Iterator[str]:
    """Each key, and what was pasted as `Pasted`, until the terminal is gone; `draw` is called before each wait, when
    the window's size changed, and after so many seconds without a key as `again` says (None: not before a key comes).

    terminal: its file descriptor. encoding: of what it sends. Keys that are typed faster than they are drawn come
    without drawing. Signals that ask to stop end the process with their usual exit code, after the terminal was put
    back.
    """
    decode = codecs.getincrementaldecoder(encoding)(errors="ignore").decode
    with _raw(terminal) as signalled, _redrawn(draw):
        waiting = ""
        while True:
            if not waiting:
                draw()
                ready, _, _ = select.select([terminal, signalled], [], [], again())
                if signalled in ready:
                    os.read(signalled, 4096)
                if terminal not in ready:
                    continue
            pasting = waiting.rfind(PASTE) > waiting.rfind(PASTED)
            if not waiting or select.select([terminal], [], [], ALL_OF_IT if pasting else TOGETHER)[0]:
                if not (read := _read(terminal)):
                    return
                waiting += decode(read)
                if waiting.rfind(PASTE) > waiting.rfind(PASTED) or _UNFINISHED.search(waiting, len(waiting) - LONGEST):
                    continue
            keys, waiting = _keys(waiting), ""
            yield from keys


def _keys(sent: str) -> Iterator[str]:
    for at, part in enumerate(_PASTED_TEXT.split(sent)):
        if at % 2:
            yield Pasted(part)
        else:
            yield from _KEY.findall(part)


def _read(terminal: int) -> bytes:
    """Nothing where the terminal is gone."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@contextmanager
def _raw(terminal: int) -> Iterator[int]:
    """No echo, no lines, and Ctrl-C as a key like any other; what is printed is printed as ever.

    Gives what can be read after a signal: one that comes just before `select` would not end that wait by itself.
    """
    before = termios.tcgetattr(terminal)
    raw = termios.tcgetattr(terminal)
    raw[0] &= ~(termios.IXON | termios.ICRNL)
    raw[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
    handlers = {number: signal.signal(number, _stop) for number in STOPPING}
    signalled, signals = os.pipe()
    os.set_blocking(signals, False)
    # In the place of Ctrl-C's thread (`interrupts`), which would not wait for the terminal to be put back.
    told = signal.set_wakeup_fd(signals, warn_on_full_buffer=False)
    try:
        termios.tcsetattr(terminal, termios.TCSADRAIN, raw)
        with suppress(OSError):  # of one that is open for reading alone nothing is asked
            os.write(terminal, _ASK)
        yield signalled
    finally:
        with suppress(OSError):
            os.write(terminal, _ASK_NO_MORE)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        os.close(signalled)
        os.close(signals)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _redrawn(draw: Callable[[], object]) -> Iterator[None]:
    before = signal.signal(signal.SIGWINCH, lambda number, frame: draw())
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
