"""Any keyboard engine as a program that speaks lines: docs/dictionary.md#an-engine-that-speaks-lines has the protocol.

A line has fields between tabs, in UTF-8; each is answered by one line. What an engine does else is an error that says
what it was asked and what came: nothing in time, too much, something else, or its end.
"""

import math
import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, Self

from tacit.errors import InputError
from tacit.keyboard.touch import KeyboardLayout, Points

VERSION = "1"
TIMEOUT = 5.0  # seconds for an answer
OPENING = 60.0  # seconds for its name, a dictionary and keys, for which programs load much
LONGEST_LINE = 1 << 16  # bytes
SHOWN_OF_ERROR = 200  # characters of what an engine said


class Suggested(NamedTuple):
    """A word that an engine suggests."""

    word: str
    score: float  # higher is better; the unit is the engine's own


class Typed(NamedTuple):
    """What an engine makes of letters or touches."""

    text: str  # what stands in the text after a space
    suggested: tuple[Suggested, ...]  # best first


class Engine:
    """A running engine. Raises: InputError from every method, where the engine does not speak as it should."""

    def __init__(self, process: "subprocess.Popen[bytes]", command: str, errors: IO[bytes], timeout: float) -> None:
        self._process, self._command, self._errors, self._timeout = process, command, errors, timeout
        assert process.stdin is not None and process.stdout is not None  # both are pipes
        self._into, self._out = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._into, False)
        os.set_blocking(self._out, False)
        self.name = ""

    @classmethod
    def started(cls, command: str, *, timeout: float = TIMEOUT) -> Self:
        """Runs the command, which has said its name. Raises: InputError where it cannot be run, or says something else.

        command: as a shell splits it; no shell runs it.
        """
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise InputError(
                f"the command {command!r} cannot be split into words ({error}); quote it otherwise."
            ) from error
        if not words:
            raise InputError("the command of an engine is empty; give a program, perhaps with arguments.")
        errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the engine)
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True)
        except OSError as error:
            errors.close()
            raise InputError(
                f"the engine {words[0]!r} cannot be run ({error.strerror}); give the path of it."
            ) from error
        engine = cls(process, command, errors, timeout)
        try:
            engine._greet()
        except BaseException:
            engine.close()
            raise
        return engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it: by the end of its input, or where it does not care, by force."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._errors.close()

    def open_dictionary(self, path: Path) -> None:
        """Has it read a dictionary: a file, or a folder."""
        self._ok(f"dictionary\t{path.resolve()}", OPENING)

    def show_keys(self, layout: KeyboardLayout) -> None:
        """Tells it where the keys are."""
        keys = (f"{key} {x:.4g} {y:.4g}" for key, (x, y) in zip(layout.keys, layout.centres.tolist(), strict=True))
        self._ok("\t".join([f"keys\t{layout.height:.4g}", *keys]), OPENING)

    def next_words(self, before: Sequence[str]) -> tuple[Suggested, ...]:
        """What it shows before a word is begun, best first. before: the words of the sentence so far."""
        line = "\t".join(["next", *_sayable(before)])
        return self._suggested(line, self._fields(line, "words", self._timeout))

    def of_letters(self, letters: str, before: Sequence[str]) -> Typed:
        """What it makes of letters, each in the middle of its key."""
        return self._typed("\t".join(["letters", *_sayable([letters]), *_sayable(before)]))

    def of_touches(self, touches: Points, before: Sequence[str]) -> Typed:
        """What it makes of touches (m, 2), in key widths as the keys are."""
        points = " ".join(f"{x:.4f},{y:.4f}" for x, y in touches.tolist())
        return self._typed("\t".join(["touches", points, *_sayable(before)]))

    # -- lines

    def _greet(self) -> None:
        line = f"hello\t{VERSION}"
        version, *name = self._fields(line, "hello", OPENING)
        if version != VERSION or len(name) != 1:
            raise self._wrong(line, f"it speaks version {version!r}, and this tacit {VERSION}")
        self.name = name[0]

    def _ok(self, line: str, timeout: float) -> None:
        if self._fields(line, "ok", timeout):
            raise self._wrong(line, "it says more than ok")

    def _typed(self, line: str) -> Typed:
        text, *rest = self._fields(line, "typed", self._timeout) or [""]
        if not text:
            raise self._wrong(line, "it does not say what stands in the text")
        return Typed(text, self._suggested(line, rest))

    def _suggested(self, line: str, fields: Sequence[str]) -> tuple[Suggested, ...]:
        if len(fields) % 2:
            raise self._wrong(line, "a word has no score")
        found = []
        for word, score in zip(fields[::2], fields[1::2], strict=True):
            try:
                found.append(Suggested(word, float(score)))
            except ValueError:
                raise self._wrong(line, f"the score of {word!r} is {score!r}, which is no number") from None
            if not word or not math.isfinite(found[-1].score):
                raise self._wrong(line, f"the word {word!r} with the score {score!r} is none")
            if len(found) > 1 and found[-2].score < found[-1].score:
                raise self._wrong(line, f"{word!r} has a higher score than the word before it")
        return tuple(found)

    def _fields(self, line: str, wanted: str, timeout: float) -> list[str]:
        kind, *fields = self._answer(line, timeout).split("\t")
        if kind == "no":
            raise self._wrong(line, f"it refuses: {' '.join(fields)[:SHOWN_OF_ERROR]}")
        if kind != wanted:
            raise self._wrong(line, f"{wanted!r} was expected, and {kind[:SHOWN_OF_ERROR]!r} came")
        return fields

    def _answer(self, line: str, timeout: float) -> str:
        content, until = f"{line}\n".encode(), time.monotonic() + timeout
        received = bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(self._out, selectors.EVENT_READ)
            if ready.select(0):
                raise self._unasked(line)
            ready.register(self._into, selectors.EVENT_WRITE)
            while b"\n" not in received:
                left = until - time.monotonic()
                if left <= 0:
                    raise self._wrong(line, f"nothing came within {timeout:g} s")
                for key, _ in ready.select(left):
                    if key.fd == self._into:
                        content = self._written(line, content)
                        if not content:
                            ready.unregister(self._into)
                    else:
                        received += self._read(line)
                        if len(received) > LONGEST_LINE:
                            raise self._wrong(line, f"a line of more than {LONGEST_LINE:,} bytes came")
        answer, _, more = bytes(received).partition(b"\n")
        if more:
            raise self._wrong(line, f"more than one line came: {more[:SHOWN_OF_ERROR]!r}")
        try:
            return answer.decode()
        except UnicodeDecodeError as error:
            raise self._wrong(line, f"its answer is no UTF-8: {answer[:SHOWN_OF_ERROR]!r}") from error

    def _unasked(self, line: str) -> InputError:
        """Of what was there before anything was asked: its end, or a line too many."""
        return self._wrong(line, f"a line came that nobody had asked for: {self._read(line)[:SHOWN_OF_ERROR]!r}")

    def _written(self, line: str, content: bytes) -> bytes:
        """What is left to write."""
        try:
            return content[os.write(self._into, content) :]
        except BrokenPipeError:
            raise self._ended(line) from None

    def _read(self, line: str) -> bytes:
        found = os.read(self._out, LONGEST_LINE)
        if not found:
            raise self._ended(line)
        return found

    def _ended(self, line: str) -> InputError:
        try:
            how = f"it ended with status {self._process.wait(1.0)}"
        except subprocess.TimeoutExpired:
            how = "it closed its output"
        return self._wrong(line, how)

    def _wrong(self, line: str, why: str) -> InputError:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - SHOWN_OF_ERROR))
        last = self._errors.read().decode(errors="replace").strip()
        asked = line[:SHOWN_OF_ERROR].replace("\t", " ")
        said = f"; on its error output: {last}" if last else ""
        return InputError(
            f"the engine {self._command!r} was asked {asked!r}, and {why}{said}. What it must say is in "
            "docs/dictionary.md#an-engine-that-speaks-lines."
        )


def _sayable(words: Sequence[str]) -> list[str]:
    """Words as fields: signs that end one become blanks."""
    return [word.translate({9: " ", 10: " ", 13: " "}) or " " for word in words]
