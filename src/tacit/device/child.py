"""The process in which a task's work is done, and what it says to the device that started it.

Whatever touches a model or a text is computed here. A plan that eats memory, crashes a library or never ends ends this
process alone. It lives for one task, so that no text goes from one to the next.

On standard input come three frames: the `Work`, pickled; what the round begins with; and, when the price is on disk,
the order to read text. On standard output go two: that the task is prepared, or why not; the report, or why there is
none. The device believes nothing of them: each is bounded, and a report is parsed as a server does (`isolated.py`).
"""

import os
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from tacit.device.report_body import MOST_SAID
from tacit.device.task_handler import PreparedTask, TaskHandler
from tacit.errors import CacheError, TaskRefused
from tacit.process_limits import end_first, give_memory_back, limit_cpu, limit_memory, no_core_dumps, one_thread
from tacit.protocol.bodies import report_body
from tacit.protocol.messages import Plan, RoundTask

PREPARED, REFUSED, DAMAGED, REPORT, NO_REPORT = b"P", b"R", b"C", b"B", b"N"  # what a frame says
LENGTH = 4  # bytes of what follows, behind that
BEFORE = 8  # bytes of the length before a frame to a child
TEXT = 4 * MOST_SAID  # bytes of a reason at most
READ = b"read"


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a child is to do."""

    handlers: Callable[[], Mapping[str, TaskHandler]]
    plan: Plan
    task: RoundTask
    loading_bytes: int  # of memory, beside those of Python, until the task is prepared
    reading_bytes: int  # beside those, from then on
    cpu_s: float  # of all cores


def serve() -> None:
    """A child's whole life."""
    one_thread()
    no_core_dumps()
    give_memory_back()
    end_first()
    told = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no report
    given = sys.stdin.buffer
    work: Work = pickle.loads(_frame(given))
    limit_memory(work.loading_bytes)
    limit_cpu(work.cpu_s)
    prepared = _prepared(work, _frame(given), told)
    if prepared is None:
        return
    limit_memory(work.reading_bytes)
    _say(told, PREPARED)
    if _frame(given) == READ:
        _read(prepared, told)


def length_of(frame: bytes) -> bytes:
    """What the device writes before a frame."""
    return len(frame).to_bytes(BEFORE, "little")


def _prepared(work: Work, content: bytes, told: BinaryIO) -> PreparedTask | None:
    """The task, and whatever is loaded for any report of it; None where it is refused."""
    try:
        prepared = work.handlers()[work.plan.kind].prepare(work.plan, work.task, content)
        prepared.nothing(os.urandom)
    except TaskRefused as refusal:
        _say(told, REFUSED, str(refusal))
    except CacheError as error:
        _say(told, DAMAGED, str(error))
    except Exception as error:
        _say(
            told, REFUSED, f"the task cannot be prepared ({type(error).__name__}: {error}); its operator may know why."
        )
    else:
        return prepared
    return None


def _read(prepared: PreparedTask, told: BinaryIO) -> None:
    try:
        body = report_body(prepared.read(os.urandom), "")
    except Exception as error:  # whatever it is, it says something of the text
        _say(told, NO_REPORT, f"{type(error).__name__}: {error}"[:MOST_SAID])
    else:
        _say(told, REPORT, body)


def _say(told: BinaryIO, what: bytes, said: bytes | str = b"") -> None:
    content = said.encode(errors="replace")[:TEXT] if isinstance(said, str) else said
    for part in (what, len(content).to_bytes(LENGTH, "little"), content):
        told.write(part)
    told.flush()


def _frame(given: BinaryIO) -> bytes:
    """Empty where the device is gone."""
    return given.read(int.from_bytes(given.read(BEFORE), "little"))
