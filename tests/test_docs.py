"""Documentation is executed: Python runs, `tacit account` prints what is shown, the CLI page is current."""

import json
import re
import shlex
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY
from tests.render_cli import PAGE, render_cli_help
from typer.testing import CliRunner

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECKED_COMMAND = "$ tacit account"  # fast and exact; training sessions are shown, not run


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line its text begins at."""

    language: str
    text: str
    line: int


def blocks(page: Path, language: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = [Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1) for match in FENCE.finditer(text)]
    return [block for block in found if block.language == language]


def sessions(page: Path) -> list[tuple[str, str]]:
    """(command, shown output) of each `$ tacit account ...` in the page's console blocks."""
    found: list[tuple[str, str]] = []
    for block in blocks(page, "console"):
        text = block.text.replace("\\\n", " ")  # a command may go on after a backslash
        for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE):
            if part.startswith(CHECKED_COMMAND):
                command, _, output = part.partition("\n")
                found.append((command.removeprefix("$ tacit "), output))
    return found


SESSIONS = [(page, *session) for page in PAGES for session in sessions(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after another in one namespace, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page, "python"):
        padded = "\n" * (block.line - 1) + block.text  # a failure then points at the page's own line
        exec(compile(padded, str(page), "exec"), namespace)


@pytest.mark.parametrize(("page", "command", "shown"), SESSIONS, ids=[session[1] for session in SESSIONS])
def test_account_sessions_print_what_they_show(page: Path, command: str, shown: str) -> None:
    from tacit.cli.commands import app

    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, f"{page.name}: tacit {command}\n{result.output}"
    if shown.lstrip().startswith("{"):  # JSON may be shown on several lines, and some of its keys only
        printed = json.loads(result.stdout, parse_float=Decimal)
        for key, wanted in json.loads(shown, parse_float=Decimal).items():
            assert as_precise_as(wanted, printed.get(key)) == wanted, f"{page.name}: {key} is {printed.get(key)}"
    else:
        assert lines(result.stdout) == lines(shown)


def as_precise_as(wanted: Any, printed: Any) -> Any:
    """The printed value with as many decimals as the page shows."""
    both_numbers = isinstance(wanted, Decimal) and isinstance(printed, Decimal | int)
    return Decimal(printed).quantize(wanted) if both_numbers else printed


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_cli_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_cli_help(), "docs/cli.md is old; run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_named_in_the_docs_exist(page: Path) -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    mentioned = set(re.findall(r"`make ([\w-]+)`", page.read_text(encoding="utf-8")))
    assert mentioned <= targets, f"{page.name} names {sorted(mentioned - targets)}; the Makefile has no such target"
