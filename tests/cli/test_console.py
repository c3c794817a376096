"""How the command talks: one line for a refusal, exit code 2, one JSON object on one line."""

import errno
import io
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from typer.testing import CliRunner

from tacit.cli import console as talk
from tacit.cli import display as displays
from tacit.cli.blocks import print_blocks, print_table
from tacit.cli.commands import app as tacit
from tacit.cli.console import FAILED, Terminal, print_json, refusing_in_one_line, styled
from tacit.cli.display import display
from tacit.errors import AccountingError, InputError, RecipeError, RunError, TacitError
from tacit.files import as_path
from tacit.progress import Advanced, Event, StageBegan, Warned
from tacit.records import visible
from tacit.reports.blocks import Heading, Paragraph

REFUSALS: dict[str, Exception] = {
    "recipe": RecipeError("report_goal=500 exceeds the population of 20; use a report goal of at most 20."),
    "run": RunError("runs/demo is held by another trainer (process 7); wait for it or stop it."),
    "brackets": AccountingError("coefficients=[1.0, 2.0] increase; [bold]they[/bold] must not."),
    "long": TacitError("a sentence of many words " * 40 + "ends."),
    "full disk": OSError(errno.ENOSPC, "No space left on device", "runs/demo/run.db"),
    "rights": PermissionError(errno.EACCES, "Permission denied", "runs/demo"),
    "memory": MemoryError(),
    "depth": RecursionError("maximum recursion depth exceeded"),
    "two lines": InputError("a name\nof two lines"),
}


def refusing(error: Exception) -> typer.Typer:
    app = typer.Typer()

    @app.command()
    @refusing_in_one_line
    def refuse(times: Annotated[int, typer.Option(help="how often")] = 1) -> None:
        """Refuse."""
        raise error

    return app


@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_is_one_line_and_exit_code_2(error: Exception) -> None:
    result = CliRunner().invoke(refusing(error), [])
    assert result.exit_code == FAILED == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1, "one line, never wrapped"
    assert "Traceback" not in result.stderr
    if isinstance(error, TacitError):
        sentence = str(error).replace("\n", "\\n")
        assert result.stderr == f"error: {sentence}\n", "the message as it stands, square brackets included"


def test_a_full_disk_names_the_file_and_the_way_out() -> None:
    result = CliRunner().invoke(refusing(REFUSALS["full disk"]), [])
    for words in ("No space left on device", "runs/demo/run.db", "free space", "tacit resume"):
        assert words in result.stderr


def test_our_own_mistakes_are_not_dressed_up() -> None:
    result = CliRunner().invoke(refusing(ZeroDivisionError("a bug")), [])
    assert isinstance(result.exception, ZeroDivisionError)
    assert result.exit_code == 1


def test_a_plain_command_keeps_its_options_and_help() -> None:
    result = CliRunner().invoke(refusing(TacitError("no")), ["--help"])
    assert result.exit_code == 0
    assert "--times" in result.stdout
    assert "Refuse." in result.stdout


def test_json_is_one_line_that_every_reader_accepts(capsys: pytest.CaptureFixture[str]) -> None:
    values = {
        "epsilon": math.inf,
        "lowest": -math.inf,
        "zcdp": np.float64(0.5),
        "rounds": np.int64(2000),
        "nested": {"losses": (1.5, np.float32(math.inf))},
        "private": False,
        "language": "español",
    }
    print_json(values)
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert "Infinity" not in printed
    assert "español" in printed
    assert json.loads(printed) == {
        "epsilon": "inf",
        "lowest": "-inf",
        "zcdp": 0.5,
        "rounds": 2000,
        "nested": {"losses": [1.5, "inf"]},
        "private": False,
        "language": "español",
    }


# -- text of others ----------------------------------------------------------------------------------------------------

# Markup, colours, a cleared screen (in one byte, too), a bell, writing backwards, half a character.
HOSTILE = "m[/red] [bold]\\[/x] \x1b[31m\x9b2J\x07\r\u202e\udcff:smile:"
SHOWN = "m[/red] [bold]\\[/x] \\u001b[31m\\u009b2J\\u0007\\u000d\\u202e\\udcff:smile:"


def refuse(error: Exception) -> None:
    @refusing_in_one_line
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit):
        command()


def event(*told: Event) -> None:
    with display() as progress:
        for each in told:
            progress(each)


def table(*cells: str, **style: Any) -> None:
    rows = Table(*cells, title=HOSTILE, **style)
    rows.add_row(*cells)
    talk.console.print(rows)


MESSAGES: dict[str, Callable[[], None]] = {
    "a line": lambda: talk.console.print(HOSTILE),
    "a complaint": lambda: talk.complaints.print(f"path: {HOSTILE}", style="bold red"),
    "styled": lambda: talk.console.print(styled(HOSTILE, "bold"), HOSTILE),
    "a table": lambda: table(HOSTILE, box=None),
    "a table of figures": lambda: print_table((HOSTILE,), [(HOSTILE,)]),
    "a refusal": lambda: refuse(InputError(HOSTILE)),
    "the system's refusal": lambda: refuse(FileNotFoundError(errno.ENOENT, HOSTILE, HOSTILE)),
    "a warning": lambda: event(Warned("c", HOSTILE)),
    "a stage": lambda: event(StageBegan(HOSTILE, 1), Advanced(HOSTILE, 1)),
}


