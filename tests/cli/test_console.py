"""How the command talks: one line for a refusal, exit code 2, one JSON object on one line."""

import errno
import json
import math
from typing import Annotated

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tacit.cli.console import FAILED, print_json, refusing_in_one_line
from tacit.errors import AccountingError, RecipeError, RunError, TacitError

REFUSALS: dict[str, Exception] = {
    "recipe": RecipeError("report_goal=500 exceeds the population of 20; use a report goal of at most 20."),
    "run": RunError("runs/demo is held by another trainer (process 7); wait for it or stop it."),
    "brackets": AccountingError("coefficients=[1.0, 2.0] increase; [bold]they[/bold] must not."),
    "long": TacitError("a sentence of many words " * 40 + "ends."),
    "full disk": OSError(errno.ENOSPC, "No space left on device", "runs/demo/run.db"),
    "rights": PermissionError(errno.EACCES, "Permission denied", "runs/demo"),
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
        assert result.stderr == f"error: {error}\n", "the message as it stands, square brackets included"


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
