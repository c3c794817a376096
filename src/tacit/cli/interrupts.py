"""Ctrl-C ends the command at once: one line or none, exit code 130, and never a traceback.

A KeyboardInterrupt would be raised wherever Python happens to be: in an import, in a callback of the garbage collector,
in one that compiled code called; it is then printed, swallowed, or a crash. To stop without unwinding loses nothing:
what is written survives a process that is killed at any instant, and what it left half written is swept away later.
"""

import os
import signal

INTERRUPTED = 130  # the exit code: 128 and the number of SIGINT
GOES_ON = "stopped; what was complete is safe: run the same command again, or `tacit resume RUN`."

_last_words = ""


def leave_at_once() -> None:
    """From now on; where Ctrl-C is ignored (a job of `nohup`, or in the background of a script), it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def will_say(words: str) -> None:
    """What Ctrl-C prints from now on; nothing of an empty text."""
    global _last_words
    _last_words = words


def _leave(number: int, frame: object) -> None:
    """Past Python's own streams, in whose midst it may have been."""
    drawn = os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb"
    shown = "\n\x1b[?25h" if drawn else ""  # below `^C` and any bar, which hid the cursor
    try:
        os.write(2, f"{shown}{_last_words}{chr(10) if _last_words else ''}".encode())
    finally:  # also where nobody reads standard error any more
        os._exit(INTERRUPTED)
