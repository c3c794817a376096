"""How the command talks: one console, one shape of JSON, one way to fail.

Every command that computes takes `--json` and then prints exactly one JSON object on standard output; everything
meant for eyes goes to standard error or is left out. A TacitError becomes one line and exit code 2.
"""

import functools
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar

import typer
from rich.console import Console

from tacit.errors import TacitError
from tacit.records import json_ready

console = Console(highlight=False, soft_wrap=True, emoji=False)  # "400:100:3" is no emoji
complaints = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

P = ParamSpec("P")
R = TypeVar("R")

FAILED = 2  # the exit code of every refusal


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
    """One JSON object on one line of standard output; see `json_ready`."""
    sys.stdout.write(json.dumps(json_ready(values), ensure_ascii=False) + "\n")


def refusing_in_one_line(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose TacitErrors (and a full disk) become one line on standard error and exit code 2."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except TacitError as error:
            complaints.print(f"[bold red]error:[/] {escaped(str(error))}", soft_wrap=True)
            raise typer.Exit(FAILED) from error
        except OSError as error:
            complaints.print(f"[bold red]error:[/] {escaped(_os_sentence(error))}", soft_wrap=True)
            raise typer.Exit(FAILED) from error

    return wrapped


def escaped(text: str) -> str:
    """Text whose brackets are no markup."""
    return text.replace("[", "\\[")


def _os_sentence(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return (
        f"the operating system said '{error.strerror or error}'{where}; what was complete before is safe; "
        "mend it (free space, rights, path) and run the same command again, or `tacit resume`."
    )
