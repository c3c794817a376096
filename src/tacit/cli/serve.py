"""`tacit serve`: a server of real devices, its coordinators and workers, on this machine."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tacit
from tacit.cli.console import complaints, say
from tacit.cli.options import BehindProxy, Host, Json, Sets, TlsCert, TlsKey, command
from tacit.errors import InputError
from tacit.files import read_bounded
from tacit.process_limits import no_core_dumps

if TYPE_CHECKING:  # what it needs is loaded when it runs
    from tacit.server.serve import Serving

TOKEN = "TACIT_ADMIN_TOKEN"


@command
def serve(
    out: Annotated[Path, typer.Option(help="Its folder: runs/NAME, and what is not named below; made if missing.")],
    recipes: Annotated[
        list[Path] | None,
        typer.Argument(help="Recipes with [deployment], files of other kinds; none: workers."),
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="sqlite:///PATH or postgresql://...", show_default="OUT/store.db")
    ] = None,
    blobs: Annotated[
        str | None, typer.Option(help="file:///FOLDER, s3://BUCKET/PREFIX, gs://...", show_default="OUT/blobs")
    ] = None,
    operator_key: Annotated[
        Path | None,
        typer.Option(help="The file of the key that signs plans; made if missing.", show_default="OUT/operator.key"),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A cache in place of the recipes' data.cache.")] = None,
    workers: Annotated[int, typer.Option(help="Processes that answer devices.")] = 2,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 is any that is free.")] = 8470,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_proxy: BehindProxy = False,
    admin_token_file: Annotated[
        Path | None, typer.Option(help=f"A file with the administrator's token; or the variable {TOKEN}.")
    ] = None,
    enrolment_codes: Annotated[
        Path | None, typer.Option(help="A file of secret codes, a line for each device; without it all may take part.")
    ] = None,
    without_enrolment: Annotated[
        bool, typer.Option("--without-enrolment", help="Let all take part where decryptors open the sums, too.")
    ] = False,
    web: Annotated[
        Path | None,
        typer.Option(help="A folder with a built page, served here too: for demonstrations (docs/deploy.md)."),
    ] = None,
    web_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL", help="Let pages of this origin be devices, https://HOST say; may be given several times."
        ),
    ] = None,
    upgrade_store: Annotated[
        bool, typer.Option("--upgrade-store", help="Bring the store of an older version up to this one.")
    ] = False,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Serve devices until every recipe is trained: coordinators make the rounds, workers answer, both are watched."""

    from tacit.jobs.changed_recipe import changed_rounds

    def serving(told: "Serving") -> None:
        complaints.print(str(told))

    no_core_dumps()
    address = tacit.Address(host=host, port=port, tls_certificate=tls_cert, tls_key=tls_key, behind_proxy=behind_proxy)
    result = tacit.serve(
        [changed_rounds(each, sets) for each in recipes] if recipes and sets else recipes or [],
        out,
        store=store,
        blobs=blobs,
        operator_key=operator_key,
        data=data,
        workers=workers,
        address=address,
        admin_token=_token(admin_token_file),
        enrolment_codes=enrolment_codes,
        without_enrolment=without_enrolment,
        web=web,
        web_origins=web_origin or (),
        upgrade_store=upgrade_store,
        serving=serving,
    )
    say(result, json, lambda each: typer.echo(str(each)))


def _token(file: Path | None) -> str | None:
    """The administrator's, never from the command line, which others on the machine see."""
    if file is None:
        return os.environ.get(TOKEN)
    try:
        return read_bounded(file).decode("utf-8").strip()
    except (OSError, ValueError) as error:
        raise InputError(f"--admin-token-file '{file}' cannot be read ({error}); give a file with the token.") from None
