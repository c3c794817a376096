"""`tacit view`: a server of live pages on this machine, until it is interrupted."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError
from tacit.extras import of_extra
from tacit.federation.kinds import loaded
from tacit.files import PathLike
from tacit.view.folders import Folders
from tacit.view.guard import checked_token, is_loopback
from tacit.view.metrics import Metrics

HOST, PORT = "127.0.0.1", 8480
TOKEN = "TACIT_VIEW_TOKEN"
THREADS = 8  # that make pages: each keeps some memory of the largest that it made
LEISURE = 1.0  # seconds after the start, when the first page is there
LOADED = ("tacit.view.pages.run", "tacit.reports.train_record", "tacit.reports.train", "tacit.reports.svg")
TRIED = 100  # ports after one that is taken


@dataclass(frozen=True, kw_only=True)
class Viewing:
    """Where the pages are."""

    url: str
    folders: tuple[Path, ...]
    simulation: bool
    token: bool

    def __str__(self) -> str:
        what = "all numbers, exact ones too: keep them to yourself" if self.simulation else "what may be published"
        login = "; it asks for the token" if self.token else ""
        return f"{self.url} shows {', '.join(map(str, self.folders))} ({what}){login}. Ctrl-C ends it."


def view(
    folders: Sequence[PathLike] = (".",),
    *,
    host: str = HOST,
    port: int = PORT,
    token: str | None = None,
    simulation: bool = False,
    metrics: Sequence[str] = (),
    viewing: Callable[[Viewing], None] = lambda told: None,
) -> None:
    """Serve live pages of the run folders in `folders`, and of those below, until interrupted.

    It reads these folders alone and writes nothing. Shown is what may be published; with `simulation` also exact
    numbers of clients' text. host: of this machine; one that others reach demands a `token` (left out, the variable
    TACIT_VIEW_TOKEN). port: 0 is any that is free. metrics: addresses of this machine
    at which servers say what they count. viewing: is told where, when it listens. Raises: InputError where a
    folder is none, the address is taken or needs a token, or Starlette is not installed.
    """
    of_extra("deployment")
    from tacit.view.application import application

    found = Folders(folders)
    said = os.environ.get(TOKEN) or None if token is None else token
    counts = Metrics(metrics)
    given = checked_token(said, loopback=is_loopback(host), host=host)
    with listening(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listener.getsockname()[1]}"
        viewing(Viewing(url=url, folders=found.roots, simulation=simulation, token=given is not None))
        app = application(found, host=host, token=given, simulation=simulation, metrics=counts)
        try:
            asyncio.run(_served(app, listener))
        except KeyboardInterrupt:
            return


async def _served(app: Any, listener: socket.socket) -> None:
    from anyio.to_thread import current_default_thread_limiter

    uvicorn = of_extra("deployment", "uvicorn")
    current_default_thread_limiter().total_tokens = THREADS
    asyncio.get_running_loop().call_later(LEISURE, threading.Thread(target=_load, daemon=True).start)
    settings = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1, server_header=False
    )
    await uvicorn.Server(settings).serve(sockets=[listener])


def _load() -> None:
    """What most pages of runs need, and the first page does not wait for."""
    for part in LOADED:
        loaded(part)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises: InputError where it cannot be had; of a port that is taken it names the next one
    that is free.
    """
    if not 0 <= port < 1 << 16:
        raise InputError(f"--port {port} is none; give one from 1 to 65535, or 0 for any that is free.")
    try:
        return _bound(host, port)
    except (OSError, UnicodeError) as error:
        free = next((each for each in range(port + 1, min(port + TRIED, 1 << 16)) if _is_free(host, each)), None)
        way_out = "give another --host" if free is None else f"--port {free} is free"
        number = error.errno if isinstance(error, OSError) else None
        why = os.strerror(number) if number is not None and number > 0 else str(error)
        raise InputError(f"--host {host[:80]} --port {port} cannot be listened on ({why}); {way_out}.") from None


def _bound(host: str, port: int) -> socket.socket:
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def _is_free(host: str, port: int) -> bool:
    try:
        _bound(host, port).close()
    except (OSError, UnicodeError):
        return False
    return True
