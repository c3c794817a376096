"""The command-line page, made from the command itself; `make docs` writes it."""

from collections.abc import Iterator
from typing import Any

import typer
from tests.conftest import REPOSITORY

from tacit.cli.groups import LateGroup

PAGE = REPOSITORY / "docs" / "cli.md"
WIDTH = 100  # the same page whatever the terminal
OPENING = """# The command line

Made from the command itself by `make docs`; a test compares the two. Every command that computes has
`--json`; a refusal is one line on standard error and exit code 2.
"""


def render_cli_help() -> str:
    """The whole page: one section for each command, groups before what they hold, as `--help` has them."""
    from tacit.cli.commands import app

    found = commands(typer.main.get_command(app), "tacit")
    sections = [f"\n## `{path}`\n\n```text\n{plain_help(each, path)}\n```\n" for path, each in found]
    return "".join([OPENING, *sections])


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The command and all that hang from it, each with what a user types.

    Any: the class of a command is click's or Typer's own copy of it, by Typer's version.
    """
    yield path, command
    for name, listed in getattr(command, "commands", {}).items():
        child = command.made(name) if isinstance(command, LateGroup) else listed
        if not child.hidden:
            yield from commands(child, f"{path} {name}")


def plain_help(command: Any, path: str) -> str:
    """Help without boxes, colours or the terminal's width, so that it is the same everywhere."""
    command.rich_markup_mode = None  # Typer's own switch to plain text
    context = command.make_context(path, [], resilient_parsing=True, terminal_width=WIDTH, max_content_width=WIDTH)
    return "\n".join(line.rstrip() for line in command.get_help(context).strip().splitlines())


def main() -> None:
    """Write docs/cli.md."""
    PAGE.write_text(render_cli_help(), encoding="utf-8")


if __name__ == "__main__":
    main()
