"""The commands that read a run folder, invoked in the tests' own process: as people see them, and as programs do."""

import json
from pathlib import Path
from typing import Any

import typer
from click.testing import Result
from typer.testing import CliRunner

from tacit.cli import account
from tacit.cli.report import compare, report

app = typer.Typer()
app.command("report")(report)
app.command("compare")(compare)
app.add_typer(account.app, name="account")


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def values_of(*words: str | Path) -> dict[str, Any]:
    """The JSON object that it prints, on one line."""
    result = invoke(*words, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    return dict(json.loads(result.stdout))
