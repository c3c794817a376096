"""`tacit view`: live pages of run folders."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import complaints
from tacit.cli.options import command
from tacit.process_limits import give_memory_back

if TYPE_CHECKING:
    from tacit.view import Viewing

# New objects between two looks for cycles: a run of many rounds makes hundreds of thousands that all stay, and by
# Python's own 700 a tenth of the time for its page was looking among them.
YOUNG = 50_000


@command
def view(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders of runs, servers or devices; left out, the current one.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; one that others reach needs --token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="The port; 0 is any that is free.")] = 8480,
    token: Annotated[
        str | None, typer.Option(help="What whoever looks must give; better the variable TACIT_VIEW_TOKEN.")
    ] = None,
    simulation: Annotated[
        bool, typer.Option("--simulation", help="Show exact numbers of clients' text, too: keep them to yourself.")
    ] = False,
    metrics: Annotated[
        list[str] | None,
        typer.Option(help="A server on this machine whose counts are shown, http://127.0.0.1:PORT/metrics; repeat it."),
    ] = None,
) -> None:
    """Show runs in a browser while they go on: answers, curves, words, people, a keyboard and a plan."""
    from tacit.view import view as serve_pages

    give_memory_back()  # of a large run, read and left
    gc.set_threshold(YOUNG)

    def viewing(told: "Viewing") -> None:
        complaints.print(str(told))

    serve_pages(
        folders or ["."],
        host=host,
        port=port,
        token=token,
        simulation=simulation,
        metrics=metrics or (),
        viewing=viewing,
    )
