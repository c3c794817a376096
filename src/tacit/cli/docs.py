"""`tacit docs`: the pages of the documentation, in a browser."""

from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.console import say_loudly
from tacit.cli.options import Json, command


@command
def docs(
    page: Annotated[str, typer.Argument(help="A page by its name: planning, results/people.")] = "index",
    only_print: Annotated[bool, typer.Option("--print", help="Open nothing; say where the page is.")] = False,
    json: Json = False,
) -> None:
    """Open the documentation in a browser, from this machine, and say where it is."""
    from tacit.jobs.documentation import documentation

    found = documentation(page)
    say_blocks(found, json)
    if found.html is not None and not (only_print or json):
        import webbrowser

        if not webbrowser.open_new_tab(found.address):
            say_loudly("No browser could be started here; open that file in one.")
