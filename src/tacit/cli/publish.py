"""`tacit publish`: a built page's bundle, in a transparency log that everybody can read."""

from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.console import say
from tacit.cli.options import Json, command


@command
def publish(
    bundle: Annotated[Path, typer.Argument(help="The folder that the page was built into.")],
    operator_key: Annotated[
        Path, typer.Option(help="The file of the key that signs the log, a server's or your own; made if missing.")
    ],
    store: Annotated[
        str | None,
        typer.Option(
            help="Of the log: sqlite:///PATH or postgresql://...", show_default="store.db beside the operator's key"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Enter the bundle of a built page into a transparency log, and write the log beside it.

    A page that was built with --publisher takes another bundle only where it stands in that key's log.
    """
    say(tacit.publish(bundle, operator_key, store=store), json, lambda each: typer.echo(str(each)))
