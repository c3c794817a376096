"""`tacit verify`: whether a privacy statement says what follows from the facts in it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.account_options import Json
from tacit.cli.console import console, print_json, speaks_plainly
from tacit.errors import InputError
from tacit.statements.verify import CheckedLine, verify

CHANGED = 1  # the exit code of a statement with a line that fails


@speaks_plainly
def verify_statement(
    file: Annotated[Path, typer.Argument(help="A report/statement.json of a run or of a campaign for new words.")],
    as_json: Json = False,
) -> None:
    """Recompute every figure, label and sentence of a statement from its facts; exit code 1 if a line fails."""
    lines = verify(_read(file))
    failed = [line for line in lines if not line.holds]
    if as_json:
        print_json(
            {
                "statement": str(file),
                "verified": not failed,
                "checked": len(lines),
                "failed": [{"line": line.name, "complaint": line.complaint} for line in failed],
            }
        )
    else:
        _show(lines, failed)
    if failed:
        raise typer.Exit(CHANGED)


def _read(file: Path) -> object:
    if file.is_dir():
        raise InputError(f"'{file}' is a folder; name a statement in it, such as {file}/report/statement.json.")
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"there is no statement '{file}'; `tacit account run ... --statement` and `tacit discover` write one."
        ) from None
    except ValueError as error:
        raise InputError(f"'{file}' is not JSON ({error}); ask for the file again.") from error


def _show(lines: tuple[CheckedLine, ...], failed: list[CheckedLine]) -> None:
    for line in lines:
        console.print(f"ok     {line.name}" if line.holds else f"FAILS  {line.name}: {line.complaint}", markup=False)
    if failed:
        console.print(f"{len(failed)} of {len(lines)} lines FAIL: this is not a statement of its own facts.")
    else:
        console.print(f"All {len(lines)} lines follow from the facts. Whether the facts are true is not checked.")
