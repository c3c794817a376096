"""How the command talks: one console, one shape of JSON, one way to fail, one way to show what others wrote.

Every command that computes takes `--json` and then prints exactly one JSON object on standard output; everything
meant for eyes goes to standard error or is left out. A TacitError becomes one line and exit code 2, and so does
whatever cannot be read on the command line. Text reaches the terminal through `visible` alone: names, messages and
files of others can neither move the cursor nor colour a line, and no bracket is markup. What a stream's encoding
lacks is written in signs that it has (`streams`), before lines are broken and columns set side by side.
"""

import functools
import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import typer
from rich.console import Console, ConsoleDimensions
from rich.text import Text

from tacit.cli.streams import in_encoding, takes_all
from tacit.errors import TacitError
from tacit.records import json_ready, visible

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.status import Status

P = ParamSpec("P")
R = TypeVar("R")

FAILED = 2  # the exit code of every refusal


def styled(text: str, style: str) -> Text:
    """Text in a style, visible like all that is printed; no string that is printed can have one otherwise."""
    return Text(visible(text), style)


class Terminal(Console):
    """A console that prints text as it stands, visibly, cells of tables included."""

    @property  # type: ignore[misc]  # nobody sets it
    def size(self) -> ConsoleDimensions:
        """Of the window; some say that they have no columns, or no lines, and mean that they do not know."""
        columns, lines = super().size
        return ConsoleDimensions(columns or 80, lines or 24)

    def render_str(self, text: str, *, style: Any = "", justify: Any = None, overflow: Any = None, **_: Any) -> Text:
        """No markup, no emoji, no highlighting: "400:100:3" and "[/red]" mean themselves."""
        return Text(self.shown(text), style, justify=justify, overflow=overflow)

    def shown(self, text: str) -> str:
        """The text as it stands here: visible, in signs that the stream has."""
        return in_encoding(visible(text), self.encoding)

    def status(self, status: "RenderableType", **settings: Any) -> "Status":
        """Something that turns while there is nothing to count, in signs that every stream has."""
        return super().status(status, **{"spinner": "line", **settings})

    def print(self, *objects: Any, **settings: Any) -> None:
        """A window breaks lines between words; in a file or a pipe they stay whole, for whoever searches them."""
        super().print(*objects, **{"soft_wrap": not self.is_terminal, **settings})


console = Terminal()
complaints = Terminal(stderr=True)


class Recorded(Protocol):
    """A result of a job."""

    def to_record(self) -> Mapping[str, Any]:
        """What `--json` prints."""
        ...


Result = TypeVar("Result", bound=Recorded)


def say(result: Result, as_json: bool, show: Callable[[Result], None]) -> None:
    """One JSON object of the result on standard output, or what `show` prints of it for people."""
    if as_json:
        print_json(result.to_record())
    else:
        show(result)


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object on one line of standard output, the same whatever its encoding; see `json_ready`."""
    _write(visible(json.dumps(json_ready(values), ensure_ascii=not takes_all(sys.stdout))) + "\n")


def print_toml(text: str) -> None:
    """A TOML file on standard output; it is UTF-8, so that for another encoding all but ASCII is escaped as TOML does.

    text: without literal strings ('...'), in which nothing is escaped.
    """
    _write(text if takes_all(sys.stdout) else re.sub(r"[^\x00-\x7f]", lambda found: f"\\U{ord(found[0]):08x}", text))


def _write(text: str) -> None:
    """Now, so that a full disk is refused as such."""
    sys.stdout.write(text)
    sys.stdout.flush()


def complain(sentence: str) -> None:
    """One line on standard error."""
    complaints.print(styled("error:", "bold red"), sentence.replace("\n", "\\n"))


def say_loudly(warning: str) -> None:
    """One line that nobody overlooks, on standard error."""
    complaints.print(warning, style="bold red")


def refusing_in_one_line(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose TacitErrors, and what no machine can give, become one line and exit code 2."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (TacitError, OSError, MemoryError, RecursionError) as error:
            complain(_sentence(error))
            raise typer.Exit(FAILED) from error

    return wrapped


def _sentence(error: BaseException) -> str:
    match error:
        case OSError():
            where = f" ({error.filename})" if error.filename else ""
            return (
                f"the operating system said '{error.strerror or error}'{where}; what was complete before is safe; "
                "mend it (free space, rights, path) and run the same command again, or `tacit resume`."
            )
        case MemoryError():
            return "this machine has not the memory for what was asked; give smaller numbers, or a smaller file."
        case RecursionError():
            return "a file that was given is nested too deeply to be one that tacit wrote; give another."
        case _:
            return str(error)
