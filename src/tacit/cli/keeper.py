"""`tacit keeper`: what a third party runs, so that no server alone can open a sum."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.console import complaints
from tacit.cli.options import command


@command
def keeper(
    state: Annotated[Path, typer.Option(help="Its folder, with its secret keys and its answers; made if missing.")],
    least_reports: Annotated[int, typer.Option(help="It opens no sum of fewer reports, whatever it is asked.")],
    clients: Annotated[
        Path | None,
        typer.Option(help="A file with the identity of an enrolled client in each line; any client counts without it."),
    ] = None,
    contributors: Annotated[
        Path | None,
        typer.Option(help="Such a file of those who must add noise; rounds without one of them are refused."),
    ] = None,
) -> None:
    """Keep shares of clients' keys, and open the sum of one agreed set a round: base64 lines in, base64 lines out.

    Each line of standard input is a message, each line of standard output the answer to it, empty where there is none
    (docs/secure-aggregation-protocols.md). Standard error shows its public keys, and why it refused what it did.
    """
    desk = tacit.keeper(state, least_reports=least_reports, clients=clients, contributors=contributors)
    typer.echo(desk, err=True)
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]  # what is no text is refused as no base64
    if sys.stdin.isatty():
        complaints.print("waiting for messages in base64, one in a line; Ctrl-D ends it", style="dim")
    for answer in desk.answers(sys.stdin, refused=lambda why: complaints.print("refused:", why)):
        typer.echo(answer)
        sys.stdout.flush()
