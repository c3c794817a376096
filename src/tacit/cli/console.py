"""How the command talks: one console, one shape of JSON, one way to fail.

Every command that computes takes `--json` and then prints exactly one JSON object on standard output; everything
meant for eyes goes to standard error or is left out. A TacitError becomes one line and exit code 2.
"""

import functools
import json
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console

from tacit.errors import TacitError

console = Console(highlight=False, soft_wrap=True, emoji=False)  # "400:100:3" is no emoji
complaints = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

P = ParamSpec("P")
R = TypeVar("R")

FAILED = 2  # the exit code of every refusal


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object on one line of standard output; see `plain`."""
    sys.stdout.write(json.dumps(plain(values), ensure_ascii=False) + "\n")


def plain(value: Any) -> Any:
    """The same value for JSON, which has neither infinities (strings here) nor what is not a number (null)."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def speaks_plainly(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose TacitErrors (and a full disk) become one line on standard error and exit code 2."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except TacitError as error:
            complaints.print(f"[bold red]error:[/] {_escape(str(error))}", soft_wrap=True)
            raise typer.Exit(FAILED) from error
        except OSError as error:
            complaints.print(f"[bold red]error:[/] {_escape(_os_sentence(error))}", soft_wrap=True)
            raise typer.Exit(FAILED) from error

    return wrapped


def _escape(text: str) -> str:
    return text.replace("[", "\\[")


def _os_sentence(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return (
        f"the operating system said '{error.strerror or error}'{where}; what was complete before is safe; "
        "mend it (free space, rights, path) and run the same command again, or `tacit resume`."
    )
