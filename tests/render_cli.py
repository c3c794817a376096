"""The command-line page, made from the command itself: a section and its tables for each command; `make rendered`."""

import re
from collections.abc import Iterator
from typing import Any

import typer
from tests.conftest import REPOSITORY

from tacit.cli.commands import PANELS
from tacit.cli.groups import LateGroup

PAGE = REPOSITORY / "docs" / "cli.md"
OPENING = """# The command line

Made from the command itself by `make rendered`; a test compares the two. A refusal is one line on standard error and
exit code 2. Every command that computes has `--json`, one JSON object on standard output; every command has `--help`.

"""
EVERYWHERE = {"--help"}  # said above
EXTRA = re.compile(r"^(?P<meaning>.*?)(?:  \[(?P<extra>[^\]]*(?:\][^\]]+)*)\])?$", re.DOTALL)
MARKDOWN = re.compile(r"([\\*_<\[\]|])")
A_PAGE = re.compile(r"docs/(?:(results)/)?([\w-]+)\.md(#[\w-]+)?")


def render_cli_help() -> str:
    """The whole page: what there is, and one section for each command, groups before what they hold."""
    from tacit.cli.commands import app

    found = commands(typer.main.get_command(app), "tacit")
    return "".join([OPENING, overview(), *(section(path, each) for path, each in found)])


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The command and all that hang from it, each with what a user types.

    Any: the class of a command is click's or Typer's own copy of it, by Typer's version.
    """
    command.rich_markup_mode = None  # Typer's own switch to plain text
    yield path, command
    for name, listed in getattr(command, "commands", {}).items():
        child = command.made(name) if isinstance(command, LateGroup) else listed
        if not child.hidden:
            yield from commands(child, f"{path} {name}")


def overview() -> str:
    """The commands in their groups, as `tacit --help` lists them."""
    rows = [
        f"| {panel} | {', '.join(f'[{name}](#tacit-{name})' for name in names)} |" for panel, names in PANELS.items()
    ]
    return table(("for", "commands"), rows)


def section(path: str, command: Any) -> str:
    """What a command does, how it is typed, what it takes and what it holds."""
    context = command.make_context(path, [], resilient_parsing=True)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    parts = [f"\n## `{path}`\n\n", *(f"{prose(each)}\n\n" for each in (command.help or "").split("\n\n"))]
    parts.append(f"```text\n{usage}\n```\n")
    taken = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    for kind in ("argument", "option"):
        rows = [row(each, context) for each in taken if each.param_type_name == kind and not EVERYWHERE & {*each.opts}]
        if rows:
            parts.append("\n" + table((kind, "default", "meaning"), rows))
    below = getattr(command, "commands", {})
    if below and path != "tacit":  # the page begins with those
        rows = [
            f"| [{name}](#{path.replace(' ', '-')}-{name}) | {first_line(each)} |"
            for name, each in below.items()
            if not each.hidden
        ]
        parts.append("\n" + table(("command", "what it does"), rows))
    return "".join(parts)


def row(parameter: Any, context: Any) -> str:
    """An option's line of its table: how it is typed, what it is where it is left out, what it means."""
    typed, said = parameter.get_help_record(context)
    found = EXTRA.fullmatch(said)
    assert found is not None, said
    extras = (found["extra"] or "").split("; ")
    defaults = [each.removeprefix("default: ") for each in extras if each.startswith("default: ")]
    default = "**required**" if "required" in extras else shown_default(defaults[0] if defaults else "")
    return f"| {code(typed)} | {default} | {prose(found['meaning'])} |"


def shown_default(default: str) -> str:
    """A value as it is typed; a sentence, which Typer puts in brackets, without them; nothing for none."""
    if default.startswith("(") and default.endswith(")"):
        inside = default[1:-1]
        return "" if inside == "none" else prose(inside)
    return code(default) if default else ""


def first_line(command: Any) -> str:
    """What a list says of a command."""
    return prose((command.help or "").partition("\n\n")[0])


def code(text: str) -> str:
    """Text as it is typed, in a cell of a table."""
    return "`" + text.replace("|", "\\|") + "`"


def prose(text: str) -> str:
    """Help as Markdown: its signs are no markup, what stands between backticks stays, and a page is a link."""
    pieces = " ".join(text.split()).split("`")
    pieces[::2] = [A_PAGE.sub(_link, MARKDOWN.sub(r"\\\1", piece)) for piece in pieces[::2]]
    pieces[1::2] = [piece.replace("|", "\\|") for piece in pieces[1::2]]
    return "`".join(pieces)


def _link(found: re.Match[str]) -> str:
    folder, name, heading = found.groups()
    return f"[{name}]({f'{folder}/' if folder else ''}{name}.md{heading or ''})"


def table(heads: tuple[str, ...], rows: list[str]) -> str:
    """Rows of Markdown under their heads."""
    return "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows, ""])


def main() -> None:
    """Write docs/cli.md."""
    PAGE.write_text(render_cli_help(), encoding="utf-8")


if __name__ == "__main__":
    main()
