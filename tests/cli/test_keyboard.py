"""`tacit keyboard` in a terminal: what is drawn, what keys do, and that the terminal is left as it was."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.support.keyboard.tabled import words_of
from typer.testing import CliRunner

from tacit.cli.commands import app
from tacit.cli.raw_terminal import Pasted, keys_pressed
from tacit.networks.cifg.network import Cifg

ASKED = b"\x1b[?2004h"  # for pastes to be marked as such
PATIENCE = 60.0  # seconds for what takes one or two, on a machine however busy
WORDS = words_of("the", "quick", "thank", "you")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that always gives "the" 60%, "quick" 20%, "thank" 10% and "you" 5%, whatever came before."""
    folder, size = tmp_path_factory.mktemp("model"), Cifg(vocabulary=8, embedding=2, units=3)
    weights = {name: np.zeros(shape, np.float32) for name, shape in size.shapes().items()}
    weights["output_bias"][:] = np.log([1e-9, 1e-9, 0.02, 0.03, 0.6, 0.2, 0.1, 0.05])
    save_file(weights, folder / "model.safetensors")
    (folder / "settings.json").write_text('{"kind": "cifg", "vocabulary": 8, "embedding": 2, "units": 3}')
    WORDS.save(folder / "vocabulary.json")
    return folder


class Terminal:
    """A process in a terminal of its own, of 24 rows."""

    def __init__(self, *command: str, columns: int = 80, **variables: str) -> None:
        self.screen, self._child = pty.openpty()
        termios.tcsetwinsize(self._child, (24, columns))
        self.before = termios.tcgetattr(self._child)
        self.process = subprocess.Popen(
            command,
            stdin=self._child,
            stdout=self._child,
            stderr=self._child,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **variables},
        )
        self.seen = ""

    def until(self, shown: str) -> None:
        """Read what is drawn until it has this, colours and blanks aside; forgets it then."""
        end, found = time.monotonic() + PATIENCE, ""
        while shown not in found:
            assert time.monotonic() < end, f"no {shown!r} in {found[-2000:]!r}"
            if select.select([self.screen], [], [], 1.0)[0]:
                self.seen += os.read(self.screen, 65536).decode(errors="ignore")
                found = " ".join(re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", self.seen).split())
        self.seen = ""

    def type(self, keys: str) -> None:
        os.write(self.screen, keys.encode())

    def ended(self) -> int:
        """Its exit code; the terminal is as it was, with the screen that it had and a cursor."""
        code = self.process.wait(PATIENCE)
        while select.select([self.screen], [], [], 0)[0]:
            self.seen += os.read(self.screen, 65536).decode(errors="ignore")
        assert termios.tcgetattr(self._child) == self.before
        assert all(put_back in self.seen for put_back in ("\x1b[?1049l", "\x1b[?25h", "\x1b[?2004l"))
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.screen)
        os.close(self._child)


@contextmanager
def opened(*arguments: str, columns: int = 80, **variables: str) -> Iterator[Terminal]:
    """Python in a terminal."""
    terminal = Terminal(sys.executable, *arguments, columns=columns, **variables)
    try:
        yield terminal
    finally:
        terminal.close()


def test_strip_correction_and_phrase_are_seen_live_and_keys_take_them(model: Path) -> None:
    with opened("-m", "tacit", "keyboard", str(model)) as terminal:
        type_and_look(terminal)


def type_and_look(terminal: Terminal) -> None:
    terminal.until("Tab the F2 quick F3 thank")
    terminal.type("teh")
    terminal.until("a blank writes the")
    terminal.type(" ")
    terminal.until("the █the")  # the phrase behind the cursor
    terminal.type("\x1b[C")
    terminal.until("the the the █")
    terminal.type("\x7f")
    terminal.until("the █the the")
    terminal.type("q\tth\x1bOQ")
    terminal.until("the quick thank █")
    terminal.type("th\x1b2" + "3.14 a2, ")
    terminal.until("the quick thank thank 3.14 a2, █")
    terminal.type("\x03")
    assert terminal.ended() == 0
    assert "the quick thank thank 3.14 a2," in terminal.seen


def test_characters_of_several_code_points_and_pastes_are_kept(model: Path) -> None:
    with opened("-m", "tacit", "keyboard", str(model), columns=40, PYTHONUTF8="1") as terminal:
        terminal.until("Tab the F2 quick F3 thank")
        terminal.type("👩‍💻🇩🇪e\u0301")
        terminal.until("👩‍💻🇩🇪e\u0301█")
        terminal.type("\x7f\x7f")
        terminal.until("👩‍💻█")
        terminal.type("می\u200cخواهم ")
        terminal.until("👩‍💻می\u200cخواهم █")
        terminal.type("\x1b[200~teh\tTEH\rteh \x1b[201~")
        terminal.until("teh █")
        terminal.type("\x03")
        assert terminal.ended() == 0
        assert re.search("👩‍💻می\u200cخواهم teh +TEH\r?\nteh", terminal.seen)


