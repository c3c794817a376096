"""`tacit device`: one device, which comes by itself, decides for itself and keeps its own record."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tacit
from tacit.cli.console import console, say
from tacit.cli.options import Json, command
from tacit.errors import InputError
from tacit.process_limits import give_memory_back, no_core_dumps

if TYPE_CHECKING:  # what it needs is loaded when it runs
    from tacit.device.turn import SessionOutcome


@command
def device(
    state: Annotated[Path, typer.Option(help="Its folder: its record, policy.toml, the last model; made if missing.")],
    server: Annotated[
        str | None, typer.Option(help="The server: https://HOST, or http://127.0.0.1:PORT on this machine.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The cache with its owner's text.")] = None,
    population: Annotated[str, typer.Option(help="The population it belongs to, as recipes name it.")] = "default",
    client: Annotated[int | None, typer.Option(help="Whose text of the cache; left out where there is one.")] = None,
    journal: Annotated[
        Path | None, typer.Option(help="A folder outside --state, where its participations stand a second time.")
    ] = None,
    operator_key: Annotated[
        str | None, typer.Option(help="An operator's public key, 64 hexadecimal digits, pinned in --state: once.")
    ] = None,
    enrolment_code: Annotated[Path | None, typer.Option(help="A file with its code, where it needs one.")] = None,
    first_time: Annotated[
        bool, typer.Option("--first-time", help="It took part nowhere before, so a new record has all of its budget.")
    ] = False,
    onnx: Annotated[Path | None, typer.Option(help="Train without JAX, by the train.onnx of this export.")] = None,
    certificates: Annotated[
        Path | None, typer.Option(help="Believe the certificates of this PEM file in place of the system's.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once whether there is something to do.")] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Do nothing but show what left this device, to whom, and what is left;")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="and remove unused plans first, never what was spent;")
    ] = False,
    pause: Annotated[
        bool | None, typer.Option("--pause/--resume", help="and take part in nothing from now on, or again.")
    ] = None,
    json: Json = False,
) -> None:
    """Be one device: take part in rounds where the owner's policy and the device's record allow it."""
    if show or forget or pause is not None:
        say(
            tacit.device_status(state, journal=journal, pause=pause, forget=forget),
            json,
            lambda each: console.print(str(each)),
        )
        return
    if server is None or data is None:
        raise InputError("a device asks a server and has its owner's text: give --server and --data, or --show.")

    def told(outcome: "SessionOutcome") -> None:
        say(outcome, json, lambda each: console.print(str(each)))

    no_core_dumps()
    give_memory_back()
    tacit.run_device(
        server,
        data,
        state,
        journal=journal,
        population=population,
        client=client,
        operator_key=operator_key,
        enrolment_code=enrolment_code,
        first_time=first_time,
        onnx=onnx,
        certificates=certificates,
        once=once,
        told=told,
    )
