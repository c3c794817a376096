"""`tacit decryptor`: what a third party runs, so that no server alone can open a sum."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.console import complaints
from tacit.cli.options import BehindProxy, Host, TlsCert, TlsKey, command
from tacit.process_limits import no_core_dumps


@command
def decryptor(
    state: Annotated[Path, typer.Option(help="Its folder, with its secret keys and its answers; made if missing.")],
    least_reports: Annotated[int, typer.Option(help="It opens no sum of fewer reports, whatever it is asked.")],
    clients: Annotated[
        Path | None,
        typer.Option(help="A file with the identity of an enrolled client in each line; any client counts without it."),
    ] = None,
    contributors: Annotated[Path | None, typer.Option(help="Such a file of those who must add noise to a sum.")] = None,
    port: Annotated[int | None, typer.Option(help="Listen for a server by HTTP; 0 is any port that is free.")] = None,
    operator_key: Annotated[str | None, typer.Option(help="Whose server it answers, as `tacit serve` shows.")] = None,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_proxy: BehindProxy = False,
) -> None:
    """Keep shares of clients' keys, and open the sum of one agreed set a round: by HTTP, or by base64 lines.

    With --port it answers the server of one operator, and adds noise of its own to the sums of runs whose signed plan
    names it for that. Without, each line of standard input is a message, each line of
    standard output the answer to it, empty where there is none (docs/secure-aggregation-protocols.md). Standard error
    shows its public keys, and why it refused what it did.
    """
    no_core_dumps()
    front = None
    if (port, operator_key, host, tls_cert, tls_key, behind_proxy) != (None, None, "127.0.0.1", None, None, False):
        front = tacit.DecryptorAddress.from_folder(
            operator_key, port, host, tls_cert, tls_key, behind_proxy=behind_proxy
        )
    desk = tacit.decryptor(state, least_reports=least_reports, clients=clients, contributors=contributors)
    typer.echo(desk, err=True)
    if front is not None:
        front.listen(desk, told=complaints.print)
        return
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]  # what is no text is refused as no base64
    if sys.stdin.isatty():
        complaints.print("waiting for messages in base64, one in a line; Ctrl-D ends it", style="dim")
    for answer in desk.answers(sys.stdin, refused=lambda why: complaints.print("refused:", why)):
        typer.echo(answer)
        sys.stdout.flush()