def test_it_is_drawn_in_signs_that_the_terminal_has_and_reads_what_it_sends(model: Path) -> None:
    with opened("-m", "tacit", "keyboard", str(model), columns=40, PYTHONIOENCODING="latin-1") as terminal:
        terminal.until("Tab the F2 quick F3 thank")
        os.write(terminal.screen, "éa".encode("latin-1"))
        terminal.until("a#")  # the cursor
        terminal.type("\x03")
        assert terminal.ended() == 0
        assert "Characters written: 2" in terminal.seen


def test_a_terminal_without_a_screen_is_refused_with_the_way_out(model: Path) -> None:
    with opened("-m", "tacit", "keyboard", str(model), TERM="dumb") as terminal:
        terminal.until("which TERM=dumb says that this terminal")
        assert terminal.process.wait(PATIENCE) == 2


DRAWING = """
from tacit.cli.console import console
from tacit.cli.raw_terminal import Pasted, keys_pressed
with console.screen() as screen:
    for key in keys_pressed(0, draw=lambda: screen.update("drawn")):
        pass
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stopped_by_a_signal_it_leaves_the_terminal_as_it_was(number: signal.Signals) -> None:
    with opened("-c", DRAWING) as terminal:
        terminal.until("drawn")
        terminal.process.send_signal(number)
        assert terminal.ended() == 128 + number


ELSEWHERE = f"""
import signal, threading, time
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # of this thread
{DRAWING}
"""


def test_a_signal_that_does_not_interrupt_the_wait_ends_it_nevertheless() -> None:
    """As one that comes between the last look at signals and the wait: here another thread is interrupted by it."""
    with opened("-c", ELSEWHERE) as terminal:
        terminal.until("drawn")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.ended() == 128 + signal.SIGTERM


def test_without_a_terminal_it_is_refused_with_the_way_out(model: Path) -> None:
    result = CliRunner().invoke(app, ["keyboard", str(model)])
    assert result.exit_code == 2 and "ask `tacit suggest MODEL" in " ".join(result.stderr.split())


def test_keys_come_whole_however_they_arrive() -> None:
    """Arrows and letters of several bytes in two parts, a paste in three, and the end of the terminal."""
    screen, terminal = pty.openpty()
    drawn: list[int] = []
    keys = keys_pressed(terminal, draw=lambda: drawn.append(1))
    for sent, wanted in [
        ([b"a"], ["a"]),
        ([b"\x1b[C"], ["\x1b[C"]),
        ([b"\x1bOC\r\x04"], ["\x1bOC", "\r", "\x04"]),
        (["é".encode()[:1], "é".encode()[1:]], ["é"]),
        ([b"\x1b", b"[", b"C"], ["\x1b[C"]),
        ([b"\x1b", b"2a"], ["\x1b2", "a"]),
        (["👩‍💻".encode()], [*"👩‍💻"]),
        ([b"x\x1b[200~a\tb\r", b"c\x1b[A\x1b[2", b"01~y"], ["x", Pasted("a\tb\rc\x1b[A"), "y"]),
        ([b"\x1b[200~\x1b[201~\x1b[200~\x03\x1b[201~"], [Pasted(""), Pasted("\x03")]),
    ]:
        sender = threading.Thread(target=lambda parts=sent: [os.write(screen, part) for part in parts])
        sender.start()
        came = [next(keys) for _ in wanted]
        assert came == wanted and list(map(type, came)) == list(map(type, wanted))
        sender.join()
    assert drawn and ASKED in os.read(screen, 4096)
    keys.close()  # type: ignore[attr-defined]
    os.close(screen)
    os.close(terminal)


def test_without_a_key_it_is_drawn_again_for_as_long_as_that_is_asked() -> None:
    """As while a decoder is compiled; a key that comes meanwhile is not lost."""
    screen, terminal = pty.openpty()
    drawn: list[int] = []

    def draw() -> None:
        drawn.append(1)
        if len(drawn) == 3:
            os.write(screen, b"a")

    keys = keys_pressed(terminal, draw=draw, again=lambda: 0.01 if len(drawn) < 5 else None)
    assert next(keys) == "a" and len(drawn) >= 3
    keys.close()  # type: ignore[attr-defined]
    os.close(screen)
    os.close(terminal)
