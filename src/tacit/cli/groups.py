"""Sub-commands that are imported when they are called: `--help` lists them by a line each."""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

UsageError: Any = typer.BadParameter.__base__  # Typer's own or click's, by Typer's version


class Later(NamedTuple):
    """A sub-command, or a group of them, that is not made yet."""

    line: str
    """What `--help` shows of it: a test compares it with the command."""
    load: Callable[[], Any]
    """Its function, or its Typer app."""


def at(place: str, line: str) -> Later:
    """What stands at `module:name` of `tacit.cli`."""
    module, _, name = place.partition(":")
    return Later(line, lambda: getattr(import_module(f"tacit.cli.{module}"), name))


class LateGroup(TyperGroup):
    """The sub-commands of a table, then those that were registered."""

    table: Mapping[str, Later] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        listed = {name: TyperCommand(name, help=later.line) for name, later in self.table.items()}
        self.commands = {**listed, **self.commands}

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        """What cannot be read on the command line is refused like all else, in one line."""
        try:
            code = super().main(*args, **{**settings, "standalone_mode": False})
        except UsageError as error:
            code = error.exit_code
            _complain(error)
        sys.exit(code)

    def made(self, name: str) -> Any:
        """A sub-command with its options. Any: its class is click's or Typer's, by Typer's version."""
        return _made(name, self.table[name]) if name in self.table else self.commands[name]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, self.made(name) if name else None, rest


def late_app(table: Mapping[str, Later], **settings: Any) -> typer.Typer:
    """A Typer app of these sub-commands; more may be registered. settings: as of `typer.Typer`."""
    app = typer.Typer(cls=type("Group", (LateGroup,), {"table": table}), no_args_is_help=True, **settings)
    app.callback()(lambda: None)  # or Typer takes an app with one registered command for that command
    return app


@cache
def _made(name: str, later: Later) -> Any:
    found = later.load()
    if isinstance(found, typer.Typer):
        group = typer.main.get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    return typer.main.get_command(alone)


def _complain(error: Any) -> None:
    """The sentence of a UsageError; none where help was asked for, by giving nothing."""
    from tacit.cli.console import complain  # half of what `tacit --help` would load

    if message := error.format_message():
        more = "" if error.ctx is None else f"; `{error.ctx.command_path} --help` shows what it takes"
        complain(f"{' '.join(message.split()).removesuffix('.')}{more}.")
