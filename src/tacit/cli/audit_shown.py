"""How every audit ends: its table or JSON, and exit code 1 where a promise is broken."""

from typing import TYPE_CHECKING

import typer

from tacit.cli.blocks import say_blocks

if TYPE_CHECKING:
    from tacit.audit.finding import Findings

BROKEN = 1  # the exit code where a promise is refuted


def show_findings(found: "Findings", as_json: bool) -> None:
    """Print the findings. Raises: typer.Exit with BROKEN where one refutes its promise."""
    say_blocks(found, as_json)
    if found.broken:
        raise typer.Exit(BROKEN)
