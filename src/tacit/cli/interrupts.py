"""Ctrl-C ends the command at once: one line or none, exit code 130, and never a traceback.

A KeyboardInterrupt would be raised wherever Python happens to be: in an import, in a callback of the garbage collector,
in one that compiled code called; it is then printed, swallowed, or a crash. To stop without unwinding loses nothing:
what is written survives a process that is killed at any instant, and what it left half written is swept away later.

A handler of Python's waits until its first thread is between two instructions, which is not while that thread compiles
or multiplies. So another thread waits for the signal too, and whichever of the two is first ends the process.
"""

import _thread  # as `threading` has it, without loading that
import os
import signal
import sys

from tacit.cli.streams import LIKE

INTERRUPTED = 130  # the exit code: 128 and the number of SIGINT
STOPPED = "stopped; what was complete is safe: run the same command again"
JOURNAL = "run.db"  # what makes a folder one that `tacit resume` takes

_last_words = "", "", ""  # as `will_say` has them
_leaving = _thread.allocate_lock()  # whoever has it says the last words


def leave_at_once() -> None:
    """From now on; where Ctrl-C is ignored (a job of `nohup`, or in the background of a script), it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        heard, told = os.pipe()
        os.set_blocking(told, False)
        signal.signal(signal.SIGINT, _leave)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        _thread.start_new_thread(_listen, (heard,))


def will_say(words: str, run: str = "", more: str = "") -> None:
    """What Ctrl-C prints from now on; nothing of an empty text. more: what follows it once `run` is a run folder."""
    global _last_words
    _last_words = words, run, more


def _listen(heard: int) -> None:
    while number := os.read(heard, 1):
        if number[0] == signal.SIGINT:
            _leave(number[0], None)


def _leave(number: int, frame: object) -> None:
    """Past Python's own streams, in whose midst it may have been."""
    if not _leaving.acquire(blocking=False):
        return  # the other thread is at it
    drawn = os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb"
    shown = "\n\x1b[?25h" if drawn else ""  # below `^C` and any bar, which hid the cursor
    words, run, more = _last_words
    try:
        more = f"{more}.\n" if run and os.path.exists(f"{run}/{JOURNAL}") else ".\n"
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        os.write(2, f"{shown}{words}{more if words else ''}".encode(encoding, LIKE))
    finally:  # also where nobody reads standard error any more
        os._exit(INTERRUPTED)