@pytest.mark.parametrize("terminal", [False, True], ids=["a file", "a terminal"])
@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_text_of_others_is_shown_and_not_obeyed(
    message: Callable[[], None], terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    eyes = Terminal(file=written, force_terminal=terminal, color_system=None, soft_wrap=True, width=300)
    monkeypatch.setattr(talk, "console", eyes)
    for module in (talk, displays):
        monkeypatch.setattr(module, "complaints", eyes)
    monkeypatch.setattr("tacit.cli.blocks.console", eyes)
    message()
    drawn = written.getvalue()
    for moves in ("\x1b[?25l", "\x1b[?25h", "\x1b[2K", "\x1b[1A", "\r"):  # rich's own, of bars
        drawn = drawn.replace(moves, "")
    assert SHOWN in drawn
    assert drawn == visible(drawn)


def test_json_for_a_terminal_says_the_same_and_moves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({HOSTILE: HOSTILE})
    printed = capsys.readouterr().out
    assert printed == visible(printed) and json.loads(printed) == {HOSTILE: HOSTILE}


@given(st.text(st.characters(max_codepoint=0xFFFF), max_size=20))
def test_what_is_visible_can_be_read_back(text: str) -> None:
    said = visible(text)
    assert all(letter.isprintable() or letter in "\t\n" or ord(letter) > 0x9F for letter in said)
    assert json.loads(f'"{visible(json.dumps(text, ensure_ascii=False)[1:-1])}"') == text
    assert visible(said) == said
    said.encode()  # no halves of characters


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["verify", "--" + HOSTILE], "No such option: --m"),
        ([HOSTILE], "No such command: m"),
        (["verify"], "Missing argument 'file'. `tacit verify --help` shows what it takes."),
        (["account", "tree", "--rounds", HOSTILE], "Invalid value for '--rounds'"),
        (["verify", HOSTILE[:-8]], "there is no statement 'm"),
        (
            ["verify", HOSTILE],
            "--file m[/red] [bold]\\[/x] \\u001b[31m",
        ),  # half a character: no file of ours could say it
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(asked: list[str], says: str) -> None:
    result = CliRunner().invoke(tacit, asked)
    assert (result.exit_code, result.stdout) == (FAILED, "")
    assert result.stderr.startswith(f"error: {says}") and result.stderr.count("\n") == 1
    assert result.stderr == visible(result.stderr)


SENTENCE = "a promise is kept whole " * 8 + "in/a/file/whose/name/is/not/broken"


def test_lines_stay_whole_in_a_pipe_and_words_in_a_window() -> None:
    pipe, window = io.StringIO(), io.StringIO()
    Terminal(file=pipe, width=40).print(SENTENCE)
    Terminal(file=window, width=40, force_terminal=True, color_system=None).print(SENTENCE)
    assert pipe.getvalue() == f"{SENTENCE}\n"
    lines = window.getvalue().splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 40
    assert [word for line in lines for word in line.split()] == SENTENCE.split()


def test_a_paragraph_under_a_heading_is_indented_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    window = io.StringIO()
    monkeypatch.setattr(
        "tacit.cli.blocks.console", Terminal(file=window, width=40, force_terminal=True, color_system=None)
    )
    print_blocks([Heading("Promise"), Paragraph(f"{SENTENCE}\n\n- one\n- two")])
    title, *lines = window.getvalue().splitlines()
    assert title == "Promise" and lines[-2:] == ["   - one", "   - two"]
    assert max(map(len, lines)) <= 40 and all(line.startswith("   ") for line in lines)
    assert [word for line in lines[:-2] for word in line.split()] == SENTENCE.split()


WORDS = "stackoverflow-nonprivate", "tacit data import stackoverflow:FILE.sqlite"


@pytest.mark.parametrize("width", [1, 20, 40])
def test_a_narrow_window_cuts_nothing_off(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tables and of paragraphs under a heading."""
    window = io.StringIO()
    there = Terminal(file=window, width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr("tacit.cli.blocks.console", there)
    print_table(("recipe", "made by"), [WORDS])
    assert set(" ".join(WORDS).split()) <= set(window.getvalue().split())
    print_blocks([Heading("Promise"), Paragraph(SENTENCE)])
    assert SENTENCE.split()[-1] in "".join(window.getvalue().split())


@pytest.mark.parametrize("columns", ["0", "-1", "", "many"])
def test_a_window_without_a_width_has_one(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", columns)
    there = Terminal(file=io.StringIO(), force_terminal=True)
    assert there.width > 0 and there.height > 0


@pytest.mark.parametrize("where", ["in it", "by a link"])
def test_a_place_whose_name_is_not_utf8_is_refused_before_anything_is_done(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record could say it: a run ended in a traceback after its last round."""
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    monkeypatch.chdir(place if where == "in it" else tmp_path)
    file = "recipe.toml" if where == "in it" else "link/recipe.toml"
    for asked in (["train", file, "--out", "run"], ["data", "show", file], ["verify", file]):
        result = CliRunner().invoke(tacit, asked)
        assert result.exit_code == FAILED and result.stderr.count("\n") == 1
        assert "caf\\udce9/recipe.toml is not UTF-8; write or rename it so." in result.stderr
    with pytest.raises(InputError, match="is not UTF-8"):
        as_path("run", place)
    with pytest.raises(InputError, match="has the character 0, which no path has"):
        as_path("run", "a\0b")
