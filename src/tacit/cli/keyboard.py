"""`tacit keyboard`: somebody types with a model, and sees what a phone's keyboard would show."""

import codecs
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.text import Text

from tacit.cli.console import console, styled
from tacit.cli.display import display
from tacit.cli.options import command
from tacit.cli.raw_terminal import Pasted, keys_pressed
from tacit.errors import InputError
from tacit.progress import DECODER

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from tacit.keyboard.live_keyboard import Key, LiveKeyboard

LEAVE = {"\x03", "\x04"}  # Ctrl-C, Ctrl-D
PICKING = ("Tab", "F2", "F3")  # the keys for the words of the strip, as they are shown
HELP = "Tab F2 F3: a word; right arrow: the phrase; Backspace undoes; Ctrl-C leaves."
SOON = 0.5  # seconds from one drawing to the next while something is under way


@command
def keyboard(
    model: Annotated[Path, typer.Argument(help="A finished run, a model folder, an export, or trigram:CACHE.")],
    layout: Annotated[str, typer.Option(help="Of the keys: qwerty or qwerty-es.")] = "qwerty",
    threshold: Annotated[
        float | None, typer.Option(help="Offer phrases from this probability on.", show_default="0.25")
    ] = None,
    learn: Annotated[
        bool, typer.Option(help="Mix in what you typed since the start, once that helped; kept nowhere.")
    ] = True,
) -> None:
    """Type with a model in this terminal: next words, corrections and phrases as a phone shows them."""
    from tacit.jobs.live_keyboard import live_keyboard

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError(
            "`tacit keyboard` takes keys from a terminal and draws on it, and standard input or output is none; start "
            'it in one, or ask `tacit suggest MODEL "I will see"`.'
        )
    if console.is_dumb_terminal:
        raise InputError(
            "`tacit keyboard` draws on a whole screen, which TERM=dumb says that this terminal has not; start it with "
            'the TERM of yours, or ask `tacit suggest MODEL "I will see"`.'
        )
    with display() as progress:
        live = live_keyboard(model, layout=layout, threshold=threshold, learns=learn, wait=False, progress=progress)
    with console.screen() as screen:
        names, shown = _keys(), _Shown(live, str(model), screen.update)
        keys = keys_pressed(sys.stdin.fileno(), draw=shown.draw, again=shown.again, encoding=_encoding())
        for typed in keys:
            if isinstance(typed, Pasted):
                live.paste(typed)
            elif typed in LEAVE:
                break
            else:
                live.press(names.get(typed, typed))
    written = live.text + live.typed
    console.print(f"Keys pressed: {live.keys:,}. Characters written: {len(written):,}.")
    console.print(written, soft_wrap=True)


def _encoding() -> str:
    """Of what the terminal sends; one that sends ASCII alone sends UTF-8, too."""
    return "utf-8" if codecs.lookup(sys.stdin.encoding).name == "ascii" else sys.stdin.encoding


def _keys() -> "dict[str, Key]":
    """What a terminal sends -> the key that it is."""
    from tacit.keyboard.live_keyboard import Key

    return {
        "\x7f": Key.BACKSPACE,
        "\b": Key.BACKSPACE,
        "\r": Key.ENTER,
        "\n": Key.ENTER,
        "\t": Key.FIRST,
        **dict.fromkeys(("\x1bOP", "\x1b[11~", "\x1b1"), Key.FIRST),  # F1, as terminals send it, and Alt-1
        **dict.fromkeys(("\x1bOQ", "\x1b[12~", "\x1b2"), Key.SECOND),
        **dict.fromkeys(("\x1bOR", "\x1b[13~", "\x1b3"), Key.THIRD),
        "\x1b[C": Key.PHRASE,
        "\x1bOC": Key.PHRASE,
    }


class _Shown:
    """What stands on the screen, and how long it may."""

    def __init__(self, live: "LiveKeyboard", model: str, update: "Callable[[RenderableType], object]") -> None:
        self._live, self._model, self._update = live, model, update
        self._begun, self._corrects = time.monotonic(), False

    def draw(self) -> None:
        self._corrects = self._live.offered.corrects
        self._update(_drawn(self._live, self._model, time.monotonic() - self._begun))

    def again(self) -> float | None:
        """Seconds until it is drawn anew without a key: until the decoder is there, which comes by itself."""
        return None if self._corrects else SOON


def _drawn(live: "LiveKeyboard", model: str, seconds: float) -> "RenderableType":
    """The whole screen: what is written, the strip, what a blank would correct, and how to go on."""
    offered, width = live.offered, max(console.width, 1)
    lines = [Text(console.shown(line)) for line in live.text.split("\n")]
    lines[-1].append(console.shown(live.typed), "underline")
    lines[-1].append(console.shown("\u2588"), "blink")
    lines[-1].append(console.shown(offered.phrase), "dim")
    rows = [row for line in lines for row in line.wrap(console, width)]
    strip = Text("   ").join(
        Text.assemble(styled(f"{place} ", "dim"), (console.shown(word), "bold"))
        for place, word in zip(PICKING, offered.strip, strict=False)
    )
    correction = f"a blank writes {offered.correction}" if offered.correction else ""
    if not offered.corrects:
        correction = f"no corrections yet: {DECODER}, {seconds:.0f} s so far"
    above = Group(styled(f"tacit keyboard {model}", "dim"), "")
    below = Group("", strip, styled(console.shown(correction), "yellow"), "", styled(HELP, "dim"))
    taken = sum(len(console.render_lines(each, pad=False)) for each in (above, below))
    return Group(above, *rows[-max(console.height - taken - 1, 1) :], below)
