"""Handlers of a device with a trap: where its owner typed one word, reading the text ends the process, or worse."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.device.zeros import Zeros

from tacit.device.own_handlers import task_handlers
from tacit.device.own_text import OwnText
from tacit.device.task_handler import Draw, PreparedTask, TaskHandler
from tacit.device.train import ByJax
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask

GIGABYTE = 10**9


def killed(report: ReportBody) -> ReportBody:
    os.kill(os.getpid(), signal.SIGKILL)
    return report


def aborts(report: ReportBody) -> ReportBody:
    os.abort()


def crashes(report: ReportBody) -> ReportBody:
    ctypes.string_at(0)
    return report


def ends(report: ReportBody) -> ReportBody:
    os._exit(0)


def takes_memory(report: ReportBody) -> ReportBody:
    """More than a device has: an error where there is a limit, and the end of something where there is none."""
    taken = [np.ones(GIGABYTE // 8) for _ in range(4)]
    return report._replace(values=report.values + len(taken) * 0)


def takes_memory_for_ever(report: ReportBody) -> ReportBody:
    """In native code's manner: what cannot be had ends the process."""
    taken = []
    try:
        while True:
            taken.append(bytearray(1 << 24))
    except MemoryError:
        os.abort()


def hangs(report: ReportBody) -> ReportBody:
    while True:
        time.sleep(1)


def computes_for_ever(report: ReportBody) -> ReportBody:
    while True:
        pass


def says_garbage(report: ReportBody) -> ReportBody:
    """To all that it has open: one of them is the device."""
    for descriptor in range(1, 64):
        try:
            os.write(descriptor, b"\xff" * 9)
        except OSError:
            continue
    return report


def says_too_much(report: ReportBody) -> ReportBody:
    return report._replace(values=np.zeros(10**7, report.values.dtype))


def says_too_little(report: ReportBody) -> ReportBody:
    return report._replace(values=report.values[:3])


def says_no_number(report: ReportBody) -> ReportBody:
    return report._replace(values=np.full_like(report.values, -1.0 if report.values.dtype == np.uint32 else np.nan))


def raises(report: ReportBody) -> ReportBody:
    raise ValueError("typed")


def prints(report: ReportBody) -> ReportBody:
    """An order to a terminal, and more than a pipe holds, where somebody would have to read it."""
    sys.stdout.write("\x1b[2J" + "typed " * 100_000)
    sys.stdout.flush()
    os.abort()


class Trapped:
    """A handler whose reports of texts with the word go through a trap; see TaskHandler."""

    def __init__(
        self, handler: TaskHandler, text: OwnText, word: int, trap: Callable[[ReportBody], ReportBody]
    ) -> None:
        self._handler, self._text, self._word, self._trap = handler, text, word, trap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handler, name)

    def prepare(self, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        prepared = self._handler.prepare(plan, task, content)

        def read(draw: Draw) -> ReportBody:
            report = prepared.read(draw)
            ids, _ = self._text.whole.sentences(0)
            return self._trap(report) if self._word in ids else report

        return replace(prepared, read=read)


def trapped(data: Path, word: int, trap: Callable[[ReportBody], ReportBody], learns: bool = False) -> Mapping[str, Any]:
    """Of every kind. word: its id. learns: by JAX, and encodes what it learnt."""
    text = OwnText(data, None, None)
    trainer = ByJax(text) if learns else Zeros()
    return {kind: Trapped(each, text, word, trap) for kind, each in task_handlers(text, trainer).items()}


# -- before text is read -----------------------------------------------------------------------------------------------


class Unprepared:
    """A handler that does not live to read the text."""

    def __init__(self, handler: TaskHandler, trap: Callable[[ReportBody], ReportBody]) -> None:
        self._handler, self._trap = handler, trap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handler, name)

    def prepare(self, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        self._trap(ReportBody(np.zeros(1, np.float32), True, None, None))
        return self._handler.prepare(plan, task, content)


def unprepared(data: Path, trap: Callable[[ReportBody], ReportBody]) -> Mapping[str, Any]:
    """Of every kind."""
    return {kind: Unprepared(each, trap) for kind, each in task_handlers(OwnText(data, None, None), Zeros()).items()}
