"""Sub-commands that are imported when they are called: `--help` lists them by a line each."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

UsageError: Any = typer.BadParameter.__base__  # Typer's own or click's, by Typer's version


LIKE = 0.75  # of two names of options without their dashes: "epsilom" is like "epsilon", "json" is not


class Later(NamedTuple):
    """A sub-command, or a group of them, that is not made yet."""

    line: str
    """What `--help` shows of it: a test compares it with the command."""
    load: Callable[[], Any]
    """Its function, or its Typer app."""
    is_group: bool = False
    """Whether it is an app."""


def at(place: str, line: str) -> Later:
    """What stands at `module:name` of `tacit.cli`."""
    module, _, name = place.partition(":")
    return Later(line, lambda: getattr(import_module(f"tacit.cli.{module}"), name), is_group=name == "app")


class LateGroup(TyperGroup):
    """The sub-commands of a table, then those that were registered."""

    table: Mapping[str, Later] = {}
    panels: Mapping[str, Sequence[str]] = {}
    """Under which heading `--help` lists which sub-commands; without any, all under one."""

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

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """All of each one's line: Typer's own would be cut to a line of the window."""
        lines = {
            name: (each.help or "").partition("\n\n")[0] for name, each in self.commands.items() if not each.hidden
        }
        for heading, names in (self.panels or {"Commands": list(lines)}).items():
            with formatter.section(heading):
                formatter.write_dl([(name, lines[name]) for name in names])

    def made(self, name: str) -> Any:
        """A sub-command with its options. Any: its class is click's or Typer's, by Typer's version."""
        return _made(name, self.table[name]) if name in self.table else self.commands[name]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        try:
            name, _, rest = super().resolve_command(ctx, args)
        except UsageError as error:
            if not hasattr(error, "possibilities"):  # an option has its own
                error.message, error.possibilities = f"No such command: {args[0]}", self.like(args[0])
            raise
        return name, self.made(name) if name else None, rest

    def like(self, word: str) -> list[str]:
        """What was meant by the word: a sub-command or option, or else a command below one; none if none is like it."""
        here = _nearest(word, [*self.commands, *(option for each in self.params for option in each.opts)])
        if here or not self.table:
            return here
        groups = {name: self.made(name) for name, later in self.table.items() if later.is_group}
        below = {each: f"{name} {each}" for name, made in groups.items() for each in made.commands}
        return [below[name] for name in _nearest(word, list(below))]


def late_app(
    table: Mapping[str, Later] = MappingProxyType({}),
    panels: Mapping[str, Sequence[str]] = MappingProxyType({}),
    begin: Callable[..., None] | None = None,
    cls: type[LateGroup] = LateGroup,
    **settings: Any,
) -> typer.Typer:
    """A Typer app of these sub-commands; more may be registered. settings: as of `typer.Typer`.

    panels: the headings of `--help`, each with the names below it; without any, one heading. begin: what is called
    before any of them, and where none was given, in place of help.
    """
    group = type("Group", (cls,), {"table": table, "panels": panels})
    app = typer.Typer(cls=group, rich_markup_mode=None, invoke_without_command=True, **settings)  # plain help: a third
    app.callback()(begin or _help)  # or Typer takes an app with one registered command for that command
    return app


def _help(context: typer.Context) -> None:
    """Where no command was given, what there is to give, on standard error: whoever reads the output asked for more."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def _nearest(word: str, names: Sequence[str], like: float = 0.7) -> list[str]:
    """The name that the word begins, or the one most like it."""
    return [name for name in names if name.startswith(word)][:1] or get_close_matches(word, names, n=1, cutoff=like)


def _instead_of(option: str, ctx: Any) -> str:
    """What to write for an option that a command does not have: its own of a near name, a key of the recipe that it
    reads, or a command that has it.
    """
    own = [name for each in ctx.command.params for name in each.opts if name.startswith("--")]
    near = _nearest(option.lstrip("-"), [name.lstrip("-") for name in own], LIKE)
    if near:
        return f"; did you mean --{near[0]}?"
    if "--set" in own and any(each.name == "recipe" for each in ctx.command.params):
        from tacit.jobs.changed_recipe import key_called

        key = key_called(option.lstrip("-").replace("-", "_"))
        if key is not None:
            return f"; it is a key of the recipe, so write --set {key}=VALUE."
    there = [path for path, command in _commands(ctx.find_root().command, "tacit") if _has(command, option)]
    if not there:
        return "."
    beside = ctx.command_path.rpartition(" ")[0]
    first, *others = sorted(there, key=lambda path: not path.startswith(f"{beside} ") or beside == "tacit")
    more = f" and {len(others)} other command{'s' if len(others) > 1 else ''}" if others else ""
    return f"; `{first}`{more} {'have' if others else 'has'} it."


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, by what one types."""
    for name in group.commands:
        made = group.made(name)
        if isinstance(made, LateGroup):
            yield from _commands(made, f"{path} {name}")
        else:
            yield f"{path} {name}", made


def _has(command: Any, option: str) -> bool:
    return any(option in each.opts for each in command.params)


@cache
def _made(name: str, later: Later) -> Any:
    found = later.load()
    if isinstance(found, typer.Typer):
        group = typer.main.get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(found)
    return typer.main.get_command(alone)


def _complain(error: Any) -> None:
    """The sentence of a UsageError."""
    from tacit.cli.console import complain  # half of what `tacit --help` would load

    message = " ".join(error.format_message().split()).removesuffix(".")
    option = getattr(error, "option_name", None)
    if hasattr(error, "possibilities") and option is not None and error.ctx is not None:
        sentence = f"No such option: {option}{_instead_of(option, error.ctx)}"
    else:
        nearest = next(iter(getattr(error, "possibilities", None) or ()), None)
        sentence = f"{message}." if nearest is None else f"{error.message}; did you mean {nearest}?"
    more = "" if error.ctx is None else f" `{error.ctx.command_path} --help` shows what it takes."
    complain(f"{sentence}{more}")
